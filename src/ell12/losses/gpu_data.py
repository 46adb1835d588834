"""Data on a GPU, unknowns on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ell12.backend import as_numpy, device, is_array, like, namespace, on_accelerator
from ell12.operators import output_shape
from ell12.protocols import Array, Point, Wrapper, session_of

# Up to this number of entries all of A is fetched once: some milliseconds, less than the many small calls that a
# small problem would make of the device. It is also where `ell12.WorkingSet` may follow exact paths.
FETCHED_WHOLE = 2**21


def is_fetched(A: Any) -> bool:
    """Whether a matrix is seen as a NumPy array: one in this machine's memory, or a small one."""
    return is_array(A) and (not on_accelerator(A) or math.prod(A.shape) <= FETCHED_WHOLE)


class HostView(Wrapper):
    """A loss on a device as an `ell12.protocols.ColumnLoss` of NumPy vectors.

    A, the observations and all predictions stay on the device; so do the columns that a run works with, and their
    Gram matrix, of which copies come back. What travels is x, gradients and small matrices.

    Parameters
    ----------
    loss : LinearLoss
        Of one right-hand side; a session of it is opened.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SquaredLoss
    >>> from ell12.losses.gpu_data import HostView
    >>> view = HostView(SquaredLoss(np.eye(2), [3.0, 0.5]))
    >>> view.gradient(view.point(np.array([1.0, 0.0])))
    array([-2. , -0.5])
    """

    has_columns = True

    def __init__(self, loss: Any) -> None:
        self._loss = session_of(loss)
        self._like = loss.start()  # an array where the data are
        self.is_quadratic, self.most_columns = loss.is_quadratic, loss.most_columns

    @property
    def wrapped(self) -> Any:
        """The loss on the device."""
        return self._loss

    def session(self) -> HostView:
        """The view itself, which holds a session."""
        return self

    def start(self) -> Array:
        """Zeros."""
        return np.zeros(self._like.shape, dtype=as_numpy(self._like[:0]).dtype)

    def point(self, x: Array) -> Point:
        """``x``, or several side by side, with the prediction: from the columns in use, where these are few."""
        used = np.flatnonzero(x if x.ndim == 1 else x.any(axis=1))
        if used.size == 0:
            shape = (*output_shape(self._loss.A), *x.shape[1:])
            zeros = namespace(self._like).zeros(shape, dtype=self._like.dtype, device=device(self._like))
            return Point(x, zeros)
        return self.point_within(x, used)

    def point_within(self, x: Array, columns: Array) -> Point:
        """``x``, which is zero but for the given entries, with its prediction from these columns."""
        return Point(x, self._loss.predict_within(x[columns], columns))

    def value(self, point: Point) -> float:
        """The loss; no product."""
        return self._loss.value(point)

    def gradient(self, point: Point) -> Array:
        """The gradient; one product with the adjoint of A."""
        return as_numpy(self._loss.gradient(point))

    def look(self, predictions: Array, least: float = 0.0) -> tuple[Array, Array, Array]:
        """The values and gradients at points whose predictions stand side by side; one product."""
        values, where, gradients = self._loss.look(predictions, least)
        return as_numpy(values), where, as_numpy(gradients)

    def curvature(self, point: Point) -> Array:
        """The second derivative with respect to each prediction."""
        return as_numpy(self._loss.curvature(point))

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``; no product."""
        return self._loss.divergence(point, base)

    def lipschitz(self) -> float:
        """A bound on the gradient's Lipschitz constant."""
        return self._loss.lipschitz()

    def restrict(self, columns: Array) -> HostView:
        """The same loss in the given entries of x alone, the others being zero."""
        return HostView(self._loss.restrict(columns))

    def hessian(self, point: Point, columns: Array | None = None, others: Array | None = None) -> Array:
        """The Hessian, or a block with these rows and columns, made on the device; in double precision here."""
        return as_numpy(self._loss.hessian(point, columns, others)).astype(np.float64)

    def hessian_product(self, point: Point, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> hessian(point, columns) v``: two products with these columns, and no matrix."""
        there = self._loss.hessian_product(point, columns)
        return lambda v: as_numpy(there(like(v, self._like)))
