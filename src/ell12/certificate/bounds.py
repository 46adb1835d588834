"""Lower bounds of the objective: over a box, which they shrink, and before anything is split."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ell12.certificate.standard_form import EPS, StandardForm, Vector


@dataclass
class Box:
    """The points between two corners whose entries that are not listed are zero."""

    entries: Vector
    lower: Vector
    upper: Vector
    x: Vector  # the minimiser of the relaxation
    s: float  # the norm at which the subtracted norm is replaced by a quadratic
    bound: float = -np.inf  # no point of the box has a lower objective
    branch: int = -1  # the entry with the largest error of relaxation
    slopes: tuple[Any, Any] = (0.0, 0.0)  # of the envelopes, left and right of zero
    offset: Any = 0.0  # the envelopes at zero
    minima: Any = 0.0  # of the envelopes less c'x
    c: Any = 0.0  # q - G x

    @property
    def inner(self) -> Vector:
        """Which entries may have either sign."""
        return (self.lower < 0) & (self.upper > 0)

    @property
    def corners(self) -> tuple[Vector, Vector, Vector]:
        """The ends of its sides, and zero where that lies between them."""
        return self.lower, self.upper, np.where(self.inner, 0.0, self.lower)

    def envelop(self, t: Vector, kappa: float) -> None:
        """Find the envelopes of each ``t |x_i| - kappa x_i^2/2``: a line, or two that meet at zero."""
        ends = [t * np.abs(end) - 0.5 * kappa * end**2 for end in (self.lower, self.upper)]
        below, above = -t - 0.5 * kappa * self.lower, t - 0.5 * kappa * self.upper
        chord = (ends[1] - ends[0]) / np.where(self.upper > self.lower, self.upper - self.lower, 1.0)
        line = ~self.inner | (below > above)
        self.slopes = np.where(line, chord, below), np.where(line, chord, above)
        self.offset = np.where(line, ends[0] - chord * self.lower, 0.0)

    def envelopes(self, x: Vector) -> Vector:
        """Their values at x."""
        return np.where(x > 0, self.slopes[1], self.slopes[0]) * x + self.offset

    def halves(self) -> tuple[Box, Box]:
        """Two boxes, split at zero if the relaxation is near it, else between its minimiser and the middle."""
        i, first, second = self.branch, self.upper.copy(), self.lower.copy()
        ends = [end for end in (second[i], first[i]) if not self.inner[i] or end * self.x[i] >= 0]
        near = self.inner[i] and abs(self.x[i]) < 0.1 * (first[i] - second[i])
        first[i] = second[i] = 0.0 if near else 0.5 * self.x[i] + 0.25 * sum(ends)
        return replace(self, upper=first), replace(self, lower=second)


def relax(form: StandardForm, box: Box, goal: float, reach: float) -> Box | None:
    """Bound the objective over a box and cut off points that do not lie below the goal; None if no point is left.

    For every s > 0, ``-||x|| >= -||x||^2/(2 s) - s/2``; for every y with c = q - G y,
    ``bb/2 - q'x + x'Gx/2 >= bb/2 - y'Gy/2 - c'x``. What remains is a sum over entries, smallest at corners of the
    box: a bound for any s and y. Those of the convex relaxation make it nearly the best.
    """
    used = np.flatnonzero((box.lower < 0) | (box.upper > 0))
    box = replace(box, **{name: getattr(box, name)[used] for name in ("entries", "lower", "upper", "x")})
    form, best, last = form.restricted(box.entries), (box.bound, box.s), -np.inf
    while True:
        largest, width = float(np.linalg.norm(np.maximum(-box.lower, box.upper))), box.upper - box.lower
        box.s = s = float(np.clip(box.s, max(1e-12 * largest, 1e-300), max(largest, 1e-300)))
        box = _solved(form, box, goal, reach)
        best, budget = max(best, (box.bound, s)), goal - box.bound
        if budget <= 0 or not _cut(form, box, budget, reach):
            return None
        errors = form.t * np.abs(box.x) - 0.5 * form.W / s * box.x**2 - box.envelopes(box.x)
        change = np.max(1 - (box.upper - box.lower)[width > 0] / width[width > 0], initial=0.0)
        if change < 0.1 and box.bound - last < 0.05 * budget:
            break
        square = box.x @ box.x + 2 * s / form.W * errors.sum()  # of the best s for this minimiser
        box.s, last = float(max(square, 1e-6 * s**2) ** 0.35 * s**0.3), max(last, box.bound)
    errors = np.where(box.upper > box.lower, errors, 0.0)
    if np.max(errors, initial=0.0) < 1e-3 * (goal - best[0]):  # the error lies in s: the widest side is split
        errors = box.upper - box.lower
    return replace(box, bound=best[0], s=best[1], branch=int(np.argmax(errors)) if errors.any() else -1)


def probe(form: StandardForm, box: Box, goal: float, reach: float, chosen: Vector, tick: Any) -> None:
    """Halve those sides of a box in whose outer half no point lies below the goal, of chosen entries."""
    form = form.restricted(box.entries)
    for k, (outer, inner) in product(np.flatnonzero(chosen), (("lower", "upper"), ("upper", "lower"))):
        end, other = getattr(box, outer), getattr(box, inner).copy()
        if end[k] * other[k] <= 0 and end[k] != 0:
            tick()
            other[k] = 0.5 * end[k]
            half = replace(box, **{inner: other})
            if _solved(form, half, goal, reach, accuracy=1.0).bound >= goal:
                end[k] *= 0.5


def _solved(form: StandardForm, box: Box, goal: float, reach: float, accuracy: float = 0.02) -> Box:
    """The box with its relaxation solved to a share of the distance to the goal."""
    constant, x = 0.5 * form.bb - 0.5 * form.W * box.s, np.clip(box.x, box.lower, box.upper)
    box = replace(box, bound=-np.inf)
    box.envelop(form.t, form.W / box.s)
    for _ in range(200):
        form.descend(x, box.lower, box.upper, *box.slopes, 5, 1e-8 * abs(goal - max(box.bound, 0.0)))
        c = form.pull(x)
        minima = np.min([box.envelopes(corner) - c * corner for corner in box.corners], axis=0)
        half = 0.5 * float(x @ (form.q - c))
        slack = form.rounding(float(form.lengths @ np.abs(x)) + reach) + 1e-15 * x.size * np.abs(minima).sum()
        bound = constant - half + float(minima.sum()) - slack
        if bound > box.bound:
            box = replace(box, c=c, minima=minima, bound=bound, x=x.copy())
        primal = constant + half - float(x @ form.q) + float(box.envelopes(x).sum())
        if box.bound >= goal or primal - bound <= accuracy * (goal - bound):
            break
    return box


def _cut(form: StandardForm, box: Box, budget: float, reach: float) -> bool:
    """Cut from the box what the budget excludes; whether something is left.

    Of a point below the goal the reduced costs ``e_i(x_i)`` and ``||A (x - y)||^2 / 2`` sum to at most the budget.
    """
    most = budget + box.minima - box.offset
    most += 1e-12 * (budget + np.abs(box.minima) + np.abs(box.offset))
    left, right = (slope - box.c for slope in box.slopes)
    lower = np.where(left < 0, most / np.where(left < 0, left, 1.0), -np.inf)
    upper = np.where(right > 0, most / np.where(right > 0, right, 1.0), np.inf)
    chosen = np.flatnonzero((box.x != 0) & (box.upper > box.lower))
    if chosen.size:
        ends = _ends_by_inverse(form, box, chosen, budget, reach)
        lower[chosen], upper[chosen] = np.maximum(lower[chosen], ends[0]), np.minimum(upper[chosen], ends[1])
    lower = np.maximum(box.lower, lower - 1e-9 * np.abs(lower))  # for rounding
    upper = np.minimum(box.upper, upper + 1e-9 * np.abs(upper))
    box.lower, box.upper = np.minimum(lower, upper), np.maximum(lower, upper)  # rounding may have exchanged them
    return not np.any(lower > upper + 1e-9 * (np.abs(lower) + np.abs(upper)))


def _ends_by_inverse(form: StandardForm, box: Box, chosen: Vector, budget: float, total: float) -> list[Vector]:
    """Bounds of the chosen entries from the rows z of the pseudo-inverse of their columns.

    With ``v = A'z``, for every a > 0:
    ``v_i x_i <= v'y + sum_(j != i) max(-v_j x_j - a e_j) + a budget + ||z||^2/(2 a)``.
    """
    block, rows = form.G[np.ix_(chosen, chosen)], np.arange(chosen.size)
    weights = np.linalg.solve(block + 1e-8 * np.diag(np.diag(block)), np.eye(chosen.size))
    V, squares = weights.T @ form.G[chosen], np.maximum(np.sum(weights * (block @ weights), axis=0), 1e-300)
    costs = [np.maximum(box.envelopes(x) - box.c * x - box.minima, 0) for x in box.corners]
    margin = EPS * form.terms * (form.lengths[chosen] @ np.abs(weights)) * (total + form.lengths @ np.abs(box.x))
    own, ends = np.maximum(V[rows, chosen], 1e-300), []
    for sign in (-1.0, 1.0):
        least = np.full(chosen.size, np.inf)
        for a in np.sqrt(squares / (2 * budget)) * 2.0 ** np.arange(-1, 6)[:, None]:
            gains = [-sign * V * x - a[:, None] * cost for x, cost in zip(box.corners, costs, strict=True)]
            largest = np.max(gains, axis=0)
            largest[rows, chosen] = 0.0
            least = np.minimum(least, largest.sum(axis=1) + a * budget + squares / (2 * a))
        ends.append(np.where(own > 0.5, (V @ box.x + sign * (least + margin)) / own, sign * np.inf))
    return ends


def dual_value(form: StandardForm, x: Vector, t: Vector, i: int = -1, end: float = 0.0) -> float:
    """The dual value, at the residual of x, of the Lasso with slopes t and ``|x_i| >= |end|``, x_i of its sign."""
    c = form.pull(x)
    along, square = form.bb - x @ form.q, form.bb - x @ (form.q + c)  # the residual times b, and times itself
    steep = np.where(form.floor == 0, c, np.abs(c))
    price = length = 0.0
    if end:
        price, length = abs(end) * t[i], abs(end) * form.lengths[i]
        steep[i] = math.copysign(1.0, end) * c[i]
        along -= abs(end) * steep[i]
    rising, falling = steep > 0, (steep <= 0) & (t < 0)  # a factor makes the residual a dual point: f steep <= t
    most = np.min(t[rising] / steep[rising], initial=math.inf) * (1 - 1e-12)
    least = np.max(t[falling] / np.minimum(steep[falling], -1e-300), initial=0.0) * (1 + 1e-12)
    factor = float(np.clip(along / max(square, 1e-300), least, most))
    error = form.rounding(float(form.lengths @ np.abs(x)) + length)
    value = factor * along - 0.5 * factor**2 * square + price - error
    return value if least <= most else -math.inf


def convex_bound(form: StandardForm, x: Vector) -> float:
    """A lower bound that touches the objective at x if ||x|| is large compared with the least eigenvalue of G.

    With r = ||x|| no norm exceeds ``h(.) = max(., (.^2/r + r)/2)``. The objective with h in place of the norm is
    convex, strongly if the least eigenvalue is above W / r; at x it has the same value and gradient.
    """
    norm = max(float(np.linalg.norm(x)), 1e-300)
    room = np.linalg.eigvalsh(form.G)[0] - EPS * form.terms * np.sum(form.lengths**2) - form.W / norm
    slope = -form.pull(x) - form.W * x / norm
    outside = np.minimum(slope + form.t, 0) + np.where(form.floor == 0, 0.0, np.maximum(slope - form.t, 0))
    violation = np.where(x != 0, slope + form.t * np.sign(x), outside)
    error = form.rounding(float(form.lengths @ np.abs(x)))
    return float(form.value(x) - violation @ violation / (2 * room) - error) if room > 0 else -math.inf


def first_box(form: StandardForm, goal: float, tick: Any) -> tuple[float, float]:
    """Bounds of the entries and of the l1 norm of every point below the goal; infinite where none is found.

    If entry i is the largest and z the rest, ``||x||_2 <= |x_i| + ||z||_1 / 2``: the objective is at least that of
    a Lasso in which entry i pays ``t_i - W`` and the others ``t_j - W/2``. Where its value for ``|x_i| >= p``
    exceeds the goal, entry i is smaller than p, if it is the largest.
    """
    t = form.t - 0.5 * form.W
    if t.size == 0 or t.min() <= 0:
        return math.inf, math.inf
    lasso, free = np.zeros(t.size), np.full(t.size, np.inf)
    form.descend(lasso, form.floor, free, -t, t, 200, 1e-10 * form.bb)
    first = p = max(1.3 * float(np.abs(lasso).max()), 1e-6 * math.sqrt(form.bb) / float(form.lengths.max()))
    for i in np.argsort(-np.abs(lasso)):
        for sign in (1.0, -1.0) if form.floor[i] < 0 else (1.0,):
            while tick() and not _is_excluded(form, lasso, t, i, sign * p, goal):
                p *= 1.15
                if p > 1e8 * first:
                    return math.inf, math.inf
    return p, p + (goal + p * max(0.0, form.W - form.t.min())) / t.min()


def _is_excluded(form: StandardForm, lasso: Vector, t: Vector, i: int, end: float, goal: float) -> bool:
    """Whether the Lasso whose entry i is at least as large as the end has a value above the goal."""
    lower, upper, slopes = form.floor.copy(), np.full(t.size, np.inf), t.copy()
    lower[i], upper[i] = (end, np.inf) if end > 0 else (-np.inf, end)
    slopes[i] = form.t[i] - form.W
    below, above = -t, slopes.copy()
    below[i] = above[i] = math.copysign(1.0, end) * slopes[i]
    x = np.clip(lasso, lower, upper)
    for _ in range(400):
        form.descend(x, lower, upper, below, above, 4, 1e-10 * abs(goal))
        dual = dual_value(form, x, slopes, i, end)
        primal = 0.5 * (form.bb - x @ (form.q + form.pull(x))) + float(slopes @ np.abs(x))
        if dual > goal or primal < goal or primal - dual < 0.05 * (goal - dual):
            return dual > goal
    return False
