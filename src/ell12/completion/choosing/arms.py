"""One choice of offsets, weight and rank, tried at the alphas of a grid around where it should be best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ell12.completion.choosing.choice import Choice
from ell12.completion.choosing.judged import HiddenEntries, UntilSettled
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed
from ell12.completion.solve import Completion, Task, choose_engine, solve_completion
from ell12.completion.strength_path import CompletionPath
from ell12.minimization import Status
from ell12.penalties import SpectralL12

COARSE = 0.6  # Alphas are first tried about this factor apart.
NEAR = 1.002  # Where the error is within this factor of the best of all, alphas between are tried too.
HOPE = 3  # No more are tried where so many further steps like the last would not bring the error below the best.


class RoughFits:
    """Fits of a choice to what the hidden entries leave, one for each time that entries are hidden."""

    def __init__(
        self,
        choice: Choice,
        tasks: list[tuple[Task, HiddenEntries]],
        settings: dict[str, Any],
        end: float = math.inf,  # of the time for it, by the monotonic clock
    ) -> None:
        self.choice, self.tasks, self.settings, self.end = choice, tasks, dict(settings), end
        self.engine = self.settings.pop("engine", "auto")
        self.stopped = False  # by Ctrl-C, or by `stop`

    def __call__(self, alpha: float, starts: list[LowRank | None]) -> tuple[list[Completion], float]:
        """The completions, and their error on what was hidden from them."""
        penalty, max_rank = SpectralL12(alpha, self.choice.l2_weight), self.choice.max_rank
        results: list[Completion] = []
        squares = []
        for (task, hidden), start in zip(self.tasks, starts, strict=True):
            solver = choose_engine(self.engine, task.loss, penalty, max_rank, self.settings["random_state"])
            rough = UntilSettled(solver, hidden)
            x0 = start if start is None or max_rank is None else start.truncate(max_rank)
            options = self.settings | {"max_seconds": max(self.end - time.monotonic(), 0.0)}
            results.append(solve_completion(task, penalty, max_rank=max_rank, engine=rough, x0=x0, **options))
            squares.append(hidden.error(results[-1].x) ** 2)
            self.stopped = results[-1].status is Status.STOPPED
            if self.stopped:
                break
        return results, math.sqrt(np.mean(squares))


class Arm:
    """What is known of a choice at the alphas of a grid.

    Parameters
    ----------
    fits : RoughFits
        How to fit at an alpha.
    alphas : array
        The grid, falling.
    starts : list of LowRank or None
        Where to begin the first fits.
    """

    def __init__(self, fits: RoughFits, alphas: np.ndarray, starts: list[Any]) -> None:
        self.fits, self.alphas, self.first_starts = fits, alphas, starts
        self.results: dict[int, list[Completion]] = {}  # by the place on the grid
        self.errors: dict[int, float] = {}

    @property
    def place(self) -> int:
        """Where on the grid the error is least."""
        return min(self.errors, key=lambda place: self.errors[place])

    @property
    def error(self) -> float:
        """The least error."""
        return self.errors[self.place]

    @property
    def alpha(self) -> float:
        """The alpha of the least error."""
        return float(self.alphas[self.place])

    @property
    def starts(self) -> list[Any]:
        """The matrices of the least error."""
        return [result.x for result in self.results[self.place]]

    def follow(self, around: float, rival: float, go_on: Callable[[Arm, float], bool]) -> None:
        """Try alphas around one while the error falls, coarsely first, and finely where it may beat a rival.

        ``go_on`` is told of each alpha that was tried, and says whether to try more.
        """
        first = min(int(np.sum(self.alphas > around)), len(self.alphas) - 1)
        for place in self._places(first, rival):
            if not 0 <= place < len(self.alphas) or place in self.errors:
                continue
            nearest = min(self.results, key=lambda other: abs(other - place), default=None)
            starts = self.first_starts if nearest is None else [result.x for result in self.results[nearest]]
            alpha = float(self.alphas[place])
            results, error = self.fits(alpha, starts)
            if self.fits.stopped and self.errors:  # what is half done does not count beside what is done
                return
            self.results[place], self.errors[place] = results, error
            if not go_on(self, alpha):
                return

    def _places(self, first: int, rival: float) -> Iterator[int]:
        """Where to try next, given what has been tried: a place beyond the grid is as good as one that fails."""
        yield first
        step = coarse = self._coarse_step()
        for direction in (coarse, -coarse):
            hopeful = True
            while hopeful:
                last, error = self.place, self.error
                yield last + direction
                hopeful = self.place != last and self.error * (self.error / error) ** HOPE < rival
            if self.place != first:
                break
        while step > 1 and self.error < rival * NEAR:
            step //= 2
            best = self.place
            yield best - step
            yield best + step

    def _coarse_step(self) -> int:
        """How many places on the grid lie about a factor `COARSE` apart."""
        if len(self.alphas) < 2:
            return 1
        return max(1, round(math.log(COARSE) / math.log(self.alphas[1] / self.alphas[0])))

    def describe(self, alpha: float) -> str:
        """A line on the latest alpha."""
        place = next(reversed(self.errors))
        rank, error = self.results[place][0].x.rank, self.errors[place]
        return f"alpha {alpha:.4g}: rank {rank}, error on hidden entries {error:.6g}"

    def path(self, hidden: Observed) -> CompletionPath:
        """What was tried, by falling alpha: the completions of the first split, with the errors of all."""
        places = sorted(self.results)
        results = [self.results[place][0] for place in places]
        errors = np.array([self.errors[place] for place in places])
        return CompletionPath(self.alphas[places], results, errors, hidden)
