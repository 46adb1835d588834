"""The contract on one page: what a loss, a penalty and a solver may be asked for, and the values that flow.

A loss and a penalty make a problem; a solver yields iterates; `ell12.minimize` turns them into a result.

Every capability is a small protocol named after what it offers. A solver declares in ``needs`` which of them it
uses; `ell12.minimize` compares once, before the first step. Only `missing` asks a loss or a penalty what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Protocol

Array = Any  # any array of the array API standard: NumPy, PyTorch, CuPy, JAX


class Operator(Protocol):
    """A linear map: an array, a scipy.sparse matrix, a LinearOperator, a pylops operator or one of ours."""

    def __matmul__(self, x: Array) -> Array:
        """Apply the map."""


class ColumnSource(Protocol):
    """A matrix that gives some columns at a time, wherever they are: `ell12.Columns` makes an operator of it."""

    shape: tuple[int, int]
    dtype: Any  # of the entries as they are stored; all real ones will do

    def block(self, first: int, last: int) -> Array:
        """The neighbours ``first`` to ``last - 1``, as a NumPy array or a sparse matrix."""

    def take(self, columns: Array) -> Array:
        """Some columns, numbered in rising order, likewise."""


class FarSource(ColumnSource, Protocol):
    """A source on other machines: these multiply, and send back the columns of which a product reaches least."""

    products: Callable[[Array, Any], tuple[Array, Array]]  # vectors (m, k), least (or (n,)) -> numbers, products
    combine: Callable[[Array], Array]  # x (n, k) -> A x
    moments: Callable[..., tuple[Array, Array]]  # as those of `ell12.Columns`: weight -> means, sums of squares


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
    binds, which ``optimality`` then counts. Points that are ``lent`` will be overwritten: only the latest counts.
    A solver that is ``stuck`` found no better point where it should have: rounding may be the reason.
    ``method`` is the name of the solver that made the iterate, where it is not the one that was asked.
    """

    point: Point
    objective: float
    optimality: float
    gradient: Array | None = None
    capped: bool = False
    exact: bool = False
    lent: bool = False
    stuck: bool = False
    method: str = ""


class Factored(Protocol):
    """A matrix ``U diag(s) V'`` kept as its singular value decomposition."""

    U: Array
    s: Array
    V: Array


class Loss(Protocol):
    """A smooth function of ``x`` that owns its data. To the outside it never changes: threads may share one."""

    def point(self, x: Array) -> Point:
        """``x`` with its prediction: one product with A."""

    def start(self) -> Array:
        """Zeros of the shape, kind, dtype and device that ``x`` has."""

    def value(self, point: Point) -> float:
        """The loss: no product with A."""

    def gradient(self, point: Point) -> Array:
        """The gradient: one product with the adjoint of A."""

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``: no product with A."""

    def lipschitz(self) -> float:
        """A bound on the gradient's Lipschitz constant, or infinity: then solvers find steps by backtracking."""


class ColumnLoss(Loss, Protocol):
    """A loss whose entries of ``x`` can be taken a few at a time, with second derivatives: for Newton's method."""

    is_quadratic: bool  # whether the Hessian is the same everywhere
    has_columns: bool  # whether some cost less than all; a map known by its products alone has none at hand
    most_columns: float  # of how many columns a dense Hessian is worth making

    def restrict(self, columns: Array) -> ColumnLoss:
        """The same loss in the given entries of ``x``, the others being zero; predictions stay as they are."""

    def point_within(self, x: Array, columns: Array) -> Point:
        """The point of an ``x`` that is zero but for the given entries."""

    def hessian(self, point: Point, columns: Array, others: Array | None = None) -> Array:
        """The block of the Hessian with these rows and, unless others are named, columns: dense, a fresh copy."""

    def hessian_product(self, point: Point, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> hessian(point, columns) v``, without that matrix."""


class FarLoss(ColumnLoss, Protocol):
    """A loss whose columns may be out of memory: solvers then work with some, and look at all of them seldom."""

    is_far: bool  # whether they are


class HostedLoss(Loss, Protocol):
    """A loss on any device that can be seen from the host: for solvers that work on NumPy vectors."""

    on_host: Callable[[], ColumnLoss]  # the same loss for unknowns and gradients that are NumPy vectors


class PointwiseLoss(ColumnLoss, Protocol):
    """A loss that is a sum over predictions, so that its Hessian is ``A' diag(curvature) A``: for exact paths."""

    def curvature(self, point: Point) -> Array:
        """The second derivative with respect to each prediction."""

    def look(self, predictions: Array, least: float = 0.0) -> tuple[Array, Array, Array]:
        """At k points whose predictions (m, k) are given: values (k,), numbers of entries (s,), gradients (s, k).

        One product with the adjoint serves for all. Entries below ``least`` at every point may be left out.
        """


class RowLoss(Loss, Protocol):
    """A loss that is a sum over rows: for stochastic solvers."""

    def batches(self, size: int, random: Any = None) -> Iterator[Batch]:
        """Losses of about ``size`` rows that sum to this one, in random order if a generator is given."""


class BatchLoss(Loss, Protocol):
    """The loss of some rows. Its gradient is a linear map of its slope, which is one number for each row."""

    def slope(self, point: Point) -> Array:
        """The derivative with respect to each prediction."""

    def gradient_of(self, slope: Array) -> Array:
        """The gradient that belongs to a slope: one product with the adjoint of A."""


class ProximalLoss(Loss, Protocol):
    """A loss with a proximal map: for ADMM inside DCA."""

    def proximal(self, weight: float) -> Callable[[Array, Array], Array]:
        """The map ``(q, start) -> argmin_v f(v) + weight/2 ||v - q||^2``."""


class SplitLoss(Protocol):
    """A function l of ``A x``, smooth or not, with a proximal map in the prediction: for splitting methods."""

    point: Callable[[Array], Point]
    start: Callable[[], Array]
    value: Callable[[Point], float]
    gradient: Callable[[Point], Array]  # or a subgradient
    prediction_prox: Callable[[Array, float], Array]  # (q, weight) -> argmin_v l(v) + weight/2 ||v - q||^2


class ParallelLoss(Loss, Protocol):
    """A loss of several right-hand sides, each with a column of ``x`` of its own: for problems side by side."""

    values: Callable[[Point], Array]  # the loss of each column
    select_problems: Callable[[Any], ParallelLoss]  # a NumPy array of numbers -> the loss of these columns


class ForeseeingLoss(Loss, Protocol):
    """A loss over far data, which finds the values at two points in one pass if it knows both beforehand."""

    foresee: Callable[..., None]  # (make, *arguments): the gradient at make(*arguments) will be asked for soon


class CancellingLoss(Loss, Protocol):
    """A loss whose values are differences of larger terms, so that they carry the rounding of these."""

    constant: float  # the size of those terms, such as half the sum of all squared observations


class SessionLoss(Loss, Protocol):
    """A loss that remembers, while it is solved, what a solver asked for: columns, Gram matrices, evaluations."""

    session: Callable[[], SessionLoss]  # the loss with a memory of its own for one run; a session is its own


class FactoredLoss(Loss, Protocol):
    """A loss of a matrix that is kept as factors."""

    check_start: Callable[[Any], Factored]  # x0 if a run may begin there, else an error that says why not


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a loss as a loss of their own, the ``index``-th of ``count``; for stochastic solvers."""

    loss: Any  # a BatchLoss
    index: int
    count: int
    rows: slice | None = None  # where they are in a prediction, if predictions are kept

    def point(self, point: Point) -> Point:
        """The point with its prediction for these rows: no product, unless none is kept."""
        return self.loss.point(point.x) if self.rows is None else Point(point.x, point.prediction[self.rows])


class Penalty(Protocol):
    """A frozen dataclass of numbers: no data, no state."""

    @property
    def alpha(self) -> float:
        """The strength, in the units of the gradient."""

    def value(self, x: Array) -> float:
        """The penalty at ``x``; infinite where ``x`` is not allowed."""

    def prox(self, x: Array, step: float) -> Array:
        """A global minimiser of ``1/2 ||. - x||^2 + step * value(.)``."""


class CertifyingPenalty(Penalty, Protocol):
    """A penalty that knows its subgradients, so that stationarity is exact."""

    violation: Callable[[Array, Array], float]  # (x, gradient) -> the largest one of the first-order condition


class DifferencePenalty(Penalty, Protocol):
    """A penalty that is ``convex - subtracted``, both convex: what SCP and DCA need."""

    convex: Penalty  # the convex part

    subtracted_gradient: Callable[[Array], Array]  # x -> a subgradient of the subtracted part; 0 at 0


class PiecewisePenalty(CertifyingPenalty, DifferencePenalty, Protocol):
    """A penalty that is smooth but for kinks at zero: what Newton's method and working sets need.

    On either side of zero the convex part is quadratic in every entry, with the slopes of ``slopes_at_zero`` and
    the second derivatives ``convex.curvature(x)``, a diagonal that is the same for all x.
    """

    is_convex: bool  # whether nothing is subtracted, so that every stationary point is a minimum

    def least_slope(self, x: Array, gradient: Array) -> Array:
        """The subgradient of the objective that is smallest in each entry, where the loss has this gradient."""

    def kinks(self, x: Array) -> Array:
        """Which entries have a kink or a bound at zero; the others move through zero freely."""

    def slopes_at_zero(self, x: Array) -> tuple[Array, Array]:
        """The slopes of the convex part just below and just above zero, one for each entry."""

    def curvature(self, x: Array) -> Curvature:
        """The second derivatives of the smooth piece around ``x``."""

    def restrict(self, columns: Array) -> PiecewisePenalty:
        """The same penalty on the given entries alone, the others being zero."""


class GroupPenalty(CertifyingPenalty, Protocol):
    """A penalty that is smooth except where a whole group of entries is zero: what GroupNewton needs."""

    least_slope: Callable[[Array, Array], Array]  # as a `PiecewisePenalty` has it
    curvature: Callable[[Array], Curvature]  # the same; nothing of groups that are zero
    turned: Callable[[Array, Array], Array]  # (x, new) -> which entries are of groups that point back in new


class Curvature(Protocol):
    """The Hessian of a penalty's smooth piece at a point; as a rule not positive."""

    largest: float  # a bound on the modulus of its eigenvalues

    def matrix(self, columns: Array) -> Array:
        """The block of the given entries as a dense matrix, a fresh copy."""

    def product(self, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> matrix(columns) v``, without that matrix."""


class ParallelPenalty(Penalty, Protocol):
    """A penalty of many problems, the columns of ``x``, each measured in a unit of its own."""

    values: Callable[[Array], Array]  # x -> the penalty of each column
    stationarities: Callable[[Array, Array], Array]  # (x, gradient) -> the violation of each column, in its unit
    sizes: Callable[[Array], Array]  # x -> the largest entry of each column, in its unit
    select_problems: Callable[[Any], ParallelPenalty]  # a NumPy array of numbers -> the penalty on these columns


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

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate a step, for ever, or to an end of the solver's own such as a number of terms.

        None, yielded within a long step, lets the loop look at the clock; it counts as no iteration.
        """


class DeclaringSolver(Solver, Protocol):
    """A solver that says what it needs; one that does not is given any loss and any penalty."""

    needs: ClassVar[Needs]


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
    if not is_dataclass(penalty) or "alpha" not in {field.name for field in fields(penalty) if field.init}:
        name = type(penalty).__name__
        raise TypeError(f"penalty: make {name} a dataclass with a field alpha, so that its strength can be set")
    return replace(penalty, alpha=alpha)  # type: ignore[type-var]


def offers(thing: Any, protocol: type) -> bool:
    """Whether a loss, a penalty or a solver has all that a protocol names."""
    return not missing(thing, protocol)


def session_of(loss: Any) -> Any:
    """The loss with a memory of its own for one run, if it keeps one at all."""
    return loss.session() if offers(loss, SessionLoss) else loss


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
    """All that a protocol asks for, the most basic first."""
    found: dict[str, None] = {}
    for base in reversed(protocol.__mro__):
        found |= dict.fromkeys((*vars(base).get("__annotations__", {}), *vars(base)))
    return tuple(name for name in found if not name.startswith("_"))
