"""The contract on one page: what a loss, a penalty and a solver offer, and the values that flow between them.

A protocol is a set of methods without which some solver cannot work. What only makes a run faster or more exact
has a default: a class that inherits from the protocol gets it, any other class must write all of them. A solver
declares in ``needs`` which protocols it uses; `ell12.minimize` compares once, before the first step.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from ell12.backend import Array, inner, max_abs, rise_above_tangent


class ColumnSource(Protocol):
    """A matrix that gives some columns at a time, wherever they are: `ell12.Columns` makes an operator of it."""

    shape: tuple[int, int]
    dtype: Any  # of the entries as they are stored; all real ones will do

    def block(self, first: int, last: int) -> Array:
        """The neighbours ``first`` to ``last - 1``, as a NumPy array or a sparse matrix."""

    def take(self, columns: Array) -> Array:
        """Some columns, numbered in rising order, likewise."""


@dataclass(frozen=True, slots=True)
class Point:
    """``x`` with its prediction ``A x``, which is linear in x: points add and scale; no product is made twice."""

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
    reason to pay for the certificate, unless it is ``exact``. ``gradient`` is the loss's gradient at the point,
    from a solver that has it: the certificate then costs no product. ``capped`` says that a bound on the rank
    binds, which ``optimality`` then counts.
    With ``no_progress`` the solver found no better point where it should have: rounding may be the reason.
    ``method`` is the name of the solver that made the iterate, where it is not the one that was asked.
    """

    point: Point
    objective: float
    optimality: float
    gradient: Array | None = None
    rank_bound: bool = False
    exact: bool = False
    no_progress: bool = False
    method: str = ""


class Factored(Protocol):
    """A matrix ``U diag(s) V'`` kept as its singular value decomposition."""

    U: Array
    s: Array
    V: Array


class AnyLoss(Protocol):
    """A function of ``x``, smooth or not, that owns its data. It never changes: threads may share it."""

    value_scale: float = 0.0  # the size of the terms whose difference `value` is, where that is larger than it

    @abstractmethod
    def point(self, x: Array) -> Point:
        """``x`` with its prediction: one product with A."""

    @abstractmethod
    def start(self) -> Array:
        """Zeros of the shape, kind, dtype and device that ``x`` has."""

    @abstractmethod
    def value(self, point: Point) -> float:
        """The loss: no product with A."""

    @abstractmethod
    def gradient(self, point: Point) -> Array:
        """The gradient, or a subgradient: one product with the adjoint of A."""

    def for_run(self) -> Any:
        """The loss with a cache of its own for one run; by default itself, without a cache."""
        return self


class Loss(AnyLoss, Protocol):
    """A smooth loss."""

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``; of a loss that can, without cancellation."""
        linear = inner(self.gradient(base), point.x - base.x)
        return rise_above_tangent(self.value(point), self.value(base), linear, point.x)

    def lipschitz(self) -> float:
        """A bound on the gradient's Lipschitz constant; by default infinity: steps are found by backtracking."""
        return math.inf

    def on_host(self) -> Any:
        """The loss for unknowns and gradients that are NumPy vectors, wherever its data are; by default itself."""
        return self

    def check_start(self, x0: Any) -> Any:  # noqa: ARG002
        """``x0`` if a run may begin there, else an error that says why not. For losses of factored matrices."""
        raise TypeError(f"x0 cannot be given: {type(self).__name__} has no check_start")

    def announce(self, make_point: Callable[..., Point], *arguments: Any) -> None:  # noqa: ARG002
        """The gradient at ``make_point(*arguments)`` will be asked for soon: data out of memory are read once."""
        return


class ColumnLoss(Loss, Protocol):
    """A loss whose entries of ``x`` can be taken a few at a time, with second derivatives: for Newton's method."""

    is_quadratic: bool = False  # whether the Hessian is the same everywhere
    has_columns: bool = True  # whether some columns cost less than all; those of a map known by products do not
    out_of_memory: bool = False  # whether they are: solvers then compute the gradient of all columns seldom
    most_columns: float = math.inf  # of how many columns a dense Hessian is worth computing

    @abstractmethod
    def restrict(self, columns: Array) -> ColumnLoss:
        """The same loss in the given entries of ``x``, the others being zero; predictions stay as they are."""

    @abstractmethod
    def point_within(self, x: Array, columns: Array) -> Point:
        """The point of an ``x`` that is zero but for the given entries."""

    @abstractmethod
    def hessian(self, point: Point, columns: Array, others: Array | None = None) -> Array:
        """The block of the Hessian with these rows and, unless others are named, columns: dense, a fresh copy."""

    @abstractmethod
    def hessian_product(self, point: Point, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> hessian(point, columns) v``, without that matrix."""

    def curvature(self, point: Point) -> Array | None:  # noqa: ARG002
        """The second derivative in each prediction, if the Hessian is ``A' diag(curvature) A``; else None."""
        return None

    def gradients(self, predictions: Array, least: float = 0.0) -> tuple[Array, Array, Array] | None:  # noqa: ARG002
        """At k points with these predictions (m, k): values (k,), numbers of entries (s,), gradients (s, k).

        One product with the adjoint serves for all. Entries below ``least`` at every point may be left out. By
        default None: the loss is no sum over predictions.
        """
        return None


class RowLoss(Loss, Protocol):
    """A loss that is a sum over rows: for stochastic solvers."""

    @abstractmethod
    def batches(self, size: int, random: Any = None) -> Iterator[Batch]:
        """Losses of about ``size`` rows that sum to this one, in random order if a generator is given."""


class ProximalLoss(Loss, Protocol):
    """A loss with a proximal map: for ADMM inside DCA."""

    @abstractmethod
    def proximal(self, weight: float) -> Callable[[Array, Array], Array]:
        """The map ``(q, start) -> argmin_v f(v) + weight/2 ||v - q||^2``."""


class SplitLoss(AnyLoss, Protocol):
    """A function l of ``A x``, smooth or not, with a proximal map in the prediction: for splitting methods."""

    @abstractmethod
    def prediction_prox(self, prediction: Array, weight: float) -> Array:
        """``argmin_v l(v) + weight/2 ||v - prediction||^2``."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a loss as a loss of their own, the ``index``-th of ``count``; for stochastic solvers."""

    loss: Any  # a `Loss` with ``slope`` and ``gradient_of``
    index: int
    count: int
    rows: slice | None = None  # where they are in a prediction, if predictions are kept

    def point(self, point: Point) -> Point:
        """The point with its prediction for these rows: no product, unless none is kept."""
        return self.loss.point(point.x) if self.rows is None else Point(point.x, point.prediction[self.rows])


class Penalty(Protocol):
    """A frozen dataclass of numbers with a field ``alpha``: two methods. No data, no state."""

    alpha: Any = None  # the strength, in the units of the gradient; None leaves it to the function that is called
    joint: ClassVar[bool] = False  # whether it takes a matrix of coefficients, a row for each feature

    @abstractmethod
    def value(self, x: Array) -> float:
        """The penalty at ``x``; infinite where ``x`` is not allowed."""

    @abstractmethod
    def prox(self, x: Array, step: float) -> Array:
        """A global minimiser of ``1/2 ||. - x||^2 + step * value(.)``."""

    def violation(self, x: Array, gradient: Array) -> Any:  # noqa: ARG002
        """The largest violation of the first-order condition, if the loss has this gradient.

        By default None: the length of a proximal step stands for it.
        """
        return None


class DifferencePenalty(Penalty, Protocol):
    """A penalty that is ``convex - subtracted``, both convex: what SCP and DCA need."""

    @property
    @abstractmethod
    def convex(self) -> Penalty:
        """The convex part."""

    @abstractmethod
    def subtracted_gradient(self, x: Array) -> Array:
        """A subgradient of the subtracted part; 0 at 0."""


class PiecewisePenalty(DifferencePenalty, Protocol):
    """A penalty that is smooth except where entries are zero: what Newton's method and working sets need.

    On either side of zero the convex part is quadratic in every entry, with the slopes of ``slopes_at_zero`` and
    the second derivatives ``convex.curvature(x)``, a diagonal that is the same for all x.
    """

    is_convex: bool = False  # whether nothing is subtracted, so that every stationary point is a minimum

    @abstractmethod
    def least_slope(self, x: Array, gradient: Array) -> Array:
        """The subgradient of the objective that is smallest in each entry, where the loss has this gradient."""

    @abstractmethod
    def kinks(self, x: Array) -> Array:
        """Which entries are not differentiable, or bounded, at zero; the others are smooth there."""

    @abstractmethod
    def slopes_at_zero(self, x: Array) -> tuple[Array, Array]:
        """The slopes of the convex part just below and just above zero, one for each entry."""

    @abstractmethod
    def curvature(self, x: Array) -> Curvature:
        """The second derivatives of the smooth piece around ``x``."""

    @abstractmethod
    def restrict(self, columns: Array) -> PiecewisePenalty:
        """The same penalty on the given entries alone, the others being zero."""

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest entry of the smallest subgradient."""
        return max_abs(self.least_slope(x, gradient))


class GroupPenalty(Penalty, Protocol):
    """A penalty that is smooth except where a whole group of entries is zero: what GroupNewton needs."""

    @abstractmethod
    def least_slope(self, x: Array, gradient: Array) -> Array:
        """As a `PiecewisePenalty` has it."""

    @abstractmethod
    def curvature(self, x: Array) -> Curvature:
        """The same; nothing of groups that are zero."""

    @abstractmethod
    def sign_changes(self, x: Array, new: Array) -> Array:
        """Which entries are of groups that point back in ``new``."""


class Curvature(Protocol):
    """The Hessian of a penalty's smooth piece at a point; as a rule not positive."""

    largest: float  # a bound on the modulus of its eigenvalues

    def matrix(self, columns: Any) -> Any:
        """The block of the given entries as a dense NumPy matrix, a fresh copy."""

    def product(self, columns: Any) -> Callable[[Any], Any]:
        """The map ``v -> matrix(columns) v``, without that matrix."""


@dataclass(frozen=True)
class Needs:
    """What a solver needs: protocols of the loss and of the penalty, and what kind of unknown ``x`` must be.

    "columns at hand" asks for a loss whose ``has_columns`` is true.
    """

    loss: type = Loss
    penalty: type = Penalty
    x: str = "array"  # or "real vector", "real NumPy vector, columns at hand", "factors", "anything"


class Solver(Protocol):
    """A frozen dataclass of options. It knows nothing of stopping, timing, history or display."""

    needs: ClassVar[Needs] = Needs(x="anything")  # by default it is given any loss and any penalty

    @abstractmethod
    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate a step, for ever, or to an end of the solver's own such as a number of terms.

        None, yielded within a long step, lets the loop read the clock; it counts as no iteration.
        """


class Wrapper:
    """Something around a loss or a penalty: it offers no more than what is inside."""

    @property
    def wrapped(self) -> Any:
        """What is inside."""
        raise NotImplementedError


def with_alpha(penalty: Any, alpha: float) -> Any:
    """The same penalty with another strength; inside a wrapper too."""
    if isinstance(penalty, Wrapper):
        return replace(penalty, penalty=with_alpha(penalty.wrapped, alpha))  # type: ignore[type-var]
    if not is_dataclass(type(penalty)) or "alpha" not in {field.name for field in fields(penalty) if field.init}:
        name = type(penalty).__name__
        raise TypeError(f"penalty: make {name} a dataclass with a field alpha, so that its strength can be set")
    return replace(penalty, alpha=alpha)


def offers(thing: Any, protocol: type) -> bool:
    """Whether a loss, a penalty or a solver has all that a protocol names."""
    return not missing(thing, protocol)


def missing(thing: Any, protocol: type) -> list[str]:
    """The names that a protocol asks for and a loss, a penalty or a solver lacks."""
    kind: Any = type(thing)
    names = [name for name in _lacking(kind, protocol) if not hasattr(thing, name)]
    return names or (missing(thing.wrapped, protocol) if isinstance(thing, Wrapper) else [])


@lru_cache(maxsize=1024)
def _lacking(kind: Any, protocol: Any) -> tuple[str, ...]:
    """What a class lacks; its instances may have it."""
    return tuple(name for name in _names(protocol) if not hasattr(kind, name))


@lru_cache
def _names(protocol: Any) -> tuple[str, ...]:
    """All that a protocol asks for: what has no default first, of that the most basic."""
    found: dict[str, None] = {}
    for base in reversed(protocol.__mro__):
        found |= dict.fromkeys((*vars(base).get("__annotations__", {}), *vars(base)))
    names = [name for name in found if not name.startswith("_")]
    return tuple(sorted(names, key=lambda name: name not in protocol.__abstractmethods__))
