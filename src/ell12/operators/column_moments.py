"""Means of columns and the squares of what they are without them, from one read."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ell12.protocols import Array


def moments_of(piece: Any, weight: Array | None, means: Array | None) -> tuple[Array, Array]:
    """The means of some columns and the sums of squares about them; the piece is written to where it is dense."""
    if scipy.sparse.issparse(piece):
        return _sparse_moments(piece.tocsc(), weight, means)
    columns = piece.T
    m = columns.shape[1]
    if means is None:
        means = columns.sum(axis=1) / m if weight is None else columns @ weight / weight.sum()
        rows = np.arange(m) if weight is None else np.flatnonzero(weight)
        first = columns[:, rows[0]]
        close = np.flatnonzero(np.abs(first - means) <= (8 + m) * np.finfo(float).eps * np.abs(first))
        same = close[(columns[close][:, rows] == first[close, None]).all(axis=1)]
        means[same] = first[same]
    columns -= means[:, None]
    if weight is not None:
        columns *= np.sqrt(weight)
    return means, np.einsum("ij,ij->i", columns, columns)


def _sparse_moments(piece: Any, weight: Array | None, means: Array | None) -> tuple[Array, Array]:
    m, n = piece.shape
    weight = np.ones(m) if weight is None else weight
    column, entry_weight = np.repeat(np.arange(n), np.diff(piece.indptr)), weight[piece.indices]
    total, inside = weight.sum(), np.bincount(column, entry_weight, n)
    if means is None:
        means = np.bincount(column, entry_weight * piece.data, n) / total
        full = np.flatnonzero(np.diff(piece.indptr) == m)
        for j in full:  # few, or the matrix is not sparse
            entries = piece.data[piece.indptr[j] : piece.indptr[j + 1]]
            if (entries == entries[0]).all():
                means[j] = entries[0]
    squares = np.bincount(column, entry_weight * (piece.data - means[column]) ** 2, n)
    outside = np.where(
        np.diff(piece.indptr) == m, 0.0, total - inside
    )  # of weights that are equal but for rounding
    return means, squares + np.maximum(outside, 0) * means**2
