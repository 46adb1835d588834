"""`CompletionLoss`, and one factor solved for, given the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ell12.backend import all_finite, as_numpy, inner, is_numpy, namespace, to_device_of
from ell12.completion.gpu_entries import Segments
from ell12.completion.low_rank import LowRank, compiled_loops, sums_of_products
from ell12.completion.observed import Observed
from ell12.penalties import SpectralL12
from ell12.protocols import Array, Loss, Point


def row_terms(W: Array, H: Array, penalty: SpectralL12) -> tuple[float, Array]:
    """What the penalty adds to the rows' equations, given H: a ridge on the left, and a prior on the right.

    The ridge is alpha, the prior ``(alpha l2_weight / ||W H'||_F) W H'H``: the slope of the subtracted norm at
    the old W. Where rounding of ``H'H`` could hide alpha, both are raised by what holds W near its old value. That
    keeps the equations solvable, and W stands still at the same positions as without it.
    """
    xp, gram = namespace(H), H.T @ H
    length = math.sqrt(max(inner(W.T @ W, gram), 0.0))
    relief = penalty.strength * penalty.l2_weight / length if length > 0 else 0.0
    # The backward error of Cholesky's decomposition (Higham, Accuracy and Stability, theorem 10.3).
    hidden = (gram.shape[0] + 1) * float(xp.finfo(H.dtype).eps) * float(xp.linalg.trace(gram))
    extra = max(hidden - penalty.strength, 0.0)
    prior = W @ (relief * gram)
    return penalty.strength + extra, prior if extra == 0 else prior + extra * W


def solve_rows(segments: Segments, values: Array, H: Array, ridge: Any, prior: Array) -> Array:
    """`Segments.solve`, compiled where that pays."""
    size = (values.shape[0] + segments.starts.shape[0]) * H.shape[1] ** 2
    compiled = compiled_loops(H, size)
    if compiled is None:
        return segments.solve(values, H, ridge, prior)
    known = map(as_numpy, (segments.starts, segments.columns, values))
    factor, out = np.ascontiguousarray(as_numpy(H)), np.array(as_numpy(prior), order="C")
    compiled.solve_rows(*known, factor, np.full(H.shape[1], ridge, factor.dtype), out)
    return to_device_of(out, H, "H")


def regressed_rows(completion: Any, observed: Observed) -> tuple[Any, Array, Array]:
    """The offsets of rows of known entries, and factors W and H of what comes below them.

    With ``H = V diag(sqrt(s))`` row i is ``H w_i`` where ``(H_i'H_i + diag(slopes)) w_i = H_i'o_i``, the slopes
    being those of the penalty at the singular values s. At a stationary point the fitted rows satisfy
    this themselves: it is the first-order condition, row by row.
    """
    x, offsets = completion.x, completion.offsets.for_rows(observed)
    H = x.balanced[1]
    values = offsets.subtracted_from(observed).values.astype(x.dtype, copy=False)
    # A slope of zero, that of a matrix of rank one, leaves a row without known entries undetermined: it is zero.
    floor = np.finfo(x.dtype).eps * (x.s[0] if x.rank else 1)
    ridge = np.maximum(completion.penalty.slopes_of(x.s), floor).astype(x.dtype)
    prior = np.zeros((observed.shape[0], x.rank), dtype=x.dtype)
    return offsets, solve_rows(observed.segments[0], values, H, ridge, prior), H


class EntryLoss(Loss, Protocol):
    """A smooth function of the known entries of a matrix: what proximal steps on matrices need."""

    observed: Observed

    def residual(self, point: Point) -> Array:
        """The derivative by each known entry."""


class SweepLoss(Loss, Protocol):
    """A squared error whose rows, and whose columns, can each be solved for: for alternating least squares."""

    observed: Any

    def make_sweep(self, penalty: Any) -> Callable[[LowRank], LowRank]:
        """The map from a matrix to the one after a pass over the rows and one over the columns."""


class MatrixLoss(Loss):
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
        if not all(map(all_finite, (x0.U, x0.s, x0.V))):
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

    def make_sweep(self, penalty: Any) -> Callable[[LowRank], LowRank]:
        """One pass over the rows and one over the columns: in memory by loops, on a device all rows at once."""
        observed, values = self.observed, self.observed.values
        by_column = namespace(values).take(values, observed.by_column[0], axis=0)
        rows, columns = zip(observed.segments, (values, by_column), strict=True)

        def solved(known: tuple[Segments, Array], W: Array, H: Array) -> Array:
            return solve_rows(*known, H, *row_terms(W, H, penalty))

        def sweep(x: LowRank) -> LowRank:
            W, H = x.balanced
            W = solved(rows, W, H)
            return LowRank.from_factors(W, solved(columns, H, W))

        return sweep
