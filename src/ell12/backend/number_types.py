"""Stored entries of sparse matrices, type variables, and norms that share one pass."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ell12.backend import Array, as_numpy, device, inner, is_torch, max_abs, namespace, norm, safe_square
from ell12.backend import compiled_code as cuda


class ArrayObject(Protocol):
    """An array of any library: a tensor of PyTorch too, but not a list."""

    @property
    def shape(self) -> Any:
        """The lengths of the axes."""

    @property
    def dtype(self) -> Any:
        """The type of the entries."""

    def __getitem__(self, key: Any, /) -> Any:
        """Some of the entries."""


X_co = TypeVar("X_co", covariant=True)


class Starting(Protocol[X_co]):
    """A loss, as far as it tells what x is."""

    def start(self) -> X_co:
        """Zeros of the shape, kind, dtype and device that ``x`` has."""


ArrayT = TypeVar("ArrayT", bound=ArrayObject)  # the kind of array in is the kind out
X = TypeVar("X")  # the unknown: an array, or a matrix of low rank
Given_co = TypeVar("Given_co", covariant=True)  # what a loss was given as its observations

Whole = Sequence[Any] | NDArray[np.integer[Any]] | NDArray[np.bool]  # what becomes an array of float64
Plain = Sequence[Any] | NDArray[Any]  # what makes x a NumPy array


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix of SciPy or CuPy, or a sparse tensor of any layout."""
    cupy = sys.modules.get("cupyx.scipy.sparse")
    if scipy.sparse.issparse(X) or (cupy is not None and cupy.issparse(X)):
        return True
    return is_torch(X) and str(X.layout) != "torch.strided"


def stored_entries(X: Any, name: str) -> tuple[Array, Array, Array]:
    """Rows, columns and values of what a sparse matrix stores, explicit zeros and repetitions too."""
    if not is_torch(X):
        X = X.tocoo()
        return X.row, X.col, X.data
    layout = str(X.layout).rpartition("sparse_")[2]
    if layout not in ("coo", "csr", "csc") or X.dense_dim():
        what = f"layout {X.layout}" if not X.dense_dim() else f"{X.dense_dim()} dense dimensions"
        raise TypeError(f"{name} is a sparse tensor with {what}: give a matrix of numbers in COO, CSR or CSC")
    if layout == "coo":
        rows, columns = X._indices()  # which ask for no sums over repetitions, as indices() does
        return rows, columns, X._values()
    if layout == "csr":
        return _repeated(X.crow_indices()), X.col_indices(), X.values()
    return X.row_indices(), _repeated(X.ccol_indices()), X.values()


def _repeated(starts: Array) -> Array:
    """The number of the row of each entry, from where the rows begin."""
    import torch

    return torch.repeat_interleave(torch.arange(len(starts) - 1, device=starts.device), starts.diff())


MOST_BLOCKS = 1056  # of threads: as many as an H200 runs at once


def l1_and_l2(x: Array) -> tuple[float, float]:
    """``sum_i |x_i|`` and ``||x||_2``."""
    found = None if type(x) is np.ndarray else _on_gpu(x, x, of_difference=False)
    if found is not None and safe_square(found[1], x):
        return found[0], math.sqrt(found[1])
    xp = namespace(x)
    return float(xp.sum(xp.abs(x))), norm(x)


def difference(x: Array, y: Array) -> tuple[float, float]:
    """``max_i |x_i - y_i|`` and ``sum_i |x_i - y_i|^2``."""
    found = None if type(x) is np.ndarray else _on_gpu(x, y, of_difference=True)
    if found is not None:
        return found[2], found[1]
    move = x - y
    return max_abs(move), inner(move, move)


def _on_gpu(x: Array, y: Array, of_difference: bool) -> list[float] | None:
    """The sum of the absolute values, that of their squares, and the largest; None where there is no kernel."""
    size = math.prod(x.shape)
    kernel = cuda.kernel(x, __file__, "norms") if size > 0 and x.shape == y.shape and x.dtype == y.dtype else None
    if kernel is None:
        return None
    blocks, xp = min(MOST_BLOCKS, -(-size // (4 * cuda.THREADS))), namespace(x)
    parts: Any = xp.empty((3, blocks), dtype=xp.float64, device=device(x))
    kernel((blocks, 1), (cuda.one_piece(x), cuda.one_piece(y), parts), (size, of_difference))
    l1, square, largest = as_numpy(parts)
    return [float(np.sum(l1)), float(np.sum(square)), float(np.max(largest))]
