"""Gram matrices with weights, and linear systems with them: what Newton's method and ADMM solve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import device, is_numpy, namespace
from ell12.backend.compiling import can_compile
from ell12.operators.maps import adjoint, to_dense
from ell12.protocols import Array

# Sparse columns of which at least this many pairs of entries meet in a row are multiplied by a compiled loop.
# SciPy needs 20 milliseconds for as many, the loop a sixth. The size alone decides: the two round differently.
COMPILED_FROM = 2**21


def weighted_gram(A: Any, weight: Array, B: Any = None) -> Array:
    """``A' diag(weight) B`` as a dense matrix; B is A by default."""
    B = A if B is None else B
    if hasattr(A, "weighted_gram"):
        return A.weighted_gram(weight, B)
    if scipy.sparse.issparse(A):
        return _sparse_gram(A, weight, B)
    dense = to_dense(A)
    other = dense if B is A else to_dense(B)
    if is_numpy(weight) and is_numpy(dense) and dense.dtype.kind == "f":
        return _numpy_gram(dense, weight, other)
    return adjoint(dense) @ (weight[:, None] * other)


def _sparse_gram(A: Any, weight: Any, B: Any) -> Any:
    """The same of sparse matrices: SciPy's product, or a compiled one where there is much to do."""
    dtype = np.result_type(A.dtype, weight.dtype, B.dtype)
    if dtype.kind != "f" or _meetings(A, B) < COMPILED_FROM or not can_compile():
        return (adjoint(A) @ B.multiply(weight[:, None]).tocsr()).toarray()
    from ell12.operators import compiled_gram

    rows, out = A.tocsr(), np.zeros((A.shape[1], B.shape[1]), dtype=dtype)
    if B is not A:
        other = B.tocsr()
        compiled_gram.cross(*_parts(rows), weight, *_parts(other), out)
        return out
    diagonal = np.zeros(A.shape[1], dtype=dtype)
    compiled_gram.own(*_parts(rows), weight, out, diagonal)
    out += out.T
    out[np.diag_indices_from(out)] += diagonal
    return out


def _parts(rows: Any) -> tuple[Any, Any, Any]:
    return rows.indptr, rows.indices, rows.data


def _meetings(A: Any, B: Any) -> float:
    """How many pairs of entries of two sparse matrices, one of each, are in the same row."""
    counts = [
        np.diff(M.indptr) if M.format == "csr" else np.bincount(M.tocsc().indices, minlength=M.shape[0])
        for M in (A, B)
    ]
    return float(np.dot(*counts))


def _numpy_gram(A: Any, weight: Any, B: Any) -> Any:
    """Without a weighted copy where all weights are equal, and by half the work where B is A."""
    if weight.size and (weight == weight[0]).all():
        return weight[0] * (A.T @ B)  # of A with itself, which NumPy sees
    if B is A and weight.min(initial=0.0) >= 0:
        rows = np.sqrt(weight)[:, None] * A
        return rows.T @ rows
    return A.T @ (weight[:, None] * B)


def ridge_solver(A: Any, weight: Array, ridge: float) -> Callable[[Array], Array]:
    """Apply ``(A' diag(weight) A + ridge I)^-1``: one factorization of the smaller of the two Gram matrices."""
    dense = to_dense(A) if not scipy.sparse.issparse(A) else A
    m, n = dense.shape
    xp = namespace(weight)
    if n <= m:
        solve = shifted_solver(weighted_gram(dense, weight), ridge)
    else:
        root = xp.sqrt(weight)
        rows = dense.multiply(root[:, None]).tocsr() if scipy.sparse.issparse(dense) else root[:, None] * dense
        gram = rows @ adjoint(rows)
        invert = shifted_solver(gram.toarray() if scipy.sparse.issparse(gram) else gram, ridge)

        def solve(r: Array) -> Array:
            return (r - adjoint(rows) @ invert(rows @ r)) / ridge

    # An image is a vector here; several right-hand sides are columns.
    return lambda r: xp.reshape(solve(xp.reshape(r, (n, -1))), r.shape)


def shifted_solver(gram: Array, ridge: float) -> Callable[[Array], Array]:
    """Apply ``(gram + ridge I)^-1``."""
    xp = namespace(gram)
    gram = gram + ridge * xp.eye(gram.shape[0], dtype=gram.dtype, device=device(gram))
    if is_numpy(gram):
        from scipy.linalg import cho_factor, cho_solve

        factor = cho_factor(gram)
        return lambda r: cho_solve(factor, r)
    inverse = xp.linalg.inv(gram)
    return lambda r: inverse @ r
