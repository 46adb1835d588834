"""Losses on the known entries of a matrix: what their solvers may ask for, and the squared error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ell12.backend import inner, is_numpy
from ell12.completion.gpu_entries import has_segments
from ell12.completion.low_rank import LowRank, sums_of_products
from ell12.completion.observed import Observed
from ell12.completion.row_solves import DeviceSweep, RowSweep
from ell12.protocols import Array, Loss, Point


class EntryLoss(Loss, Protocol):
    """A smooth function of the known entries of a matrix: what proximal steps on matrices need."""

    observed: Observed

    def residual(self, point: Point) -> Array:
        """The derivative by each known entry."""
        ...

    def after_step(self, prediction: Array, length: float) -> Array:
        """The known entries after a gradient step of this length from these."""
        ...


class SweepLoss(Loss, Protocol):
    """A squared error whose rows, and whose columns, can each be solved for: for alternating least squares."""

    observed: Any

    def make_sweep(self, penalty: Any, n_threads: int) -> Callable[[LowRank], LowRank]:
        """The map from a matrix to the one after a pass over the rows and one over the columns."""
        ...


class MatrixLoss:
    """A loss whose unknown is a `LowRank` matrix; ``observed`` knows its shape and dtype."""

    observed: Any

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.observed!r})"

    def start(self) -> LowRank:
        """The zero matrix, of rank 0."""
        return LowRank.zeros(self.observed.shape, like=self.observed.values)

    def lipschitz(self) -> float:
        """1: S is a projection."""
        return 1.0

    def check_start(self, x0: Any) -> LowRank:
        """``x0`` if it is a finite low-rank matrix of the right shape and kind, else an error."""
        observed = self.observed
        if not isinstance(x0, LowRank):
            raise TypeError(f"x0 must be a LowRank matrix, got {type(x0).__name__}; see LowRank.from_factors")
        if x0.shape != observed.shape:
            raise ValueError(f"x0 must have shape {observed.shape}, got {x0.shape}")
        if is_numpy(x0.U) != is_numpy(observed.values):
            raise TypeError("x0 must be of the same kind of arrays as the observed entries")
        if not x0.is_finite():
            raise ValueError("x0 holds NaN or infinity; every entry must be finite")
        return x0.astype(observed.values.dtype)


class CompletionLoss(MatrixLoss):
    """The squared error at the known entries of a matrix.

    ``f(X) = 1/2 ||S(X - O)||_F^2`` of a low-rank X, where S keeps the known entries.

    Parameters
    ----------
    observed : Observed, or what `Observed.of` reads
        The known entries O.

    Notes
    -----
    x is a `LowRank`, its prediction the vector of its entries that are known, and the gradient ``S(X - O)``
    a CSR array (dense for arrays of other libraries than NumPy).

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.completion import CompletionLoss
    >>> loss = CompletionLoss([[1.0, np.nan], [np.nan, 2.0]])
    >>> loss.value(loss.point(loss.start()))
    2.5
    """

    observed: Observed

    def __init__(self, observed: Any) -> None:
        self.observed = Observed.of(observed, "observed")

    def point(self, x: LowRank) -> Point:
        """X with its entries at the known positions."""
        return Point(x, sums_of_products(x.weighted, x.V, self.observed.rows, self.observed.columns))

    def value(self, point: Point) -> float:
        """Half the sum of the squared errors."""
        residual = self.residual(point)
        return 0.5 * inner(residual, residual)

    def residual(self, point: Point) -> Array:
        """The errors at the known positions, as a vector."""
        return point.prediction - self.observed.values

    def gradient(self, point: Point) -> Array:
        """The errors at their positions in the matrix; zero elsewhere."""
        return self.observed.matrix(self.residual(point))

    def divergence(self, point: Point, base: Point) -> float:
        """Half the squared distance of the predictions."""
        move = point.prediction - base.prediction
        return 0.5 * inner(move, move)

    def after_step(self, prediction: Array, length: float) -> Array:
        """The known entries after a gradient step from these; of length 1 they are those that were observed."""
        return self.observed.values if length == 1 else prediction - length * (prediction - self.observed.values)

    def make_sweep(self, penalty: Any, n_threads: int) -> RowSweep:
        """One pass over the rows and one over the columns."""
        values = self.observed.values
        if not has_segments(values):
            what = "X must be a NumPy, PyTorch or CuPy array for alternating least squares"
            raise TypeError(f"{what}; use BlockAPG for others")
        return (RowSweep if is_numpy(values) else DeviceSweep)(self.observed, penalty, n_threads)
