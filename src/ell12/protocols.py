"""The architecture on one page: what a problem, a solver and an iterate are.

A loss and a penalty make a problem; a solver yields iterates; `ell12.minimize` turns them into a result.
Nothing here computes more than a sum of arrays, and nothing here imports another module of the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

Array = Any  # any array of the array API standard: NumPy, PyTorch, CuPy, JAX


class Operator(Protocol):
    """A linear map: an array, a scipy.sparse matrix, a LinearOperator, a pylops operator or one of ours."""

    def __matmul__(self, x: Array) -> Array:
        """Apply the map."""
        ...


@dataclass(frozen=True, slots=True)
class Point:
    """An unknown ``x`` together with its prediction ``A x``.

    A prediction is linear in x, so points add and scale, and no product with A is computed twice.
    """

    x: Array
    prediction: Array

    def __add__(self, other: Point) -> Point:
        return Point(self.x + other.x, self.prediction + other.prediction)

    def __sub__(self, other: Point) -> Point:
        return Point(self.x - other.x, self.prediction - other.prediction)

    def __rmul__(self, factor: float) -> Point:
        return Point(factor * self.x, factor * self.prediction)


@dataclass(frozen=True, slots=True)
class Iterate:
    """What a solver yields after each step.

    ``optimality`` is the solver's own cheap estimate of the largest violation of the first-order condition,
    in the units of the gradient. `minimize` divides it by the penalty's strength and trusts it only as a
    reason to pay for the certificate. ``gradient`` is the loss's gradient at the point, from a solver that has it:
    the certificate then costs no product. ``capped`` says that a bound on the rank binds: then ``optimality`` must
    be exact, and measures the problem with that bound, for which there is no other certificate. ``exact`` says
    that ``optimality`` is the largest violation itself, so that nothing is left to certify.
    """

    point: Point
    objective: float
    optimality: float
    gradient: Array | None = None
    capped: bool = False
    exact: bool = False


class DataUnavailable(RuntimeError):
    """The data of a loss cannot be reached any more, such as when a cluster is gone.

    Attributes
    ----------
    result : Result or None
        Where `ell12.minimize` had come to: its ``x`` is the best iterate. None before the first.
    coef, intercept : array and float, or None
        The same as an estimator's coefficients, where one was being fitted.
    """

    result: Any = None
    coef: Any = None
    intercept: Any = None


@runtime_checkable
class Factored(Protocol):
    """A matrix ``U diag(s) V'`` kept as its singular value decomposition."""

    U: Array
    s: Array
    V: Array


@runtime_checkable
class Loss(Protocol):
    """A smooth function of ``x`` that owns its data."""

    def point(self, x: Array) -> Point:
        """``x`` with its prediction: one product with A."""
        ...

    def start(self) -> Array:
        """Zeros of the shape, kind, dtype and device that ``x`` has."""
        ...

    def value(self, point: Point) -> float:
        """The loss: no product with A."""
        ...

    def gradient(self, point: Point) -> Array:
        """The gradient: one product with the adjoint of A."""
        ...

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``: no product with A."""
        ...

    def lipschitz(self) -> float:
        """An upper bound on the gradient's Lipschitz constant, computed once."""
        ...

    def restrict(self, columns: Array) -> Loss:
        """The same loss with the other coordinates of ``x`` held at zero; for working sets."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a loss as a loss of their own, the ``index``-th of ``count``; for stochastic solvers."""

    loss: Any
    index: int
    count: int
    rows: slice | None = None  # where they are in a prediction, if predictions are kept

    def point(self, point: Point) -> Point:
        """The point with its prediction for these rows: no product, unless none is kept."""
        return self.loss.point(point.x) if self.rows is None else Point(point.x, point.prediction[self.rows])


@runtime_checkable
class Penalty(Protocol):
    """A frozen dataclass of numbers: no data, no state."""

    @property
    def alpha(self) -> float:
        """The strength, in the units of the gradient."""
        ...

    def value(self, x: Array) -> float:
        """The penalty at ``x``; infinite where ``x`` is not allowed."""
        ...

    def prox(self, x: Array, step: float) -> Array:
        """A global minimiser of ``1/2 ||. - x||^2 + step * value(.)``."""
        ...


@runtime_checkable
class DifferencePenalty(Penalty, Protocol):
    """A penalty that is ``convex - subtracted``, both convex; what SCP and DCA need."""

    @property
    def convex(self) -> Penalty:
        """The convex part."""
        ...

    def subtracted_gradient(self, x: Array) -> Array:
        """A subgradient of the subtracted part; zero at ``x = 0``."""
        ...


class Solver(Protocol):
    """A frozen dataclass of options. It knows nothing of stopping, timing, history or display."""

    def iterates(self, loss: Loss, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step, for ever, or to an end of the solver's own such as a number of terms."""
        ...
