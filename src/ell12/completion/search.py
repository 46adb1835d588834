"""Which strength, rank, offsets and weight of the subtracted norm predict hidden entries best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.checks import check_share, generator
from ell12.completion.loss import CompletionLoss
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed
from ell12.completion.offsets import fit_offsets
from ell12.completion.path import CompletionPath, completion_path
from ell12.completion.strength import largest_strength
from ell12.minimization import Status
from ell12.path import alpha_grid

RATINGS_BELOW = 0.25  # A matrix with a smaller share of known entries is taken for ratings, not for a table.
FRUITLESS_ALPHAS = 3  # A path ends when this many alphas in a row have not brought a better error.
# Fewer hidden entries than ENOUGH judge badly: others are then hidden in turn, at most MOST_SPLITS times in all.
ENOUGH, MOST_SPLITS = 10_000, 3
TOL, MAX_ITER = 5e-2, 100  # Errors on hidden entries settle long before a stationary point is reached.


@dataclass(frozen=True)
class SearchSpace:
    """What a search may choose from, the first of each being where it begins."""

    centers: Sequence[str | None]
    l2_weights: Sequence[float]
    ranks: Sequence[Any]  # int, or a single None: no bound

    @classmethod
    def suited_to(cls, observed: Observed, *, center: Any, l2_weight: Any, max_rank: Any) -> SearchSpace:
        """What was asked for; for each that is "auto" what suits ratings, or a table.

        Of ratings, biases say most as a rule, and how much of the rest is signal differs widely from set to set:
        unpenalised (an l2_weight of 1) a matrix of rank one alone can cost more in noise than it gains. No bound
        on the rank is needed for tables, in which much is known.
        """
        is_ratings = observed.fraction < RATINGS_BELOW
        ranks = (8, 4, 2, 16) if is_ratings else (None,)
        centers = ("biases", None) if is_ratings else ("columns", "biases")
        return cls(
            centers if _is_auto(center) else (center,),
            (1.0, 0.5, 0.0) if _is_auto(l2_weight) else (l2_weight,),
            ranks if _is_auto(max_rank) else (max_rank,),
        )

    def without_search(self, alpha: Any) -> tuple[str | None, float, int | None]:
        """Center, l2_weight and rank where nothing is hidden: the first of each.

        Ratings whose strength is guessed by their noise are an exception: 0.5 is the safest of the weights there.
        """
        guessed = alpha == "noise" and self.ranks[0] is not None and 0.5 in self.l2_weights
        return self.centers[0], 0.5 if guessed else self.l2_weights[0], self.ranks[0]

    @property
    def most_paths(self) -> int:
        """How many paths a search follows at most."""
        return len(self.centers) + len(self.l2_weights) + len(self.ranks) - 2


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


@dataclass(frozen=True)
class Candidate:
    """One path, and what the best of its completions recommends for all known entries."""

    center: str | None
    l2_weight: float
    max_rank: int | None
    path: CompletionPath  # of the first hidden entries, with errors over all
    scale: float  # from an alpha for part of the entries to one for all
    stopped: bool = False  # by Ctrl-C

    @property
    def error(self) -> float:
        """The least root mean square error on the hidden entries."""
        return float(self.path.errors[self.path.best])

    @property
    def alpha(self) -> float:
        """The alpha to use: noise grows with the square root of the number of known entries."""
        return float(self.path.alphas[self.path.best]) * self.scale

    @property
    def x0(self) -> LowRank:
        """Where to begin with it."""
        return self.path.results[self.path.best].x


@dataclass(frozen=True)
class Search:
    """All that was tried."""

    candidates: list[Candidate]

    @property
    def best(self) -> Candidate:
        """The one of the least error on the hidden entries."""
        return min(self.candidates, key=lambda candidate: candidate.error)

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C ended it."""
        return bool(self.candidates) and self.candidates[-1].stopped

    def plot(self, axes: Any = None) -> Any:
        """Draw the error along the path of the best; needs matplotlib."""
        return self.best.path.plot(axes)


def search_on_held_out(
    observed: Observed,
    options: SearchSpace,
    *,
    held_out: float,
    random_state: Any,
    n_alphas: int = 20,
    eps: float = 1e-2,
    tol: float = 1e-3,
    max_iter: int = 1000,
    verbose: int = 0,
    **others: Any,
) -> Search | None:
    """Follow paths of alpha that are all judged on the same hidden entries; None if none can be hidden.

    One choice at a time: weights of the subtracted norm while they help, then offsets, then smaller ranks while
    they help, and larger ones if none does. Where few entries are hidden, others are in turn, up to three times,
    and the errors averaged. Ctrl-C ends the search with what is done.
    """
    splits = _splits(observed, held_out, random_state)
    if splits[0][1].n_observed == 0:
        return None

    def follow(center: str | None, l2_weight: float, rank: int | None) -> Candidate:
        if verbose:
            print(f"on hidden entries: center={center!r}, l2_weight={l2_weight:g}, max_rank={rank}")
        train = splits[0][0]
        centered = CompletionLoss(fit_offsets(train, center).taken_off(train))
        settings = {"l2_weight": l2_weight, "max_rank": rank, "center": center, "random_state": random_state}
        settings |= {"tol": max(tol, TOL), "max_iter": min(max_iter, MAX_ITER), "verbose": verbose} | others
        path, stopped = _path(splits, alpha_grid(largest_strength(centered, l2_weight), n_alphas, eps), settings)
        scale = math.sqrt(observed.n_observed / train.n_observed)
        return Candidate(center, l2_weight, rank, path, scale, stopped)

    search = Search([])
    for choices in _stages(options, search):
        for choice in choices:
            if search.stopped:
                return search
            search.candidates.append(follow(*choice))
            if search.best is not search.candidates[-1]:
                break
    return search


def _stages(options: SearchSpace, search: Search) -> Iterator[Iterable[tuple[str | None, float, int | None]]]:
    """What to try one after the other until something does not help; then the next stage, around the best."""
    center, *centers = options.centers
    rank, *ranks = options.ranks
    yield [(center, weight, rank) for weight in options.l2_weights]
    # With nothing taken off, the first direction is the level of all entries, which should not be shrunken.
    yield [(other, options.l2_weights[0] if other is None else search.best.l2_weight, rank) for other in centers]
    best = search.best
    yield [(best.center, best.l2_weight, other) for other in ranks if other < rank]
    if search.best is best:
        yield [(best.center, best.l2_weight, other) for other in ranks if other > rank]


def _splits(observed: Observed, held_out: float, random_state: Any) -> list[tuple[Observed, Observed]]:
    """The known entries in two parts, the second to be hidden; several times where it is small."""
    check_share(held_out, "held_out")
    random = generator(random_state)
    first = observed.split(held_out, random)
    repeats = min(math.ceil(ENOUGH / max(first[1].n_observed, 1)), MOST_SPLITS)
    return [first, *(observed.split(held_out, random) for _ in range(repeats - 1))]


def _path(
    splits: list[tuple[Observed, Observed]], alphas: Any, settings: dict[str, Any]
) -> tuple[CompletionPath, bool]:
    """The path of the first split with the errors of all, as far as all reach; and whether Ctrl-C ended it."""
    paths = []
    for train, hidden in splits:
        paths.append(completion_path(train, alphas=alphas, held_out=hidden, patience=FRUITLESS_ALPHAS, **settings))
        if paths[-1].results[-1].status is Status.STOPPED:
            break
    reach = min(len(path.alphas) for path in paths)
    errors = np.sqrt(np.mean([path.errors[:reach] ** 2 for path in paths], axis=0))
    first = paths[0]
    path = CompletionPath(first.alphas[:reach], first.results[:reach], errors, first.held_out)
    return path, paths[-1].results[-1].status is Status.STOPPED
