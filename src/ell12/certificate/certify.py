"""Is a solution the global minimum? A branch-and-bound proof, or a lower bound on the minimum."""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ell12.backend import as_numpy, like
from ell12.certificate.bounds import Box, convex_bound, dual_value, first_box, local_minimum, random_minima, relax
from ell12.certificate.standard_form import standard_form
from ell12.checks import check_numbers
from ell12.minimization import minimize

STARTS = 30  # random starts before the proof; benchmarks/certificates.py
ROUNDS_AT_ROOT, ROUNDS, ROUNDS_OF_PROBES = 60, 15, 4  # relaxations of a box at the most
FEW_NODES, SWEEPS = 200, 6  # after so many nodes sides are probed, so often at the most


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
        Seed of the random starts that look for a better point first.

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
    (True, 0.9029, array([ 2.92,  0.58, -1.75]))
    """
    check_numbers(gap=gap, max_seconds=max_seconds)
    run = _Proof(loss, penalty, gap, max_seconds, math.inf if max_nodes is None else max_nodes)
    try:
        reason = run.prove(x, np.random.default_rng(random_state))
    except KeyboardInterrupt:
        reason = "interrupted"
    return run.certificate(reason)


class _Proof:
    """One proof: the best point, the bound, and what it has cost."""

    def __init__(self, loss: Any, penalty: Any, gap: float, max_seconds: float, max_nodes: float) -> None:
        self.loss, self.penalty, self.gap, self.max_nodes = loss, penalty, gap, max_nodes
        self.started, self.max_seconds = time.monotonic(), max_seconds
        self.form, self.embed, self.extract = standard_form(loss, penalty)
        self.left = np.arange(self.form.t.size)  # the entries of the whole form that a better point may use
        self.x, self.objective = np.zeros(self.left.size), 0.5 * self.form.bb
        self.whole, self.nodes, self.bound = self.left.size, 0, -math.inf

    @property
    def tolerance(self) -> float:
        """By how much the objective may lie above the bound."""
        return self.gap * abs(self.objective) + 1e-12 * self.form.bb

    @property
    def goal(self) -> float:
        """A bound that proves the best point known."""
        return self.objective - self.tolerance

    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() - self.started > self.max_seconds

    def limit(self, most: float = math.inf) -> str:
        """Which limit is reached, or none."""
        return "max_seconds is over" if self.is_late() else "max_nodes are used" if self.nodes >= most else ""

    def offer(self, x: np.ndarray) -> None:
        """A point; the best is kept."""
        value = self.form.value(x)
        if value < self.objective:
            self.x, self.objective = x, value

    def raise_bound(self, bound: float) -> bool:
        """A lower bound of the minimum; whether it proves the best point."""
        self.bound = max(self.bound, min(bound, self.objective))
        return self.bound >= self.goal

    def prove(self, x: Any, random: np.random.Generator) -> str:
        """Run to the end; why it ended."""
        form = self.form
        given = minimize(self.loss, self.penalty, tol=1e-8).x if x is None else x
        self.offer(self.extract(as_numpy(given).astype(float)))
        self.offer(local_minimum(form, self.x))
        if np.all(form.t >= form.W):
            self.raise_bound(0.0)
        if form.W == 0:
            done = self.raise_bound(dual_value(form, self.x, form.t))
            return "convex" if done else "convex, but not solved to the gap"
        if self.raise_bound(convex_bound(form, self.x)):
            return "a convex lower bound touches"
        for point in random_minima(form, random, STARTS):
            self.offer(point)
            if self.is_late():
                return self.limit()
        if self.raise_bound(convex_bound(form, self.x)):
            return "a convex lower bound touches"
        most, total = first_box(form, self.goal, self.is_late)
        if not math.isfinite(most):
            return self.limit() or "the entries of a minimiser could not be bounded"
        return self.search(most, float(form.lengths.max() * total))

    def search(self, most: float, total: float) -> str:
        """Branch and bound, the box with the lowest bound first."""
        form = self.form
        norm = max(float(np.linalg.norm(self.x)), 1e-3 * most)
        root = Box(np.maximum(form.floor, -most), np.full(form.t.size, most), self.x, norm)
        self.nodes, whole = 1, relax(form, root, self.goal, total, ROUNDS_AT_ROOT)
        for limit in (FEW_NODES, self.max_nodes):
            if whole is None:
                self.raise_bound(self.goal)
                return "no box is left"
            left = np.flatnonzero((whole.lower < 0) | (whole.upper > 0) | (self.x != 0))
            self.left, self.x = self.left[left], self.x[left]
            self.form, whole = self.form.restricted(left), whole.restricted(left)
            if self.raise_bound(min(convex_bound(self.form, self.x), self.goal)):
                return "a convex lower bound touches"
            reason = self.split(whole, total, min(limit, self.max_nodes))
            if self.nodes < limit or self.limit(self.max_nodes):
                return reason
            whole = self.probed(whole, total)
        return reason

    def probed(self, box: Box, total: float) -> Box | None:
        """The box without the outer halves of its sides in which no point lies below the goal."""
        for _ in range(SWEEPS):
            size = np.sum(box.upper - box.lower)
            for i in range(box.x.size):
                for end, other in ((box.upper, box.lower), (box.lower, box.upper)):
                    if self.is_late() or end[i] * other[i] > 0 or end[i] == 0:
                        continue
                    half = replace(box, lower=box.lower.copy(), upper=box.upper.copy())
                    inner = half.lower if end is box.upper else half.upper
                    inner[i] = 0.5 * end[i]
                    if relax(self.form, half, self.goal, total, ROUNDS_OF_PROBES, inverse=False) is None:
                        end[i] *= 0.5
            smaller = relax(self.form, box, self.goal, total, ROUNDS_AT_ROOT)
            if smaller is None or np.sum(smaller.upper - smaller.lower) > 0.9 * size or self.is_late():
                return smaller
            box = smaller
        return box

    def split(self, whole: Box, total: float, most: float) -> str:
        """Branch and bound, the box with the lowest bound first; why it ended."""
        boxes = [(whole.bound, 0, whole)]
        while boxes and boxes[0][2].branch >= 0 and not self.limit(most):
            self.raise_bound(min(boxes[0][0], self.goal))
            _, _, box = heapq.heappop(boxes)
            if box.bound >= self.goal:
                continue
            if self.nodes % 20 == 1:
                self.offer(local_minimum(self.form, box.x))
            for half in box.halves():
                self.nodes += 1
                child = relax(self.form, half, self.goal, total, ROUNDS)
                if child is not None:
                    heapq.heappush(boxes, (child.bound, self.nodes, child))
        self.raise_bound(min(boxes[0][0] if boxes else math.inf, self.goal))
        return self.limit(most) or "rounding" if boxes else "no box is left"

    def certificate(self, reason: str) -> Certificate:
        """What is known."""
        difference = self.objective - self.bound
        gap = difference / abs(self.objective) if self.objective else math.inf if difference else 0.0
        x = np.zeros(self.whole)
        x[self.left] = self.x
        proved, seconds = bool(difference <= 1.01 * self.tolerance), time.monotonic() - self.started
        known = (self.bound, self.objective, gap, proved)
        return Certificate(*known, like(self.embed(x), self.loss.start()), self.nodes, seconds, reason)
