"""A quadratic function of a few unknowns: what a squared loss over very many rows comes down to."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ell12.backend import as_floating, as_numpy, inner, is_complex, max_abs
from ell12.checks import is_finite_number
from ell12.protocols import Array, ColumnLoss, Point


class QuadraticLoss(ColumnLoss):
    """A convex quadratic function.

    ``1/2 x'G x - c'x + constant`` with a symmetric positive semidefinite matrix G.

    ``1/2 ||A x - b||^2`` is such a function, with ``G = A'A``, ``c = A'b`` and ``constant = b'b/2``. Its values
    carry the rounding of ``b'b``, its gradients that of ``A'b``.

    Parameters
    ----------
    G : array of shape (p, p)
        The matrix.
    c : array of shape (p,) or (p, k)
        The linear term; several columns are as many functions of as many columns of x, which are summed.
    constant : float, default 0.0
        The value at zero.
    dtype : dtype, default np.float64
        That of x; G and c are held in double precision.

    See Also
    --------
    SquaredLoss : Sums of squares.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses import QuadraticLoss
    >>> loss = QuadraticLoss([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0], constant=3.0)
    >>> point = loss.point(np.array([1.0, 0.0]))
    >>> loss.value(point), loss.gradient(point)
    (2.0, array([ 0., -4.]))
    """

    is_quadratic = True  # the Hessian is the same everywhere

    def __init__(self, G: Any, c: Any, constant: float = 0.0, dtype: Any = np.float64) -> None:
        self.G, self.c = _as_double(G, "G"), _as_double(c, "c")
        if self.c.ndim not in (1, 2) or self.G.shape != 2 * self.c.shape[:1]:
            raise ValueError(f"G must be square and fit c, got shapes {self.G.shape} and {self.c.shape}")
        self._check_entries()
        if not is_finite_number(constant):
            raise ValueError(f"constant must be a finite number, got {constant!r}")
        self.constant, self.dtype = float(constant), np.dtype(dtype)
        self._hold(slice(None))

    def _hold(self, columns: Any) -> None:
        """Take note of the entries that x holds; the others are zero."""
        self._columns, self._side = columns, self.G[:, columns]
        self._block, self._linear = self._side[columns], self.c[columns]

    def _check_entries(self) -> None:
        """Raise where G or c make no quadratic function with a minimum that doubles can hold."""
        size, linear, limits = max_abs(self.G), max_abs(self.c), np.finfo(np.float64)
        if not (math.isfinite(size) and math.isfinite(linear)):
            raise ValueError("G and c must hold finite numbers only")
        if 0 < size < limits.tiny:  # one over it overflows
            raise ValueError(f"G holds numbers up to {size:.3g}, too small for steps of 1/G: rescale it first")
        if linear > math.sqrt(limits.max / max(self.c.size, 1)) * max(math.sqrt(size), 1.0):
            raise ValueError(f"c holds numbers up to {linear:.3g}, too large for c'c/G: rescale it first")
        if self.G.size and self.G.diagonal().min() < -1e-6 * size:
            raise ValueError("G must be positive semidefinite, but its diagonal holds negative numbers")

    def __repr__(self) -> str:
        return f"QuadraticLoss(G of shape {self._block.shape})"

    def point(self, x: Array) -> Point:
        """``x`` with ``G x``: of an x with some entries, the whole of it."""
        return Point(x, self._side @ x)

    def start(self) -> NDArray[Any]:
        """Zeros."""
        return np.zeros(self._linear.shape, dtype=self.dtype)

    def value(self, point: Point) -> float:
        """The function."""
        x = point.x.astype(np.float64, copy=False)
        return 0.5 * inner(x, point.prediction[self._columns]) - inner(x, self._linear) + self.constant

    def gradient(self, point: Point) -> Array:
        """``G x - c``."""
        return (point.prediction[self._columns] - self._linear).astype(self.dtype, copy=False)

    def divergence(self, point: Point, base: Point) -> float:
        """Half the square of the difference in the norm of G."""
        change = (point.prediction - base.prediction)[self._columns]
        return 0.5 * max(inner(point.x - base.x, change), 0.0)

    def lipschitz(self) -> float:
        """The largest eigenvalue of G, and what rounding may have taken off it."""
        return self._largest_eigenvalue * (1 + 1e-12)

    def restrict(self, columns: Array) -> QuadraticLoss:
        """The same function of the given entries of x, the others being zero; predictions stay as they are."""
        other = copy.copy(self)
        other.__dict__.pop("_largest_eigenvalue", None)
        other._hold(np.arange(len(self.c))[self._columns][columns])
        return other

    def point_within(self, x: Array, columns: Array) -> Point:
        """``x``, which is zero but for the given entries, with ``G x``."""
        return Point(x, self._side[:, columns] @ x[columns])

    def hessian(self, _point: Point, columns: Array | None = None, others: Array | None = None) -> Array:
        """The block of G with the given rows and columns, or all of it: a fresh copy; for Newton's method."""
        if columns is None:
            return self._block.copy()
        return self._block[np.ix_(columns, columns if others is None else others)]

    def hessian_product(self, _point: Point, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> hessian(point, columns) v``."""
        block = self._block[np.ix_(columns, columns)]
        return lambda v: block @ v

    @property
    def value_scale(self) -> float:  # type: ignore[override]
        """The constant, which the other terms of a value may cancel."""
        return abs(self.constant)

    @cached_property
    def _largest_eigenvalue(self) -> float:
        return float(np.linalg.eigvalsh(self._block)[-1]) if self._block.size else 0.0


def _as_double(x: Any, name: str) -> Array:
    """``x`` as a NumPy array in double precision; an error names the argument."""
    x = as_numpy(as_floating(x, name))
    if is_complex(x):
        raise TypeError(f"{name} must hold real numbers, got complex ones")
    return x.astype(np.float64, copy=False)
