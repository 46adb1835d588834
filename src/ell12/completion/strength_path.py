"""Completions over a grid of alpha, each begun at the last, judged on entries that were hidden from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import is_number
from ell12.checks import check_counts, check_share
from ell12.completion.choosing.choice import Choice, SearchSpace
from ell12.completion.choosing.judged import HiddenEntries
from ell12.completion.matrix_strength import largest_strength, rank_one_fit
from ell12.completion.observed import Observed, as_observed
from ell12.completion.solve import Completion, Task, solve_completion
from ell12.minimization import Status
from ell12.path import alpha_grid, falling
from ell12.penalties import SpectralL12


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
        """The place of the least error on the hidden entries."""
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
    alphas: Any = None,
    n_alphas: int = 20,
    eps: float = 1e-2,
    held_out: float | Any = 0.1,
    patience: int | None = None,
    l2_weight: float | str = "auto",
    max_rank: int | str | None = "auto",
    center: str | None = "auto",
    scale: str | None = "auto",
    random_state: Any = 0,
    verbose: int = 0,
    **options: Any,
) -> CompletionPath:
    """Complete a matrix for many strengths; each run starts where the last one ended.

    Parameters
    ----------
    X : array, masked array, DataFrame, sparse matrix or tensor, or Observed
        As in `complete_matrix`.
    alphas : array, optional
        The grid. By default ``n_alphas`` values from the alpha above which a solution of least rank remains one
        down to ``eps`` times that.
    n_alphas, eps : int, float, default 20 and 1e-2
        Length and reach of the default grid.
    held_out : float, or entries in any form that X may have, default 0.1
        The share of the known entries that is hidden from the fit, at random; or other known entries. 0 hides
        none.
    patience : int, optional
        End the path when the error has not fallen at this number of alphas in a row; never by default.
    l2_weight, max_rank, center, scale, random_state
        As in `complete_matrix`; "auto" is what suits ratings or tables, without a search. The random state also
        chooses what is hidden.
    verbose : int, default 0
        Print a line for each alpha.
    **options
        For `complete_matrix`: engine, tol, max_iter, stop and so on.

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
    >>> path = completion_path(X, n_alphas=3, eps=0.1, center=None)
    >>> path.ranks
    array([1, 1, 1])
    """
    if "penalty" in options:
        raise ValueError("penalty cannot be given: each alpha has an l1-2 penalty of its own; see complete_matrix")
    check_counts(patience=patience)
    observed, hidden = _divided(X, held_out, random_state)
    if patience is not None and hidden is None:
        raise ValueError("patience needs hidden entries to judge by, but held_out=0 hides none")
    space = SearchSpace.suited_to(observed, center=center, l2_weight=l2_weight, max_rank=max_rank, scale=scale)
    choice = space.without_search()
    task, x0 = Task.of(observed, choice.center, choice.scale), None
    if alphas is None:
        alphas = alpha_grid(largest_strength(task.loss, choice.l2_weight), n_alphas, eps)
        x0 = rank_one_fit(task.loss.observed) if choice.l2_weight >= 1 else None  # the solution at the first alpha
    options |= {"random_state": random_state, "verbose": verbose}
    return follow_path(task, hidden, alphas, choice, x0=x0, patience=patience, **options)


def follow_path(
    task: Task,
    hidden: Observed | None,
    alphas: Any,
    choice: Choice,
    *,
    x0: Any = None,
    patience: int | None = None,
    verbose: int = 0,
    **options: Any,
) -> CompletionPath:
    """Completions of one task at falling alphas; options are those of `solve_completion`."""
    judge = None if hidden is None else HiddenEntries(task, hidden)
    results: list[Completion] = []
    errors: list[float] = []
    for alpha in map(float, falling(alphas)):
        penalty = SpectralL12(alpha, choice.l2_weight)
        results.append(solve_completion(task, penalty, max_rank=choice.max_rank, x0=x0, **options))
        x0 = results[-1].x
        errors.append(math.nan if judge is None else judge.error(results[-1].x))
        if verbose:
            print(f"alpha {alpha:.4g}: rank {results[-1].x.rank}, error on hidden entries {errors[-1]:.6g}")
        stopped = results[-1].status is Status.STOPPED
        if stopped or (patience is not None and len(errors) - 1 - int(np.argmin(errors)) >= patience):
            break
    reached = np.array([result.alpha for result in results])
    return CompletionPath(reached, results, np.array(errors), hidden)


def _divided(X: Any, held_out: Any, random_state: Any) -> tuple[Observed, Observed | None]:
    """The entries to fit, and those to judge by."""
    observed = as_observed(X)
    if not is_number(held_out):
        hidden = as_observed(held_out, "held_out")
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
