"""Sparse matrices of SciPy and CuPy and sparse tensors of PyTorch: which entries they store."""

from __future__ import annotations

import sys
from typing import Any

import scipy.sparse

from ell12.backend.arrays import is_torch
from ell12.protocols import Array


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
