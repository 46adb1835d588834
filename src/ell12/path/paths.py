"""Solutions over a grid of strengths, each run beginning where the last one ended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import (
    as_floating,
    as_numpy,
    beside,
    count_true,
    indices_like,
    is_array,
    is_numpy,
    namespace,
    on_accelerator,
    refuse_gradient,
    total,
)
from ell12.checks import check_entries, check_flags, check_l2_weight, check_scalars, naming
from ell12.losses import SquaredLoss
from ell12.minimization import DataUnavailable, Result, Status, minimize
from ell12.minimization.needs import unmet
from ell12.minimization.run import collected
from ell12.minimization.stalling import admit_rounding, gradient_rounding
from ell12.minimization.start import as_unknown
from ell12.operators import as_operator, output_shape
from ell12.operators.sources import as_columns
from ell12.path.screened import screened_path
from ell12.path.strengths import (
    alpha_grid,
    falling,
    first_strength,
    grid_size,
    one_sparse_fit,
    vanishing_strength,
)
from ell12.path.structure import l12_penalty
from ell12.protocols import Array, FarLoss, Solver, offers, session_of, with_alpha
from ell12.solvers import NonmonotoneAPG, WorkingSet
from ell12.solvers.support.hosting import hosted_penalty

# From the host a path over data on a GPU is followed while no solution has more entries; nmAPG goes on from there
# on the device. On 20,000 x 80,000 a path of 50 strengths down to 1000 entries took 0.5 s from the host and 3.7 s
# side by side; one down to 7000 took 25 s and 3.7 s.
MOST_ENTRIES = 1500


def solution_path(
    loss: Any,
    penalty: Any,
    alphas: Sequence[float],
    x0: Array | None = None,
    *,
    warm_start: bool = True,
    tol: float = 1e-4,
    sparse: bool = False,
    most_entries: float = math.inf,
    **options: Any,
) -> list[Result]:
    """Minimise the loss plus the penalty at each of these strengths in turn; options go to `ell12.minimize`.

    With ``warm_start`` each run begins where the last one ended, unless that diverged. Without it all begin at
    ``x0``. No run asks for a stationarity below the rounding of the gradient, which in float32 and at small alpha
    lies above the usual tol. Where it lies far above, the status says that rounding ended the run. With ``sparse``
    every solution is a `scipy.sparse.csc_array` of one column: many vectors of many entries fill a memory. It ends
    after a solution with more than ``most_entries`` that are not zero.
    """
    loss = session_of(loss)  # one memory for the whole path
    results = _leading_results(loss, penalty, alphas, x0, warm_start=warm_start, tol=tol, **options)
    if len(results) == len(alphas):
        return results
    if results:  # with more entries than working sets take
        options["solver"] = NonmonotoneAPG()
    strengths = np.array([float(alpha) for alpha in alphas])
    attainable = np.maximum(tol, gradient_rounding(loss, tol) / np.where(strengths > 0, strengths, 1.0))
    parts = (loss, penalty, strengths, x0, options, sparse, most_entries)
    follower = screened_path(*parts) if warm_start else None
    with _keeping(results):
        while len(results) < len(strengths) and not (results and _entries(results[-1].x) > most_entries):
            done, start = len(results), x0
            if follower is not None:
                block = follower.next_block(strengths[done:], attainable[done:])
                results += [admit_rounding(replace(result, tol=tol), tol) for result in block]
                if len(results) > done:
                    continue
                start = follower.x
            elif warm_start and results and math.isfinite(results[-1].objective):
                start = _dense(results[-1].x)
            alpha = float(strengths[done])
            result = minimize(
                loss, with_alpha(penalty, alpha), start, tol=float(attainable[done]), **collected(options)
            )
            found = replace(result, x=scipy.sparse.csc_array(result.x[:, None])) if sparse else result
            results.append(admit_rounding(found, tol))
            if follower is not None and math.isfinite(result.objective):
                follower.restart(alpha, result.x)
    return results


def _leading_results(loss: Any, penalty: Any, alphas: Any, x0: Array | None, **options: Any) -> list[Result]:
    """The solutions over data on a device that are found from the host: while few of their entries are in use."""
    zero, known = loss.start(), {"warm_start", "tol", "max_iter", "max_seconds", "stop"}
    plain = {key for key, value in options.items() if value is not None} <= known
    if not is_array(zero) or is_numpy(zero) or not plain or unmet(WorkingSet(), loss, penalty, zero):
        return []
    start = None if x0 is None else as_numpy(as_unknown(loss, x0, "x0"))
    options["most_entries"] = MOST_ENTRIES if on_accelerator(zero) else math.inf
    found = solution_path(loss.on_host(), hosted_penalty(penalty), alphas, start, **options)
    return [replace(result, x=indices_like(result.x, zero)) for result in found]


def _entries(x: Any) -> int:
    """How many are not zero."""
    return x.nnz if scipy.sparse.issparse(x) else count_true(x != 0)


@contextmanager
def _keeping(results: list[Result]) -> Iterator[None]:
    """Where data are lost, the error holds what was solved before."""
    try:
        yield
    except DataUnavailable as error:
        error.results = list(results)
        if error.result is None and results:
            error.result = replace(results[-1], status=Status.DATA_LOST)
        raise


def penalty_path(
    loss: Any,
    penalty: Any,
    alphas: Any = None,
    *,
    n_alphas: int = 100,
    eps: float = 1e-3,
    warm_start: bool = True,
    solver: Solver | None = None,
    tol: float = 1e-4,
    max_iter: int = 10_000,
) -> tuple[Array, Array, list[Result]]:
    """Minimise ``loss + penalty`` over a grid of strengths: the general form of `l12_path`.

    Parameters
    ----------
    loss : Loss
        Such as `ell12.LogisticLoss`.
    penalty : Penalty
        Such as `ell12.MCP`; its own strength is not used.
    alphas : int or array, optional
        The grid; it is sorted to fall. A number, or by default ``n_alphas``, of values from where zero is a
        solution down to ``eps`` times that. Where zero is one for no strength, as for `ell12.L12` at
        ``l2_weight=1``, give them.
    n_alphas, eps, warm_start, solver, tol, max_iter
        As in `l12_path`.

    Returns
    -------
    alphas : array of shape (n_alphas,)
        Falling.
    solutions : array
        One for each alpha, side by side along the last axis; sparse columns where those of the loss's A are out of
        memory (`ell12.Columns`).
    results : list of Result
        One for each alpha.

    See Also
    --------
    l12_path : Solutions for many strengths.
    minimize : Solve any problem of a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import MCP, SquaredLoss, penalty_path
    >>> alphas, x, _ = penalty_path(SquaredLoss(np.eye(3), [4.0, 2.0, 1.0]), MCP(), n_alphas=3, eps=0.25)
    >>> alphas.round(4), np.count_nonzero(x, axis=0)
    (array([4., 2., 1.]), array([0, 1, 2]))
    """
    size = grid_size(alphas, n_alphas)
    if size is not None:
        alphas = alpha_grid(vanishing_strength(loss, penalty), size, eps)
    alphas = falling(alphas)
    options: dict[str, Any] = {"solver": solver, "max_iter": max_iter}
    options["sparse"] = is_sparse_path(loss)
    results = solution_path(loss, penalty, alphas, warm_start=warm_start, tol=tol, **options)
    return alphas, _side_by_side_columns(results), results


def is_sparse_path(loss: Any) -> bool:
    """Whether solutions are given as sparse columns: where columns of A are out of memory, x is long too."""
    return offers(loss, FarLoss) and loss.is_far and loss.start().ndim == 1


def _side_by_side_columns(results: list[Result]) -> Array:
    """The solutions, one in each column."""
    if scipy.sparse.issparse(results[0].x):
        return scipy.sparse.hstack([result.x for result in results], format="csc")
    return namespace(results[0].x).stack([result.x for result in results], axis=-1)


def _dense(x: Any) -> Array:
    return x.toarray()[:, 0] if scipy.sparse.issparse(x) else x


def l12_path(
    X: Any,
    y: Any,
    *,
    alphas: Any = None,
    n_alphas: int = 100,
    eps: float = 1e-3,
    l2_weight: float = 1.0,
    weights: Any = None,
    positive: bool = False,
    ridge: float = 0.0,
    sample_weight: Any = None,
    warm_start: bool = True,
    together: bool | None = None,
    solver: Solver | None = None,
    tol: float = 1e-4,
    max_iter: int = 10_000,
) -> tuple[Array, Array, list[Result]]:
    """Sparse linear regression for many strengths.

    Minimises ``1/(2n) ||y - X c||^2 + alpha (||c||_1 - l2_weight ||c||_2 + ridge/2 ||c||_2^2)`` over many alpha.

    Parameters
    ----------
    X : array, sparse matrix or operator of shape (n, p)
        Columns, also such that memory does not hold (`ell12.Columns`). There is no intercept: centre X and y, or
        use `ell12.L12RegressorCV`.
    y : array of shape (n,)
        Observations.
    alphas : int or array, optional
        The grid; it is sorted to fall. A number, or by default ``n_alphas``, of values from `alpha_max` to ``eps``
        times that.
    n_alphas, eps : int, float, default 100 and 1e-3
        Length and reach of the default grid.
    l2_weight : float, default 1.0
        Weight of the subtracted norm, from 0 to 1.
    weights, positive, ridge
        As in `ell12.L12`.
    sample_weight : array of shape (n,), optional
        Weights of the squares, whose sum then stands for n.
    warm_start : bool, default True
        Begin each run where the last one ended. That is faster; since the problem is not convex, the path may end
        at another stationary point, of higher or lower objective, than a run that begins at zero.
    together : bool, optional
        Solve for all alphas side by side by `ell12.path.columnwise.ColumnwiseAPG`, from zero, with products of
        matrices; ``warm_start`` and ``solver`` do not count then. By default, where X is on a GPU, no ``solver``
        is given and all alphas are positive, for the alphas that follow a solution with more than 1500 entries:
        up to there, and everywhere on a CPU, warm starts are faster.
    solver, tol, max_iter
        As in `ell12.minimize`.

    Returns
    -------
    alphas : array of shape (n_alphas,)
        Falling.
    coefs : array of shape (p, n_alphas)
        Solutions, side by side; a `scipy.sparse.csc_array` where X is an `ell12.Columns`.
    results : list of Result
        One for each alpha; where X is an `ell12.Columns` its ``x`` is a `scipy.sparse.csc_array` of one column.

    See Also
    --------
    penalty_path : Solutions for many strengths of any loss and penalty.
    plot_path : A picture of a path.
    L12RegressorCV : Regression with a strength chosen by cross-validation.

    Notes
    -----
    The grid is not that of scikit-learn's ``lasso_path``, which begins where all coefficients are zero. At
    ``l2_weight=1`` there is no such alpha: this one begins where the best single column is a solution, so the
    first of ``coefs`` has one entry. At ``l2_weight=0`` the grids are equal; between, ours begins
    ``1/(1 - l2_weight)`` times higher.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import l12_path
    >>> alphas, coefs, results = l12_path(np.eye(4), [4.0, 3.0, 0.0, 1.0], n_alphas=3, eps=0.25)
    >>> alphas, np.count_nonzero(coefs, axis=0)
    (array([0.75  , 0.375 , 0.1875]), array([1, 2, 3]))
    """
    check_l2_weight(l2_weight)
    check_scalars(ridge=ridge)
    check_scalars(infinite=True, tol=tol)
    check_flags(positive=positive, warm_start=warm_start)
    check_flags(optional=True, together=together)
    with naming("y"):  # such as rows of different lengths
        several = np.ndim(y) != 1
    if several:
        raise ValueError(
            f"y must be a vector, got shape {tuple(np.shape(y))}; L12RegressorCV takes several targets"
        )
    X = as_operator(as_columns(X), "X")
    refuse_gradient(y, "y")
    y = beside(as_floating(y, "y"), X, "y")
    if output_shape(X) != tuple(y.shape):
        raise ValueError(f"X and y must have as many rows, got shapes {tuple(X.shape)} and {tuple(y.shape)}")
    check_entries(y, "y")
    loss = squared_loss(X, y, sample_weight)
    x0, options = None, {"weights": weights, "ridge": ridge, "positive": positive}
    size = grid_size(alphas, n_alphas)
    if size is not None:
        alphas = alpha_grid(first_strength(loss, l2_weight, **options), size, eps)
        if l2_weight >= 1 and warm_start:
            x0 = one_sparse_fit(loss, **options | {"ridge": alphas[0] * ridge})
    alphas = falling(alphas)
    plain = solver is None and alphas[-1] > 0
    run: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "warm_start": warm_start}
    if together or (together is None and plain and on_accelerator(loss.A)):
        results = _path_on_device(loss, alphas, l2_weight, options, x0, at_once=bool(together), **run)
    else:
        penalty, run["sparse"] = l12_penalty(1.0, l2_weight, **options), is_sparse_path(loss)
        results = solution_path(loss, penalty, alphas, x0, solver=solver, **run)
    return alphas, _side_by_side_columns(results), results


def _path_on_device(
    loss: SquaredLoss,
    alphas: Array,
    l2_weight: float,
    options: dict[str, Any],
    x0: Array | None,
    *,
    at_once: bool,
    **run: Any,
) -> list[Result]:
    """The solutions for all strengths side by side; unless all at once, those with few entries found before."""
    from ell12.path.side_by_side import columns_penalty, solve_side_by_side

    penalty = l12_penalty(1.0, l2_weight, **options)
    found = [] if at_once else _leading_results(loss, penalty, alphas, x0, **run)
    left, xp = alphas[len(found) :], namespace(loss.b)
    if len(left) == 0:
        return found
    columns, start = xp.stack([loss.b] * len(left), axis=1), None
    if found and run["warm_start"]:
        start = xp.stack([found[-1].x] * len(left), axis=1)
    weight = None if loss.sample_weight is None else xp.reshape(loss.sample_weight, (-1,))
    wide = SquaredLoss(loss.A, columns, sample_weight=weight, scale=loss.scale)
    numbers = {name: run[name] for name in ("tol", "max_iter")}
    together = columns_penalty(wide, left, l2_weight, tol=run["tol"], **options)
    return found + solve_side_by_side(wide, together, start, **numbers)[1]


def squared_loss(X: Any, y: Any, sample_weight: Any = None) -> SquaredLoss:
    """The squared loss as a mean over samples, or a weighted mean."""
    size = np.shape(y)[0] if sample_weight is None else total(as_floating(sample_weight, "sample_weight"))
    if size == 0:
        raise ValueError("there is nothing to fit: y is empty or sample_weight sums to zero")
    return SquaredLoss(X, y, sample_weight=sample_weight, scale=1 / size)
