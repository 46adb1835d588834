"""The path of a squared loss plus a convex penalty: its solutions at falling strengths, from kink to kink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import blas

from ell12.protocols import Point
from ell12.solvers.support.newton import positive_solution

# Every eighth solution on the path is shown: the objective of each costs two passes over the data.
KINKS = 8
# Room for this number of columns is made at once, so that matrices are seldom copied.
SPARE_ROOM = 64
# The columns that are the next to enter are gathered this many at a time: one by one would read A as often.
AHEAD = 8
# The gradient on the support must follow the strength to this relative accuracy, or the inverse is made anew.
ACCURACY = 1e-6
# A gradient whose speed differs from that of its bound by less than this never reaches it.
PARALLEL = 1e-9
# A column depends on the others if these leave less than this fraction of its square.
DEPENDENT = 1e-11
# Stands for an infinite slope, so that differences of two slopes are numbers.
ENDLESS = 1e200


class Homotopy:
    """Solutions of ``loss + strength penalty / alpha``, the strength falling to alpha from one where x is known.

    On a support with its signs the solution is linear in the strength: it moves along the inverse of the Hessian
    times the penalty's slopes. So it is followed exactly, until an entry off the support reaches the bound of its
    gradient and enters, or one on it reaches zero and leaves. Each such kink costs one product with the adjoint
    of A and one update of the inverse, of rank one. (Osborne, Presnell & Turlach, doi:10.1093/imanum/20.3.389)

    Parameters
    ----------
    loss : loss
        A quadratic `ell12.protocols.ColumnLoss`, such as `ell12.SquaredLoss`.
    penalty : penalty
        A convex `ell12.protocols.PiecewisePenalty`, such as `ell12.L12` where ``l2_weight`` is 0.
    x : array
        The solution at the given strength, in double precision; it is not written to.
    strength : float
        At least the penalty's own alpha, which is not 0.

    Attributes
    ----------
    strength : float
        Where the path has been followed to.
    largest_weight : float
        Of an entry: the violation at the penalty's own alpha is at most this times ``strength - alpha``.

    Examples
    --------
    >>> from ell12 import L12, SquaredLoss
    >>> path = Homotopy(SquaredLoss(np.eye(3), [3.0, -4.0, 0.5]), L12(1.0, 0.0), np.array([0.0, -0.5, 0.0]), 3.5)
    >>> [(path.strength, point.x.tolist()) for point in path.points()]
    [(3.5, [0.0, -0.5, 0.0]), (1.0, [2.0, -3.0, 0.0])]
    """

    def __init__(self, loss: Any, penalty: Any, x: Any, strength: float) -> None:
        self.loss, self.alpha, self.strength = loss, penalty.alpha, float(strength)
        self.below, self.above = (np.clip(s / penalty.alpha, -ENDLESS, ENDLESS) for s in penalty.slopes_at_zero(x))
        self.largest_weight = float(self.above.max(where=self.above < ENDLESS, initial=0.0))
        self.size, self.kinks = x.size, penalty.kinks(x)
        self.nothing = loss.point(np.zeros(x.size))
        self.gradient_at_zero = loss.gradient(self.nothing)
        self.support = _Support(self.nothing.prediction.size)
        columns = np.flatnonzero((x != 0) | ~self.kinks)
        if columns.size:
            self._add(columns)
        self.support.x[: columns.size] = x[columns]
        self.support.slope[: columns.size] = np.where(x < 0, self.below, self.above)[columns]
        self.support.inside[: columns.size] = True

    def points(self) -> Iterator[Point]:
        """Some solutions on the way; it ends at alpha or, sooner, where rounding or ties hide the way."""
        if not self._begin():
            return
        yield self._point()
        for kink in range(1, 10 * (self.size + self.prediction.size)):
            goes_on = self._advance()
            if not goes_on or kink % KINKS == 0 or self.strength == self.alpha:
                yield self._point()
            if not goes_on or self.strength == self.alpha:
                return

    def _begin(self) -> bool:
        """Set out at the solution on the support; return whether its Hessian has an inverse."""
        support = self.support
        if not support.invert():
            return False
        self._look()
        support.x -= support.inverse @ (support.of(self.gradient) + self.strength * support.slope)
        self._look()
        return True

    def _look(self) -> None:
        self.prediction = self.support.predictions @ self.support.x
        self.gradient = self.loss.gradient(self._point())

    def _point(self) -> Point:
        x = np.zeros(self.size)
        x[self.support.columns] = self.support.x[: self.support.columns.size]
        return Point(x, self.prediction)

    def _add(self, columns: Any) -> None:
        """Let columns enter later; their predictions are those of the unit vectors."""
        predictions = self.loss.restrict(columns).point(np.eye(columns.size)).prediction
        known = np.concatenate([self.support.columns, columns])
        self.support.add(columns, predictions, self.loss.hessian(self.nothing, columns, known))

    def _rate(self) -> tuple[Any, Any] | None:
        """How prediction and gradient change while the strength falls by 1; None where rounding spoils it."""
        support = self.support
        for attempt in range(2):
            move = support.predictions @ support.direction
            change = self.loss.gradient(Point(self.gradient_at_zero, move)) - self.gradient_at_zero
            away = np.abs(support.of(change) - support.slope)
            if away.max(where=support.inside, initial=0.0) <= ACCURACY:
                return move, change
            if attempt or not support.invert():
                break
        return None

    def _advance(self) -> bool:
        """On to the next kink, or to alpha; return whether the way goes on from there."""
        rate = self._rate()
        if rate is None:
            return False
        support, (move, change) = self.support, rate
        rising, falling = self._distances(change)
        leaving = support.distances(self.kinks)
        entering = np.minimum(rising, falling)
        new, old = int(entering.argmin()), int(leaving.argmin())
        first = max(min(rising[new], falling[new], leaving[old]), 0.0)
        step = min(first, self.strength - self.alpha)
        support.x += step * support.direction
        self.prediction = self.prediction + step * move
        self.gradient = self.gradient + step * change
        if first > step:
            self.strength = self.alpha
            return True
        self.strength -= float(step)
        if leaving[old] <= first:
            support.leave(old)
            return True
        side = self.above if rising[new] <= falling[new] else self.below
        return self._enter(new, side[new], entering)

    def _distances(self, change: Any) -> tuple[Any, Any]:
        """How far the strength must fall until the gradients reach their bounds on either side.

        On the support both fall alike, so that none is reached.
        """
        pairs = (
            (self.strength * self.above + self.gradient, self.above - change),
            (-self.strength * self.below - self.gradient, change - self.below),
        )
        apart = [np.full(self.size, np.inf) for _ in pairs]
        for out, (room, speed) in zip(apart, pairs, strict=True):
            np.divide(room, speed, out=out, where=speed > PARALLEL)
        return apart[0], apart[1]

    def _enter(self, column: int, slope: float, entering: Any) -> bool:
        """Take a column into the support; return whether its entry then moves the way it should."""
        support = self.support
        if column not in support.columns:
            entering[support.columns] = np.inf
            soon = np.argpartition(entering, AHEAD)[:AHEAD] if self.size > AHEAD else np.arange(self.size)
            new = np.sort(soon[np.isfinite(entering[soon])])
            self._add(new)
        place = int(np.flatnonzero(support.columns == column)[0])
        return support.enter(place, slope) and support.direction[place] * np.sign(slope) > 0


class _Support:
    """The columns that ever were in the support, which of them are, and the inverse of the Hessian in those.

    What is not in the support has zeros in the inverse: to enter or to leave changes it by a matrix of rank one.
    There is room for some more columns, which hold zeros. The store of columns that a loss keeps cannot stand in
    for this: it has the Hessian, and the path needs the inverse after every kink.
    """

    def __init__(self, rows: int) -> None:
        self.columns = np.empty(0, dtype=np.int64)
        self.predictions = np.zeros((rows, 0), order="F")
        self.inverse, self.hessian = np.zeros((0, 0), order="F"), np.zeros((0, 0))
        self.x, self.slope, self.direction = np.zeros((3, 0))
        self.inside = np.zeros(0, dtype=bool)
        self._make_room(SPARE_ROOM)

    def of(self, values: Any) -> Any:
        """The values in the columns, and zeros in the room beyond."""
        found = np.zeros(self.x.size)
        found[: self.columns.size] = values[self.columns]
        return found

    def add(self, columns: Any, predictions: Any, hessian: Any) -> None:
        """Take note of columns that may enter, and of the Hessian's rows for them: in all before, then in them."""
        old = self.columns.size
        self.columns = np.concatenate([self.columns, columns])
        more = self.columns.size - self.x.size
        if more > 0:
            self._make_room(more + SPARE_ROOM)
        self.predictions[:, old : self.columns.size] = predictions
        self.hessian[old : self.columns.size, : self.columns.size] = hessian
        self.hessian[:old, old : self.columns.size] = hessian[:, :old].T

    def _make_room(self, more: int) -> None:
        rows, size = self.predictions.shape
        predictions, inverse, hessian = self.predictions, self.inverse, self.hessian
        self.predictions = np.zeros((rows, size + more), order="F")
        self.inverse = np.zeros((size + more, size + more), order="F")
        self.hessian = np.zeros((size + more, size + more))
        self.predictions[:, :size], self.inverse[:size, :size] = predictions, inverse
        self.hessian[:size, :size] = hessian
        self.x, self.slope, self.direction = (np.pad(v, (0, more)) for v in (self.x, self.slope, self.direction))
        self.inside = np.pad(self.inside, (0, more))

    def invert(self) -> bool:
        """Compute inverse and direction anew; return whether there are any."""
        support = np.flatnonzero(self.inside)
        self.inverse = np.zeros_like(self.inverse)
        if support.size:
            inverse = positive_solution(self.hessian[np.ix_(support, support)], np.eye(support.size))
            if inverse is None:
                return False
            self.inverse[np.ix_(support, support)] = inverse
        self.direction = self.inverse @ self.slope
        return bool(np.isfinite(self.direction).all())

    def distances(self, kinks: Any) -> Any:
        """How far the strength must fall until each entry reaches zero."""
        found = np.full(self.x.size, np.inf)
        np.divide(-self.x, self.direction, out=found, where=np.sign(self.x) * self.direction < 0)
        found[: self.columns.size][~kinks[self.columns]] = np.inf
        return found

    def leave(self, place: int) -> None:
        row = self.inverse[:, place].copy()
        self.direction = self.direction - (self.direction[place] / row[place]) * row
        self._change_inverse(-1 / row[place], row)
        self.inverse[place] = self.inverse[:, place] = 0.0
        self.inside[place] = False
        for values in (self.x, self.slope, self.direction):
            values[place] = 0.0

    def enter(self, place: int, slope: float) -> bool:
        """Take a column into the support unless it depends on those there; return whether it was taken."""
        cross = self.hessian[place]
        row = self.inverse @ cross
        left = cross[place] - cross @ row
        if not left > DEPENDENT * cross[place]:
            return False
        row[place] = -1.0
        self._change_inverse(1 / left, row)
        self.inside[place], self.slope[place] = True, slope
        self.direction = self.direction + (row @ self.slope / left) * row
        return True

    def _change_inverse(self, factor: float, row: Any) -> None:
        self.inverse = blas.dger(factor, row, row, a=self.inverse, overwrite_a=1)
