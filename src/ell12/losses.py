"""Losses of a linear prediction: squared, logistic and Huber, over one shared `LinearLoss`.

A loss is pointwise in the prediction ``A x``, so its value and slope need no product with A once a point
carries its prediction. ``scale`` is the only place where a sum becomes a mean.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ell12.active_columns import ActiveColumns
from ell12.backend import (
    all_finite,
    as_floating,
    beside,
    device,
    inner,
    is_complex,
    is_number,
    is_numpy,
    like,
    namespace,
)
from ell12.checks import check_numbers
from ell12.kept_columns import KeptColumns
from ell12.operators import (
    adjoint,
    as_operator,
    dtype_of,
    has_columns,
    input_shape,
    output_shape,
    select_columns,
)
from ell12.protocols import Array, Point
from ell12.ridge import ridge_solver, weighted_gram
from ell12.spectrum import largest_eigenvalue


class LinearLoss(ABC):
    """``scale * sum_i w_i l((A x)_i, b_i)``, with a pointwise l that subclasses give.

    Subclasses define ``_pointwise``, ``_slope`` and ``_second`` (l and its derivatives in the prediction) and
    ``second_bound``, the largest value of the second derivative.

    Parameters
    ----------
    A : array, sparse matrix or operator of shape (m, n)
        NumPy, PyTorch, CuPy or JAX array, scipy.sparse, LinearOperator, pylops or one of `ell12.operators`.
    b : array of shape (m,) or (m, k)
        Observations; several columns are several right-hand sides for several columns of x.
    sample_weight : array of shape (m,), optional
        Weights w, at least 0. 1 by default.
    scale : float
        Factor of the whole loss: 1 for the sum, ``1 / m`` for the mean.
    """

    second_bound: ClassVar[float] = 1.0
    takes_complex: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False  # whether the Hessian is the same everywhere

    def __init__(self, A: Any, b: Any, *, sample_weight: Any = None, scale: float = 1.0) -> None:
        self.A = as_operator(A)
        self.b = self._as_observations(b)
        self.sample_weight = None if sample_weight is None else self._as_weights(sample_weight)
        self.scale = _as_positive(scale, "scale")

    def __repr__(self) -> str:
        shape = (*output_shape(self.A), *input_shape(self.A))
        return f"{type(self).__name__}(A of shape {shape}, scale={self.scale:g})"

    def point(self, x: Array) -> Point:
        """``x`` with its prediction: one product with A."""
        return Point(x, self._predict(x))

    def start(self) -> Array:
        """Zeros of the shape, kind, dtype and device of x."""
        xp = namespace(self.b)
        shape = (*input_shape(self.A), *self.b.shape[len(output_shape(self.A)) :])
        return xp.zeros(shape, dtype=self._x_dtype, device=device(self.b))

    def value(self, point: Point) -> float:
        """The loss; no product."""
        return self.scale * float(namespace(self.b).sum(self._weighted(self._pointwise(point.prediction))))

    def gradient(self, point: Point) -> Array:
        """The gradient; one product with the adjoint of A."""
        return self._adjoint @ self.slope(point)

    def slope(self, point: Point) -> Array:
        """The gradient with respect to the prediction."""
        return self.scale * self._weighted(self._slope(point.prediction))

    def curvature(self, point: Point) -> Array:
        """The second derivative with respect to each prediction: the Hessian is ``A' diag(curvature) A``."""
        return self.scale * self._weighted(self._second(point.prediction))

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``; no product. What rounding made counts as 0."""
        new, old = self.value(point), self.value(base)
        linear = inner(self.slope(base), point.prediction - base.prediction)
        rounding = 8 * self._eps * (abs(new) + abs(old) + abs(linear))
        return max(new - old - linear - rounding, 0.0)

    def lipschitz(self) -> float:
        """A bound on the gradient's Lipschitz constant: Lanczos on ``A' diag(w) A``, once, with its margin."""
        return self.second_bound * self.scale * self._gram_norm

    def restrict(self, columns: Array) -> LinearLoss:
        """The same loss in the given entries of x alone, the others being zero."""
        other = copy.copy(self)
        other.A = select_columns(self.A, columns)
        for name in ("_gram_norm", "_adjoint", "_active_columns", "_kept_columns"):
            other.__dict__.pop(name, None)
        return other

    @property
    def has_columns(self) -> bool:
        """Whether some columns of A cost less than all, so that working sets pay."""
        return has_columns(self.A)

    def hessian(self, point: Point, columns: Array | None = None, others: Array | None = None) -> Array:
        """The Hessian as a dense matrix, of the given entries of x or of all; for Newton's method.

        With ``others``, the block whose rows are the given entries and whose columns are these.
        """
        A = self.A if columns is None else select_columns(self.A, columns)
        B = A if others is None else select_columns(self.A, others)
        return weighted_gram(A, self._row_curvature(point), B)

    def proximal(self, weight: float) -> Callable[[Array, Array], Array]:
        """The map ``(q, start) -> argmin_v f(v) + weight/2 ||v - q||^2``; for ADMM.

        Newton's method with halved steps, from the start given. The last step is the one that promises a gain
        below the rounding of the objective: convergence is quadratic, so that what remains is far smaller.
        """

        def solve(q: Array, start: Array) -> Array:
            point = self.point(start)
            for _ in range(50):
                away = point.x - q
                objective = self.value(point) + 0.5 * weight * inner(away, away)
                slope = self.gradient(point) + weight * away
                move = self.point(-ridge_solver(self.A, self._row_curvature(point), weight)(slope))
                size, gain = 1.0, -inner(slope, move.x)
                while size > 1e-10 and self._rise(point, move, size, weight) > 0.5 * size * gain:
                    size *= 0.5
                point = point + size * move
                if gain <= self._eps * objective:
                    break
            return point.x

        return solve

    def _rise(self, point: Point, move: Point, size: float, weight: float) -> float:
        """What a step adds beyond its linear part."""
        return self.divergence(point + size * move, point) + 0.5 * weight * size**2 * inner(move.x, move.x)

    def _row_curvature(self, point: Point) -> Array:
        """The curvature as one number for each row of A."""
        curvature = self.curvature(point)
        xp = namespace(curvature)
        rows = xp.reshape(curvature, (math.prod(output_shape(self.A)), -1))
        if rows.shape[1] > 1 and bool(xp.any(rows != rows[:, :1])):
            raise ValueError("each right-hand side b has a Hessian of its own here; solve for one at a time")
        return rows[:, 0]

    # Data

    def _as_observations(self, b: Any) -> Array:
        b = beside(as_floating(b, "b"), self.A, "b")
        rows = output_shape(self.A)
        if tuple(b.shape[: len(rows)]) != rows:
            raise ValueError(f"b must have shape {rows} to fit A, got {tuple(b.shape)}")
        if not all_finite(b):
            raise ValueError("b holds NaN or infinity; every entry must be finite")
        dtype = dtype_of(self.A)
        complex_A = dtype is not None and "complex" in str(dtype)
        if (complex_A or is_complex(b)) and not self.takes_complex:
            raise TypeError(f"{type(self).__name__} needs real {'A' if complex_A else 'b'}, got complex numbers")
        if str(b.dtype).endswith(("float64", "complex128")) and str(dtype).endswith(("float32", "complex64")):
            # A's precision decides: a float64 residual would make every product convert all of A.
            xp = namespace(b)
            b = xp.astype(b, xp.complex64 if is_complex(b) else xp.float32)
        return b

    def _as_weights(self, sample_weight: Any) -> Array:
        check_numbers(sample_weight=sample_weight)
        weight = like(sample_weight, self.b)
        if tuple(weight.shape) != output_shape(self.A):
            raise ValueError(f"sample_weight must have shape {output_shape(self.A)}, got {tuple(weight.shape)}")
        if not all_finite(weight) or bool(namespace(weight).any(weight < 0)):
            raise ValueError("sample_weight must hold finite numbers >= 0 only")
        return namespace(weight).reshape(weight, (*weight.shape, *(1 for _ in self.b.shape[weight.ndim :])))

    @property
    def _x_dtype(self) -> Any:
        xp, dtype = namespace(self.b), dtype_of(self.A)
        return self.b.dtype if dtype is None else xp.result_type(self.b.dtype, dtype)

    @property
    def _eps(self) -> float:
        return float(namespace(self.b).finfo(self.b.dtype).eps)

    def _weighted(self, values: Array) -> Array:
        return values if self.sample_weight is None else self.sample_weight * values

    # Products

    @cached_property
    def _adjoint(self) -> Any:
        return adjoint(self.A)

    def _predict(self, x: Array) -> Array:
        if is_numpy(x) and has_columns(self.A) and not x.any():
            return np.zeros((*output_shape(self.A), *x.shape[1:]), dtype=np.result_type(dtype_of(self.A), x.dtype))
        sparse = is_numpy(self.A) and x.shape == self.A.shape[1:] and self.A.size > 2**16
        return (self._active_columns if sparse else self.A) @ x

    @cached_property
    def _active_columns(self) -> ActiveColumns:
        return ActiveColumns(self.A)

    @cached_property
    def _gram_norm(self) -> float:
        known = getattr(self.A, "norm_squared", None)
        if known is not None and self.sample_weight is None:
            return float(known)
        rows, columns = output_shape(self.A), input_shape(self.A)
        weight = 1.0 if self.sample_weight is None else self.sample_weight.reshape(rows)
        wide = math.prod(rows) < math.prod(columns)

        def gram(v: Array) -> Array:
            """``A' diag(w) A``, or the smaller matrix with the same eigenvalues."""
            if wide:
                return weight**0.5 * (self.A @ (self._adjoint @ (weight**0.5 * v)))
            return self._adjoint @ (weight * (self.A @ v))

        start = np.random.default_rng(0).standard_normal(rows if wide else columns)
        return largest_eigenvalue(gram, namespace(self.b).astype(like(start, self.b), self._x_dtype))

    # What a subclass gives

    @abstractmethod
    def _pointwise(self, prediction: Array) -> Array:
        """The loss of each prediction."""

    @abstractmethod
    def _slope(self, prediction: Array) -> Array:
        """Its first derivative."""

    @abstractmethod
    def _second(self, prediction: Array) -> Array:
        """Its second derivative."""


class SquaredLoss(LinearLoss):
    """``scale/2 sum_i w_i |(A x)_i - b_i|^2``; by default the sum, ``1/2 ||A x - b||^2``.

    Examples
    --------
    >>> loss = SquaredLoss([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0])
    >>> point = loss.point(np.array([2.0, 1.0]))
    >>> loss.value(point), loss.gradient(point)
    (1.0, array([1., 2.]))
    """

    takes_complex = True
    quadratic = True

    def value(self, point: Point) -> float:
        """The loss; no product."""
        residual = point.prediction - self.b
        return 0.5 * self.scale * inner(residual, self._weighted(residual))

    def divergence(self, point: Point, base: Point) -> float:
        """Half the weighted square of the difference of the predictions: exact, without cancellation."""
        difference = point.prediction - base.prediction
        return 0.5 * self.scale * inner(difference, self._weighted(difference))

    def gram(self, columns: Array) -> Array:
        """The Hessian in the given entries as a dense NumPy matrix, whose entries are computed once and kept."""
        return self.scale * self._kept_columns.gram(columns)

    def point_within(self, x: Array, columns: Array) -> Point:
        """``x``, which is zero but for the given entries, with its prediction from the columns that are kept."""
        return Point(x, self._kept_columns.predict(columns, x[columns]))

    @cached_property
    def _kept_columns(self) -> KeptColumns:
        ones = np.ones(output_shape(self.A), dtype=self.b.dtype)
        return KeptColumns(self.A, ones if self.sample_weight is None else self.sample_weight)

    def proximal(self, weight: float) -> Callable[[Array, Array], Array]:
        """The map ``(q, start) -> argmin_v f(v) + weight/2 ||v - q||^2``: one factorization for all q."""
        origin = Point(self.start(), 0 * self.b)
        invert = ridge_solver(self.A, self._row_curvature(origin), weight)
        projection = -self.gradient(origin)
        return lambda q, _start: invert(projection + weight * q)

    def _pointwise(self, prediction: Array) -> Array:
        return 0.5 * namespace(prediction).abs(prediction - self.b) ** 2

    def _slope(self, prediction: Array) -> Array:
        return prediction - self.b

    def _second(self, prediction: Array) -> Array:
        xp = namespace(prediction)
        return xp.ones_like(xp.abs(prediction))


class LogisticLoss(LinearLoss):
    """``scale sum_i w_i log(1 + exp(-b_i (A x)_i))`` for labels b of -1 and 1 (0 and 1 are read as such).

    Examples
    --------
    >>> loss = LogisticLoss([[1.0], [2.0]], [-1, 1])
    >>> round(loss.value(loss.point(np.array([0.0]))), 6)
    1.386294
    """

    second_bound = 0.25

    def _as_observations(self, b: Any) -> Array:
        b = super()._as_observations(b)
        xp = namespace(b)
        if bool(xp.all((b == 0) | (b == 1))):
            b = 2 * b - 1
        if not bool(xp.all((b == -1) | (b == 1))):
            raise ValueError("b must hold two labels, -1 and 1 (or 0 and 1)")
        return b

    def _pointwise(self, prediction: Array) -> Array:
        xp = namespace(prediction)
        margin = self.b * prediction
        return xp.where(margin < 0, -margin, 0) + xp.log1p(xp.exp(-xp.abs(margin)))

    def _slope(self, prediction: Array) -> Array:
        return -self.b * _sigmoid(-self.b * prediction)

    def _second(self, prediction: Array) -> Array:
        return _sigmoid(prediction) * _sigmoid(-prediction)


class HuberLoss(LinearLoss):
    """``scale sum_i w_i h((A x)_i - b_i)``: ``h(r) = r^2/2`` for ``|r| <= delta``, else ``delta |r| - delta^2/2``.

    Examples
    --------
    >>> loss = HuberLoss([[1.0], [1.0]], [0.0, 10.0], delta=1.0)
    >>> loss.value(loss.point(np.array([0.0])))
    9.5
    """

    def __init__(
        self, A: Any, b: Any, *, delta: float = 1.35, sample_weight: Any = None, scale: float = 1.0
    ) -> None:
        self.delta = _as_positive(delta, "delta")
        super().__init__(A, b, sample_weight=sample_weight, scale=scale)

    def _pointwise(self, prediction: Array) -> Array:
        xp = namespace(prediction)
        size = xp.abs(prediction - self.b)
        return xp.where(size <= self.delta, 0.5 * size**2, self.delta * (size - 0.5 * self.delta))

    def _slope(self, prediction: Array) -> Array:
        xp = namespace(prediction)
        residual = prediction - self.b
        return xp.where(xp.abs(residual) <= self.delta, residual, self.delta * xp.sign(residual))

    def _second(self, prediction: Array) -> Array:
        xp = namespace(prediction)
        return xp.astype(xp.abs(prediction - self.b) <= self.delta, prediction.dtype)


def _as_positive(value: Any, name: str) -> float:
    if not is_number(value) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
    return float(value)


def _sigmoid(m: Array) -> Array:
    """``1 / (1 + exp(-m))`` without overflow."""
    xp = namespace(m)
    decay = xp.exp(-xp.abs(m))
    return xp.where(m >= 0, 1.0, decay) / (1 + decay)
