"""The path of a squared loss plus a convex penalty: its solutions at falling strengths, from kink to kink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve

from ell12.protocols import Point

KINKS = 8  # from one solution that is shown to the next
ROOM = 64  # columns for which room is made at once
AHEAD = 8  # columns that are gathered at once: those that are the next to enter
ACCURACY = 1e-6  # to which the gradient on the support must follow the strength, or the inverse is made anew
PARALLEL = 1e-9  # a gradient that falls so nearly as fast as its bound does not reach it
DEPENDENT = 1e-11  # of a column's square, what the others must leave of it
ENDLESS = 1e200  # stands for an infinite slope, so that differences of two are numbers


class Homotopy:
    """Solutions of ``loss + strength penalty / alpha``, the strength falling to alpha from one where x is known.

    On a support with its signs the solution is linear in the strength: it moves along the inverse of the Hessian
    times the penalty's slopes. So it is followed exactly, until an entry off the support reaches the bound of its
    gradient and enters, or one on it reaches zero and leaves. Each such kink costs one product with the adjoint
    of A and one update of the inverse, of rank one. (Osborne, Presnell & Turlach, doi:10.1093/imanum/20.3.389)

    Parameters
    ----------
    loss : LinearLoss
        Quadratic, such as `ell12.SquaredLoss`.
    penalty : penalty
        Convex, with ``slopes`` and ``kinks``, such as `ell12.L12` where ``l2_weight`` is 0.
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
        self.below, self.above = (np.clip(s / penalty.alpha, -ENDLESS, ENDLESS) for s in penalty.slopes(x))
        self.largest_weight = float(self.above.max(where=self.above < ENDLESS, initial=0.0))
        self.size, self.kinks = x.size, penalty.kinks(x)
        nothing = loss.point(np.zeros(x.size))
        self.curvature, self.gradient_at_zero = loss.curvature(nothing), loss.gradient(nothing)
        self.support = _Support(nothing.prediction.size)
        columns = np.flatnonzero((x != 0) | ~self.kinks)
        if columns.size:
            self.support.add(columns, self._predictions(columns))
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
        if not support.invert(self.curvature):
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

    def _predictions(self, columns: Any) -> Any:
        """Those of the unit vectors: the columns of A."""
        return self.loss.restrict(columns).point(np.eye(columns.size)).prediction

    def _rate(self) -> tuple[Any, Any] | None:
        """How prediction and gradient change while the strength falls by 1; None where rounding spoils it."""
        support = self.support
        for attempt in range(2):
            move = support.predictions @ support.direction
            change = self.loss.gradient(Point(self.gradient_at_zero, move)) - self.gradient_at_zero
            away = np.abs(support.of(change) - support.slope)
            if away.max(where=support.inside, initial=0.0) <= ACCURACY:
                return move, change
            if attempt or not support.invert(self.curvature):
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
            support.add(new, self._predictions(new))
        place = int(np.flatnonzero(support.columns == column)[0])
        return support.enter(place, slope, self.curvature) and support.direction[place] * np.sign(slope) > 0


class _Support:
    """The columns that ever were in the support, which of them are, and the inverse of the Hessian in those.

    What is not in the support has zeros in the inverse: to enter or to leave changes it by a matrix of rank one.
    There is room for some more columns, which hold zeros.
    """

    def __init__(self, rows: int) -> None:
        self.columns = np.empty(0, dtype=np.int64)
        self.predictions, self.inverse = np.zeros((rows, 0), order="F"), np.zeros((0, 0), order="F")
        self.x, self.slope, self.direction = np.zeros((3, 0))
        self.inside = np.zeros(0, dtype=bool)
        self._make_room(ROOM)

    def of(self, values: Any) -> Any:
        """The values in the columns, and zeros in the room beyond."""
        found = np.zeros(self.x.size)
        found[: self.columns.size] = values[self.columns]
        return found

    def add(self, columns: Any, predictions: Any) -> None:
        """Columns that may enter."""
        old = self.columns.size
        self.columns = np.concatenate([self.columns, columns])
        more = self.columns.size - self.x.size
        if more > 0:
            self._make_room(more + ROOM)
        self.predictions[:, old : self.columns.size] = predictions

    def _make_room(self, more: int) -> None:
        rows, size = self.predictions.shape
        predictions, inverse = self.predictions, self.inverse
        self.predictions = np.zeros((rows, size + more), order="F")
        self.inverse = np.zeros((size + more, size + more), order="F")
        self.predictions[:, :size], self.inverse[:size, :size] = predictions, inverse
        self.x, self.slope, self.direction = (np.pad(v, (0, more)) for v in (self.x, self.slope, self.direction))
        self.inside = np.pad(self.inside, (0, more))

    def invert(self, curvature: Any) -> bool:
        """Compute inverse and direction anew; return whether there are any."""
        support = np.flatnonzero(self.inside)
        self.inverse = np.zeros_like(self.inverse)
        if support.size:
            block = self.predictions[:, support]
            try:
                factor = cho_factor(block.T @ (curvature[:, None] * block), lower=True, check_finite=False)
            except LinAlgError:
                return False
            self.inverse[np.ix_(support, support)] = cho_solve(factor, np.eye(support.size), check_finite=False)
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

    def enter(self, place: int, slope: float, curvature: Any) -> bool:
        """Take a column into the support unless it depends on those there; return whether it was taken."""
        cross = (curvature * self.predictions[:, place]) @ self.predictions
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
