"""SketchyCGM: the conditional gradient method on a sketch of the matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.checks import check_counts, set_numbers
from ell12.completion.low_rank import LowRank
from ell12.completion.singular_vectors import leading_svd, orthonormal, random_block
from ell12.protocols import Iterate, Point
from ell12_paper.rivals.rival import Rival, sparse_gradient

BLOCK = 4  # vectors of the power method: the leading singular values of the gradient draw near each other
PASSES = 6


@dataclass(frozen=True)
class SketchyCGM(Rival):
    """Conditional gradients for ``min f(X) subject to ||X||_* <= radius``, in memory of the answer's size.

    Kept are ``z``, the observed entries of X, and two sketches ``X Omega`` and ``Psi X``. With (u, v) the
    leading singular pair of the gradient at z, step t = 0, 1, ... moves all three to ``(1 - eta) X - eta radius
    u v'``, ``eta = 2/(t + 2)``. The sketches give back the rank-r approximation: ``Q = orth(X Omega)``, ``B =
    (Psi Q)^+ (Psi X)``, ``Q [B]_r``.

    Parameters
    ----------
    radius : float
        The bound on the nuclear norm. A bound that matches a strength alpha is the nuclear norm of that solution.
    rank : int
        The rank r of the answer; the sketches have 2 r + 1 columns and 4 r + 3 rows, or as many as X has.
    gap : float, default 0.0
        End when the duality gap, which bounds how far f(z) is above its minimum, is at most this times f(z);
        0 never ends.
    steps_per_iterate : int, default 10
        Steps between two iterates, each of which costs one reconstruction from the sketches.
    random_state : int, default 0
        Seed of the sketches and of the power method.

    Notes
    -----
    Run it with `NoPenalty`. The objective is that of the answer of rank r, not that of the implicit iterate, which
    may be lower; the rank-r matrix is not projected onto the ball. The optimality is the duality gap divided by
    the radius.

    References
    ----------
    Yurtsever, Udell, Tropp & Cevher, Sketchy decisions: convex low-rank matrix optimization with optimal storage,
    AISTATS 2017, PMLR 54.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import NoPenalty, minimize
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import SketchyCGM
    >>> X = np.outer([2.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    >>> solver = SketchyCGM(radius=2.0, rank=1)
    >>> minimize(CompletionLoss(X), NoPenalty(), solver=solver, max_iter=1).x.rank
    1
    """

    radius: float
    rank: int
    gap: float = 0.0
    steps_per_iterate: int = 10
    random_state: int = 0

    def __post_init__(self) -> None:
        set_numbers(self, "gap", positive="radius")
        check_counts(least=1, rank=self.rank, steps_per_iterate=self.steps_per_iterate)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield an iterate every few steps; end when the duality gap is small."""
        self.check(loss, penalty)
        if start.x.nuclear_norm() > self.radius * (1 + 1e-6):
            raise ValueError(f"x0 must have a nuclear norm of at most radius = {self.radius:g}")
        rng = np.random.default_rng(self.random_state)
        rows, columns = loss.observed.rows, loss.observed.columns
        sketch = _Sketch(start.x, self.rank, rng)
        z, t, done = start.prediction, 0, False
        basis = random_block(rng, loss.observed.shape[1], BLOCK, z.dtype)
        while not done:
            for _ in range(self.steps_per_iterate):
                gradient = sparse_gradient(loss, z)
                U, _, basis = leading_svd(gradient, basis, passes=PASSES, tol=1e-3)
                u, v = U[:, 0], basis[:, 0]
                vertex = -self.radius * (u[rows] * v[columns])
                gap = float(np.vdot(z - vertex, gradient.data))
                done = self.gap > 0 and gap <= self.gap * loss.value(Point(None, z))
                if done:
                    break
                eta = 2 / (t + 2)
                z = (1 - eta) * z + eta * vertex
                sketch.move(eta, -self.radius, u, v)
                t += 1
            point = loss.point(sketch.reconstruct())
            yield Iterate(point, loss.value(point), max(gap, 0.0) / self.radius)


class _Sketch:
    """``X Omega`` and ``Psi X`` of a matrix that is only known to move by rank-one matrices."""

    def __init__(self, x: LowRank, rank: int, rng: np.random.Generator) -> None:
        m, n = x.shape
        self.rank = rank
        self.Omega = random_block(rng, n, min(2 * rank + 1, n), x.dtype)
        self.Psi = random_block(rng, m, min(4 * rank + 3, m), x.dtype).T
        self.range = x @ self.Omega
        self.corange = self.Psi @ x
        self.factor = 1.0
        self.moves: list[tuple[float, np.ndarray, np.ndarray]] = []

    def move(self, eta: float, weight: float, u: np.ndarray, v: np.ndarray) -> None:
        """``X <- (1 - eta) X + eta weight u v'``; the sketches wait for `reconstruct`, which adds all at once."""
        self.moves = [((1 - eta) * w, left, right) for w, left, right in self.moves]
        self.moves.append((eta * weight, u, v))
        self.factor *= 1 - eta

    def reconstruct(self) -> LowRank:
        """The matrix of at most the rank that the sketches determine."""
        self._add_moves()
        Q = orthonormal(self.range)
        B = np.linalg.pinv(self.Psi @ Q) @ self.corange
        U, s, Vt = np.linalg.svd(B, full_matrices=False)
        kept = min(self.rank, int(np.count_nonzero(s > np.finfo(s.dtype).eps * max(B.shape) * s[0])))
        return LowRank(Q @ U[:, :kept], s[:kept], Vt[:kept].T)

    def _add_moves(self) -> None:
        if self.moves:
            weights, left, right = zip(*self.moves, strict=True)
            U, V = np.stack(left, axis=1) * np.array(weights, dtype=self.range.dtype), np.stack(right, axis=1)
            self.range = self.factor * self.range + U @ (V.T @ self.Omega)
            self.corange = self.factor * self.corange + (self.Psi @ U) @ V.T
            self.factor, self.moves = 1.0, []
