"""Many problems as columns of one, for GPUs."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from ell12.backend import (
    all_finite,
    as_floating,
    as_numpy,
    choose,
    join,
    like,
    max_abs,
    namespace,
    squares_of_columns,
    take,
    total,
)
from ell12.checks import set_numbers
from ell12.losses.of_prediction import fact
from ell12.losses.sum_over_rows import LinearLoss
from ell12.penalties.moduli import ModuliL12
from ell12.penalties.penalty_base import WithIntercept
from ell12.protocols import Array, Batch, Iterate, Loss, Needs, Penalty, Point
from ell12.prox.batching import as_single, row_norms
from ell12.prox.closed_form import prox_rows
from ell12.solvers.proximal_step import BackOff, Nonmonotone, ProximalStep, Step


class ParallelLoss(Loss, Protocol):
    """A loss of several right-hand sides, each with a column of ``x`` of its own: for problems side by side."""

    values: Callable[[Point], Array]  # the loss of each column
    select_problems: Callable[[Any], ParallelLoss]  # a NumPy array of numbers -> the loss of these columns


class ParallelPenalty(Penalty, Protocol):
    """A penalty of many problems, the columns of ``x``, each measured in a unit of its own."""

    values: Callable[[Array], Array]  # x -> the penalty of each column
    stationarities: Callable[[Array, Array], Array]  # (x, gradient) -> the violation of each column, in its unit
    sizes: Callable[[Array], Array]  # x -> the largest entry of each column, in its unit
    select_problems: Callable[[Any], ParallelPenalty]  # a NumPy array of numbers -> the penalty on these columns


@dataclass(frozen=True)
class ColumnwiseAPG:
    """`ell12.NonmonotoneAPG` for each column of x, all products with A being matrix products.

    Every column takes the steps that it would take alone: each accepts or refuses its own extrapolation. It pays
    where a product with one vector waits for memory, on a GPU above all. The loss and the penalty need ``values``,
    one number for each column: `ell12.SquaredLoss` of several right-hand sides and `ColumnsL12` have it.

    Parameters
    ----------
    eta : float, default 0.8
        Memory of the running averages, between 0 (monotone) and 1.
    delta : float, default 1e-4
        How far below its average an extrapolated step must lie, times the square of its length.
    rest : float, default 0.0
        A column whose stationarity, in the penalty's units, has fallen to this rests where it is, and the products
        go on without it; as a rule the tol of `ell12.minimize`. With 0 all columns move to the end.

    """

    eta: float = 0.8
    delta: float = 1e-4
    rest: float = 0.0
    needs: ClassVar[Needs] = Needs(ParallelLoss, ParallelPenalty)

    def __post_init__(self) -> None:
        set_numbers(self, "eta", "delta", "rest")
        if self.eta >= 1:
            raise ValueError(f"eta must lie in [0, 1), got {self.eta}")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step, until all columns rest."""
        moving, resting = _Moving(loss, penalty, start, self.eta, self.delta), None
        while True:
            moving.advance()
            settled = moving.settled(self.rest) if self.rest > 0 else moving.numbers[:0]
            if settled.size:
                resting = _Resting.beside(resting, moving, settled)
                others = np.setdiff1d(np.arange(moving.numbers.size), settled)
                if not others.size:
                    break
                moving = moving.select(others)
            yield _iterate(moving, resting, penalty.alpha)
        point = _some(resting.point, np.argsort(resting.numbers))
        yield Iterate(point, resting.objective, penalty.alpha * resting.stationarity, exact=True)


@dataclass(frozen=True, slots=True)
class _ColumnSteps(Step):
    """A step of every column; ``optimality`` is its length in the penalty's units."""

    def where(self, kept: Array, other: _ColumnSteps) -> _ColumnSteps:
        """The columns of this step that are kept, and the others' in place of the rest."""
        point, plain = self.point, other.point
        chosen = Point(choose(kept, point.x, plain.x), choose(kept, point.prediction, plain.prediction))
        fields = ("objective", "square", "optimality")
        return _ColumnSteps(chosen, *(choose(kept, getattr(self, f), getattr(other, f)) for f in fields))


class _Moving:
    """The columns that move, by their numbers, and the state of their nmAPG."""

    def __init__(self, loss: Any, penalty: Any, start: Point, eta: float, delta: float) -> None:
        self.loss, self.penalty = loss, penalty
        self.take_step = ProximalStep(loss, penalty, "lipschitz", start)
        self.numbers = np.arange(start.x.shape[1])
        self.values = self._objectives(start)
        self.state = Nonmonotone(start, self.values, eta, delta)
        self.optimality: np.ndarray  # by the length of the last step, in the penalty's units
        self.stationarity = np.full(self.numbers.size, np.inf)  # as it was when last looked for
        self.look = BackOff()

    @property
    def x(self) -> Point:
        """Where the columns are."""
        return self.state.x

    def advance(self) -> None:
        """One step of every column."""
        step = self.state.advance(self._measured)
        self.values, self.optimality = step.objective, as_numpy(step.optimality)

    def settled(self, tol: float) -> np.ndarray:
        """Which columns have a stationarity of at most tol; looked for now and then.

        A look costs a product for the columns in question, and taking some out a copy of the others: it must be
        worth an eighth of them. Where the lengths of the steps were too rosy, the next look waits longer.
        """
        ready = np.flatnonzero(self.optimality <= tol)
        if not self.look.is_due() or 8 * ready.size < self.numbers.size:
            return ready[:0]
        part = self.select(ready)
        reached = as_numpy(part.penalty.stationarities(part.x.x, part.loss.gradient(part.x)))
        self.stationarity[ready] = reached
        settled = ready[reached <= tol]
        self.look.record(bool(settled.size))
        return settled

    def select(self, which: np.ndarray) -> _Moving:
        """Some of the columns, as they are."""
        other = copy.copy(self)
        other.loss, other.penalty = self.loss.select_problems(which), self.penalty.select_problems(which)
        other.take_step = self.take_step.of(other.loss, other.penalty)
        other.state = copy.copy(self.state)
        for name in ("x", "previous", "z"):
            setattr(other.state, name, _some(getattr(self.state, name), which))
        other.state.average, other.values = take(self.state.average, which, 0), take(self.values, which, 0)
        other.numbers, other.stationarity = self.numbers[which], self.stationarity[which]
        other.optimality = self.optimality[which]
        return other

    def _measured(self, point: Point, _near: Point, _ahead: Any) -> _ColumnSteps:
        new = self.take_step(point)
        move = new.x - point.x
        sizes = self.penalty.sizes(move) / self.take_step.step
        return _ColumnSteps(new, self._objectives(new), squares_of_columns(move), sizes)

    def _objectives(self, point: Point) -> Array:
        return self.loss.values(point) + self.penalty.values(point.x)


@dataclass(frozen=True)
class _Resting:
    """The columns that have arrived, by their numbers."""

    numbers: np.ndarray
    point: Point
    objective: float  # of all of them
    stationarity: float  # of the worst

    @staticmethod
    def beside(earlier: _Resting | None, moving: _Moving, which: np.ndarray) -> _Resting:
        """Those that rest already, and some that do from now on."""
        new = _Resting(
            moving.numbers[which],
            _some(moving.x, which),
            total(take(moving.values, which, 0)),
            float(moving.stationarity[which].max()),
        )
        if earlier is None:
            return new
        return _Resting(
            np.concatenate([earlier.numbers, new.numbers]),
            _joined(earlier.point, new.point),
            earlier.objective + new.objective,
            max(earlier.stationarity, new.stationarity),
        )


def _iterate(moving: _Moving, resting: _Resting | None, unit: float) -> Iterate:
    """All columns in their order."""
    objective, worst = total(moving.values), float(moving.optimality.max())
    if resting is None:
        return Iterate(moving.x, objective, unit * worst)
    order = np.argsort(np.concatenate([resting.numbers, moving.numbers]))
    point = _some(_joined(resting.point, moving.x), order)
    return Iterate(point, resting.objective + objective, unit * max(worst, resting.stationarity))


def _some(point: Point, which: np.ndarray) -> Point:
    """Some of the columns."""
    return Point(take(point.x, which, 1), take(point.prediction, which, 1))


def _joined(first: Point, second: Point) -> Point:
    """The columns of one beside those of the other."""
    return Point(join([first.x, second.x], 1), join([first.prediction, second.prediction], 1))


@dataclass(frozen=True, eq=False)
class ColumnsL12(ModuliL12):
    """The l1-2 penalty of each column of a matrix: many problems at once.

    ``sum_k alpha_k (sum_i w_i |x_ik| - l2_weight ||x_k||_2 + ridge/2 ||x_k||_2^2)`` over a matrix's columns.

    With a loss of as many right-hand sides it is as many problems, whose products with A are one matrix product:
    a path of strengths, folds of a cross-validation, many signals. `ColumnwiseAPG` solves them side by side.

    Parameters
    ----------
    alphas : array of shape (k,)
        Strengths, all positive.
    l2_weight : float, default 1.0
        Weight of the subtracted norms.
    weights : array, optional
        Weights of the l1 norms, one for each row, as in `ell12.L12`.
    positive : bool, default False
        Allow ``x >= 0`` only.
    units : array of shape (k,), optional
        By what the violation of each column's first-order condition is measured; its strength by default.
    ridge : float, default 0.0
        Weight of half the squared norms, as in `ell12.L12`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import ColumnsL12
    >>> ColumnsL12([1.0, 2.0]).values(np.array([[3.0, 3.0], [4.0, 0.0]]))
    array([2., 0.])
    """

    alphas: Any
    l2_weight: float = 1.0
    weights: Any = None
    positive: bool = False
    units: Any = None
    ridge: float = 0.0
    alpha: float = field(init=False)  # the smallest unit: what minimize measures by

    def __post_init__(self) -> None:
        set_numbers(self, "l2_weight", "ridge")
        self._set_weights()
        alphas = _positive_numbers(self.alphas, "alphas")
        units = alphas if self.units is None else _positive_numbers(self.units, "units")
        if units.shape != alphas.shape:
            raise ValueError(
                f"units must have the shape {tuple(alphas.shape)} of alphas, got {tuple(units.shape)}"
            )
        for name, value in (("alphas", alphas), ("units", units)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "alpha", float(namespace(units).min(units)))

    def value(self, x: Array) -> float:
        """The sum over the columns."""
        values = self.values(x)
        return float(namespace(values).sum(values))

    def values(self, x: Array) -> Array:
        """The penalty of each column; infinite where a negative entry is not allowed."""
        x = self._checked(x)
        xp, values = namespace(x), self._strength(x) * self._difference(x)
        return xp.where(xp.min(x, axis=0) < 0, math.inf, values) if self.positive else values

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest of the `stationarities`, times the smallest unit."""
        return self.alpha * max_abs(self.stationarities(x, gradient))

    def stationarities(self, x: Array, gradient: Array) -> Array:
        """How much each column violates its first-order condition, in its unit, if the loss has this gradient."""
        return self._violations(x, gradient) / like(self.units, x)

    def sizes(self, x: Array) -> Array:
        """The largest entry of each column, in its unit."""
        return self._largest(x) / like(self.units, x)

    def select_problems(self, which: Any) -> ColumnsL12:
        """The same penalty on some of the columns, named by a NumPy array of their numbers."""
        return replace(self, alphas=take(self.alphas, which, 0), units=take(self.units, which, 0))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless there is one column for each strength, and one weight for each row."""
        count = self.alphas.shape[0]
        if len(shape) != 2 or shape[1] != count or shape[0] == 0:
            raise ValueError(f"x must have rows, and one column for each of {count} alphas, not shape {shape}")
        self._check_weights_of_rows(shape[0])

    def _difference(self, x: Array) -> Array:
        xp, inside = namespace(x), self._penalised(x)
        sizes = xp.abs(inside)
        if self.weights is not None:
            weights = self._beside(self.weights, x)
            sizes = (xp.where(sizes > 0, weights, 0) if self._infinite else weights) * sizes
        lengths = _norms(inside)
        return xp.sum(sizes, axis=0) - self.l2_weight * lengths + 0.5 * self.ridge * lengths * lengths

    def _prox_moduli(self, moduli: Array, step: float) -> Array:
        xp, rows = namespace(moduli), namespace(moduli).permute_dims(as_single(moduli), (1, 0))
        weights = None if self._held is None else like(self._held, rows)
        thresholds = step * self._strength(rows)[:, None]
        if self.ridge > 0:
            grown = 1 + thresholds * self.ridge
            rows, thresholds = rows / grown, thresholds / grown
        x = prox_rows(rows, thresholds, self.l2_weight, weights, self.positive)
        return xp.astype(xp.permute_dims(x, (1, 0)), moduli.dtype, copy=False)

    def _strength(self, x: Array) -> Array:
        return like(self.alphas, x)

    def _unit(self, x: Array) -> Array:
        size = _norms(x)
        return x / namespace(x).where(size > 0, size, 1)

    def _largest(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.max(xp.abs(x), axis=0)

    def _larger_at(self, zero: Array, found: Array, moved: Array) -> Array:
        return namespace(found).where(zero & (moved > found), moved, found)

    def _beside(self, values: Any, x: Array) -> Array:
        return like(values, x)[:, None]

    def _free_like(self, x: Array) -> Array:
        return super()._free_like(x)[:, None]


@dataclass(frozen=True, eq=False)
class ColumnsWithIntercept(WithIntercept):
    """`ColumnsL12` without the last row of x, which holds the intercepts: each column has a unit of its own."""

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest of the `stationarities`, times the smallest unit."""
        return self.alpha * max_abs(self.stationarities(x, gradient))

    def values(self, x: Array) -> Array:
        """The penalty of each column."""
        return self.penalty.values(self._inside(x))

    def stationarities(self, x: Array, gradient: Array) -> Array:
        """Those of the penalty, or the last entry of each column of the gradient where that is larger."""
        within = self.penalty.stationarities(self._inside(x), self._inside(gradient))
        last = self.penalty.sizes(self._last(gradient))
        return namespace(last).where(last > within, last, within)

    def sizes(self, x: Array) -> Array:
        """The largest entry of each column, the last included, in its unit."""
        return self.penalty.sizes(x)

    def select_problems(self, which: Any) -> ColumnsWithIntercept:
        """The same penalty on some of the columns."""
        return replace(self, penalty=self.penalty.select_problems(which))


def _positive_numbers(values: Any, name: str) -> Array:
    """A vector of finite numbers above 0."""
    values = as_floating(values, name)
    if len(values.shape) != 1 or values.shape[0] == 0:
        raise ValueError(f"{name} must be a vector of numbers, got shape {tuple(values.shape)}")
    if not all_finite(values) or float(namespace(values).min(values)) <= 0:
        raise ValueError(f"{name} must hold finite numbers > 0 only")
    return values


def _norms(x: Array) -> Array:
    """The Euclidean norm of each column."""
    return row_norms(namespace(x).permute_dims(x, (1, 0)))[:, 0]


class InterceptSquaredLoss(LinearLoss):
    """``min_c scale/2 sum_ik w_ik ((A x)_ik + c_k - b_ik)^2``: the best intercept of every right-hand side k.

    It is the squared loss of columns and observations less their means, the means being those under each
    right-hand side's own weights. `ell12.operators.centering.CenteredColumns` has one mean for each column; here
    each right-hand side has its own, so that no centred A serves them all. For first-order solvers.

    Parameters
    ----------
    A, b, sample_weight, scale
        As in `ell12.losses.LinearLoss`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.path.columnwise import InterceptSquaredLoss
    >>> loss = InterceptSquaredLoss(np.eye(2), [[3.0, 3.0], [5.0, 5.0]], sample_weight=[[1.0, 1.0], [1.0, 0.0]])
    >>> point = loss.point(loss.start())
    >>> loss.intercepts(point), loss.values(point)
    (array([4., 3.]), array([1., 0.]))
    """

    def intercepts(self, point: Point) -> Array:
        """The best intercept of every right-hand side."""
        return -self._means(point.prediction - self.b)

    def batches(self, size: int, random: Any = None) -> Iterator[Batch]:  # noqa: ARG002
        """Not to be had: the intercepts join all rows."""
        raise TypeError("InterceptSquaredLoss is no sum over rows: its intercepts join them")

    def _means(self, values: Array) -> Array:
        return namespace(values).sum(self._weighted(values), axis=0) / self._totals

    @fact
    def _totals(self) -> Array:
        """The sum of the weights of each right-hand side."""
        return namespace(self.b).sum(self._weighted(namespace(self.b).ones_like(self.b)), axis=0)

    def _slope(self, prediction: Array) -> Array:
        residual = prediction - self.b
        return residual - self._means(residual)

    def _pointwise(self, prediction: Array) -> Array:
        return 0.5 * self._slope(prediction) ** 2

    def _second(self, prediction: Array) -> Array:  # noqa: ARG002
        raise TypeError("InterceptSquaredLoss has no curvature of each row: its intercepts join them")
