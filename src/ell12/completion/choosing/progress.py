"""How far a completion is: which share of a work whose length is only known roughly is done."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ell12.minimization import History

Report = Callable[[str, float], None]  # what is going on, and which share of all is done, from 0 to 1


@dataclass
class Progress:
    """Tells a function how far the work is; the share never falls, and reaches ``end`` when all is done.

    What is to come is an estimate. Each step takes its part of what is left, so that a wrong estimate changes the
    pace and not what was said.
    """

    report: Report | None
    share: float = 0.0
    end: float = 1.0

    def advance(self, words: str, work: float, to_come: float) -> None:
        """So much work was done, and about so much more is to come."""
        self._reach(words, self.share + (self.end - self.share) * work / (work + to_come))

    def part(self, work: float, to_come: float) -> Progress:
        """The progress of the next part; let this one `follow` it when it is done."""
        end = self.share + (self.end - self.share) * work / (work + to_come)
        return Progress(self.report, self.share, end)

    def follow(self, part: Progress) -> None:
        """Go on where a part was to end."""
        self.share = part.end

    def finish(self, words: str) -> None:
        """All is done."""
        self._reach(words, self.end)

    def of_run(self, words: str, tol: float, stop: Callable[[History], bool] | None) -> Any:
        """A ``stop`` that does what the given one does and follows a run by the fall of its stationarity."""
        if self.report is None:
            return stop
        begin, largest = self.share, tol

        def follow(history: History) -> bool:
            nonlocal largest
            now = history["optimality"][-1]
            largest = max(largest, now) if math.isfinite(now) else largest
            fallen = math.log(largest / now) / math.log(largest / tol) if 0 < tol < now < math.inf else 0.0
            share = max(self.share, begin + (self.end - begin) * fallen)
            self._reach(f"{words}: iteration {len(history['objective']) - 1}", share)
            return stop is not None and stop(history)

        return follow

    def _reach(self, words: str, share: float) -> None:
        self.share = min(share, self.end)
        if self.report is not None:
            self.report(words, self.share)
