"""Which strength, rank, offsets and weight of the subtracted norm predict hidden entries best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ell12.checks import check_share, generator
from ell12.completion.choice import Choice, SearchSpace
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed
from ell12.completion.offsets import Offsets, fit_offsets
from ell12.completion.path import CompletionPath, follow_path
from ell12.completion.progress import Progress
from ell12.completion.solve import Task
from ell12.completion.strength import largest_strength
from ell12.minimization import Status
from ell12.path import alpha_grid

FRUITLESS_ALPHAS = 3  # A path ends when this many alphas in a row have not brought a better error.
# Fewer hidden entries than ENOUGH judge badly: others are then hidden in turn, at most MOST_SPLITS times in all.
ENOUGH, MOST_SPLITS = 10_000, 3
USUAL_ALPHAS = 12  # A path ends after about this many: how far the search is, is told by it.
CENTERS = 1  # The stage of the search that tries all its choices: they are in no order.
TOL, MAX_ITER = 5e-2, 100  # Errors on hidden entries settle long before a stationary point is reached.


@dataclass(frozen=True)
class Candidate:
    """One path, and what the best of its completions recommends for all known entries."""

    choice: Choice
    path: CompletionPath = field(repr=False)  # of the first hidden entries, with errors over all
    growth: float  # from an alpha for part of the entries to one for all
    stopped: bool = False  # by Ctrl-C

    @property
    def error(self) -> float:
        """The least root mean square error on the hidden entries."""
        return float(self.path.errors[self.path.best])

    @property
    def alpha(self) -> float:
        """The alpha to use: noise grows with the square root of the number of known entries."""
        return float(self.path.alphas[self.path.best]) * self.growth

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
    space: SearchSpace,
    *,
    held_out: float,
    random_state: Any,
    n_alphas: int = 20,
    eps: float = 1e-2,
    tol: float = 1e-3,
    max_iter: int = 1000,
    verbose: int = 0,
    progress: Progress | None = None,
    **others: Any,
) -> Search | None:
    """Follow paths of alpha that are all judged on the same hidden entries; None if none can be hidden.

    One choice at a time: weights of the subtracted norm while they help, then offsets, then smaller ranks while
    they help, and larger ones if none does. Where few entries are hidden, others are in turn, up to three times,
    and the errors averaged. Ctrl-C ends the search with what is done. ``progress`` is told how far it is.
    """
    splits = _splits(observed, held_out, random_state)
    if splits[0][1].n_observed == 0:
        return None
    settings = {"random_state": random_state, "tol": max(tol, TOL), "max_iter": min(max_iter, MAX_ITER)}
    follow = _Judge(observed, splits, (n_alphas, eps), settings | {"verbose": verbose} | others)
    search, progress = Search([], fit_offsets(splits[0][0], "biases")), progress or Progress(None)
    for stage, choices in enumerate(_stages(space, search)):
        for choice in choices:
            if search.stopped:
                return search
            part = progress.part(1, space.paths_after(stage))
            search.candidates.append(follow(choice, part))
            progress.follow(part)
            if stage != CENTERS and search.best is not search.candidates[-1]:
                break
    progress.finish("choosing by hidden entries")
    return search


class _Judge:
    """Follows the path of a choice, judged on the hidden entries."""

    def __init__(
        self, observed: Observed, splits: list[tuple[Observed, Observed]], grid: tuple[int, float], settings: Any
    ) -> None:
        self.splits, self.grid, self.settings = splits, grid, settings
        self.growth = math.sqrt(observed.n_observed / splits[0][0].n_observed)
        self.tasks: dict[str | None, list[Task]] = {}  # by what is taken off

    def __call__(self, choice: Choice, progress: Progress) -> Candidate:
        if self.settings["verbose"]:
            print(f"on hidden entries: {choice}")
        if choice.center not in self.tasks:
            self.tasks[choice.center] = [Task.of(train, choice.center, choice.scale) for train, _ in self.splits]
        tasks = self.tasks[choice.center]
        alphas = alpha_grid(largest_strength(tasks[0].loss, choice.l2_weight), *self.grid)
        hidden = [entries for _, entries in self.splits]
        path, stopped = _path(tasks, hidden, alphas, choice, self.settings | {"progress": progress})
        return Candidate(choice, path, self.growth, stopped)


def _stages(space: SearchSpace, search: Search) -> Iterator[Iterable[Choice]]:
    """What to try one after the other until something does not help; then the next stage, around the best."""
    center, *centers = space.centers
    rank, *ranks = space.ranks
    first = Choice(center, space.scale, space.l2_weights[0], rank)
    yield [replace(first, l2_weight=weight) for weight in space.l2_weights]
    # With nothing taken off, the first direction is the level of all entries, which should not be shrunken.
    weight = search.best.choice.l2_weight
    yield [
        replace(first, center=other, l2_weight=first.l2_weight if other is None else weight) for other in centers
    ]
    best = search.best
    yield [replace(best.choice, max_rank=other) for other in ranks if other < rank]
    if search.best is best:
        yield [replace(best.choice, max_rank=other) for other in ranks if other > rank]


def _splits(observed: Observed, held_out: float, random_state: Any) -> list[tuple[Observed, Observed]]:
    """The known entries in two parts, the second to be hidden; several times where it is small."""
    check_share(held_out, "held_out")
    random = generator(random_state)
    first = observed.split(held_out, random)
    repeats = min(math.ceil(ENOUGH / max(first[1].n_observed, 1)), MOST_SPLITS)
    return [first, *(observed.split(held_out, random) for _ in range(repeats - 1))]


def _steps(progress: Progress, choice: Choice) -> Callable[[float], None]:
    """What follows the alphas of a path, which ends early as a rule."""
    to_come = iter(range(USUAL_ALPHAS - 1, 0, -1))
    words = f"choosing by hidden entries: l2_weight {choice.l2_weight:g}, rank {choice.max_rank or 'free'}"
    return lambda alpha: progress.advance(f"{words}, alpha {alpha:.3g}", 1, next(to_come, 1))


def _path(
    tasks: list[Task], hidden: list[Observed], alphas: Any, choice: Choice, settings: dict[str, Any]
) -> tuple[CompletionPath, bool]:
    """The path of the first split with the errors of all, as far as all reach; and whether Ctrl-C ended it."""
    paths: list[CompletionPath] = []
    settings = dict(settings)
    progress = settings.pop("progress", Progress(None))
    for task, entries in zip(tasks, hidden, strict=True):
        part = progress.part(1, len(tasks) - len(paths) - 1)
        settings["done"] = _steps(part, choice)
        paths.append(follow_path(task, entries, alphas, choice, patience=FRUITLESS_ALPHAS, **settings))
        progress.follow(part)
        if paths[-1].results[-1].status is Status.STOPPED:
            break
    reach = min(len(path.alphas) for path in paths)
    errors = np.sqrt(np.mean([path.errors[:reach] ** 2 for path in paths], axis=0))
    first = paths[0]
    path = CompletionPath(first.alphas[:reach], first.results[:reach], errors, first.held_out)
    return path, paths[-1].results[-1].status is Status.STOPPED
