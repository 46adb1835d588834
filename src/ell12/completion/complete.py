"""The completion of a matrix from its known entries, every choice made unless it is given."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ell12.backend import as_numpy, is_number
from ell12.checks import is_finite_number
from ell12.completion.choosing.choice import Choice, SearchSpace, is_ratings
from ell12.completion.choosing.progress import Progress, Report
from ell12.completion.choosing.search import MAX_ITER, TOL, Search, search_on_held_out
from ell12.completion.low_rank import LowRank
from ell12.completion.matrix_apg import check_rank
from ell12.completion.matrix_strength import noise_alpha, noise_strength
from ell12.completion.observed import Observed, as_observed
from ell12.completion.offsets import Offsets, fit_offsets
from ell12.completion.solve import Completion, Task, solve_completion
from ell12.minimization import Status
from ell12.penalties import Spectral, SpectralL12
from ell12.protocols import Solver

CHECKED = 0.1  # The share of ratings that is hidden to see whether biases alone would do better.
SEARCH_TO_FIT = 3, 1  # About how much work the search takes beside the fit: how far a call is, is told by it.
SEARCH_SECONDS = 0.75  # The share of max_seconds that the search may take; the fit of all entries has the rest.
SURE = 2.0  # A difference of two errors of less than this many standard deviations may be chance.


def complete_matrix(
    X: Any,
    alpha: float | str = "holdout",
    *,
    l2_weight: float | str = "auto",
    penalty: Spectral | None = None,
    max_rank: int | str | None = "auto",
    engine: str | Solver = "auto",
    center: str | None = "auto",
    scale: str | None = "auto",
    held_out: float = 0.1,
    n_alphas: int = 20,
    eps: float = 1e-2,
    x0: LowRank | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    random_state: Any = 0,
    verbose: int = 0,
    report: Report | None = None,
    **options: Any,
) -> Completion:
    """Complete a matrix of which some entries are known.

    Minimises ``1/2 ||S(X - O)||_F^2 + alpha (||X||_* - l2_weight ||X||_F)``, S keeping the known entries O.

    Offsets are taken off O before, and columns with units of their own are brought to one scale.

    Parameters
    ----------
    X : array, masked array, DataFrame, sparse matrix or tensor, or Observed
        NaN is what is not known; in a sparse matrix every stored entry is known. What is on a GPU is completed
        there. See `as_observed`.
    alpha : float or {"holdout", "noise"}, default "holdout"
        Strength, at least 0. "holdout" hides a share of the known entries, tries alphas of a grid and takes what
        predicts the hidden entries best; where nothing can be hidden it is "noise". Of ratings that is a share of
        the norm that the entries have under random signs, with a rank a little above the number of singular values
        beyond those under random signs; with none, all but the offsets is zero. Of tables it is what noise of the
        size of a rank-one fit's residual would ask for.
    l2_weight : float or {"auto"}, default "auto"
        Weight of the subtracted norm: 1 is l1-2, 0 the nuclear norm. "auto" is chosen by the hidden entries.
        Without them it is 0.5 for ratings, which are matrices less than a quarter of whose entries are known, and
        1 for tables.
    penalty : Spectral, optional
        Another penalty of the singular values, such as `ell12.SpectralLogSum`, in place of alpha and l2_weight.
        "auto" is then nothing: no offsets, no scale, no bound.
    max_rank : int, None or {"auto"}, default "auto"
        The largest rank allowed; None is no bound. Where it binds the status is ``RANK_CAPPED``. "auto" is None
        for tables. For ratings it is chosen among 2, 4, 8 and 16 by the hidden entries, and 8 where alpha is a
        number.
    engine : {"auto", "block", "factored", "als", "full"} or Solver, default "auto"
        "auto" is "als" (`AlternatingLeastSquares`) where little is known and the rank is bound to 30 or less,
        "block" (`BlockAPG`) where a quarter or more is known, and else "factored" (`FactoredAPG`).
    center : {"auto", None, "mean", "columns", "biases"}, default "auto"
        What is taken off before, and comes back in ``offsets``: nothing, the mean, column means, or the mean with
        biases of rows and columns. "auto" is what the hidden entries choose, "biases" or None for ratings and
        "columns", "biases" or None for tables, and without them the first of these.
    scale : {"auto", None, "columns"}, default "auto"
        "columns" divides each column by its standard deviation; "auto" does so for tables whose columns have
        units of their own, that is deviations that differ by more than a factor of 3, beyond chance. A column of
        which nothing is known is then NaN in what is predicted.
    held_out : float, default 0.1
        The share of the known entries that alpha="holdout" hides.
    n_alphas, eps : int, float, default 20 and 1e-2
        Length and reach of its grid, of which those around the best alpha are tried.
    x0 : LowRank, optional
        Where to start; zero by default, or where the search ended.
    tol, max_iter
        As in `ell12.minimize`.
    random_state : int or Generator, default 0
        Of what is hidden and of the first singular vectors.
    verbose : int, default 0
        Print a line for each step of the search.
    report : function, optional
        Called as ``report(words, share)`` with what is going on and the share, from 0 to 1, that is done by a
        rough estimate; it never falls and ends at 1.
    **options
        Further arguments of `ell12.minimize`: ``max_seconds``, of which the search takes three quarters at most,
        ``measure``, ``stop``; for long work ``checkpoint``, ``checkpoint_seconds`` and ``resume``.

    Returns
    -------
    Completion
        A `Result` whose x is a `LowRank`, with ``offsets``, what was chosen, and ``predict(rows, columns)``.

    Warns
    -----
    UserWarning
        Where biases of rows and columns alone predict hidden ratings better.

    See Also
    --------
    L12Imputer : Fill in missing values of tables.
    L12Recommender : Predict ratings and recommend items.
    completion_path : Completions for many strengths.

    Notes
    -----
    A row or a column without any known entry is completed with its offsets alone; where there are none, with the
    mean and the bias of the other side: no data speak for anything else.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import complete_matrix
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[2, 2] = np.nan
    >>> complete_matrix(X, alpha=0.1, center=None, scale=None).to_array().round(2)[2, 2]
    np.float64(12.0)
    """
    given: dict[str, Any] = {"center": center, "scale": scale, "l2_weight": l2_weight, "max_rank": max_rank}
    _check(alpha, given)
    observed = as_observed(X)
    rest = {"engine": engine, "random_state": random_state, "tol": tol, "max_iter": max_iter} | options
    progress = Progress(report)
    if penalty is not None:
        plain = {name: None if value == "auto" else value for name, value in given.items()}
        task = Task.of(observed, plain["center"], plain["scale"])
        return _solved(task, penalty, plain["max_rank"], x0, rest, progress)
    space = SearchSpace.suited_to(observed, **given)
    if alpha == "holdout":
        searching = {"held_out": held_out, "n_alphas": n_alphas, "eps": eps, "verbose": verbose}
        part = progress.part(*SEARCH_TO_FIT)
        search = _searched(observed, space, searching, rest, part)
        if search is not None:
            progress.follow(part)
            return _completed_as_found(observed, search, x0, rest, progress)
        alpha = "noise"
    completion, choice = _completed_unsearched(observed, space, alpha, x0, rest, progress)
    if is_ratings(observed) and "auto" in given.values() and not isinstance(alpha, str):
        _warn_if_biases_do_better(observed, completion, choice, rest)
    return completion


def _searched(
    observed: Observed, space: SearchSpace, searching: dict[str, Any], rest: dict[str, Any], progress: Progress
) -> Search | None:
    """What hidden entries say, within a part of the time; the rest of it is left in ``rest``."""
    searching = searching | {key: rest[key] for key in ("engine", "random_state", "tol", "max_iter")}
    if "stop" in rest:
        searching["stop"] = rest["stop"]
    begin, limit = time.monotonic(), rest.get("max_seconds", math.inf)
    if not is_number(limit) or limit == math.inf:  # what is no number, the fit refuses
        return search_on_held_out(observed, space, progress=progress, **searching)
    searching["max_seconds"] = SEARCH_SECONDS * limit
    search = search_on_held_out(observed, space, progress=progress, **searching)
    rest["max_seconds"] = max(limit - (time.monotonic() - begin), 0.0)
    return search


def _solved(
    task: Task, penalty: Spectral, max_rank: Any, x0: Any, rest: dict[str, Any], progress: Progress
) -> Completion:
    """The fit of all known entries."""
    rest = rest | {"stop": progress.of_run("fitting", rest["tol"], rest.get("stop"))}
    completion = solve_completion(task, penalty, max_rank=max_rank, x0=x0, **rest)
    progress.finish("fitting")
    return completion


def _completed_as_found(
    observed: Observed, search: Search, x0: Any, rest: dict[str, Any], progress: Progress
) -> Completion:
    """The completion of all known entries with what hidden ones chose."""
    best = search.best
    if search.stopped:
        return replace(best.path.results[best.path.best], status=Status.STOPPED, search=search)
    task = Task.of(observed, best.choice.center, best.choice.scale)
    penalty = SpectralL12(best.alpha, best.choice.l2_weight)
    x0 = best.x0 if x0 is None else x0
    completion = _solved(task, penalty, best.choice.max_rank, x0, rest, progress)
    if is_ratings(observed):
        _warn_if_worse(best.path.results[best.path.best], search.biases, best.path.held_out)
    return replace(completion, search=search)


def _completed_unsearched(
    observed: Observed, space: SearchSpace, alpha: float | str, x0: Any, rest: dict[str, Any], progress: Progress
) -> tuple[Completion, Choice]:
    choice = space.without_search()
    task = Task.of(observed, choice.center, choice.scale)
    if isinstance(alpha, str) and space.of_ratings:
        alpha, rank = noise_strength(task.loss.observed, choice.l2_weight)
        choice = replace(choice, max_rank=rank if len(space.ranks) > 1 else choice.max_rank)
    elif isinstance(alpha, str):
        alpha = noise_alpha(task.loss.observed, choice.max_rank, choice.l2_weight)
    penalty = SpectralL12(float(alpha), choice.l2_weight)
    return _solved(task, penalty, choice.max_rank, x0, rest, progress), choice


def _warn_if_biases_do_better(
    observed: Observed, completion: Completion, choice: Choice, rest: dict[str, Any]
) -> None:
    """Hide some ratings from a rough fit of the same kind, and see."""
    train, hidden = observed.split(CHECKED, rest["random_state"])
    if hidden.n_observed == 0 or train.n_observed == 0 or completion.status is Status.STOPPED:
        return
    rough = {"engine": rest["engine"], "random_state": rest["random_state"], "tol": TOL, "max_iter": MAX_ITER}
    alpha = completion.alpha * math.sqrt(train.n_observed / observed.n_observed)
    penalty = SpectralL12(alpha, choice.l2_weight)
    fit = solve_completion(Task.of(train, choice.center, choice.scale), penalty, max_rank=choice.max_rank, **rough)
    _warn_if_worse(fit, fit_offsets(train, "biases"), hidden)


def _warn_if_worse(fit: Completion, biases: Offsets, hidden: Any) -> None:
    """Say so where biases alone predict hidden entries better than a fit, by more than chance."""
    places = hidden.rows, hidden.columns
    squares = [as_numpy((guess - hidden.values) ** 2) for guess in (fit.predict(*places), biases.entries(*places))]
    excess = squares[0] - squares[1]
    if np.mean(excess) * math.sqrt(excess.size) <= SURE * np.std(excess):
        return
    error, alone = (math.sqrt(np.mean(square)) for square in squares)
    warnings.warn(
        f"biases of rows and columns alone predict hidden entries with an error of {alone:.4g}, this fit with"
        f" {error:.4g}: leave alpha and l2_weight to the hidden entries (alpha='holdout'), or raise alpha",
        UserWarning,
        stacklevel=4,
    )


def _check(alpha: Any, given: dict[str, Any]) -> None:
    if not is_finite_number(alpha) and not (isinstance(alpha, str) and alpha in ("holdout", "noise")):
        raise ValueError(f"alpha must be a finite number >= 0, 'holdout' or 'noise', got {alpha!r}")
    l2_weight, max_rank = given["l2_weight"], given["max_rank"]
    if not is_finite_number(l2_weight) and not (isinstance(l2_weight, str) and l2_weight == "auto"):
        raise ValueError(f"l2_weight must be a number >= 0 or 'auto'; got {l2_weight!r}")
    if not (isinstance(max_rank, str) and max_rank == "auto"):
        check_rank(max_rank)
