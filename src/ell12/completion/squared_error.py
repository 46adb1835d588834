"""`CompletionLoss`, and one factor solved for, given the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from ell12.backend import as_numpy, in_memory, inner, is_numpy, namespace, to_device_of
from ell12.completion.gpu_entries import AT_ONCE, Segments
from ell12.completion.low_rank import COMPILED_FROM, LowRank, compiled_loops, sums_of_products
from ell12.completion.observed import Observed, has_segments
from ell12.penalties import SpectralL12
from ell12.protocols import Array, Loss, Point


class RowSweep:
    """One pass over the rows and one over the columns: in memory by loops, on a device all rows at once."""

    def __init__(self, observed: Observed, penalty: SpectralL12, n_threads: int) -> None:
        values = observed.values
        by_column = namespace(values).take(values, observed.by_column[0], axis=0)
        self.rows, self.columns = zip(observed.segments, (values, by_column), strict=True)
        self.penalty, self.n_threads = penalty, n_threads

    def __call__(self, x: LowRank) -> LowRank:
        """The matrix after the sweep, its factors balanced."""
        root = namespace(x.s).sqrt(x.s)
        W, H = x.U * root, x.V * root
        W = self._solve(*self.rows, W, H)
        H = self._solve(*self.columns, H, W)
        return LowRank.from_factors(W, H)

    def _solve(self, segments: Segments, values: Array, W: Array, H: Array) -> Array:
        """W solved for, row by row, given H."""
        ridge, prior = row_terms(W, H, self.penalty)
        if not in_memory(H):
            return segments.solve(values, H, ridge, prior)
        starts, columns, values, factor = map(as_numpy, (segments.starts, segments.columns, values, H))
        slopes = np.full(H.shape[1], ridge)
        found = solve_rows(starts, columns, values, factor, slopes, as_numpy(prior), self.n_threads)
        return to_device_of(found, H, "H")


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


def solve_rows(
    starts: Array, columns: Array, values: Array, H: Array, ridge: Array, prior: Array, n_threads: int = 1
) -> Array:
    """Solve ``(H_i'H_i + diag(ridge)) w_i = H_i'o_i + prior_i`` for each row i."""
    is_large = (values.size + starts.size) * H.shape[1] ** 2 >= COMPILED_FROM
    compiled = compiled_loops() if is_large else None
    if compiled is None:
        return plainly_solved_rows(starts, columns, values, H, ridge, prior)
    out, H = np.array(prior, dtype=H.dtype, order="C"), np.ascontiguousarray(H)
    size = starts.size - 1
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], n_threads + 1)[1:-1])
    cuts = np.concatenate([[0], cuts, [size]])

    def solve(part: int) -> None:
        arguments = starts, columns, values, H, ridge.astype(H.dtype), out
        compiled.solve_rows(*arguments, cuts[part], cuts[part + 1])

    if n_threads == 1:
        solve(0)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(solve, range(n_threads)))
    return out


def plainly_solved_rows(
    starts: Array, columns: Array, values: Array, H: Array, ridge: Array, prior: Array
) -> Array:
    """`solve_rows` in NumPy: sums of outer products over the entries of each row, a chunk of rows at a time."""
    W, rank = np.empty_like(prior), H.shape[1]
    diagonal = np.diag(ridge.astype(H.dtype))
    at_once = max(AT_ONCE // max(rank * rank, 1), 1)
    first = 0
    while first < starts.size - 1:
        last = max(int(np.searchsorted(starts, starts[first] + at_once, side="right")) - 1, first + 1)
        part, rows = slice(starts[first], starts[last]), slice(first, last)
        here = H[columns[part]]
        grams, rights = (np.zeros((last - first, *shape), dtype=H.dtype) for shape in ((rank, rank), (rank,)))
        filled = np.flatnonzero(np.diff(starts[first : last + 1]))  # reduceat takes no empty sums
        positions = starts[first:last][filled] - starts[first]
        if filled.size:
            grams[filled] = np.add.reduceat(here[:, :, None] * here[:, None, :], positions)
            rights[filled] = np.add.reduceat(here * values[part, None], positions)
        W[rows] = np.linalg.solve(grams + diagonal, (rights + prior[rows])[:, :, None])[:, :, 0]
        first = last
    return W


def fit_rows(completion: Any, observed: Observed) -> Array:
    """Rows of known entries, completed by `regressed_rows`; dense."""
    offsets, W, H = regressed_rows(completion, observed)
    return offsets.add_to(W @ H.T)


def regressed_rows(completion: Any, observed: Observed) -> tuple[Any, Array, Array]:
    """The offsets of rows of known entries, and factors W and H of what comes below them.

    With ``H = V diag(sqrt(s))`` row i is ``H w_i`` where ``(H_i'H_i + diag(slopes)) w_i = H_i'o_i``, the slopes
    being those of the penalty at the singular values s. At a stationary point the fitted rows satisfy
    this themselves: it is the first-order condition, row by row.
    """
    slopes = completion.penalty.slopes_of(completion.x.s)
    x, offsets = completion.x, completion.offsets.for_rows(observed)
    root = np.sqrt(x.s)
    H = x.V * root
    values = offsets.subtracted_from(observed).values.astype(x.dtype, copy=False)
    # A slope of zero, that of a matrix of rank one, leaves a row without known entries undetermined: it is zero.
    floor = np.finfo(x.dtype).eps * (float(x.s[0]) if x.rank else 1.0)
    ridge = np.maximum(slopes, floor)
    prior = np.zeros((observed.shape[0], x.rank), dtype=x.dtype)
    return offsets, solve_rows(observed.row_starts, observed.columns, values, H, ridge, prior), H


class EntryLoss(Loss, Protocol):
    """A smooth function of the known entries of a matrix: what proximal steps on matrices need."""

    observed: Observed

    def residual(self, point: Point) -> Array:
        """The derivative by each known entry."""

    def after_step(self, prediction: Array, length: float) -> Array:
        """The known entries after a gradient step of this length from these."""


class SweepLoss(Loss, Protocol):
    """A squared error whose rows, and whose columns, can each be solved for: for alternating least squares."""

    observed: Any

    def make_sweep(self, penalty: Any, n_threads: int) -> Callable[[LowRank], LowRank]:
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
        return RowSweep(self.observed, penalty, n_threads)
