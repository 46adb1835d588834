"""ER1MP and SketchyCGM: one matrix of rank one in each step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.completion.low_rank import LowRank
from ell12.completion.singular_vectors import leading_svd, orthonormal, random_block
from ell12.protocols import Iterate, Point
from ell12_paper.rivals.common import Rival, sparse_gradient


@dataclass(frozen=True)
class ER1MP(Rival):
    """Greedy fit of ``O`` by rank-one matrices: each step adds the leading singular pair of the residual.

    With W the fit on the observed entries and (u, v) the leading singular pair of ``S(O) - W``, step k solves the
    two-dimensional least squares ``min || S(O) - a W - b S(u v') ||``, multiplies all earlier weights by a and
    appends b.

    Parameters
    ----------
    max_rank : int, default 200
        The number of steps, after which it ends.
    steps_per_iterate : int, default 1
        Steps between two iterates. Each iterate costs a decomposition of the factors, which may cost more than
        the pursuit itself.
    random_state : int, default 0
        Seed of the power method's starts.

    Notes
    -----
    Run it with `NoPenalty`. It never changes a vector once chosen and does not shrink: data should be centred
    first. The residual never grows.

    References
    ----------
    Wang, Lai, Lu, Fan, Davulcu & Ye, Orthogonal rank-one matrix pursuit for low rank matrix completion,
    doi:10.1137/130934271.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import minimize
    >>> from ell12.penalties import NoPenalty
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import ER1MP
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 2.0])
    >>> result = minimize(CompletionLoss(X), NoPenalty(), solver=ER1MP(max_rank=1))
    >>> result.x.to_array().round(3).tolist() == X.tolist()
    True
    """

    max_rank: int = 200
    steps_per_iterate: int = 1
    random_state: int = 0

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield an iterate every few steps, and end at the largest rank or where nothing is left to fit."""
        self.check(loss, penalty)
        rng = np.random.default_rng(self.random_state)
        pursuit = _Pursuit(loss, start)
        smallest = float(np.finfo(start.prediction.dtype).eps) * float(np.linalg.norm(loss.observed.values))
        while pursuit.rank < self.max_rank:
            before, wanted = pursuit.rank, min(pursuit.rank + self.steps_per_iterate, self.max_rank)
            while pursuit.rank < wanted and pursuit.step(rng, smallest):
                pass
            if pursuit.rank == before:
                return
            point = loss.point(pursuit.matrix())
            value = loss.value(point)
            yield Iterate(point, value, math.sqrt(2 * value))


class _Pursuit:
    """The rank-one matrices chosen so far, their weights, and the observed entries of their sum."""

    def __init__(self, loss: Any, start: Point) -> None:
        self.loss, self.fit = loss, start.prediction
        self.left, self.right = list(start.x.U.T), list(start.x.V.T)
        self.weights = start.x.s

    @property
    def rank(self) -> int:
        return len(self.left)

    def step(self, rng: np.random.Generator, smallest: float) -> bool:
        """Add one rank-one matrix; false where the residual has no singular value above the smallest."""
        observed = self.loss.observed
        residual = -sparse_gradient(self.loss, self.fit)
        # The last u is nearly orthogonal to the residual: a random part keeps the start off its null space.
        start = random_block(rng, observed.shape[0], 1, self.fit.dtype)[:, 0]
        u, s, v = leading_pair(residual, start + self.left[-1] if self.left else start)
        if s <= smallest:
            return False
        atom = u[observed.rows] * v[observed.columns]
        pair = np.stack([self.fit, atom], axis=1)
        a, b = np.linalg.lstsq(pair.T @ pair, pair.T @ observed.values, rcond=None)[0]
        self.fit = a * self.fit + b * atom
        self.weights = np.append(a * self.weights, b)
        self.left.append(u)
        self.right.append(v)
        return True

    def matrix(self) -> LowRank:
        return LowRank.from_factors(np.stack(self.left, axis=1) * self.weights, np.stack(self.right, axis=1))


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
    >>> from ell12 import minimize
    >>> from ell12.penalties import NoPenalty
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import SketchyCGM
    >>> X = np.outer([2.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    >>> solver = SketchyCGM(radius=2.0, rank=1)
    >>> minimize(CompletionLoss(X), NoPenalty(), solver=solver, max_iter=1).x.rank
    1
    """

    radius: float
    rank: int
    steps_per_iterate: int = 10
    random_state: int = 0

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield an iterate every few steps."""
        self.check(loss, penalty)
        if start.x.nuclear_norm() > self.radius * (1 + 1e-6):
            raise ValueError(f"x0 must have a nuclear norm of at most radius = {self.radius:g}")
        rng = np.random.default_rng(self.random_state)
        rows, columns = loss.observed.rows, loss.observed.columns
        sketch = _Sketch(start.x, self.rank, rng)
        z = start.prediction
        basis = random_block(rng, loss.observed.shape[1], BLOCK, z.dtype)
        for t in itertools.count(1):
            gradient = sparse_gradient(loss, z)
            U, _, basis = leading_svd(gradient, basis, passes=PASSES, tol=1e-3)
            u, v = U[:, 0], basis[:, 0]
            vertex = -self.radius * (u[rows] * v[columns])
            gap, eta = float(np.vdot(z - vertex, gradient.data)), 2 / (t + 1)
            z = (1 - eta) * z + eta * vertex
            sketch.move(eta, -self.radius, u, v)
            if t % self.steps_per_iterate == 0:
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


def leading_pair(
    Z: Any, start: np.ndarray, *, tol: float = 1e-5, max_iter: int = 50
) -> tuple[np.ndarray, float, np.ndarray]:
    """The leading singular triplet ``u, s, v`` of Z by alternating ``v = Z'u/||.||`` and ``u = Z v/||.||``.

    It ends when s changes by no more than tol, relatively; s is 0 where Z vanishes along the start, that of u. It
    stays next to the block method for ER1MP, which took twice the time with blocks of one column.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12_paper.rivals.rank_one import leading_pair
    >>> u, s, v = leading_pair(np.array([[0.0, 5.0], [1.0, 0.0]]), np.ones(2))
    >>> round(s, 4)
    5.0
    """
    u, s, Zt = start / (np.linalg.norm(start) or 1.0), 0.0, Z.T
    for _ in range(max_iter):
        v = Zt @ u
        length = float(np.linalg.norm(v))
        if length == 0:
            return u, 0.0, v
        v = v / length
        u = Z @ v
        before, s = s, float(np.linalg.norm(u))
        u = u / (s or 1.0)
        if s - before <= tol * s:
            break
    return u, s, v
