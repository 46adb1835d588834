"""What is proved before anything is split: a convex lower bound, and a first box for the entries."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ell12.certificate.bounds import loops
from ell12.certificate.standard_form import EPS, StandardForm

Vector = np.ndarray
STEPS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)  # of a dual point along one column, in units of the box


def lasso_bound(form: StandardForm, x: Vector) -> float:
    """The dual value of the Lasso at the residual of x."""
    c = form.q - form.G @ x
    steepest = np.max(np.where(form.floor == 0, c, np.abs(c)) / form.t, initial=1.0)
    b, square = form.bb - x @ form.q, form.bb - x @ (form.q + c)
    return float(b / steepest - 0.5 * square / steepest**2) - form.rounding(float(form.lengths @ np.abs(x)))


def convex_bound(form: StandardForm, x: Vector) -> float:
    """A bound from below that touches the objective at x, if the norm of x is large beside the least eigenvalue.

    With tau = ||x|| the norm is at most ``h(||.||)``, ``h(r) = max(r, (r^2/tau + tau)/2)``, with which the objective is
    convex, even strongly, where ``least eigenvalue of G > W / tau``; it has the value and gradient of the objective at x.
    """
    norm = float(np.linalg.norm(x))
    if norm == 0 or form.W == 0:
        return -math.inf
    least = float(np.linalg.eigvalsh(form.G)[0]) - EPS * form.terms * float(np.sum(form.lengths**2))
    strength = least - form.W / norm
    if strength <= 0:
        return -math.inf
    slope = form.G @ x - form.q - form.W * x / norm
    outside = np.minimum(slope + form.t, 0) + np.where(form.floor == 0, 0.0, np.maximum(slope - form.t, 0))
    violation = np.where(x != 0, slope + form.t * np.sign(x), outside)
    return (
        form.value(x)
        - float(violation @ violation) / (2 * strength)
        - form.rounding(float(form.lengths @ np.abs(x)))
    )


def first_box(form: StandardForm, goal: float, is_late: Callable[[], bool]) -> tuple[float, float]:
    """Bounds of the entries, and of the l1 norm, of every point below the goal; infinite where none is found.

    If entry i is the largest and M its size, then ``||x||_2 <= M + ||z||_1 / 2`` with the rest z, so that the objective is
    at least that of a Lasso in which entry i pays ``t_i - W`` and the others ``t_j - W/2``. Where the dual value of that
    Lasso exceeds the goal for ``M >= p``, entry i is below p.
    """
    weight, own = form.t - 0.5 * form.W, form.t - form.W
    if weight.size == 0 or weight.min() <= 0:
        return math.inf, math.inf
    tails = _Tails(form, weight, own)
    p, excluded = tails.start, np.array([sign > 0 or form.floor[i] < 0 for i, sign in tails.cases]) == 0
    while p < 1e8 * tails.start and not is_late():
        excluded |= tails.closed(p) > goal
        for k in np.flatnonzero(~excluded):
            if is_late() or not tails.excludes(*tails.cases[k], p, goal):
                break
            excluded[k] = True
        if excluded.all():
            return p, p + (goal + p * max(0.0, -own.min())) / weight.min()
        p *= 1.15
    return math.inf, math.inf


class _Tails:
    """The Lassos in which one entry is at least p and pays less."""

    def __init__(self, form: StandardForm, weight: Vector, own: Vector) -> None:
        self.form, self.weight, self.own = form, weight, own
        n = weight.size
        self.free = np.full(n, np.inf)
        self.lasso, c = np.zeros(n), form.q.copy()
        loops().box_descent(form.G, c, self.lasso, form.floor, self.free, -weight, weight, 200, 1e-10 * form.bb)
        self.start = max(
            1.3 * float(np.abs(self.lasso).max()), 1e-6 * math.sqrt(form.bb) / float(form.lengths.max())
        )
        self.cases = [(i, sign) for i in np.argsort(-np.abs(self.lasso)) for sign in (1.0, -1.0)]
        c = form.q - form.G @ self.lasso
        b, square = form.bb - self.lasso @ form.q, form.bb - self.lasso @ (form.q + c)
        step = self.start * np.array(STEPS)
        duals = [self._dual(i, sign, c - sign * step[:, None] * form.G[i]) for i, sign in self.cases]
        self.slope, self.low, self.high = (np.array(part) for part in zip(*duals, strict=True))
        entry, signs = (
            np.array([i for i, _ in self.cases])[:, None],
            np.array([sign for _, sign in self.cases])[:, None],
        )
        self.along = b - step * signs * form.q[entry]
        self.square = square - 2 * step * signs * c[entry] + step**2 * form.G[entry, entry]
        self.pays = own[entry]

    def _dual(self, i: int, sign: float, c: Vector) -> tuple[Vector, Vector, Vector]:
        """Of residuals with these products: that with entry i, and between which factors they are dual points."""
        ratio = np.where(self.form.floor == 0, c, np.abs(c)) / self.weight
        ratio[..., i] = 0
        with np.errstate(divide="ignore", invalid="ignore"):
            high = (1 - 1e-10) / ratio.max(axis=-1, initial=0.0)
            slope, pays = sign * c[..., i], self.own[i]
            edge = pays / slope
        low = np.where((pays < 0) & (slope < 0), edge * (1 + 1e-10), np.where(pays < 0, np.inf, 0.0))
        return slope, low, np.where((slope > 0) & (pays >= 0), np.minimum(high, edge * (1 - 1e-10)), high)

    def _value(
        self, p: float, slope: Vector, low: Vector, high: Vector, along: Vector, square: Vector, pays: Vector
    ) -> Vector:
        """The dual values for an entry of at least p, with the best factors."""
        linear = along - p * slope
        factor = np.clip(linear / np.maximum(square, 1e-300), low, np.maximum(high, low))
        with np.errstate(invalid="ignore"):
            value = factor * linear - 0.5 * factor**2 * square + pays * p
        return np.where(low <= high, value, -np.inf) - self.form.rounding(
            float(self.form.lengths @ np.abs(self.lasso)) + p
        )

    def closed(self, p: float) -> Vector:
        """For each case the best dual value among residuals changed along one column."""
        return self._value(p, self.slope, self.low, self.high, self.along, self.square, self.pays).max(axis=1)

    def excludes(self, i: int, sign: float, p: float, goal: float) -> bool:
        """Whether the Lasso itself, solved by coordinate descent, has a value above the goal."""
        form, lower, upper = self.form, self.form.floor.copy(), self.free.copy()
        below, above = -self.weight, self.weight.copy()
        below[i] = above[i] = sign * self.own[i]
        if sign > 0:
            lower[i] = p
        else:
            upper[i] = -p
        x = np.clip(self.lasso, lower, upper)
        for _ in range(50):
            c = form.q - form.G @ x
            loops().box_descent(form.G, c, x, lower, upper, below, above, 30, 1e-10 * abs(goal))
            c = form.q - form.G @ x
            b, square = form.bb - x @ form.q, form.bb - x @ (form.q + c)
            dual = float(self._value(p, *self._dual(i, sign, c), b, square, self.own[i]))
            if dual > goal:
                return True
            primal = 0.5 * square + self.weight @ np.abs(x) + (self.own[i] - self.weight[i]) * abs(x[i])
            if primal < goal or primal - dual < 0.05 * (goal - dual):
                return False
        return False
