"""A block of rows, where it lies, and what one pass asks of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import as_array_of, as_floating, as_numpy, is_array, namespace, refuse_masked
from ell12.checks import check_entries, check_numbers, naming
from ell12.losses.sum_over_rows import LinearLoss
from ell12.operators import Composition, adjoint, as_operator, dtype_of
from ell12.operators.centering import CenteredColumns
from ell12.operators.column_sources import PIECE
from ell12.protocols import Array, Point


@dataclass(frozen=True)
class BlockKind:
    """What the blocks of one data set share.

    Parameters
    ----------
    loss : class
        Such as `ell12.SquaredLoss`.
    options : dict
        Its keyword arguments, such as ``delta``.
    width : int
        The number of columns that every block must have.
    intercept : bool
        Whether the last entry of x is added to every prediction.
    """

    loss: type[LinearLoss]
    options: dict[str, Any]
    width: int
    intercept: bool

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return self.width + self.intercept


def observations(y: Array, target: Any) -> Array:
    """All of y, or one column of several ("column", k), or 1 for a label and -1 for others ("label", label)."""
    if target is None:
        return y
    what, which = target
    return y[:, which] if what == "column" else np.where(y == which, 1.0, -1.0)


@dataclass(eq=False)
class Block:
    """Rows of A, y and the weights, checked, and the in-memory losses that they make.

    A dense block is cut into slices, each a loss of its own over a view: a slice is still in the cache when its
    gradient reads it again, so that an evaluation reads the block once.
    """

    kind: BlockKind
    name: str
    A: Any
    y: Array
    weight: Array | None
    _target: Any = field(default=None, repr=False)
    _losses: list[LinearLoss] | None = field(default=None, repr=False)

    @classmethod
    def of_loss(cls, kind: BlockKind, name: str, loss: LinearLoss) -> Block:
        """A block whose loss is made."""
        return cls(kind, name, loss.A, loss.b, loss.sample_weight, _losses=[loss.with_scale(1.0)])

    def __sizeof__(self) -> int:
        """What Dask should count when it decides what to spill: the memory of a GPU is not its own."""
        A = self.A
        parts = (A.data, A.indices, A.indptr) if scipy.sparse.issparse(A) else (A,)
        return sum(part.nbytes for part in (*parts, self.y, self.weight) if isinstance(part, np.ndarray))

    def __getstate__(self) -> dict[str, Any]:
        """The data alone: the losses are views that a pickle would copy."""
        return self.__dict__ | {"_target": None, "_losses": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """What comes from a disk or another worker may lie at an odd address, where products are very slow."""
        self.__dict__ |= state
        if not scipy.sparse.issparse(self.A):
            self.A = as_floating(self.A, "X")

    def losses(self, target: Any = None) -> Iterator[LinearLoss]:
        """The loss of each slice; ``target`` makes the observations out of y. They are kept for the next pass."""
        if self._losses is not None and self._target == target:
            yield from self._losses
            return
        losses = []
        for A, y, weight in self.slices():
            with naming(self.name):
                b = observations(y, target)
                losses.append(self.kind.loss(A, b, sample_weight=weight, **self.kind.options))
            yield losses[-1]
        self._target, self._losses = target, losses

    def slices(self) -> Iterator[tuple[Any, Array, Array | None]]:
        """Views of some rows at a time.

        A dense one has PIECE entries, which stay in the cache while a loss and then its gradient read them. A
        sparse block is one slice, since cutting it would copy; so is one on a GPU, which works on all at once.
        """
        rows = self.A.shape[0]
        step = max(PIECE * rows // max(self.A.size, 1) if isinstance(self.A, np.ndarray) else rows, 1)
        for start in range(0, rows, step):
            part = slice(start, start + step)
            weight = None if self.weight is None else self.weight[part]
            yield self.A if step >= rows else self.A[part], self.y[part], weight


def make_block(kind: BlockKind, number: int, A: Any, y: Any, weight: Any) -> Block:
    """A block out of its chunks; what is wrong with them is an error that names it."""
    name = f"block {number}"
    with naming(name):
        A = A if is_array(A) else as_matrix(A)  # an array of a GPU's library stays where it is
        if A.shape[0] > 0:  # a partition that a filter has emptied adds nothing
            A = as_operator(A, "X")
        if A.shape[1] != kind.width:
            raise ValueError(f"it has {A.shape[1]} columns, where X has {kind.width}")
        y, weight = check_rows(A.shape[0], y, weight)
    return Block(kind, name, A, y, weight)


def check_rows(count: int, y: Any, weight: Any) -> tuple[Array, Array | None]:
    """The observations and weights of ``count`` rows as arrays; what is wrong with them is an error."""
    refuse_masked(y, "y")
    refuse_masked(weight, "sample_weight")
    y, weight = as_numpy(y), None if weight is None else as_numpy(weight)
    for label, rows in (("y", y), ("sample_weight", weight)):
        if rows is not None and len(rows) != count:
            raise ValueError(f"it has {count} rows of X and {len(rows)} of {label}; chunk them alike")
    if y.dtype.kind == "c":
        raise TypeError(f"y must hold real numbers, got {y.dtype}")
    if y.dtype.kind == "f":
        check_entries(y, "y")
    if weight is not None:
        check_numbers(sample_weight=weight)
    return y, None if weight is None else weight.astype(np.float64)


def evaluate(block: Block, points: Array, target: Any = None) -> Array:
    """The loss of a block at each row of ``points``, and behind it its gradient."""
    kind = block.kind
    found = np.zeros((len(points), 1 + kind.size), np.result_type(points, np.float64))
    for loss in block.losses(target):
        transposed = adjoint(loss.A)
        for k, x in enumerate(points):
            point = Point(x, _product(loss.A, x, kind))
            slope = loss.slope(point)
            found[k, 0] += loss.value(point)
            found[k, 1 : 1 + kind.width] += as_numpy(transposed @ slope)
            if kind.intercept:
                found[k, -1] += _sum(slope)
    return found


def gram_product(block: Block, v: Array, target: Any = None) -> Array:
    """``A' diag(w) A v`` of a block, for the Lipschitz constant."""
    kind, total = block.kind, np.zeros(v.shape, np.result_type(v, np.float64))
    for loss in block.losses(target):
        product = _product(loss.A, v, kind)
        if loss.sample_weight is not None:
            product = loss.sample_weight * product
        total[: kind.width] += as_numpy(adjoint(loss.A) @ product)
        if kind.intercept:
            total[-1] += _sum(product)
    return total


def _product(A: Any, x: Array, kind: BlockKind) -> Array:
    """``A x`` where A is; x goes there."""
    there = x if isinstance(A, np.ndarray) or scipy.sparse.issparse(A) else as_array_of(x, A)
    return A @ there[: kind.width] + (float(x[-1]) if kind.intercept else 0)


def _sum(values: Array) -> float:
    xp = namespace(values)
    return float(xp.sum(values, dtype=xp.float64))


def as_matrix(chunk: Any) -> Any:
    """A chunk as NumPy or SciPy holds it; the arrays of the package sparse convert themselves."""
    if hasattr(chunk, "to_scipy_sparse"):
        return chunk.to_scipy_sparse()
    return chunk if scipy.sparse.issparse(chunk) else np.asarray(chunk)


def centring(means: Array, level: float | None = None) -> tuple[Any, Array]:
    """Columns less their means: ``(c, t) -> (c, t - means'c)`` as a matrix and what is added.

    Where ``level`` is given, t is that number and x is c alone: a squared loss is least at the mean of its target.
    `ell12.operators.centering.CenteredColumns` does the same to a matrix at hand. Here the rows are on workers,
    who made them before the means were known: x is changed instead.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses.block_of_rows import centring
    >>> matrix, offset = centring(np.array([1.0, 2.0]), level=5.0)
    >>> matrix @ np.array([1.0, 1.0]) + offset
    array([1., 1., 2.])
    """
    left = scipy.sparse.vstack([scipy.sparse.eye_array(means.size), -means[None]])
    last = scipy.sparse.csr_array(([1.0], ([means.size], [0])), shape=(means.size + 1, 1))
    matrix = left if level is not None else scipy.sparse.hstack([left, last])
    return matrix.tocsr(), np.append(np.zeros(means.size), level or 0.0)


def block_loss(block: Block, matrix: Any, offset: Any, target: Any, scale: float) -> Any:
    """The loss of a block as a function of the solver's unknown, of which blocks see ``matrix x + offset``."""
    kind, A, b = block.kind, block.A, observations(block.y, target)
    if kind.intercept:
        A = CenteredColumns(A, np.zeros(kind.width, A.dtype), 1.0)
    if matrix is not None:
        b = b - A @ np.broadcast_to(offset, kind.size)  # it is not 0 for squared losses alone
        A = SubstitutedRows(A, matrix.astype(dtype_of(A)))
    return kind.loss(A, b, sample_weight=block.weight, scale=scale, **kind.options)


def row_counts(block: Block) -> list[int]:
    """How many rows a block has; lists add as they should."""
    return [int(block.A.shape[0])]


class SubstitutedRows(Composition):
    """``x -> A (matrix x)``, whose rows can be taken."""

    def __getitem__(self, rows: Any) -> SubstitutedRows:
        return SubstitutedRows(self.A[rows], self.B)
