"""`complete_matrix` and `completion_path`: a low-rank matrix from known entries, at one strength or many."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ell12.backend import is_number
from ell12.checks import check_share
from ell12.completion.hidden_entries import (
    HELD_OUT,
    HiddenEntrySearch,
    default_solver,
    first_choice,
    hidden_error,
    hidden_from,
    largest_strength,
    noise_alpha,
    rank_one_fit,
    search_space,
)
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed
from ell12.completion.offsets import Centred, Offsets
from ell12.minimization import Result, Run, Status, minimize
from ell12.minimization.loop import check_limits
from ell12.minimization.solver_choice import check_kind
from ell12.path import alpha_grid, falling, grid_size
from ell12.penalties import Spectral, SpectralL12, with_strength
from ell12.protocols import Array, Solver, with_alpha


@dataclass(frozen=True, repr=False)
class Completion(Result[LowRank]):
    """The result of `complete_matrix`: a `Result` whose x is a `LowRank`, and the offsets.

    Attributes
    ----------
    offsets : Offsets
        What was subtracted before, and the scale of the columns: nothing where ``center`` and ``scale`` are None.
    penalty : Spectral
        The penalty, its alpha included.
    max_rank, center, scale
        What was used, given or chosen.
    """

    penalty: Any = None
    offsets: Offsets = field(default_factory=Offsets)
    max_rank: int | None = None
    center: str | None = None
    scale: str | None = None

    def __repr__(self) -> str:
        return f"Completion{super().__repr__().removeprefix('Result').removesuffix(')')}, alpha {self.alpha:.3g})"

    @property
    def alpha(self) -> float:
        """The strength."""
        return float(self.penalty.alpha)

    def predict(self, rows: Any, columns: Any) -> Array:
        """The completed matrix at pairs of row and column."""
        rows, columns = self.x.pairs(rows, columns)
        return self.offsets.entries(rows, columns, self.x.entries(rows, columns))

    def to_array(self) -> Array:
        """The completed matrix, dense; known entries are fitted, not copied.

        Of columns with units of their own, one without any known entry is NaN, with a warning.
        """
        unknown = self.offsets.unknown_units
        if unknown.size:
            named = ", ".join(map(str, unknown[:10])) + (", ..." if unknown.size > 10 else "")
            warnings.warn(f"columns without any known entry are NaN: {named}", UserWarning, stacklevel=2)
        return self.offsets.add_to(self.x.to_array())


def complete_matrix(
    X: Any,
    alpha: float | str | None = None,
    *,
    penalty: Spectral | None = None,
    max_rank: int | str | None = "auto",
    center: str | None = "auto",
    scale: str | None = "auto",
    x0: LowRank | None = None,
    solver: Solver | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    random_state: Any = 0,
    run: Run | None = None,
) -> Completion:
    """Complete a matrix of which some entries are known.

    Minimises ``1/2 ||S(X - O)||_F^2 + alpha (||X||_* - l2_weight ||X||_F)``, S keeping the known entries O, from
    which offsets are subtracted before.

    Parameters
    ----------
    X : array, masked array, DataFrame, sparse matrix or tensor, or Observed
        NaN is what is not known; in a sparse matrix every stored entry is known. What is on a GPU is completed
        there. See `Observed.of`.
    alpha : float or "noise", optional
        Strength, at least 0. By default a tenth of the known entries is hidden, of tables three times, and what
        predicts them best is taken; where nothing can be hidden it is "noise", the size that noise of the
        deviation of a rank-one fit's residual would have.
    penalty : Spectral, optional
        The penalty of the singular values, such as ``SpectralL12(l2_weight=1)`` or ``SpectralLogSum()``.
        By default `ell12.SpectralL12`, with l2_weight 0.5 for ratings, that is where less than a quarter of the
        entries is known. For tables the hidden entries choose it among 1 and 0.5; without them it is 1.
    max_rank : int, None or {"auto"}, default "auto"
        The largest rank allowed; None is no bound. Where it binds the status is ``RANK_CAPPED``. "auto" is None
        for tables. For ratings it is chosen among 4, 8 and 16 by the hidden entries, and 8 where alpha is given.
    center : {"auto", None, "mean", "columns", "biases"}, default "auto"
        What is subtracted before, and comes back in ``offsets``: nothing, the mean, column means, or the mean with
        biases of rows and columns. "auto" is "biases" for ratings, and for tables "columns" or, if the hidden
        entries say so, None.
    scale : {"auto", None, "columns"}, default "auto"
        "columns" divides each column by its standard deviation; "auto" does so for tables whose columns have
        units of their own, that is deviations that differ by more than a factor of 3, beyond chance. A column of
        which nothing is known is then NaN in what is predicted.
    x0 : LowRank, optional
        Where to start; zero by default, or where the search ended.
    solver : Solver, optional
        By default `AlternatingLeastSquares` where little is known and the rank is bound to 10 or less, `BlockAPG`
        where a quarter or more is known, and else `FactoredAPG`. One that is given has a bound on the rank of its
        own.
    tol, max_iter
        As in `ell12.minimize`.
    random_state : int or Generator, default 0
        Of what is hidden and of the first singular vectors.
    run : Run, optional
        Options of the fit of all known entries. ``max_seconds`` counts from the beginning of the search, which
        ends with it.

    Returns
    -------
    Completion
        A `Result` whose x is a `LowRank`, with ``offsets``, what was chosen, and ``predict(rows, columns)``.

    See Also
    --------
    L12Imputer : Fill in missing values of tables.
    L12Recommender : Predict ratings and recommend items.
    completion_path : Completions for many strengths.

    Notes
    -----
    A row or a column without any known entry is completed with its offsets alone, which are zero where ``center``
    is None: no data speak for anything else.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import complete_matrix
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[2, 2] = np.nan
    >>> complete_matrix(X, alpha=0.1, center=None, scale=None).to_array().round(2)[2, 2]
    np.float64(12.0)
    """
    run = check_limits(tol, max_iter, run)
    alpha = _checked_strength(alpha, penalty)
    _check_solver(solver)
    observed = Observed.of(X)
    space = search_space(observed, penalty=penalty, center=center, scale=scale, max_rank=max_rank)
    choice = first_choice(space)
    if alpha is None:
        begin = time.monotonic()
        search = HiddenEntrySearch(observed, solver, random_state, min(max_iter, 2**31), begin + run.max_seconds)
        if search.n_hidden:
            best = search.best(space)
            choice, alpha = best, best.alpha / math.sqrt(1 - HELD_OUT)  # as noise grows with the entries
            x0 = best.fits[0] if x0 is None else x0
        run = replace(run, max_seconds=max(run.max_seconds - (time.monotonic() - begin), 0.0))
    centred = Centred.of(observed, choice.center, choice.scale)
    if not isinstance(alpha, float):
        alpha = noise_alpha(centred.loss.observed)
    penalty = choice.penalty if choice.penalty.alpha == alpha else with_alpha(choice.penalty, alpha)
    options = {"tol": tol, "max_iter": max_iter, "run": run, "random_state": random_state}
    return completed(centred, penalty, choice.max_rank, x0, solver, **options)


def completed(
    task: Centred,
    penalty: Spectral,
    max_rank: int | None = None,
    x0: Any = None,
    solver: Any = None,
    **options: Any,
) -> Completion:
    """The completion at one strength; options are those of `minimize`, and the random state of a solver."""
    random_state = options.pop("random_state", 0)
    solver = default_solver(task.loss, penalty, max_rank, random_state) if solver is None else solver
    found = vars(minimize(task.loss, penalty, x0, solver, **options))
    found |= {"offsets": task.offsets, "center": task.center, "scale": task.scale}
    return Completion(**found, penalty=penalty, max_rank=max_rank)


def _check_solver(solver: Any) -> None:
    """Refuse a solver that takes no low-rank matrix; None is the default one."""
    if solver is not None:
        check_kind(solver, "solver", Solver, "BlockAPG()")
        if solver.needs.x not in ("factors", "anything"):
            raise TypeError(f"solver must take factors, as BlockAPG() does, got {solver!r}")


def _checked_strength(alpha: Any, penalty: Any) -> float | str | None:
    """The strength that was given, next to the penalty or in it."""
    shape = SpectralL12() if penalty is None else penalty
    check_kind(shape, "penalty", Spectral, "SpectralL12()")
    if isinstance(alpha, str) and alpha == "noise" and shape.alpha is None:
        return alpha
    found = with_strength(shape, alpha).alpha
    return None if found is None else float(found)


@dataclass(frozen=True, eq=False)
class CompletionPath:
    """The result of `completion_path`: completions for many strengths.

    Attributes
    ----------
    alphas : array
        The strengths, falling.
    results : list of Completion
        One for each alpha.
    errors : array
        The root mean square error of each on the hidden entries, in units of the columns' deviations where they
        were brought to one scale; NaN where none were hidden.
    held_out : Observed or None
        The hidden entries.
    """

    alphas: np.ndarray
    results: list[Completion]
    errors: np.ndarray
    held_out: Observed | None

    @property
    def ranks(self) -> np.ndarray:
        """The rank of each completion."""
        return np.array([result.x.rank for result in self.results])

    @property
    def best(self) -> int:
        """The position of the least error on the hidden entries."""
        if self.held_out is None:
            raise ValueError("no entries were hidden, so that no completion is known to be the best")
        return int(np.argmin(self.errors))

    def plot(self, axes: Any = None) -> Any:
        """Draw the error on the hidden entries, and the rank, along the path; needs matplotlib."""
        from ell12.plots import plot_completion_path

        return plot_completion_path(self, axes=axes)


def completion_path(
    X: Any,
    *,
    alphas: Any = 20,
    eps: float = 1e-2,
    held_out: float | Any = 0.1,
    penalty: Spectral | None = None,
    max_rank: int | str | None = "auto",
    center: str | None = "auto",
    scale: str | None = "auto",
    solver: Solver | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    random_state: Any = 0,
) -> CompletionPath:
    """Complete a matrix for many strengths; each run starts where the last one ended.

    Parameters
    ----------
    X : array, masked array, DataFrame, sparse matrix or tensor, or Observed
        As in `complete_matrix`.
    alphas : int or array, default 20
        The grid, or its length. It then begins at the alpha above which a solution of least rank remains one.
    eps : float, default 1e-2
        The last alpha of such a grid, divided by the first.
    held_out : float, or entries in any form that X may have, default 0.1
        The share of the known entries that is hidden from the fit, at random; or other known entries. 0 hides
        none.
    penalty, max_rank, center, scale, solver, tol, max_iter, random_state
        As in `complete_matrix`; what suits ratings or tables by default, without a search. The random state also
        chooses what is hidden.

    Returns
    -------
    CompletionPath
        Ctrl-C ends it with the alphas that are done.

    See Also
    --------
    complete_matrix : Complete a matrix, as a function.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import completion_path
    >>> X = np.outer(np.arange(1.0, 9), np.arange(1.0, 7))
    >>> path = completion_path(X, alphas=3, eps=0.1, center=None)
    >>> path.ranks
    array([1, 1, 1])
    """
    check_limits(tol, max_iter, None)
    _check_solver(solver)
    if _checked_strength(None, penalty) is not None:
        raise ValueError(f"alpha is given twice: by the path and in {penalty!r}")
    observed, hidden = _divided(X, held_out, random_state)
    space = search_space(observed, penalty=penalty, center=center, scale=scale, max_rank=max_rank)
    choice = first_choice(space)
    task, x0 = Centred.of(observed, choice.center, choice.scale), None
    count = grid_size(alphas, 20)
    weight = choice.penalty.l2_weight if isinstance(choice.penalty, SpectralL12) else 0.0
    if count is not None:
        top = (1 + 1e-6) * largest_strength(task.loss, weight)  # above it by more than rounding
        alphas = alpha_grid(top, count, eps)
        x0 = rank_one_fit(task.loss.observed) if weight >= 1 else None  # the solution at the first alpha
    options = {"tol": tol, "max_iter": max_iter, "random_state": random_state}
    validation = None if hidden is None else hidden_from(task, hidden)
    results: list[Completion] = []
    errors: list[float] = []
    for alpha in map(float, falling(alphas)):
        found = completed(task, with_alpha(choice.penalty, alpha), choice.max_rank, x0, solver, **options)
        results.append(found)
        errors.append(math.nan if validation is None else hidden_error(found.x, validation))
        if found.status is Status.STOPPED:
            break
        x0 = found.x
    return CompletionPath(np.array([result.alpha for result in results]), results, np.array(errors), hidden)


def _divided(X: Any, held_out: Any, random_state: Any) -> tuple[Observed, Observed | None]:
    """The entries to fit, and those to validate by."""
    observed = Observed.of(X)
    if not is_number(held_out):
        hidden = Observed.of(held_out, "held_out")
        if hidden.shape != observed.shape:
            raise ValueError(f"held_out must have the shape {observed.shape} of X, got {hidden.shape}")
        return observed, hidden
    if held_out == 0:
        return observed, None
    check_share(held_out, "held_out")
    observed, hidden = observed.split(float(held_out), random_state)
    if hidden.n_observed == 0:
        raise ValueError(f"held_out={held_out:g} of {observed.n_observed} known entries is none; use held_out=0")
    return observed, hidden
