"""A matrix of low rank, kept as its singular value decomposition and never written out unasked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import as_numpy, count_true, device, in_memory, is_torch, namespace, norm, to_device_of
from ell12.backend.compiled_code import COMPILED_FROM, can_compile
from ell12.checks import check_counts, naming
from ell12.completion.gpu_entries import AT_ONCE, for_gathering
from ell12.completion.observed import as_indices, as_real
from ell12.protocols import Array


@dataclass(frozen=True, eq=False)
class LowRank:
    """A matrix of low rank, stored as its singular values and vectors.

    ``X = U diag(s) V'``: m x n numbers in (m + n) r.

    Parameters
    ----------
    U : array of shape (m, r)
        Orthonormal columns.
    s : array of shape (r,)
        Singular values, positive and falling; r = 0 is the zero matrix.
    V : array of shape (n, r)
        Orthonormal columns.

    Notes
    -----
    NumPy, PyTorch, CuPy or JAX arrays. There is no silent way to the dense matrix: ask for `to_array`, or for
    the `entries` that are wanted. The arrays are trusted; `from_factors` makes any pair of factors so.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import LowRank
    >>> X = LowRank.from_factors(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0], [0.0]]))
    >>> X.rank, X.shape, X.entries([1, 0], [1, 2])
    (1, (2, 3), array([8., 0.]))
    """

    U: Array
    s: Array
    V: Array

    __array_ufunc__ = None  # so that ndarray @ X comes here

    def __post_init__(self) -> None:
        for name in ("U", "s", "V"):
            object.__setattr__(self, name, as_real(getattr(self, name), name))
        shapes = tuple(self.U.shape), tuple(self.s.shape), tuple(self.V.shape)
        if len(shapes[0]) != 2 or len(shapes[2]) != 2 or shapes[1] != shapes[0][1:] or shapes[1] != shapes[2][1:]:
            raise ValueError(f"U, s and V must have shapes (m, r), (r,) and (n, r); got {shapes}")
        with naming("U, s and V"):
            namespace(self.U, self.s, self.V)  # which is one for all

    def __repr__(self) -> str:
        return f"LowRank({self.shape[0]} x {self.shape[1]}, rank {self.rank}, {self.dtype})"

    @classmethod
    def trusted(cls, U: Array, s: Array, V: Array) -> LowRank:
        """The same without checks, for what this package has computed."""
        x = object.__new__(cls)
        for name, value in (("U", U), ("s", s), ("V", V)):
            object.__setattr__(x, name, value)
        return x

    @classmethod
    def from_factors(cls, W: Array, H: Array) -> LowRank:
        """``W H'`` of any two factors of shapes (m, k) and (n, k); directions of size zero are left out."""
        W, H = as_real(W, "W"), as_real(H, "H")
        if len(W.shape) != 2 or len(H.shape) != 2 or W.shape[1] != H.shape[1]:
            raise ValueError(f"W and H must have as many columns; got {tuple(W.shape)} and {tuple(H.shape)}")
        if W.shape[1] == 0:
            return cls(W, W[0, :], H)
        xp = namespace(W, H)
        Q, R = xp.linalg.qr(W)
        P, T = xp.linalg.qr(H)
        U, s, Vt = xp.linalg.svd(R @ T.T, full_matrices=False)
        rounding = float(xp.finfo(s.dtype).eps) * max(W.shape[0], H.shape[0]) * norm(R) * norm(T)
        rank = count_true(s > rounding)
        return cls.trusted(Q @ U[:, :rank], s[:rank], P @ Vt.T[:, :rank])

    @classmethod
    def zeros(cls, shape: tuple[int, int], like: Array | None = None) -> LowRank:
        """The zero matrix, of the kind, dtype and device of the array ``like``; of float64 by default."""
        base = np.zeros(()) if like is None else like
        xp = namespace(base)
        (m, n), kind = shape, {"dtype": base.dtype, "device": device(base)}
        return cls.trusted(xp.zeros((m, 0), **kind), xp.zeros(0, **kind), xp.zeros((n, 0), **kind))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.U.shape[0], self.V.shape[0]

    @property
    def rank(self) -> int:
        """The number of singular values."""
        return self.s.shape[0]

    @property
    def dtype(self) -> Any:
        """The dtype of the factors."""
        return self.s.dtype

    @property
    def T(self) -> LowRank:
        """The transpose."""
        return LowRank.trusted(self.V, self.s, self.U)

    @property
    def weighted(self) -> Array:
        """``U diag(s)``: the first of two factors whose product with V' is the matrix."""
        return self.U * self.s

    @property
    def balanced(self) -> tuple[Array, Array]:
        """``U diag(sqrt(s))`` and ``V diag(sqrt(s))``: two factors of the same size."""
        root = namespace(self.s).sqrt(self.s)
        return self.U * root, self.V * root

    def __matmul__(self, B: Array) -> Array:
        return self.weighted @ (self.V.T @ B)

    def __rmatmul__(self, B: Array) -> Array:
        return (B @ self.weighted) @ self.V.T

    def entries(self, rows: Any, columns: Any) -> Array:
        """The entries at pairs of row and column, as a vector."""
        return sums_of_products(self.weighted, self.V, *self.pairs(rows, columns))

    def pairs(self, rows: Any, columns: Any) -> tuple[Array, Array]:
        """Rows and columns as vectors of indices within the matrix, or an error that names them."""
        if type(self.U) is np.ndarray or type(rows) is not type(self.U):  # what is on a device is trusted
            rows = as_indices(rows, self.U, "rows", self.shape[0])
            columns = as_indices(columns, self.U, "columns", self.shape[1])
        if rows.shape != columns.shape:
            raise ValueError(f"rows and columns must have the same length; got {rows.shape} and {columns.shape}")
        return rows, columns

    def norm(self) -> float:
        """The Frobenius norm."""
        return norm(self.s)

    def nuclear_norm(self) -> float:
        """The sum of the singular values."""
        return float(namespace(self.s).sum(self.s))

    def truncate(self, rank: int | None) -> LowRank:
        """The nearest matrix of at most this rank; None is no bound."""
        check_counts(rank=rank)
        return (
            self
            if rank is None or rank >= self.rank
            else LowRank.trusted(self.U[:, :rank], self.s[:rank], self.V[:, :rank])
        )

    def to_array(self) -> Array:
        """The dense matrix."""
        return self.weighted @ self.V.T

    def astype(self, dtype: Any) -> LowRank:
        """The same matrix in another precision."""
        if dtype == self.dtype:
            return self
        xp = namespace(self.s)
        return LowRank(*(xp.astype(part, dtype) for part in (self.U, self.s, self.V)))


def sums_of_products(W: Array, H: Array, rows: Array, columns: Array) -> Array:
    """``sum_k W[rows, k] H[columns, k]``: the entries of W H' at pairs, without more than a chunk in memory."""
    compiled = compiled_loops(W, rows.shape[0] * W.shape[1])
    if compiled is None:
        return gathered_sums_of_products(W, H, rows, columns)
    return to_device_of(compiled.sums_of_products(*map(as_numpy, (W, H, rows, columns))), W, "W")


def gathered_sums_of_products(W: Array, H: Array, rows: Array, columns: Array) -> Array:
    """`sums_of_products` by gathering rows in chunks."""
    xp = namespace(W)
    count, chunk = rows.shape[0], max(AT_ONCE // max(W.shape[1], 1), 1)
    if W.shape[1] == 0 or count == 0:
        return xp.zeros(count, dtype=W.dtype, device=device(W))
    if is_torch(W):
        W, H = for_gathering(W), for_gathering(H)
    parts = []
    for i in range(0, count, chunk):
        part = slice(i, min(i + chunk, count))
        parts.append(xp.sum(xp.take(W, rows[part], axis=0) * xp.take(H, columns[part], axis=0), axis=1))
    return parts[0] if len(parts) == 1 else xp.concat(parts)


def compiled_loops(W: Array, size: int) -> Any:
    """The compiled loops, or None on a device, without a compiler, or with too little to do for them to pay."""
    if not in_memory(W) or size < COMPILED_FROM or not can_compile():
        return None
    from ell12.completion import row_solves_compiled as compiled

    return compiled
