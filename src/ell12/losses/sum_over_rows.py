"""Base of losses that are sums over rows: value, slope, curvature, batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from ell12.backend import as_array_of, as_numpy, device, is_array, is_mapped, namespace, on_accelerator
from ell12.backend.number_types import Given_co
from ell12.losses.of_prediction import PredictionLoss, fact
from ell12.operators import ColumnSelection, adjoint, input_shape, output_shape, select_columns, stored_entries
from ell12.operators.centering import column_squares
from ell12.operators.gram import SMALL, ridge_solver, weighted_gram
from ell12.protocols import Array, Batch, ColumnLoss, Point, Wrapper


class LinearLoss(PredictionLoss[Given_co]):
    """``scale * sum_i w_i l((A x)_i, b_i)``, with a pointwise l that subclasses give.

    Subclasses define ``_pointwise``, ``_slope`` and ``_second`` (l and its derivatives in the prediction) and
    ``second_bound``, the largest value of the second derivative, infinite where there is none.

    Parameters
    ----------
    A, b, sample_weight, scale
        As in `ell12.SquaredLoss`.
    """

    row_parts: ClassVar[tuple[str, ...]] = ("b", "sample_weight")  # what has one number, or row, for each row of A
    # What a subclass defines, methods of the prediction: the loss of each, its first and its second derivative.
    _pointwise: Callable[[Array], Array]
    _slope: Callable[[Array], Array]
    _second: Callable[[Array], Array]

    def value(self, point: Point) -> float:
        """The loss; no product."""
        return self.scale * float(namespace(self.b).sum(self._weighted(self._pointwise(point.prediction))))

    def slope(self, point: Point) -> Array:
        """The gradient with respect to the prediction."""
        slope = self._weighted(self._slope(point.prediction))
        return slope if self.scale == 1 else self.scale * slope

    def gradients(self, predictions: Array, least: float = 0.0) -> tuple[Array, Array, Array]:
        """The values and gradients at points whose predictions stand side by side; one product with the adjoint.

        For one right-hand side. Entries smaller than least are left out where columns are out of memory.
        """
        parts = {name: getattr(self, name) for name in self.row_parts}
        columns = {name: part[:, None] for name, part in parts.items() if part is not None}
        wide, point = self._derived({"_adjoint": self._adjoint}, **columns), Point(None, predictions)
        values = self.scale * namespace(self.b).sum(wide._weighted(wide._pointwise(predictions)), axis=0)
        if self.out_of_memory:
            return values, *self.A.products(wide.slope(point), least)
        gradients = wide.gradient(point)
        return values, np.arange(gradients.shape[0]), gradients

    def curvature(self, point: Point) -> Array:
        """The second derivative with respect to each prediction: the Hessian is ``A' diag(curvature) A``."""
        return self.scale * self._weighted(self._second(point.prediction))

    def column_curvatures(self, point: Point) -> Array:
        """The second derivative in each entry of x alone: the diagonal of the Hessian."""
        return column_squares(self.A, self._row_curvature(point))

    def batches(self, size: int, random: Any = None) -> Iterator[Batch]:
        """Losses of about ``size`` rows each that sum to this one, in random order if ``random`` is given.

        Of every k-th row, as data may be sorted; of a file in memory, neighbours, which share its pages.
        """
        if not hasattr(self.A, "__getitem__"):
            raise TypeError(f"A has no rows at hand to make batches of, got {type(self.A).__name__}")
        count, mapped = -(-int(self.b.shape[0]) // size), is_mapped(self.A)
        for index in range(count) if random is None else random.permutation(count).tolist():
            rows = slice(index * size, (index + 1) * size) if mapped else slice(index, None, count)
            parts = {name: getattr(self, name) for name in self.row_parts}
            some = {name: part[rows] for name, part in parts.items() if part is not None}
            yield Batch(self._derived(A=self.A[rows], **some), index, count, rows)

    def on_host(self) -> Any:
        """The same loss for unknowns that are NumPy vectors: large data on a GPU stay there."""
        if not is_array(self.A) or (on_accelerator(self.A) and math.prod(self.A.shape) > SMALL):
            return HostView(self)
        parts = {name: getattr(self, name) for name in ("A", *self.row_parts)}
        arrays: dict[str, Any] = {name: as_numpy(part) for name, part in parts.items() if part is not None}
        return self._derived(**arrays).for_run()

    def hessian(self, point: Point, columns: Array | None = None, others: Array | None = None) -> Array:
        """The Hessian in the given entries of x, or in all: a dense matrix, a fresh copy; for Newton's method.

        With ``others``, the block whose rows are the given entries and whose columns are these. Of a square block
        a session computes every entry once while the curvature stays the same.
        """
        curvature = self._row_curvature(point)
        if columns is None:
            # All together, where columns out of memory would be asked for one after the other.
            A = select_columns(self.A, range(input_shape(self.A)[0])) if self.out_of_memory else self.A
            return weighted_gram(A, curvature)
        if others is not None:
            return weighted_gram(select_columns(self.A, columns), curvature, select_columns(self.A, others))
        if self._memory is not None:
            return self._memory.gram(curvature, columns)
        return weighted_gram(select_columns(self.A, columns), curvature)

    def hessian_product(self, point: Point, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> hessian(point, columns) v``: two products with these columns, and no matrix."""
        A, curvature = self._columns(columns), self._row_curvature(point)
        transposed = adjoint(A)
        return lambda v: transposed @ (curvature * (A @ v))

    def _columns(self, columns: Array) -> Any:
        """Some columns of A: those of a sparse one as a copy only where they are less than half of them."""
        few = 2 * len(columns) < math.prod(input_shape(self.A)) or math.isinf(stored_entries(self.A))
        return select_columns(self.A, columns) if few else ColumnSelection(self.A, columns)

    def _ridge_solver(self, point: Point, weight: float) -> Callable[[Array], Array]:
        """Apply the inverse of the Hessian plus weight times the identity."""
        return ridge_solver(self.A, self._row_curvature(point), weight)

    def _row_curvature(self, point: Point) -> Array:
        """The curvature as one number for each row of A."""
        return self._fixed_curvature if self.is_quadratic else self._checked_row_curvature(point)

    @fact
    def _fixed_curvature(self) -> Array:
        """That of a quadratic loss."""
        return self._checked_row_curvature(Point(None, self.b))

    def _checked_row_curvature(self, point: Point) -> Array:
        curvature = self.curvature(point)
        xp = namespace(curvature)
        rows = xp.reshape(curvature, (math.prod(output_shape(self.A)), -1))
        if rows.shape[1] > 1 and bool(xp.any(rows != rows[:, :1])):
            raise ValueError("each right-hand side b has a Hessian of its own here; solve for one at a time")
        return rows[:, 0]


def check_kind(loss: Any) -> None:
    """Raise unless a loss is given as a class such as SquaredLoss, to be made of rows yet to come."""
    if not isinstance(loss, type) or not issubclass(loss, LinearLoss):
        name = loss.__name__ if isinstance(loss, type) else repr(loss)
        raise TypeError(f"the loss must be a class such as SquaredLoss, a sum over rows; got {name}")


class HostView(Wrapper, ColumnLoss):
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
    >>> from ell12.losses.sum_over_rows import HostView
    >>> view = HostView(SquaredLoss(np.eye(2), [3.0, 0.5]))
    >>> view.gradient(view.point(np.array([1.0, 0.0])))
    array([-2. , -0.5])
    """

    has_columns = True

    def __init__(self, loss: Any) -> None:
        self._loss = loss.for_run()
        self._like = loss.start()  # an array where the data are
        self.is_quadratic, self.most_columns = loss.is_quadratic, loss.most_columns

    @property
    def wrapped(self) -> Any:
        """The loss on the device."""
        return self._loss

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

    def gradients(self, predictions: Array, least: float = 0.0) -> tuple[Array, Array, Array]:
        """The values and gradients at points whose predictions stand side by side; one product."""
        values, where, gradients = self._loss.gradients(predictions, least)
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
        return lambda v: as_numpy(there(as_array_of(v, self._like)))
