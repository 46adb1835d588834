"""Lower bounds of the objective: over a box, which they shrink, and before anything is split."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ell12.backend.compiled_code import can_compile
from ell12.certificate.standard_form import EPS, StandardForm, Vector


def box_descent(  # type: ignore[no-untyped-def]
    G, c, x, lower, upper, below, above, sweeps, target
) -> None:
    """Coordinate descent in place on ``x'Gx/2 - q'x + sum_i (below_i or above_i) x_i`` in a box; c = q - G x."""
    for _ in range(sweeps):
        largest = 0.0
        for i in range(x.size):
            h = G[i, i]
            pull = h * x[i] + c[i]
            new = (pull - above[i]) / h if pull > above[i] else (pull - below[i]) / h if pull < below[i] else 0.0
            new = min(max(new, lower[i]), upper[i])
            move = new - x[i]
            if move != 0.0:
                x[i] = new
                c -= move * G[i]
                largest = max(largest, move * move * h)
        if largest <= target:
            break


def smallest_reach(
    V: Vector, chosen: Vector, corners: Vector, costs: Vector, budget: float, squares: Vector
) -> Vector:
    """Least over a of ``a budget + ||z||^2 / (2 a) + sum_j max over corners of (v_j x_j - a e_j)``, j not i."""

    def at(a: Vector) -> Vector:
        most = np.max(corners[:, :, None] * V - a * costs[:, :, None], axis=0)
        return a * budget + squares / (2 * a) + most.sum(axis=0) - most[chosen, np.arange(chosen.size)]

    first = np.sqrt(squares / (2 * budget))
    trials = np.array([first * 2.0**power for power in range(-1, 6)])
    values = np.array([at(a) for a in trials])
    best = trials[np.argmin(values, axis=0), np.arange(chosen.size)]
    return np.min([*values, at(best * np.sqrt(0.5)), at(best * np.sqrt(2.0))], axis=0)


def loops() -> Any:
    """The module of the two loops above: the compiled one where there is a compiler, else this one."""
    if not can_compile():
        return sys.modules[__name__]
    from ell12.certificate import bounds_compiled

    return bounds_compiled


def local_minimum(form: StandardForm, x: Vector, rounds: int = 200) -> Vector:
    """A point with at most the objective of x: convex problems in which the norm is replaced by its tangent."""
    last, free = np.inf, np.full(x.size, np.inf)
    for _ in range(rounds):
        value, norm = form.value(x), np.linalg.norm(x)
        if last - value <= 1e-13 * abs(value):
            break
        tangent = form.W * x / norm if norm > 0 else 0 * x
        last, x, c = value, x.copy(), form.pull(x)
        loops().box_descent(
            form.G, c, x, form.floor, free, -form.t - tangent, form.t - tangent, 50, 1e-20 * form.bb
        )
    return x


def random_minima(form: StandardForm, random: np.random.Generator, starts: int) -> Iterator[Vector]:
    """Local minima reached from least-squares fits in a few columns."""
    for _ in range(starts):
        x = np.zeros(form.t.size)
        support = random.choice(x.size, min(x.size, int(random.integers(1, 12))), replace=False)
        x[support] = np.linalg.lstsq(form.G[np.ix_(support, support)], form.q[support], rcond=None)[0]
        yield local_minimum(form, np.maximum(x, form.floor))


@dataclass
class Box:
    """The points between two corners."""

    lower: Vector
    upper: Vector
    x: Vector  # the minimiser of the relaxation
    s: float  # the norm at which the subtracted norm is replaced by a quadratic
    bound: float = -np.inf  # no point of the box has a lower objective
    branch: int = -1  # the entry with the largest error of relaxation

    def restricted(self, entries: Vector) -> Box:
        """The same box in some entries, the others being zero."""
        lower, upper = self.lower[entries], self.upper[entries]
        return replace(
            self, lower=lower, upper=upper, x=self.x[entries], branch=int(np.searchsorted(entries, self.branch))
        )

    def halves(self) -> tuple[Box, Box]:
        """Two boxes, split at zero if the relaxation is near it, else between its minimiser and the middle."""
        i, lower, upper, x = self.branch, self.lower[self.branch], self.upper[self.branch], self.x[self.branch]
        if lower < 0 < upper:
            middle = 0.0 if abs(x) < 0.1 * (upper - lower) else 0.5 * x + 0.25 * (upper if x > 0 else lower)
        else:
            middle = 0.5 * x + 0.25 * (lower + upper)
        first, second = self.upper.copy(), self.lower.copy()
        first[i] = second[i] = middle
        return replace(self, upper=first), replace(self, lower=second)


@dataclass(frozen=True)
class Relaxation:
    """The convex problem over a box: each ``t |x_i| - kappa x_i^2/2`` replaced by its envelope, two lines."""

    below: Vector  # slopes of the envelope left of zero
    above: Vector  # and right of it
    offset: Vector  # its value at zero
    c: Any = None  # q - G y
    minima: Any = None  # of the envelopes less c'x, entry by entry
    bound: float = -np.inf

    @classmethod
    def of(cls, t: Vector, kappa: float, box: Box) -> Relaxation:
        """The envelopes over the sides of a box."""
        ends = [t * np.abs(end) - 0.5 * kappa * end**2 for end in (box.lower, box.upper)]
        below, above = -t - 0.5 * kappa * box.lower, t - 0.5 * kappa * box.upper
        chord = (ends[1] - ends[0]) / np.where(box.upper > box.lower, box.upper - box.lower, 1.0)
        one_line = (box.lower >= 0) | (box.upper <= 0) | (below > above)
        offset = np.where(one_line, ends[0] - chord * box.lower, 0.0)
        return cls(np.where(one_line, chord, below), np.where(one_line, chord, above), offset)

    def at(self, x: Vector) -> Vector:
        """The envelopes at x."""
        return np.where(x > 0, self.above, self.below) * x + self.offset


def relax(
    form: StandardForm, box: Box, goal: float, reach: float, rounds: int, *, inverse: bool = True
) -> Box | None:
    """Bound the objective over a box and cut off points that do not lie below the goal; None if no point is left.

    For every s > 0, ``-||x|| >= -||x||^2/(2 s) - s/2``; for every y with c = q - G y,
    ``bb/2 - q'x + x'Gx/2 >= bb/2 - y'Gy/2 - c'x``. What remains is a sum over entries, smallest at corners of the
    box: a bound for any s and y. Those of the convex relaxation make it nearly the best.
    """
    entries = np.flatnonzero((box.lower < 0) | (box.upper > 0))
    whole, form, box = form.t.size, form.restricted(entries), box.restricted(entries)
    s, last, error = box.s, -np.inf, np.zeros(entries.size)
    for number in range(rounds):
        largest = float(np.linalg.norm(np.maximum(np.abs(box.lower), np.abs(box.upper))))
        s = float(np.clip(s, max(1e-12 * largest, 1e-300), max(largest, 1e-300)))
        relaxation = _solved(form, box, s, goal, reach)
        if relaxation.bound >= goal:
            return None
        budget, width = goal - relaxation.bound, box.upper - box.lower
        if relaxation.bound > box.bound:
            box.bound, box.s = relaxation.bound, s
        errors = form.t * np.abs(box.x) - 0.5 * form.W / s * box.x**2 - relaxation.at(box.x)
        if not _cut(form, box, relaxation, budget, reach if inverse else None):
            return None
        change = np.max(1 - (box.upper - box.lower)[width > 0] / width[width > 0], initial=0.0)
        error = 0.5 * error + errors
        square = box.x @ box.x + 2 * s / form.W * errors.sum()  # of the best s for this minimiser
        norm = np.sqrt(max(square, 1e-6 * s**2))
        if change < 0.1 and relaxation.bound - last < 0.05 * budget and (abs(norm / s - 1) < 0.05 or number >= 6):
            break
        s, last = float(norm**0.7 * s**0.3), max(last, relaxation.bound)
    width = box.upper - box.lower
    error = np.where(width > 0, error, 0.0)
    if np.max(error, initial=0.0) < 1e-3 * (goal - box.bound):  # the error lies in s: the widest side is split
        error = width
    lower, upper, x = np.zeros((3, whole))
    lower[entries], upper[entries], x[entries] = box.lower, box.upper, box.x
    return Box(lower, upper, x, box.s, box.bound, int(entries[np.argmax(error)]) if np.any(error > 0) else -1)


def _solved(form: StandardForm, box: Box, s: float, goal: float, reach: float) -> Relaxation:
    """The relaxation with this s, to the accuracy that the distance to the goal asks for; moves the box's x."""
    relaxation = Relaxation.of(form.t, form.W / s, box)
    constant = 0.5 * form.bb - 0.5 * form.W * s
    x = np.clip(box.x, box.lower, box.upper)
    for _ in range(30):
        c, left = form.pull(x), goal - relaxation.bound
        target = 1e-8 * (left if np.isfinite(left) else abs(goal))
        loops().box_descent(form.G, c, x, box.lower, box.upper, relaxation.below, relaxation.above, 30, target)
        c = form.pull(x)
        minima = np.minimum(*(relaxation.at(end) - c * end for end in (box.lower, box.upper)))
        minima = np.where((box.lower < 0) & (box.upper > 0), np.minimum(minima, relaxation.offset), minima)
        half = 0.5 * float(x @ (form.q - c))
        slack = form.rounding(float(form.lengths @ np.abs(x)) + reach) + 1e-15 * x.size * np.abs(minima).sum()
        bound = constant - half + float(minima.sum()) - slack
        if bound > relaxation.bound:
            relaxation, box.x = replace(relaxation, c=c, minima=minima, bound=bound), x.copy()
        primal = constant + half - float(x @ form.q) + float(relaxation.at(x).sum())
        if relaxation.bound >= goal or primal - bound <= 0.02 * (goal - bound):
            break
    return relaxation


def _cut(form: StandardForm, box: Box, relaxation: Relaxation, budget: float, reach: float | None) -> bool:
    """Cut from the box what the budget excludes; whether something is left.

    Of a point below the goal the reduced costs ``e_i(x_i)`` and ``||A (x - y)||^2 / 2`` sum to at most the budget.
    """
    before = np.stack([box.lower, box.upper, np.where((box.lower < 0) & (box.upper > 0), 0.0, box.lower)])
    most = budget + relaxation.minima - relaxation.offset
    most += 1e-12 * (budget + np.abs(relaxation.minima) + np.abs(relaxation.offset))
    left, right = relaxation.below - relaxation.c, relaxation.above - relaxation.c
    rising, falling = np.where(box.upper <= 0, left, right), np.where(box.lower >= 0, right, left)
    _lower_ends(box.upper, rising > 0, most / np.where(rising > 0, rising, 1.0))
    _lower_ends(box.lower, falling < 0, most / np.where(falling < 0, falling, 1.0), -1)
    if reach is not None and not _is_empty(box):
        _cut_by_inverse(form, box, relaxation, budget, before, reach)
    return not _is_empty(box)


def _lower_ends(ends: Vector, where: Vector, new: Vector, sign: int = 1) -> None:
    """Upper ends made smaller in place, or with sign -1 lower ends larger, with a margin for rounding."""
    np.minimum(sign * ends, sign * new + 1e-9 * np.abs(new), out=ends, where=where)
    if sign < 0:
        np.negative(ends, out=ends, where=where)


def _is_empty(box: Box) -> bool:
    """Whether a side is empty; ends that rounding alone put in the wrong order are exchanged."""
    if np.any(box.lower > box.upper + 1e-9 * (np.abs(box.lower) + np.abs(box.upper))):
        return True
    box.lower, box.upper = np.minimum(box.lower, box.upper), np.maximum(box.lower, box.upper)
    return False


def _cut_by_inverse(
    form: StandardForm, box: Box, relaxation: Relaxation, budget: float, corners: Vector, total: float
) -> None:
    """Bounds of single entries from the rows z of the pseudo-inverse of the columns in use.

    With ``v = A'z``, for every a > 0:
    ``v_i x_i <= v'y + sum_(j != i) max(-v_j x_j - a e_j) + a budget + ||z||^2/(2 a)``.
    """
    chosen = np.flatnonzero((box.x != 0) & (box.upper > box.lower))
    if chosen.size == 0:
        return
    within = form.G[np.ix_(chosen, chosen)]
    weights = np.linalg.solve(within + 1e-8 * np.diag(np.diag(within)), np.eye(chosen.size))
    V = form.G[chosen].T @ weights
    squares = np.maximum(np.sum(weights * (within @ weights), axis=0), 1e-300)
    costs = np.maximum(relaxation.at(corners) - relaxation.c * corners - relaxation.minima, 0)
    own, centres = V[chosen, np.arange(chosen.size)], box.x @ V
    margin = EPS * form.terms * (form.lengths[chosen] @ np.abs(weights)) * (total + form.lengths @ np.abs(box.x))
    for sign, ends in ((1, box.upper), (-1, box.lower)):
        reach = loops().smallest_reach(-sign * V, chosen, corners, costs, budget, squares)
        new, usable = ends.copy(), own > 0.5
        new[chosen[usable]] = (centres + sign * (reach + margin))[usable] / own[usable]
        _lower_ends(ends, new != ends, new, sign)


def dual_value(form: StandardForm, x: Vector, t: Vector, i: int = -1, end: float = 0.0) -> float:
    """The dual value, at the residual of x, of the Lasso with slopes t and ``|x_i| >= |end|``, x_i of its sign."""
    c = form.pull(x)
    along, square = form.bb - x @ form.q, form.bb - x @ (form.q + c)  # the residual times b, and times itself
    least, most = 0.0, math.inf  # the factors that make the residual a dual point
    steep = np.where(form.floor == 0, c, np.abs(c))
    if end:
        steep[i] = 0.0
        slope = math.copysign(1.0, end) * c[i]
        along -= abs(end) * slope
        if slope > 0:
            most = t[i] / slope
        elif t[i] < 0:
            least = t[i] / slope if slope < 0 else math.inf
    tight = np.flatnonzero(steep > 0)
    most = min(most, np.min(t[tight] / steep[tight], initial=math.inf)) * (1 - 1e-12)
    if not least <= most:
        return -math.inf
    factor = float(np.clip(along / max(square, 1e-300), least * (1 + 1e-12), most))
    error = form.rounding(float(form.lengths @ np.abs(x)) + abs(end) * form.lengths[i])
    return factor * along - 0.5 * factor**2 * square + t[i] * abs(end) - error


def convex_bound(form: StandardForm, x: Vector) -> float:
    """A lower bound that touches the objective at x if the norm of x is large beside the least eigenvalue of G.

    With r = ||x|| no norm exceeds ``h(.) = max(., (.^2/r + r)/2)``. The objective with h in place of the norm is
    convex, strongly if the least eigenvalue is above W / r; at x it has the same value and gradient.
    """
    norm = float(np.linalg.norm(x))
    if norm == 0 or form.W == 0:
        return -math.inf
    least = float(np.linalg.eigvalsh(form.G)[0]) - EPS * form.terms * float(np.sum(form.lengths**2))
    if least <= form.W / norm:
        return -math.inf
    slope = -form.pull(x) - form.W * x / norm
    outside = np.minimum(slope + form.t, 0) + np.where(form.floor == 0, 0.0, np.maximum(slope - form.t, 0))
    violation = np.where(x != 0, slope + form.t * np.sign(x), outside)
    error = form.rounding(float(form.lengths @ np.abs(x)))
    return form.value(x) - float(violation @ violation) / (2 * (least - form.W / norm)) - error


def first_box(form: StandardForm, goal: float, is_late: Callable[[], bool]) -> tuple[float, float]:
    """Bounds of the entries and of the l1 norm of every point below the goal; infinite where none is found.

    If entry i is the largest and z the rest, ``||x||_2 <= |x_i| + ||z||_1 / 2``: the objective is at least that of
    a Lasso in which entry i pays ``t_i - W`` and the others ``t_j - W/2``. Where its value for ``|x_i| >= p``
    exceeds the goal, entry i is smaller than p, if it is the largest.
    """
    t = form.t - 0.5 * form.W
    if t.size == 0 or t.min() <= 0:
        return math.inf, math.inf
    lasso, c = np.zeros(t.size), form.q.copy()
    loops().box_descent(form.G, c, lasso, form.floor, np.full(t.size, np.inf), -t, t, 200, 1e-10 * form.bb)
    first = p = max(1.3 * float(np.abs(lasso).max()), 1e-6 * math.sqrt(form.bb) / float(form.lengths.max()))
    for i in np.argsort(-np.abs(lasso)):
        for sign in (1.0, -1.0) if form.floor[i] < 0 else (1.0,):
            while not _is_excluded(form, lasso, t, i, sign * p, goal):
                p *= 1.15
                if p > 1e8 * first or is_late():
                    return math.inf, math.inf
    return p, p + (goal + p * max(0.0, form.W - form.t.min())) / t.min()


def _is_excluded(form: StandardForm, lasso: Vector, t: Vector, i: int, end: float, goal: float) -> bool:
    """Whether the Lasso whose entry i is at least as large as the end has a value above the goal."""
    lower, upper, below, above = form.floor.copy(), np.full(t.size, np.inf), -t, t.copy()
    lower[i], upper[i] = (end, np.inf) if end > 0 else (-np.inf, end)
    below[i] = above[i] = math.copysign(1.0, end) * (form.t[i] - form.W)
    slopes = above.copy()
    slopes[i] = form.t[i] - form.W
    x = np.clip(lasso, lower, upper)
    for _ in range(50):
        c = form.pull(x)
        loops().box_descent(form.G, c, x, lower, upper, below, above, 30, 1e-10 * abs(goal))
        dual = dual_value(form, x, slopes, i, end)
        primal = 0.5 * (form.bb - x @ (form.q + form.pull(x))) + float(slopes @ np.abs(x))
        if dual > goal or primal < goal or primal - dual < 0.05 * (goal - dual):
            return dual > goal
    return False
