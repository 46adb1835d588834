"""Time to a given duality gap on the Lasso, the convex twin, ell12 and its peers side by side.

The gap is relative to half the square of b. Every method starts from zero, with its default settings but for the
tolerance. Points are pairs of time and gap, each a run of its own: the tolerance falls until the run reaches a
gap of 1e-8 or takes longer than the limit. Times are medians over rounds in which the methods take turns; a run
of more than 0.3 seconds is timed once. Tolerances have each method's own unit: that of ell12 is the stationarity,
in units of alpha, and begins at 1e4, that of the peers a share of the square of b or the like, and begins at 0.1.

`python benchmarks/race_lasso.py --limit 20 --problem paper` races by itself, here on the paper's problems and for
up to 20 seconds a run, and prints its page.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import child
from race import BASELINE, race_all, render
from race_methods import LASSO_METHODS, LIMIT
from race_problems import LASSO_PROBLEMS
from timing import Row

__all__ = ["BASELINE", "render", "rows"]


def rows(limit: float = LIMIT, name: str = "") -> Iterator[Row]:
    yield from race_all(LASSO_PROBLEMS, LASSO_METHODS, "gap", limit, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of one run")
    parser.add_argument("--problem", default="", help="only the problems whose name begins so")
    options = parser.parse_args()
    print(render(child.describe("race_lasso", __doc__, rows(options.limit, options.problem), options.limit)))


if __name__ == "__main__":
    main()
