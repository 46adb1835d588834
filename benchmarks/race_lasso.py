"""Time to a given duality gap on the Lasso, the convex twin, ell12 and its peers side by side.

The gap is relative to half the square of b. Every method starts from zero, with its default settings but for the
tolerance. Points are pairs of time and gap, each a run of its own: the tolerance falls until the run reaches a
gap of 1e-8 or takes longer than the limit. Times are medians over rounds in which the methods take turns; a run
of more than a second is timed once.
"""

from __future__ import annotations

from collections.abc import Iterator

from race import BASELINE, race_all, render
from race_methods import LASSO_METHODS
from race_problems import LASSO_PROBLEMS
from timing import Row

__all__ = ["BASELINE", "render", "rows"]


def rows() -> Iterator[Row]:
    yield from race_all(LASSO_PROBLEMS, LASSO_METHODS, "gap")
