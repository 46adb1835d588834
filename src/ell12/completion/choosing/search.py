"""Which strength, rank, offsets and weight of the subtracted norm predict hidden entries best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ell12.checks import check_share, generator
from ell12.completion.choosing.arms import NEAR, Arm, RoughFits
from ell12.completion.choosing.choice import Choice, SearchSpace
from ell12.completion.choosing.judged import HiddenEntries
from ell12.completion.choosing.progress import Progress
from ell12.completion.low_rank import LowRank
from ell12.completion.matrix_strength import largest_strength, noise_alpha
from ell12.completion.observed import Observed
from ell12.completion.offsets import Offsets, fit_offsets
from ell12.completion.solve import Task
from ell12.completion.strength_path import CompletionPath
from ell12.path import alpha_grid

# Fewer hidden entries than ENOUGH judge badly: others are then hidden in turn, at most MOST_SPLITS times in all.
ENOUGH, MOST_SPLITS = 10_000, 3
# Taking nothing off must predict better by this factor to be chosen: it ties the answer to where zero is, and lets
# an item with one excellent rating come first for everybody. Where a matrix is of low rank as it is, the gain is
# several times as large; on ratings it never was.
PLAIN_MUST_GAIN = 1.02
USUAL_ALPHAS = 5  # A choice is tried at about so many alphas: how far the search is, is told by it.
CHOOSING = "choosing by hidden entries"
TOL, MAX_ITER = 1e-2, 100  # Errors on hidden entries settle long before a stationary point is reached.


@dataclass(frozen=True)
class Candidate:
    """One path, and what the best of its completions recommends for all known entries."""

    choice: Choice
    path: CompletionPath = field(repr=False)  # of the first hidden entries, with errors over all
    growth: float  # from an alpha for part of the entries to one for all
    stopped: bool = False  # by Ctrl-C, or by `stop`

    @property
    def error(self) -> float:
        """The least root mean square error on the hidden entries."""
        return float(self.path.errors[self.path.best])

    @property
    def price(self) -> float:
        """The error by which it is compared with others."""
        return self.error * (PLAIN_MUST_GAIN if self.choice.center is None else 1.0)

    @property
    def alpha(self) -> float:
        """The alpha to use: noise grows with the square root of the number of known entries."""
        return float(self.path.alphas[self.path.best]) * self.growth

    @property
    def rank(self) -> int:
        """The rank of the best completion."""
        return int(self.path.results[self.path.best].x.rank)

    @property
    def x0(self) -> LowRank:
        """Where to begin with it."""
        return self.path.results[self.path.best].x


@dataclass(frozen=True)
class Search:
    """All that was tried."""

    candidates: list[Candidate] = field(repr=False)
    biases: Offsets = field(default_factory=Offsets, repr=False)  # alone, without the first hidden entries

    @property
    def best(self) -> Candidate:
        """The one of the least error on the hidden entries, by `Candidate.price`."""
        return min(self.candidates, key=lambda candidate: candidate.price)

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C ended it."""
        return bool(self.candidates) and self.candidates[-1].stopped

    def plot(self, axes: Any = None) -> Any:
        """Draw the error along the path of the best; needs matplotlib."""
        return self.best.path.plot(axes)


def search_on_held_out(
    observed: Observed,
    space: SearchSpace,
    *,
    held_out: float,
    random_state: Any,
    n_alphas: int = 20,
    eps: float = 1e-2,
    tol: float = 1e-3,
    max_iter: int = 1000,
    max_seconds: float = math.inf,
    verbose: int = 0,
    progress: Progress | None = None,
    **others: Any,
) -> Search | None:
    """Try alphas of choices that are all judged on the same hidden entries; None if none can be hidden.

    One choice at a time: other weights of the subtracted norm while they help, then other offsets, then smaller
    ranks while they help, and larger ones if none does. Of each choice the alphas of a grid are tried around the
    best one so far, every fit begun at one that is done. Where few entries are hidden, others are in turn, up to
    three times, and the errors averaged. Ctrl-C and ``max_seconds`` end the search with what is done.
    ``progress`` is told how far it is.
    """
    begin = time.monotonic()
    splits = _splits(observed, held_out, random_state)
    if splits[0][1].n_observed == 0:
        return None
    settings = {"random_state": random_state, "tol": max(tol, TOL), "max_iter": min(max_iter, MAX_ITER)}
    judge = _Judge(observed, splits, (n_alphas, eps), settings | others, bool(verbose))
    search, progress = Search([], fit_offsets(splits[0][0], "biases")), progress or Progress(None)
    for to_come, choice in _stages(space, search):
        part = progress.part(1, to_come)
        search.candidates.append(judge(choice, part, begin + max_seconds))
        progress.follow(part)
        if search.stopped or time.monotonic() - begin >= max_seconds:
            break
    progress.finish(CHOOSING)
    return search


class _Judge:
    """Tries a choice on the hidden entries, at alphas around the best so far."""

    def __init__(
        self,
        observed: Observed,
        splits: list[tuple[Observed, Observed]],
        grid: tuple[int, float],
        settings: dict[str, Any],
        verbose: bool,
    ) -> None:
        self.splits, self.grid, self.settings, self.verbose = splits, grid, settings, verbose
        self.growth = math.sqrt(observed.n_observed / splits[0][0].n_observed)
        self.tasks: dict[str | None, list[tuple[Task, HiddenEntries]]] = {}  # by what is taken off
        self.best: Arm | None = None
        self.price = math.inf  # of the best

    def __call__(self, choice: Choice, progress: Progress, end: float) -> Candidate:
        if self.verbose:
            print(f"on hidden entries: {choice}")
        tasks, best = self._tasks(choice), self.best
        loss = tasks[0][0].loss
        alphas = alpha_grid(largest_strength(loss, choice.l2_weight), *self.grid)
        fits = RoughFits(choice, tasks, self.settings, end)
        related = best is not None and best.fits.choice.center == choice.center
        arm = Arm(fits, alphas, best.starts if best is not None and related else [None] * len(tasks))
        around = noise_alpha(loss.observed, choice.max_rank, choice.l2_weight) if best is None else best.alpha
        arm.follow(around, math.inf if best is None else best.error, self._follower(choice, progress, end))
        found = Candidate(choice, arm.path(self.splits[0][1]), self.growth, fits.stopped)
        if best is None or found.price < self.price:
            self.best, self.price = arm, found.price
        return found

    def _tasks(self, choice: Choice) -> list[tuple[Task, HiddenEntries]]:
        if choice.center not in self.tasks:
            tasks = [(Task.of(train, choice.center, choice.scale), hidden) for train, hidden in self.splits]
            self.tasks[choice.center] = [(task, HiddenEntries(task, hidden)) for task, hidden in tasks]
        return self.tasks[choice.center]

    def _follower(self, choice: Choice, progress: Progress, end: float) -> Callable[[Arm, float], bool]:
        """What is told of each alpha that an arm has tried, and says whether there is time for more."""
        words = f"{CHOOSING}: l2_weight {choice.l2_weight:g}, rank {choice.max_rank or 'free'}"

        def follow(arm: Arm, alpha: float) -> bool:
            if self.verbose:
                print(arm.describe(alpha))
            progress.advance(f"{words}, alpha {alpha:.3g}", 1, max(USUAL_ALPHAS - len(arm.errors), 1))
            return not arm.fits.stopped and time.monotonic() < end

        return follow


def _stages(space: SearchSpace, search: Search) -> Iterator[tuple[float, Choice]]:
    """What to try one after the other, with about how many are to come after it."""
    center, *centers = space.centers
    weight, *weights = space.l2_weights
    rank, *ranks = space.ranks
    first = Choice(center, space.scale, weight, rank)
    later = len(centers) + min(len(ranks), 1)
    yield later + min(len(weights), 1.5), first
    yield from _while_they_help(search, "l2_weight", [w for w in weights if w > weight], later + 0.5)
    if search.best.choice.l2_weight == weight:
        yield from _while_they_help(search, "l2_weight", [w for w in weights if w < weight], later)
    # With nothing taken off, the first direction is the level of all entries, which should not be shrunken.
    best, free = search.best.choice, max(space.l2_weights)
    for left, other in zip(range(len(centers) - 1, -1, -1), centers, strict=True):
        choice = replace(best, center=other, l2_weight=free if other is None else best.l2_weight)
        yield left + later - len(centers), choice
    reached = search.best.rank  # a bound that does not bind has no say
    yield from _while_they_help(search, "max_rank", [other for other in ranks if other < min(rank, reached)], 0.5)
    if ranks and search.best.choice.max_rank == rank == reached:
        yield from _while_they_help(search, "max_rank", [other for other in ranks if other > rank], 0.0)


def _while_they_help(search: Search, name: str, values: list[Any], later: float) -> Iterator[tuple[float, Choice]]:
    for value in values:
        best = search.best
        yield later, replace(best.choice, **{name: value})
        if search.candidates[-1].error > NEAR * best.error:
            return


def _splits(observed: Observed, held_out: float, random_state: Any) -> list[tuple[Observed, Observed]]:
    """The known entries in two parts, the second to be hidden; several times where it is small."""
    check_share(held_out, "held_out")
    random = generator(random_state)
    first = observed.split(held_out, random)
    repeats = min(math.ceil(ENOUGH / max(first[1].n_observed, 1)), MOST_SPLITS)
    return [first, *(observed.split(held_out, random) for _ in range(repeats - 1))]
