"""What is proved before anything is split: convex lower bounds, and a first box for the entries."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ell12.certificate.bounds import loops
from ell12.certificate.standard_form import EPS, StandardForm, Vector


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
