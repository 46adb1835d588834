"""A squared loss under `L12` as a Gram matrix, slopes of the l1 norm and one subtracted norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import as_numpy
from ell12.losses.pointwise import SquaredLoss
from ell12.operators.linear_operator import to_dense
from ell12.penalties.l12 import L12
from ell12.penalties.penalty_base import WithIntercept

EPS = float(np.finfo(float).eps)
Vector = np.ndarray


@dataclass(frozen=True)
class StandardForm:
    """``F(x) = bb/2 - q'x + x'Gx/2 + sum_i t_i |x_i| - W ||x||_2``, ``x_i >= floor_i`` (0 or minus infinity)."""

    G: Vector
    q: Vector
    bb: float
    t: Vector
    W: float
    floor: Vector
    lengths: Vector  # norms of the columns, before anything was subtracted from them
    observed: float  # norm of the observations, before anything was subtracted
    terms: int  # the longest sum adds at most so many numbers

    def restricted(self, entries: Vector) -> StandardForm:
        """The same objective in some entries, the others being zero."""
        if entries.size == self.t.size:
            return self
        parts = {name: getattr(self, name)[entries] for name in ("q", "t", "floor", "lengths")}
        return replace(self, G=np.ascontiguousarray(self.G[np.ix_(entries, entries)]), **parts)

    def pull(self, x: Vector) -> Vector:
        """``q - G x``, from the nonzero entries of x."""
        used = np.flatnonzero(x)
        return self.q - x[used] @ self.G[used]

    def value(self, x: Vector) -> float:
        """The objective."""
        smooth = 0.5 * (self.bb - x @ (self.q + self.pull(x)))
        return float(smooth + self.t @ np.abs(x) - self.W * np.linalg.norm(x))

    def rounding(self, reach: float) -> float:
        """A bound on the rounding errors of sums over vectors whose predictions have at most this norm."""
        return EPS * self.terms * (self.observed + reach) ** 2


Map = Callable[[Vector], Vector]


def standard_form(loss: Any, penalty: Any) -> tuple[StandardForm, Map, Map]:
    """The standard form, the map of its vectors to x, and a map back that loses nothing a minimiser needs.

    Entries without a penalty are minimised over. Entries of infinite weight, and all copies of a column but the
    cheapest, are left out.
    """
    count = penalty.count if isinstance(penalty, WithIntercept) else 0
    inner = penalty.penalty if count else penalty
    if not isinstance(loss, SquaredLoss) or not isinstance(inner, L12) or loss.b.ndim != 1:
        raise TypeError(
            f"certify needs a SquaredLoss of one right-hand side and L12 or L1, got {loss!r}, {penalty!r}"
        )
    A, b = _rows(loss)
    below, above = (as_numpy(part) for part in inner.slopes_at_zero(np.zeros(A.shape[1] - count)))
    sign = np.where(np.isinf(above) & np.isfinite(below), -1.0, 1.0)  # of columns that may only be negative
    t, floor = (
        np.where(sign > 0, above, -below),
        np.where(np.isinf(np.where(sign > 0, below, above)), 0.0, -np.inf),
    )
    free = np.append((t == 0) & (floor < 0), np.ones(count, bool))
    used = np.flatnonzero(np.isfinite(t) & ~free[: t.size])
    W, ridge = inner.strength * inner.l2_weight, inner.strength * inner.ridge
    merged = (
        _without_copies(A, used, t, floor) if ridge == 0 and np.all(t[used] >= W) else {i: (i, 1.0) for i in used}
    )
    kept = np.array(sorted({owner for owner, _ in merged.values()}), int)
    columns, unpenalised = A[:, kept], _dense(A[:, np.flatnonzero(free)])
    sign, t, floor = sign[kept], t[kept], floor[kept]
    U, size, _ = np.linalg.svd(unpenalised, full_matrices=False)
    U = U[:, size > EPS * max(A.shape) * np.max(size, initial=0.0)]
    rest = b - U @ (U.T @ b)
    rest -= U @ (U.T @ rest)
    G, shared = _dense(columns.T @ columns), columns.T @ U
    lengths = np.sqrt(np.diag(G) + ridge)
    G = (G - shared @ shared.T) * np.outer(sign, sign)
    G[np.diag_indices_from(G)] = np.maximum(np.diag(G), EPS * lengths**2) + ridge

    def embed(x: Vector) -> Vector:
        full = np.zeros(A.shape[1])
        full[kept] = sign * x
        full[free] = np.linalg.lstsq(unpenalised, b - columns @ (sign * x), rcond=None)[0]
        return full

    def extract(full: Vector) -> Vector:
        gathered = np.zeros(A.shape[1])
        for column, (owner, turn) in merged.items():
            gathered[owner] += turn * full[column]
        return np.maximum(sign * gathered[kept], floor)

    numbers = {"observed": float(np.linalg.norm(b)), "terms": A.shape[0] + 2 * kept.size + 16}
    form = StandardForm(G, sign * (columns.T @ rest), float(rest @ rest), t, W, floor, lengths, **numbers)
    return form, embed, extract


def _rows(loss: SquaredLoss) -> tuple[Any, Vector]:
    """A and b with weights and scale multiplied in, in double precision."""
    A = loss.A.tocsc() if scipy.sparse.issparse(loss.A) else as_numpy(to_dense(loss.A))
    root = np.full(A.shape[0], np.sqrt(loss.scale))
    if loss.sample_weight is not None:
        root *= np.sqrt(as_numpy(loss.sample_weight).reshape(-1))
    A = scipy.sparse.diags_array(root).tocsc() @ A if scipy.sparse.issparse(A) else root[:, None] * A
    return A.astype(float), root * as_numpy(loss.b)


def _dense(A: Any) -> Vector:
    return A.toarray() if scipy.sparse.issparse(A) else A


def _without_copies(A: Any, used: Vector, t: Vector, floor: Vector) -> dict[int, tuple[int, float]]:
    """For each column that of the same entries up to sign that stands for it: some minimiser uses no other."""
    first: dict[bytes, tuple[int, float]] = {}
    merged = {}
    for i in used[np.argsort(t[used], kind="stable")]:
        column = _dense(A[:, [i]]).ravel()
        if column.any():  # a column of zeros is never used
            sign = float(np.sign(column[np.flatnonzero(column)[0]])) if floor.max() < 0 else 1.0
            owner, turn = first.setdefault((sign * column + 0.0).tobytes(), (int(i), sign))
            merged[int(i)] = (owner, sign * turn)
    return merged
