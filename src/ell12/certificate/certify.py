"""Is a solution the global minimum? A branch-and-bound proof, or a lower bound on the minimum."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ell12.backend import as_array_of, as_numpy
from ell12.certificate.bounds import Box, convex_bound, dual_value, first_box, probe, relax
from ell12.certificate.standard_form import standard_form
from ell12.checks import check_counts, check_numbers, generator
from ell12.minimization import Run, Status, minimize
from ell12.minimization.rounding_stop import as_unknown
from ell12.solvers import Restarts

STARTS = 30  # random ones before the proof; 200 take longer than it does (benchmarks/results/certificates.md)
TOUCHES = "a convex lower bound touches"


@dataclass(frozen=True)
class Certificate:
    """What is known of the global minimum: it lies between ``lower_bound`` and ``objective``."""

    lower_bound: float
    objective: float  # of `x`
    gap: float  # their difference, relative to the objective
    proved: bool  # whether the gap is at most what was asked for
    x: Any = field(repr=False)  # the best point known
    nodes: int
    seconds: float
    reason: str  # why it ended

    def __repr__(self) -> str:
        effort = f"{self.nodes} node{'s' * (self.nodes != 1)}, {self.seconds:.2g} s"
        if self.proved:
            return f"Certificate(proved: {self.objective:.6g} is the minimum to {self.gap:.1g}, {effort})"
        between = f"the minimum lies between {self.lower_bound:.6g} and {self.objective:.6g}"
        return f"Certificate(not proved: {between}, {effort}, {self.reason})"


def certify(
    loss: Any,
    penalty: Any,
    x: Any = None,
    *,
    gap: float = 1e-6,
    max_seconds: float = 60.0,
    max_nodes: int | None = None,
    random_state: Any = 0,
) -> Certificate:
    """Prove that a solution of ``loss + penalty`` is a global minimum, or bound the minimum from below.

    Minimising a squared loss under l1-2 is NP-hard: a converged run is stationary, and may be at a local minimum
    only. This function bounds the minimum from below, by a convex bound that touches the objective at the solution
    or by branch and bound. The bound holds whatever the solvers inside reach: it is evaluated in closed form and
    lowered by a bound on the rounding of its sums. Problems with incoherent columns are mostly proved in a second.
    Where columns are nearly alike and more than ten entries are nonzero, a gap often remains. The n x n Gram
    matrix is held in memory.

    Parameters
    ----------
    loss : SquaredLoss
        Real data with one right-hand side, dense or sparse, weighted or not.
    penalty : L12 or L1
        With any weights, signs and ridge. Entries of weight 0, such as an intercept, are minimised over.
    x : array, optional
        The solution in question; that of `minimize` by default. Better points that are found take its place.
    gap : float, default 1e-6
        Relative difference of objective and bound that counts as a proof.
    max_seconds : float, default 60.0
        Time after which the bounds reached are returned; Ctrl-C returns them too.
    max_nodes : int, optional
        How many boxes may be bounded.
    random_state : int, default 0
        Seed of the random starts that may find a better point first.

    Returns
    -------
    Certificate
        ``lower_bound``, ``objective``, ``gap``, ``proved``, ``x``, ``nodes``, ``seconds``, ``reason``.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, SquaredLoss, certify
    >>> certificate = certify(SquaredLoss(np.eye(3), [3.0, 1.0, -2.0]), L12(alpha=0.5))
    >>> certificate.proved, round(certificate.objective, 4), certificate.x.round(2)
    (True, 1.021, array([ 2.92,  0.58, -1.75]))
    """
    check_numbers(single=True, gap=gap, max_seconds=max_seconds)
    check_counts(max_nodes=max_nodes)
    run = _Proof(loss, penalty, gap, max_seconds, math.inf if max_nodes is None else max_nodes)
    try:
        reason = run.prove(x, generator(random_state))
    except (KeyboardInterrupt, TimeoutError) as stop:
        reason = str(stop) or "interrupted"
    difference, objective = run.objective - run.bound, run.objective
    relative = difference / abs(objective) if objective else math.inf if difference else 0.0
    proved = bool(difference <= 1.01 * (objective - run.goal))
    found, seconds = as_array_of(run.embed(run.x), loss.start()), time.monotonic() - run.started
    return Certificate(run.bound, objective, float(relative), proved, found, run.nodes, seconds, reason)


class _Proof:
    """One proof: the best point, the bound, and what it has cost."""

    def __init__(self, loss: Any, penalty: Any, gap: float, max_seconds: float, max_nodes: float) -> None:
        self.loss, self.penalty, self.gap = loss, penalty, gap
        self.started, self.max_seconds, self.max_nodes = time.monotonic(), max_seconds, max_nodes
        self.form, self.embed, self.extract = standard_form(loss, penalty)
        self.x, self.objective = np.zeros(self.form.t.size), 0.5 * self.form.bb
        self.nodes, self.bound = 0, 0.0 if np.all(self.form.t >= self.form.W) else -math.inf

    @property
    def goal(self) -> float:
        """A bound that proves the best point known."""
        return self.objective - self.gap * abs(self.objective) - 1e-12 * self.form.bb

    def tick(self, nodes: int = 0) -> float:
        """Count boxes; the seconds that are left, or the end of the proof where a limit is reached."""
        left = self.max_seconds - (time.monotonic() - self.started)
        if left <= 0 or self.nodes + nodes > self.max_nodes:
            raise TimeoutError("max_seconds is over" if left <= 0 else "max_nodes are used")
        self.nodes += nodes
        return left

    def offer(self, given: Any) -> None:
        """A point; the best is kept."""
        x = self.extract(as_numpy(given).astype(float))
        value = self.form.value(x)
        if value < self.objective:
            self.x, self.objective = x, value

    def improve(self, x: np.ndarray, solver: Any = None) -> None:
        """Offer what a run of `minimize` from x finds; Ctrl-C in it ends the proof too."""
        start = as_array_of(self.embed(x), self.loss.start())
        result = minimize(self.loss, self.penalty, start, solver, tol=1e-8, run=Run(max_seconds=self.tick()))
        self.offer(result.x)
        if result.status is Status.STOPPED:
            raise KeyboardInterrupt

    def raise_bound(self, bound: float) -> bool:
        """A lower bound of the minimum; whether it proves the best point."""
        self.bound = max(self.bound, min(bound, self.objective))
        return self.bound >= self.goal

    def touches(self, entries: np.ndarray) -> bool:
        """Whether the convex bound over some entries proves the best point."""
        return self.raise_bound(min(convex_bound(self.form.restricted(entries), self.x[entries]), self.goal))

    def prove(self, x: Any, random: np.random.Generator) -> str:
        """Run to the end; why it ended."""
        form, every = self.form, np.arange(self.x.size)
        if x is not None:
            self.offer(as_unknown(self.loss, x, "x"))
        for solver in (None, Restarts(STARTS, random)):
            self.improve(self.x, solver)
            if form.W == 0 or every.size == 0:
                done = self.raise_bound(dual_value(form, self.x, form.t))
                return "convex" if done else "convex, but not solved to the gap"
            if self.touches(every):
                return TOUCHES
        most, total = first_box(form, self.goal, self.tick)
        if not math.isfinite(most):
            return "the entries of a minimiser could not be bounded"
        return self.search(most, float(form.lengths.max() * total))

    def search(self, most: float, total: float) -> str:
        """Branch and bound, the box with the lowest bound first; why it ended."""
        norm, size = max(float(np.linalg.norm(self.x)), 1e-3 * most), self.x.size
        root = Box(np.arange(size), np.maximum(self.form.floor, -most), np.full(size, most), self.x, norm)
        boxes = list(self.shrunk([root], total))
        if boxes and self.touches(np.union1d(boxes[0].entries, np.flatnonzero(self.x))):
            return TOUCHES
        while boxes and boxes[0].bound < self.goal and boxes[0].branch >= 0:
            box = boxes.pop(0)
            self.raise_bound(box.bound)
            self.improve(np.bincount(box.entries, box.x, size))
            boxes = sorted([*boxes, *self.shrunk(box.halves(), total)], key=lambda box: box.bound)
        done = self.raise_bound(min([self.goal, *(box.bound for box in boxes)]))
        return "no box is left" if done else "rounding"

    def shrunk(self, boxes: Any, total: float) -> Iterator[Box]:
        """What is left of boxes, bounded and probed while that makes them smaller: at the root in all entries."""
        for box in boxes:
            self.tick(nodes=1)
            size, left = math.inf, relax(self.form, box, self.goal, total)
            while left is not None and np.sum(left.upper - left.lower) <= 0.9 * size:
                size, chosen = np.sum(left.upper - left.lower), (left.x != 0) | (self.nodes == 1)
                probe(self.form, left, self.goal, total, chosen, self.tick)
                left = relax(self.form, left, self.goal, total)
            if left is not None:
                yield left
