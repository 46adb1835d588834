"""Completions over a grid of alpha, each begun at the last, validated on entries that were hidden from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import is_number
from ell12.checks import check_share
from ell12.completion.complete import Completion, completed
from ell12.completion.hidden_entries import HiddenEntries, SearchSpace
from ell12.completion.matrix_strength import largest_strength, rank_one_fit, weight_of
from ell12.completion.observed import Observed
from ell12.completion.offsets import Centred
from ell12.minimization import Run, Status
from ell12.minimization.loop import check_limits
from ell12.path import alpha_grid, falling, grid_size
from ell12.penalties import Spectral
from ell12.protocols import Solver, with_alpha


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
    check_limits(tol, max_iter, Run())
    if penalty is not None and penalty.alpha is not None:
        raise ValueError(f"alpha is given twice: by the path and in {penalty!r}")
    observed, hidden = _divided(X, held_out, random_state)
    choice = SearchSpace.suited_to(observed, penalty=penalty, center=center, scale=scale, max_rank=max_rank).first
    task, x0 = Centred.of(observed, choice.center, choice.scale), None
    count, weight = grid_size(alphas, 20), weight_of(choice.penalty)
    if count is not None:
        top = (1 + 1e-6) * largest_strength(task.loss, weight)  # above it by more than rounding
        alphas = alpha_grid(top, count, eps)
        x0 = rank_one_fit(task.loss.observed) if weight >= 1 else None  # the solution at the first alpha
    validation = None if hidden is None else HiddenEntries(task, hidden)
    results: list[Completion] = []
    errors: list[float] = []
    for alpha in map(float, falling(alphas)):
        strong = with_alpha(choice.penalty, alpha)
        results.append(
            completed(task, strong, choice.max_rank, x0, solver, random_state, tol=tol, max_iter=max_iter)
        )
        x0 = results[-1].x
        errors.append(math.nan if validation is None else validation.error(x0))
        if results[-1].status is Status.STOPPED:
            break
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
