"""Rough fits that are judged on hidden entries, and go no further than those can tell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ell12.backend import as_numpy, namespace, norm
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed
from ell12.completion.solve import Task
from ell12.minimization.solver_choice import needs_of
from ell12.protocols import Iterate, Needs, Point

# A fit ends once its error on hidden entries has changed by less than a share in QUIET steps in a row: by SETTLED,
# which a slow drift of many steps does not pass for, or by this much over the root of their number, which is less
# than a hundredth of what chance makes of such an error.
SETTLED, CHANCE, QUIET = 5e-5, 5e-3, 2


class HiddenEntries:
    """Entries that were hidden from a task, as its low-rank matrix should have them.

    Parameters
    ----------
    task : Task
        What is fitted.
    entries : Observed
        What was hidden.
    """

    def __init__(self, task: Task, entries: Observed) -> None:
        xp, scales = namespace(entries.values), task.offsets.scales
        if scales is not None:  # nothing can be predicted in a column whose unit is not known
            entries = entries.select(as_numpy(~xp.isnan(xp.take(scales, entries.columns, axis=0))))
        self.count = entries.n_observed
        self.fixed = 0.0  # the squared error of strangers, which no low-rank matrix changes
        if task.strangers is not None:
            seen = task.strangers.rows_seen, task.strangers.columns_seen
            places = entries.rows, entries.columns
            both = as_numpy(xp.take(seen[0], places[0], axis=0) & xp.take(seen[1], places[1], axis=0))
            strangers, entries = entries.select(~both), entries.select(both)
            error = task.strangers.biases.entries(strangers.rows, strangers.columns) - strangers.values
            error = error if scales is None else error / xp.take(scales, strangers.columns, axis=0)
            self.fixed = norm(error) ** 2
        self.entries = task.offsets.taken_off(entries)

    def error(self, x: LowRank) -> float:
        """The root mean square error of a low-rank matrix; in units of the columns' deviations where scaled."""
        entries = self.entries
        error = norm(x.entries(entries.rows, entries.columns) - entries.values)
        return math.sqrt((error**2 + self.fixed) / max(self.count, 1))


@dataclass(frozen=True)
class UntilSettled:
    """Another solver, ended when the error on hidden entries has settled; its word on optimality is taken.

    Errors settle long before a stationary point is reached, and a certificate costs as much as several sweeps.
    """

    solver: Any
    hidden: HiddenEntries

    @property
    def needs(self) -> Needs:
        """Those of the other solver."""
        return needs_of(self.solver)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield the other's iterates."""
        last, quiet, first = math.inf, 0, True
        settled = max(SETTLED, CHANCE / math.sqrt(max(self.hidden.count, 1)))
        for iterate in self.solver.iterates(loss, penalty, start):
            if iterate is None:
                yield None
                continue
            error = self.hidden.error(iterate.point.x)
            quiet = quiet + 1 if abs(error - last) <= settled * error and iterate.optimality < math.inf else 0
            last = error
            # After one step a solver may not know yet what it should look for.
            yield iterate if first else replace(iterate, exact=True)
            first = False
            if quiet >= QUIET:
                return
