"""Solutions over a grid of strengths, each run beginning where the last one ended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import (
    as_floating,
    as_numpy,
    count_true,
    indices_like,
    is_array,
    is_numpy,
    namespace,
    on_accelerator,
    refuse_gradient,
    to_device_of,
    total,
)
from ell12.checks import check_entries, check_flags, naming
from ell12.losses import SquaredLoss
from ell12.minimization import DataUnavailable, Result, Run, Status, minimize
from ell12.minimization.loop import check_limits
from ell12.minimization.rounding_stop import admit_rounding, as_unknown, gradient_rounding
from ell12.minimization.solver_choice import check_kind, unmet
from ell12.operators import as_operator, output_shape
from ell12.operators.out_of_memory import as_columns
from ell12.path.screened import screened_path
from ell12.path.strengths import alpha_grid, falling, first_solution, first_strength, grid_size
from ell12.penalties import L12
from ell12.penalties.magnitudes import MagnitudesL12
from ell12.protocols import Array, ColumnLoss, Loss, Solver, offers, with_alpha
from ell12.solvers import NonmonotoneAPG, WorkingSet
from ell12.solvers.working_set import MOST_ENTRIES, hosted_penalty


@dataclass(frozen=True)
class Path:
    """Solutions over a grid of strengths. It unpacks as ``alphas, x, results``.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        Strengths, decreasing.
    x : array
        One solution for each strength, side by side along the last axis; sparse columns where those of A are out
        of memory (`ell12.Columns`).
    results : list of Result
        One for each strength.
    """

    alphas: Array
    x: Array = field(repr=False)
    results: list[Result] = field(repr=False)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.alphas, self.x, self.results))

    @property
    def converged(self) -> bool:
        """Whether all runs converged."""
        return all(result.converged for result in self.results)

    def __repr__(self) -> str:
        counts = [_entries(result.x) for result in self.results]
        done = sum(result.converged for result in self.results)
        return (
            f"Path({len(counts)} strengths from {self.alphas[0]:.3g} to {self.alphas[-1]:.3g}, {min(counts)} to"
            f" {max(counts)} nonzero, {done} converged, {sum(result.seconds for result in self.results):.3g} s)"
        )

    def plot(self, names: Sequence[str] | None = None, axes: Any = None) -> Any:
        """Draw the coefficients against alpha; needs matplotlib."""
        from ell12.plots import plot_path

        x = self.x.toarray() if scipy.sparse.issparse(self.x) else as_numpy(self.x)
        return plot_path(self.alphas, x, names=names, axes=axes)


def solution_path(
    loss: Any,
    penalty: Any,
    alphas: Any = 100,
    *,
    eps: float = 1e-3,
    x0: Array | None = None,
    warm_start: bool = True,
    solver: Solver | None = None,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    run: Run | None = None,
) -> Path:
    """Minimise ``loss + penalty`` over a grid of strengths.

    Parameters
    ----------
    loss : Loss
        Such as `ell12.LogisticLoss`.
    penalty : Penalty
        Any with a field alpha, such as `ell12.MCP`; its own strength is not used.
    alphas : int or array, default 100
        The grid, which is sorted to decrease; or how many values it has, equal in ratio, from
        `ell12.path.alpha_max` down to ``eps`` times that.
    eps : float, default 1e-3
        Reach of the automatic grid.
    x0 : array, optional
        Where to start; zero by default.
    warm_start : bool, default True
        Begin each run where the last one ended. That is faster; where the problem is not convex, the path may end
        at another stationary point, of higher or lower objective, than a run that begins at x0.
    solver, tol, max_iter, run
        As in `ell12.minimize`.

    Returns
    -------
    Path
        It unpacks as ``alphas, x, results``.

    See Also
    --------
    l12_path : Paths of sparse linear regression.
    minimize : Solve any problem of a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import MCP, SquaredLoss, solution_path
    >>> alphas, x, _ = solution_path(SquaredLoss(np.eye(3), [4.0, 2.0, 1.0]), MCP(), alphas=3, eps=0.25)
    >>> alphas.round(4), np.count_nonzero(x, axis=0)
    (array([4., 2., 1.]), array([0, 1, 2]))
    """
    check_flags(warm_start=warm_start)
    size = grid_size(alphas, 100)
    alphas = falling(alphas) if size is None else alpha_grid(first_strength(loss, penalty), size, eps)
    options: dict[str, Any] = {"solver": solver, "max_iter": max_iter, "run": run, "warm_start": warm_start}
    results = path_results(loss, penalty, alphas, x0, tol=tol, sparse=is_sparse_path(loss), **options)
    return Path(alphas, _as_columns(results), results)


def l12_path(
    X: Any,
    y: Any,
    *,
    penalty: Any = L12(),  # noqa: B008
    alphas: Any = 100,
    eps: float = 1e-3,
    sample_weight: Any = None,
    warm_start: bool = True,
    solver: Solver | None = None,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    run: Run | None = None,
) -> Path:
    """Sparse linear regression for many strengths.

    Minimises ``1/(2n) ||y - X c||^2 + alpha (||c||_1 - l2_weight ||c||_2 + ridge/2 ||c||_2^2)`` over many alpha.

    Parameters
    ----------
    X : array, sparse matrix or operator of shape (n, p)
        Columns, also such that memory does not hold (`ell12.Columns`). There is no intercept: centre X and y, or
        use `ell12.L12RegressorCV`.
    y : array of shape (n,)
        Observations.
    penalty : Penalty, default L12()
        Such as ``L12(l2_weight=0.5, positive=True)`` or `ell12.GroupL12`; its own alpha is not used.
    alphas, eps
        As in `solution_path`.
    sample_weight : array of shape (n,), optional
        Weights of the squares, whose sum then stands for n.
    warm_start, solver, tol, max_iter, run
        As in `solution_path`.

    Returns
    -------
    Path
        It unpacks as ``alphas, coefs, results``, the coefficients in columns.

    See Also
    --------
    solution_path : Solutions for many strengths of any loss and penalty.
    L12RegressorCV : Regression with a strength chosen by cross-validation.

    Notes
    -----
    The grid is not that of scikit-learn's ``lasso_path``, which begins where all coefficients are zero. At
    ``l2_weight=1`` there is no such alpha: this one begins where the best single column is a solution, so the
    first of the solutions has one entry. At ``l2_weight=0`` the grids are equal; between, ours begins
    ``1/(1 - l2_weight)`` times higher.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import l12_path
    >>> alphas, coefs, results = l12_path(np.eye(4), [4.0, 3.0, 0.0, 1.0], alphas=3, eps=0.25)
    >>> alphas, np.count_nonzero(coefs, axis=0)
    (array([0.75  , 0.375 , 0.1875]), array([1, 2, 3]))
    """
    check_flags(warm_start=warm_start)
    with naming("y"):  # such as rows of different lengths
        shape = tuple(np.shape(y))
    if len(shape) != 1:
        raise ValueError(f"y must be a vector, got shape {shape}; L12RegressorCV takes several targets")
    X = as_operator(as_columns(X), "X")
    refuse_gradient(y, "y")
    y = to_device_of(as_floating(y, "y"), X, "y")
    if output_shape(X) != tuple(y.shape):
        raise ValueError(f"X and y must have as many rows, got shapes {tuple(X.shape)} and {tuple(y.shape)}")
    check_entries(y, "y")
    loss, x0 = squared_loss(X, y, sample_weight), None
    size = grid_size(alphas, 100)
    if size is not None:
        top, x = first_solution(loss, penalty)
        alphas = alpha_grid(top, size, eps)
        if isinstance(penalty, MagnitudesL12) and penalty.l2_weight >= 1 and warm_start:
            x0 = to_device_of(x, loss.start(), "x")
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "warm_start": warm_start, "run": run}
    return solution_path(loss, penalty, alphas, x0=x0, solver=solver, **options)


def path_results(
    loss: Any,
    penalty: Any,
    alphas: Sequence[float],
    x0: Array | None = None,
    *,
    warm_start: bool = True,
    solver: Solver | None = None,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    run: Run | None = None,
    sparse: bool = False,
    most_entries: float = math.inf,
) -> list[Result]:
    """Minimise the loss plus the penalty at each of these strengths in turn.

    With ``warm_start`` each run begins where the last one ended, unless that diverged. Without it all begin at
    ``x0``. No run asks for a stationarity below the rounding of the gradient, which in float32 and at small alpha
    lies above the usual tol. Where it lies far above, the status says that rounding ended the run. With ``sparse``
    every solution is a `scipy.sparse.csc_array` of one column: many vectors of many entries fill a memory. It ends
    after a solution with more than ``most_entries`` that are not zero.
    """
    check_kind(loss, "loss", Loss, "SquaredLoss(A, b)")
    run = check_limits(tol, max_iter, run)
    loss = loss.for_run()  # one memory for the whole path
    plain = solver is None and run == Run(verbose=run.verbose)
    results = _leading_results(loss, penalty, alphas, x0, warm_start, tol, max_iter) if plain else []
    if results:  # what is left has more entries than working sets take
        solver, plain = NonmonotoneAPG(), False
    strengths = np.array([float(alpha) for alpha in alphas])
    attainable = np.maximum(tol, gradient_rounding(loss, tol) / np.where(strengths > 0, strengths, 1.0))
    apart = not (warm_start and plain)
    screened = None if apart else screened_path(loss, penalty, strengths, x0, max_iter, sparse, most_entries)

    def minimised(k: int) -> Result:
        """The solution at the k-th strength by `minimize`."""
        start, numbered = x0, run.numbered(k, len(strengths))
        if screened is not None:
            start = screened.x
        elif warm_start and results and math.isfinite(results[-1].objective):
            last = results[-1].x
            start = last.toarray()[:, 0] if scipy.sparse.issparse(last) else last
        problem = loss, with_alpha(penalty, float(strengths[k])), start, solver
        result = minimize(*problem, tol=float(attainable[k]), max_iter=max_iter, run=numbered)
        if screened is not None and math.isfinite(result.objective):
            screened.restart(float(strengths[k]), result.x)
        return replace(result, x=scipy.sparse.csc_array(result.x[:, None])) if sparse else result

    try:
        while len(results) < len(strengths) and not (results and _entries(results[-1].x) > most_entries):
            done = len(results)
            block = [] if screened is None else screened.next_block(strengths[done:], attainable[done:])
            results += [admit_rounding(replace(found, tol=tol), tol) for found in block or [minimised(done)]]
    except DataUnavailable as error:  # which holds what was solved before
        error.results = list(results)
        error.result = error.result or (replace(results[-1], status=Status.DATA_LOST) if results else None)
        raise
    return results


def _leading_results(
    loss: Any, penalty: Any, alphas: Any, x0: Array | None, warm_start: bool, tol: float, max_iter: int
) -> list[Result]:
    """The solutions over data on a device that are found from the host: while few of their entries are in use."""
    zero = loss.start()
    if not is_array(zero) or is_numpy(zero) or unmet(WorkingSet(), loss, with_alpha(penalty, 1.0), zero):
        return []
    start = None if x0 is None else as_numpy(as_unknown(loss, x0, "x0"))
    options: dict[str, Any] = {"warm_start": warm_start, "tol": tol, "max_iter": max_iter}
    most = MOST_ENTRIES if on_accelerator(zero) else math.inf
    found = path_results(loss.on_host(), hosted_penalty(penalty), alphas, start, most_entries=most, **options)
    return [replace(result, x=indices_like(result.x, zero)) for result in found]


def _entries(x: Any) -> int:
    """How many are not zero."""
    return x.nnz if scipy.sparse.issparse(x) else count_true(x != 0)


def is_sparse_path(loss: Any) -> bool:
    """Whether solutions are given as sparse columns: where columns of A are out of memory, x is long too."""
    return offers(loss, ColumnLoss) and loss.out_of_memory and loss.start().ndim == 1


def _as_columns(results: list[Result]) -> Array:
    """The solutions, one in each column."""
    if scipy.sparse.issparse(results[0].x):
        return scipy.sparse.hstack([result.x for result in results], format="csc")
    return namespace(results[0].x).stack([result.x for result in results], axis=-1)


def squared_loss(X: Any, y: Any, sample_weight: Any = None) -> SquaredLoss:
    """The squared loss as a mean over samples, or a weighted mean."""
    size = np.shape(y)[0] if sample_weight is None else total(as_floating(sample_weight, "sample_weight"))
    if size == 0:
        raise ValueError("there is nothing to fit: y is empty or sample_weight sums to zero")
    return SquaredLoss(X, y, sample_weight=sample_weight, scale=1 / size)
