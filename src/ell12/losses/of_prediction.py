"""Base of all losses of A x: data, products, restriction, and what one run may cache."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Generic, Self, overload

import numpy as np
from numpy.typing import NDArray

from ell12.backend import (
    all_finite,
    as_array_of,
    as_floating,
    device,
    inner,
    is_complex,
    namespace,
    precision,
    refuse_gradient,
    rise_above_tangent,
    to_device_of,
)
from ell12.backend.number_types import Given_co, Plain
from ell12.checks import check_entries, check_numbers, check_positive, convert
from ell12.operators import (
    adjoint,
    as_operator,
    dtype_of,
    has_columns,
    input_shape,
    is_out_of_memory,
    output_shape,
    product,
    select_columns,
    stored_entries,
)
from ell12.operators.column_sources import PIECE
from ell12.operators.gram import GRAM_COLUMNS, ColumnStore, by_rows, shifted_solver
from ell12.operators.krylov import largest_eigenvalue
from ell12.operators.out_of_memory import as_columns
from ell12.protocols import Array, ColumnLoss, Point


def fact(compute: Callable[[Any], Any]) -> Any:
    """A property that follows from the data alone. It is computed once for a loss and all its sessions.

    Threads may compute it at the same time: they find the same.
    """

    @wraps(compute)
    def known(loss: Any) -> Any:
        if compute.__name__ not in loss._facts:
            loss._facts[compute.__name__] = compute(loss)
        return loss._facts[compute.__name__]

    return property(known)


class Sessions:
    """A loss with facts and sessions. Outside a session it remembers nothing but facts: threads may share it."""

    _facts: dict[str, Any]
    _memory: Any = None  # of a session
    _new_memory: Callable[[], Any]

    def __init__(self) -> None:
        self._facts = {}

    def for_run(self) -> Self:
        """The same loss with a memory of its own for one run or one path; a session is its own session."""
        if self._memory is not None:
            return self
        session = copy.copy(self)
        session._memory = session._new_memory()
        return session

    def _derived(self, facts: dict[str, Any] | None = None, **parts: Any) -> Any:
        """A loss with other parts, which are trusted; it knows the given facts alone, and is no session."""
        other = copy.copy(self)
        other._facts, other._memory = {} if facts is None else facts, None
        for name, part in parts.items():
            setattr(other, name, part)
        return other


class PredictionLoss(Sessions, ColumnLoss, Generic[Given_co]):
    """A smooth function of ``A x`` that owns A, its observations b and their weights.

    Subclasses define ``value``, ``slope``, ``hessian``, ``hessian_product`` and ``column_curvatures``, and
    ``second_bound``, the largest second derivative in the prediction, infinite where there is none.

    Parameters
    ----------
    A, b, sample_weight, scale
        As in `ell12.SquaredLoss`.
    """

    second_bound: ClassVar[float] = 1.0
    takes_complex: ClassVar[bool] = False
    takes_counts: ClassVar[bool] = False
    # What a subclass defines, next to the protocol: the gradient with respect to the prediction, and the second
    # derivative in each entry of x alone, the diagonal of the Hessian, or a bound on it.
    slope: Callable[[Point], Array]
    column_curvatures: Callable[[Point], Array]

    def __init__(self, A: Any, b: Given_co, *, sample_weight: Any = None, scale: float = 1.0) -> None:
        super().__init__()
        self.A = as_operator(as_columns(A))
        self.b = self._as_observations(b)
        self.sample_weight = None if sample_weight is None else self._as_weights(sample_weight)
        check_positive(scale, "scale")
        if precision(self.b) > 1e-8:  # single precision
            convert(np.asarray(scale, np.float64), np.float32, "scale")
        self.scale = float(scale)

    @classmethod
    def of_checked(
        cls, A: Any, b: Array, *, sample_weight: Array | None = None, scale: float = 1.0, **parts: Any
    ) -> Any:
        """A loss of parts that were checked before and are of one kind and precision: nothing is checked."""
        loss = cls.__new__(cls)
        Sessions.__init__(loss)
        vars(loss).update(parts, A=A, b=b, scale=float(scale))
        loss.sample_weight = None if sample_weight is None else loss._aligned(sample_weight)
        return loss

    def __repr__(self) -> str:
        shape = (*output_shape(self.A), *input_shape(self.A))
        return f"{type(self).__name__}(A of shape {shape}, scale={self.scale:g})"

    def point(self, x: Array) -> Point:
        """``x`` with its prediction: one product with A."""
        return Point(x, self._predict(x))

    @overload
    def start(self: PredictionLoss[Plain]) -> NDArray[Any]: ...
    @overload
    def start(self) -> Array: ...
    def start(self) -> Array:
        """Zeros of the shape, kind, dtype and device of x."""
        xp = namespace(self.b)
        shape = (*input_shape(self.A), *self.b.shape[len(output_shape(self.A)) :])
        return xp.zeros(shape, dtype=self._x_dtype, device=device(self.b))

    def gradient(self, point: Point) -> Array:
        """The gradient; one product with the adjoint of A."""
        return self.gradient_of(self.slope(point))

    def gradient_of(self, slope: Array) -> Array:
        """The gradient that belongs to a slope; one product with the adjoint of A."""
        return product(self._adjoint, slope)

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``; no product. What rounding made counts as 0."""
        new, old = self.value(point), self.value(base)
        linear = inner(self.slope(base), point.prediction - base.prediction)
        return rise_above_tangent(new, old, linear, self.b)

    def lipschitz(self) -> float:
        """A bound on the gradient's Lipschitz constant: Lanczos on ``A' diag(w) A``, once, with its margin."""
        if math.isinf(self.second_bound):
            return math.inf
        return self.second_bound * self.scale * self._gram_norm

    def restrict(self, columns: Array) -> Self:
        """The same loss in the given entries of x alone, the others being zero."""
        A = select_columns(self.A, columns)
        # Of more columns no Gram matrix will be made, and rows would be a second copy of what may be most of A.
        other = self._derived(A=by_rows(A) if len(columns) <= self.most_columns else A)
        return other if self._memory is None else other.for_run()

    def with_scale(self, scale: float) -> Any:
        """The same loss with another factor."""
        return self._derived(scale=float(scale))

    @property
    def has_columns(self) -> bool:  # type: ignore[override]
        """Whether some columns of A cost less than all, so that working sets pay."""
        return has_columns(self.A)

    @property
    def out_of_memory(self) -> bool:  # type: ignore[override]
        """Whether the columns of A are out of memory, as those of `ell12.Columns` are."""
        return is_out_of_memory(self.A)

    @property
    def most_columns(self) -> float:  # type: ignore[override]
        """Of how many columns a dense Gram matrix has no more numbers than a sparse A, which has indices too.

        Beyond, steps are products with scattered numbers, which are slow: a logistic fit to text-like data
        (147,000 x 62,000, 1650 columns in use) took 2.6 s where the matrix might have a quarter, 1.1 s with this.
        """
        return max(GRAM_COLUMNS, math.sqrt(stored_entries(self.A)))

    def point_within(self, x: Array, columns: Array) -> Point:
        """``x``, which is zero but for the given entries, with its prediction from these columns."""
        return Point(x, self.predict_within(x[columns], columns))

    def predict_within(self, values: Array, columns: Array) -> Array:
        """The prediction of the x with these entries and zeros elsewhere; a session sends NumPy values to A."""
        if self._memory is not None:
            return self._memory.product_within(values, columns)
        return select_columns(self.A, columns) @ values

    def proximal(self, weight: float) -> Callable[[Array, Array], Array]:
        """The map ``(q, start) -> argmin_v f(v) + weight/2 ||v - q||^2``; for ADMM.

        Newton's method with halved steps, from the start given. The last step is the one that promises a gain
        below the rounding of the objective: convergence is quadratic, so that what remains is far smaller. It is
        not that of SupportNewton: all is smooth here, and a system is solved in the smaller of two spaces.
        """

        def solve(q: Array, start: Array) -> Array:
            point = self.point(start)
            for _ in range(50):
                away = point.x - q
                objective = self.value(point) + 0.5 * weight * inner(away, away)
                slope = self.gradient(point) + weight * away
                move = self.point(-self._ridge_solver(point, weight)(slope))
                size, gain, square = 1.0, -inner(slope, move.x), 0.5 * weight * inner(move.x, move.x)
                # A full step rises by half its gain, up to terms of third order, which must not shorten it.
                while size > 1e-10:
                    rise = self.divergence(point + size * move, point) + square * size**2
                    if rise <= 0.75 * size * gain:
                        break
                    size *= 0.5
                point = point + size * move
                if gain <= precision(self.b) * abs(objective):
                    break
            return point.x

        return solve

    def _ridge_solver(self, point: Point, weight: float) -> Callable[[Array], Array]:
        """Apply the inverse of the Hessian plus weight times the identity."""
        return shifted_solver(self.hessian(point, None), weight)

    # Data

    def _new_memory(self) -> ColumnStore:
        return ColumnStore(self.A, self.most_columns)

    def _as_observations(self, b: Any) -> Array:
        refuse_gradient(b, "b")
        b = to_device_of(as_floating(b, "b"), self.A, "b")
        rows = output_shape(self.A)
        if tuple(b.shape[: len(rows)]) != rows:
            raise ValueError(f"b must have shape {rows} to fit A, got {tuple(b.shape)}")
        check_entries(b, "b")
        if self.takes_counts and bool(namespace(b).any(b < 0)):
            raise ValueError("b must hold counts, which are at least 0")
        dtype = str(dtype_of(self.A))
        if ("complex" in dtype or is_complex(b)) and not self.takes_complex:
            name = "A" if "complex" in dtype else "b"
            raise TypeError(f"{type(self).__name__} needs real {name}, got complex numbers")
        if precision(b) < 1e-8 and dtype.endswith(("float32", "complex64")):
            # A's precision decides: a float64 residual would make every product convert all of A.
            xp = namespace(b)
            return convert(b, xp.complex64 if is_complex(b) else xp.float32, "b")
        return b

    def _as_weights(self, sample_weight: Any) -> Array:
        refuse_gradient(sample_weight, "sample_weight")
        check_numbers(sample_weight=sample_weight)
        weight = as_array_of(sample_weight, self.b)
        if tuple(weight.shape) not in (output_shape(self.A), tuple(self.b.shape)):
            raise ValueError(f"sample_weight must have shape {output_shape(self.A)}, got {tuple(weight.shape)}")
        if not all_finite(weight) or bool(namespace(weight).any(weight < 0)):
            raise ValueError("sample_weight must hold finite numbers >= 0 only")
        return self._aligned(weight)

    def _aligned(self, weight: Array) -> Array:
        """The weights in a shape that broadcasts to that of b."""
        return namespace(weight).reshape(weight, (*weight.shape, *(1 for _ in self.b.shape[weight.ndim :])))

    @property
    def _x_dtype(self) -> Any:
        xp, dtype = namespace(self.b), dtype_of(self.A)
        return self.b.dtype if dtype is None else xp.result_type(self.b.dtype, dtype)

    def _weighted(self, values: Array) -> Array:
        if self.sample_weight is None or math.isfinite(self.second_bound):
            return values if self.sample_weight is None else self.sample_weight * values
        with np.errstate(invalid="ignore"):  # a row of weight 0 counts as nothing, whatever overflows there
            return namespace(values).where(self.sample_weight == 0, 0, self.sample_weight * values)

    # Products

    @fact
    def _adjoint(self) -> Any:
        return adjoint(self.A)

    def _predict(self, x: Array) -> Array:
        A = self.A
        if type(x) is np.ndarray and has_columns(A) and x.shape[:1] == input_shape(A) and not x.any():
            return np.zeros((*output_shape(A), *x.shape[1:]), dtype=np.result_type(dtype_of(A), x.dtype))
        # A product with fewer entries takes some 20 microseconds, about as long as finding the columns in use.
        if self._memory is not None and type(A) is np.ndarray and x.shape == A.shape[1:] and A.size > PIECE:
            return self._memory.product(x)
        return product(A, x)

    @fact
    def _gram_norm(self) -> float:
        known = getattr(self.A, "norm_squared", None)
        if known is not None and self.sample_weight is None:
            return float(known)
        rows, columns = output_shape(self.A), input_shape(self.A)
        weight: Any = 1.0
        if self.sample_weight is not None:  # of several columns of weights the largest of each row
            xp = namespace(self.sample_weight)
            weight = xp.max(xp.reshape(self.sample_weight, (*rows, -1)), axis=-1)
        wide = math.prod(rows) < math.prod(columns)

        def gram(v: Array) -> Array:
            """``A' diag(w) A``, or the smaller matrix with the same eigenvalues."""
            if wide:
                return weight**0.5 * product(self.A, product(self._adjoint, weight**0.5 * v))
            return product(self._adjoint, weight * product(self.A, v))

        start = as_array_of(np.random.default_rng(0).standard_normal(rows if wide else columns), self.b)
        start = namespace(self.b).astype(start, self._x_dtype)
        if not has_columns(self.A):  # an operator shows its entries by what it makes of random numbers alone
            check_entries(product(self._adjoint if wide else self.A, start), "A")
        return largest_eigenvalue(gram, start)
