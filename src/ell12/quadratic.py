"""A quadratic function of a few unknowns: what a squared loss over very many rows comes down to."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ell12.backend import inner
from ell12.protocols import Array, Point


class QuadraticLoss:
    """``1/2 x'G x - c'x + constant`` with a symmetric positive semidefinite matrix G.

    ``1/2 ||A x - b||^2`` is such a function, with ``G = A'A``, ``c = A'b`` and ``constant = b'b/2``. Its values
    carry the rounding of ``b'b``, its gradients that of ``A'b``.

    Parameters
    ----------
    G : array of shape (p, p)
        The matrix.
    c : array of shape (p,)
        The linear term.
    constant : float
        The value at zero.
    dtype : dtype, optional
        That of x; G and c are held in double precision.

    Examples
    --------
    >>> loss = QuadraticLoss([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0], constant=3.0)
    >>> point = loss.point(np.array([1.0, 0.0]))
    >>> loss.value(point), loss.gradient(point)
    (2.0, array([ 0., -4.]))
    """

    def __init__(self, G: Any, c: Any, constant: float = 0.0, dtype: Any = np.float64) -> None:
        self.G, self.c = np.asarray(G, dtype=np.float64), np.asarray(c, dtype=np.float64)
        if self.c.ndim != 1 or self.G.shape != 2 * self.c.shape:
            raise ValueError(f"G must be square and fit c, got shapes {self.G.shape} and {self.c.shape}")
        if not (np.isfinite(self.G).all() and np.isfinite(self.c).all()):
            raise ValueError("G and c must hold finite numbers only")
        self.constant, self.dtype = float(constant), np.dtype(dtype)

    def __repr__(self) -> str:
        return f"QuadraticLoss(G of shape {self.G.shape})"

    def point(self, x: Array) -> Point:
        """``x`` with ``G x``."""
        return Point(x, self.G @ x)

    def start(self) -> Array:
        """Zeros."""
        return np.zeros(self.c.size, dtype=self.dtype)

    def value(self, point: Point) -> float:
        """The function."""
        x = point.x.astype(np.float64, copy=False)
        return 0.5 * inner(x, point.prediction) - inner(x, self.c) + self.constant

    def gradient(self, point: Point) -> Array:
        """``G x - c``."""
        return (point.prediction - self.c).astype(self.dtype, copy=False)

    def divergence(self, point: Point, base: Point) -> float:
        """Half the square of the difference in the norm of G."""
        return 0.5 * max(inner(point.x - base.x, point.prediction - base.prediction), 0.0)

    def lipschitz(self) -> float:
        """The largest eigenvalue of G, and what rounding may have taken off it."""
        return self._largest_eigenvalue * (1 + 1e-12)

    def restrict(self, columns: Array) -> QuadraticLoss:
        """The same function of the given entries of x, the others being zero."""
        return QuadraticLoss(self.G[np.ix_(columns, columns)], self.c[columns], self.constant, self.dtype)

    def curvature(self, _point: Point) -> Array:
        """One number, the same at all points: so is the Hessian."""
        return np.ones(1)

    def hessian(self, _point: Point, columns: Array | None = None, others: Array | None = None) -> Array:
        """G, or the block of it with the given rows and columns; for Newton's method."""
        rows = slice(None) if columns is None else columns
        return self.G[rows][:, rows if others is None else others]

    @cached_property
    def _largest_eigenvalue(self) -> float:
        return float(np.linalg.eigvalsh(self.G)[-1]) if self.c.size else 0.0
