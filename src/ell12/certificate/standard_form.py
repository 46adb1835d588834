"""A squared loss under `L12` as a Gram matrix, slopes of the l1 norm and one subtracted norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from ell12.backend import as_numpy
from ell12.backend.compiled_code import can_compile, compiled_loop
from ell12.losses.pointwise import SquaredLoss
from ell12.operators import to_dense
from ell12.penalties.l12 import L12

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
    terms: int  # the largest number of terms of a sum

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

    def descend(self, x: Vector, *box_and_slopes_and_limits: Any) -> None:
        """`box_descent` from x, in place."""
        _compiled_descent()(self.G, self.pull(x), x, *box_and_slopes_and_limits)

    def rounding(self, reach: float) -> float:
        """A bound on the rounding errors of sums over vectors whose predictions have at most this norm."""
        return EPS * self.terms * (self.observed + reach) ** 2


@cache
def _compiled_descent() -> Callable[..., Any]:
    """`box_descent`, compiled where there is a compiler."""
    options = {"error_model": "numpy", "nogil": True, "fastmath": {"reassoc", "nsz"}}
    return compiled_loop(**options)(box_descent) if can_compile() else box_descent


def box_descent(G, c, x, lower, upper, below, above, sweeps, target):  # type: ignore[no-untyped-def]
    """Coordinate descent in place on ``x'Gx/2 - q'x + sum_i (below_i or above_i) x_i`` in a box; c = q - G x."""
    for _ in range(sweeps):
        largest = 0.0
        for i in range(x.size):
            h = G[i, i]
            pull = h * x[i] + c[i]
            free = (max(pull - above[i], 0.0) + min(pull - below[i], 0.0)) / h
            new = min(max(free, lower[i]), upper[i])
            move = new - x[i]
            if move != 0.0:
                x[i] = new
                for j in range(x.size):
                    c[j] -= move * G[i, j]
                largest = max(largest, move * move * h)
        if largest <= target:
            break


def standard_form(loss: Any, penalty: Any) -> tuple[StandardForm, Any, Any]:
    """The standard form, the map of its vectors to x, and a map back that loses nothing a minimiser needs.

    Entries without a penalty are minimised over. Entries of infinite weight, and all copies of a column but the
    cheapest, are left out.
    """
    if not isinstance(loss, SquaredLoss) or not isinstance(penalty, L12) or loss.b.ndim != 1:
        wanted = "as loss a SquaredLoss of one right-hand side, and as penalty L12 or L1"
        raise TypeError(f"certify needs {wanted}; got {loss!r}, {penalty!r}")
    A, b = _rows(loss)
    below, t = (as_numpy(part) for part in penalty.slopes_at_zero(np.zeros(A.shape[1])))
    floor = np.where(np.isinf(below), 0.0, -np.inf)
    free, W, ridge = (t == 0) & (floor < 0), penalty.strength * penalty.l2_weight, penalty.strength * penalty.ridge
    owner, sign = np.arange(t.size), 1.0 * (np.isfinite(t) & ~free)  # of each entry: what stands for it, how
    if ridge == 0 and np.all(t[sign != 0] >= W):
        _merge_copies(A, t, owner, sign, signed=bool(np.all(floor[sign != 0] < 0)))
    kept = np.unique(owner[sign != 0])
    columns, unpenalised, t, floor = A[:, kept], to_dense(A[:, np.flatnonzero(free)]), t[kept], floor[kept]
    U = scipy.linalg.orth(unpenalised)
    rest = b - U @ (U.T @ b)
    rest -= U @ (U.T @ rest)
    G, shared = to_dense(columns.T @ columns), columns.T @ U
    lengths = np.sqrt(np.diag(G) + ridge)
    G -= shared @ shared.T
    G[np.diag_indices_from(G)] = np.maximum(np.diag(G), EPS * lengths**2) + ridge

    def embed(x: Vector) -> Vector:
        full = np.bincount(kept, x, A.shape[1])
        full[free] = np.linalg.lstsq(unpenalised, b - columns @ x, rcond=None)[0]
        return full

    def extract(full: Vector) -> Vector:
        return np.maximum(np.bincount(owner, sign * full, full.size)[kept], floor)

    numbers = {"observed": float(np.linalg.norm(b)), "terms": A.shape[0] + 2 * kept.size + 16}
    return StandardForm(G, columns.T @ rest, float(rest @ rest), t, W, floor, lengths, **numbers), embed, extract


def _rows(loss: SquaredLoss) -> tuple[Any, Vector]:
    """A and b with weights and scale multiplied in, in double precision."""
    A, b = loss.A if scipy.sparse.issparse(loss.A) else as_numpy(to_dense(loss.A)), as_numpy(loss.b).astype(float)
    weight = 1.0 if loss.sample_weight is None else as_numpy(loss.sample_weight).reshape(-1)
    root = np.sqrt(loss.scale * weight) * np.ones(b.size)
    A = (scipy.sparse.diags_array(root) @ A).astype(float)
    return A.tocsc() if scipy.sparse.issparse(A) else A, root * b


def _merge_copies(A: Any, t: Vector, owner: Vector, sign: Vector, signed: bool) -> None:
    """Of columns with the same entries, up to sign, the cheapest stands for all: some minimiser uses no other."""
    first: dict[bytes, tuple[int, float]] = {}
    for i in np.flatnonzero(sign)[np.argsort(t[sign != 0], kind="stable")]:
        column = to_dense(A[:, [i]]).ravel()
        turn = float(np.sign(column[np.argmax(column != 0)])) if signed or not column.any() else 1.0
        owner[i], other = first.setdefault((turn * column + 0.0).tobytes(), (int(i), turn))
        sign[i] = turn * other  # a column of zeros is never used
