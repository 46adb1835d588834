"""The path of a squared loss plus a convex penalty: its solutions as slopes change, from kink to kink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import lapack, qr, qr_delete

from ell12.protocols import Point

# Half of the digits of double precision: what is smaller, relative to what it is compared with, may be rounding. A
# column depends on the others if these leave less of its length, a gradient whose speed differs by less from that
# of its bound never reaches it, and the gradient on the support follows its bounds as closely.
ROUNDING = float(np.sqrt(np.finfo(np.float64).eps))
# Stands for an infinite slope, so that differences of two slopes are numbers.
ENDLESS = float(np.sqrt(np.finfo(np.float64).max))


class Homotopy:
    """Solutions of ``loss + strength penalty / alpha``, the strength decreasing to alpha from where x is zero.

    On a support with its signs the solution is linear in the strength: it moves along the inverse of the Hessian
    times the penalty's slopes. So it is followed exactly, until an entry off the support reaches the bound of its
    gradient and enters, or one on it reaches zero and leaves. Each such kink costs one product with the adjoint
    of A and one update of a QR factorization. (Osborne, Presnell & Turlach, doi:10.1093/imanum/20.3.389)

    A column that depends on those in the support enters in exchange for one of them: along the vector that these
    columns map to zero all points are solutions, up to the one where an entry is zero.

    The same way leads on to the solution of ``loss + penalty - tangent' x`` (`add_tangent`): there, too, the
    bounds of the gradient move along straight lines.

    Parameters
    ----------
    loss : loss
        A quadratic `ell12.protocols.ColumnLoss` with a ``curvature``, such as `ell12.SquaredLoss`.
    penalty : penalty
        A convex `ell12.protocols.PiecewisePenalty`, such as `ell12.L12` where ``l2_weight`` is 0.

    Attributes
    ----------
    left : float
        How far it still is: the strength less alpha, or the share of the tangent's change; 0 at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, SquaredLoss
    >>> from ell12.solvers.homotopy import Homotopy
    >>> path = Homotopy(SquaredLoss(np.eye(3), [3.0, -4.0, 0.5]), L12(1.0, 0.0))
    >>> [(path.left, point.x.tolist()) for point in path.points() if point]
    [(3.0, [0.0, 0.0, 0.0]), (0.0, [2.0, -3.0, 0.0])]
    >>> path.add_tangent(np.array([0.5, 0.0, 1.0]))
    >>> [(path.left, point.x.round(9).tolist()) for point in path.points() if point]
    [(1.0, [2.0, -3.0, 0.0]), (0.5, [2.25, -3.0, 0.0]), (0.0, [2.5, -3.0, 0.5])]
    """

    def __init__(self, loss: Any, penalty: Any) -> None:
        x = loss.start()
        self.loss, self.alpha, self.left = loss, penalty.alpha, 0.0
        self.slopes = np.clip(penalty.slopes_at_zero(x), -ENDLESS, ENDLESS)  # at the end, below and above zero
        self.falls = np.where(np.abs(self.slopes) < ENDLESS, self.slopes / penalty.alpha, 0.0)  # up to there
        self.fastest = float(self.falls[1].max(initial=0.0))
        self.kinks, self.tangent = penalty.kinks(x), np.zeros(x.size)
        zero = loss.point(x)
        self.gradient_at_zero, self.begun = loss.gradient(zero), False
        self.root = np.sqrt(loss.curvature(zero))
        columns = np.flatnonzero(~self.kinks)
        self.support = _Support(self._roots(columns), columns)

    def add_tangent(self, tangent: Any) -> None:
        """Head for the solution of ``loss + penalty - tangent' x`` from the one that was reached last."""
        change = tangent - self.tangent
        endless = np.abs(self.slopes) >= ENDLESS
        self.slopes = np.where(endless, self.slopes, self.slopes - change)
        self.falls = np.where(endless, 0.0, change)
        self.fastest, self.tangent, self.left = float(np.abs(change).max()), tangent, 1.0

    def violation(self, tangent: Any) -> float:
        """A bound on the violation where the path has come to, the subtracted part having this gradient there."""
        return self.left * self.fastest + float(np.abs(tangent - self.tangent).max(initial=0.0))

    def points(self) -> Iterator[Point | None]:
        """Solutions each time ``left`` has fallen to a half, and at kinks between None.

        It is 0 at the last solution, unless rounding or ties hide it.
        """
        if not self._begin():
            return
        yield self._point()
        last = self.left
        for _ in range(10 * (self.kinks.size + self.root.size)):
            ended = not self._advance() or self.left == 0
            halved = self.left <= 0.5 * last
            last = self.left if halved else last
            yield self._point() if ended or halved else None
            if ended:
                return

    def _begin(self) -> bool:
        """Set out at the solution on the support; return whether its columns are independent."""
        support = self.support
        support.fall = support.on_side(self.falls)
        if not support.factorize():
            return False
        self.gradient = self.loss.gradient(self._point())
        away = self.gradient[support.columns] + support.on_side(self.slopes) + self.left * support.fall
        if np.abs(away).max(initial=0.0) > ROUNDING * self.alpha:
            support.x = support.x - support.solve(away)[0]
            self.gradient = self.loss.gradient(self._point())
        if not self.begun:  # at the strength from which on the penalised entries are zero
            reach = np.divide(-self.gradient, self.falls, out=np.zeros_like(self.falls), where=self.falls != 0)
            self.begun, self.left = True, max(float(reach.max(initial=0.0)) - self.alpha, 0.0)
        return True

    def _point(self) -> Point:
        x = np.zeros(self.kinks.size)
        x[self.support.columns] = self.support.x
        return self.loss.point_within(x, self.support.columns)

    def _roots(self, columns: Any) -> Any:
        """Columns of a root of the Hessian: the predictions of unit vectors, weighted."""
        if columns.size == 0:
            return np.empty((self.root.size, 0))
        return self.root[:, None] * self.loss.restrict(columns).point(np.eye(columns.size)).prediction

    def _rate(self) -> tuple[Any, Any] | None:
        """How x and the gradient change on the way; None where rounding spoils it."""
        support = self.support
        for attempt in range(2):
            direction, move = support.rate
            slope = np.divide(move, self.root, out=np.zeros_like(move), where=self.root > 0)
            change = self.loss.gradient(Point(self.gradient_at_zero, slope)) - self.gradient_at_zero
            away = np.abs(change[support.columns] - support.fall)
            if away.max(initial=0.0) <= ROUNDING * self.fastest:
                return direction, change
            if attempt or not support.factorize():
                break
        return None

    def _advance(self) -> bool:
        """On to the next kink, or to the end; return whether the way goes on from there."""
        rate = self._rate()
        if rate is None:
            return False
        support, (direction, change) = self.support, rate
        rising, falling = self._distances(change)
        leaving = support.distances(direction, self.kinks)
        entering = np.minimum(rising, falling)
        new, soonest = int(entering.argmin()), float(leaving.min(initial=np.inf))
        first = max(min(float(entering[new]), soonest), 0.0)
        step = min(first, self.left)
        support.x = support.x + step * direction
        self.gradient = self.gradient + step * change
        self.left -= step
        if self.left == 0:
            return True
        if soonest <= first:
            support.leave(int(leaving.argmin()))
            return True
        return self._enter(new, bool(rising[new] <= falling[new]))

    def _distances(self, change: Any) -> tuple[Any, Any]:
        """How far it is until the gradients reach their bounds on either side.

        On the support both move alike, so that none is reached.
        """
        below, above = self.slopes + self.left * self.falls
        pairs = ((above + self.gradient, self.falls[1] - change), (-below - self.gradient, change - self.falls[0]))
        apart = [np.full(self.kinks.size, np.inf) for _ in pairs]
        for out, (room, speed) in zip(apart, pairs, strict=True):
            np.divide(room, speed, out=out, where=speed > ROUNDING * self.fastest)
            out[self.support.columns] = np.inf
        return apart[0], apart[1]

    def _enter(self, column: int, above: bool) -> bool:
        """Take a column into the support, or in exchange for one there; return whether that was possible."""
        support, sign = self.support, 1.0 if above else -1.0
        if column not in support.roots:
            support.roots[column] = self._roots(np.array([column]))[:, 0]
        fall = self.falls[int(above), column]
        coefficients, rest = support.project(column)
        if rest is not None:
            support.enter(column, above, fall, coefficients, rest)
            return bool(support.rate[0][-1] * sign > 0)
        direction = -sign * support.combination(coefficients)
        leaving = support.distances(direction, self.kinks)
        size = float(leaving.min(initial=np.inf))
        if not np.isfinite(size):
            return False
        support.x = support.x + size * direction
        support.leave(int(leaving.argmin()))
        coefficients, rest = support.project(column)
        if rest is None:
            return False
        support.enter(column, above, fall, coefficients, rest, sign * size)
        return True


class _Support:
    """The columns in the support and the QR factorization of a root of the Hessian in those.

    The Hessian itself, or its inverse, would know nearly dependent columns to half as many digits. The store of
    columns that a loss keeps cannot stand in for this: it has the Hessian, and the path needs to solve with it
    after every kink.
    """

    def __init__(self, roots: Any, columns: Any) -> None:
        self.roots = dict(zip(columns.tolist(), roots.T, strict=True))  # of all columns that ever came close
        self.columns, self.x, self.fall = columns, np.zeros(columns.size), np.zeros(columns.size)
        self.above, self.rows = self.x >= 0, len(roots)
        self._basis, self._triangle = (np.zeros((self.rows, self.rows), order="F") for _ in range(2))
        self._rate: tuple[Any, Any] | None = None

    @property
    def Q(self) -> Any:
        """The orthogonal factor."""
        return self._basis[:, : self.columns.size]

    @property
    def R(self) -> Any:
        """The triangular factor, and rows that do not count below it: a view that LAPACK takes without a copy."""
        return self._triangle[:, : self.columns.size]

    @property
    def rate(self) -> tuple[Any, Any]:
        """How x changes on the way, and its image under the root."""
        self._rate = self._rate or self.solve(self.fall)
        return self._rate

    def on_side(self, pairs: Any) -> Any:
        """Of numbers below and above zero for every column those on the side of each entry here."""
        return np.where(self.above, pairs[1][self.columns], pairs[0][self.columns])

    def factorize(self) -> bool:
        """Compute the factors anew; return whether the columns are independent."""
        size, self._rate = self.columns.size, None
        if size > self.rows:
            return False
        if size == 0:
            return True
        roots = np.stack([self.roots[column] for column in self.columns.tolist()], axis=1)
        self._basis[:, :size], R = qr(roots, mode="economic", check_finite=False)
        self._triangle[:size, :size] = R
        return bool(np.all(np.abs(np.diagonal(R)) > ROUNDING * np.linalg.norm(roots, axis=0)))

    def solve(self, right: Any) -> tuple[Any, Any]:
        """The solution of a system with the Hessian, and the image of that under the root."""
        if right.size == 0:
            return right, np.zeros(self.rows)
        half = lapack.dtrtrs(self.R, right, trans=1)[0]
        return lapack.dtrtrs(self.R, half)[0], self.Q @ half

    def project(self, column: int) -> tuple[Any, Any]:
        """The coefficients of a column in the basis, and the rest; None for a rest that is next to nothing."""
        root, Q = self.roots[column], self.Q
        coefficients = root @ Q
        rest, length = root - Q @ coefficients, np.linalg.norm(root)
        again = rest @ Q  # once more, so that the basis stays orthogonal
        rest, coefficients = rest - Q @ again, coefficients + again
        short = np.linalg.norm(rest) <= ROUNDING * length
        return coefficients, None if short or self.columns.size == self.rows else rest

    def combination(self, coefficients: Any) -> Any:
        """The columns' own coefficients, of those in the basis."""
        return lapack.dtrtrs(self.R, coefficients)[0]

    def distances(self, direction: Any, kinks: Any) -> Any:
        """How far it is along a direction until each entry reaches zero."""
        found = np.full(self.x.size, np.inf)
        np.divide(-self.x, direction, out=found, where=np.sign(self.x) * direction < 0)
        found[~kinks[self.columns]] = np.inf
        return found

    def leave(self, index: int) -> None:
        """Take an entry out of the support."""
        R = self.R[: self.columns.size]
        Q, R = qr_delete(self.Q, R, index, which="col", overwrite_qr=True, check_finite=False)
        parts = self.columns, self.x, self.above, self.fall
        self.columns, self.x, self.above, self.fall = (np.delete(values, index) for values in parts)
        size, self._rate = self.columns.size, None
        self._basis[:, :size], self._triangle[:size, :size] = Q[:, :size], R[:size]

    def enter(self, column: int, above: bool, fall: float, coefficients: Any, rest: Any, x: float = 0.0) -> None:
        """Take an entry into the support, as the last, with what `project` has found."""
        size, length, self._rate = self.columns.size, float(np.linalg.norm(rest)), None
        self._basis[:, size] = rest / length
        self._triangle[:size, size], self._triangle[size, size] = coefficients, length
        self.columns, self.x = np.append(self.columns, column), np.append(self.x, x)
        self.above, self.fall = np.append(self.above, above), np.append(self.fall, fall)
