"""Progress for people: lines that hang on the loop's ``stop``."""

from __future__ import annotations

from collections.abc import Callable

from ell12.minimization.result import History


def progress_lines(name: str, every: int = 100) -> Callable[[History], bool]:
    """A ``stop`` that never stops, and prints a line at the first iteration and at every multiple of ``every``."""

    def show(history: History) -> bool:
        n_iter = len(history["objective"]) - 1
        if n_iter % every == 0 or n_iter == 1:
            objective, optimality = history["objective"][-1], history["optimality"][-1]
            print(f"{name}: iteration {n_iter}, objective {objective:.6g}, stationarity about {optimality:.2g}")
        return False

    return show
