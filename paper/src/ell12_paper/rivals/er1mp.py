"""ER1MP: economic orthogonal rank-one matrix pursuit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.checks import check_counts
from ell12.completion.low_rank import LowRank
from ell12.completion.singular_vectors import leading_pair, random_block
from ell12.protocols import Iterate, Point
from ell12_paper.rivals.rival import Rival, sparse_gradient


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
    first. The residual never grows; `objective_settled` stops where it stalls.

    References
    ----------
    Wang, Lai, Lu, Fan, Davulcu & Ye, Orthogonal rank-one matrix pursuit for low rank matrix completion,
    doi:10.1137/130934271.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import NoPenalty, minimize
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

    def __post_init__(self) -> None:
        check_counts(least=1, max_rank=self.max_rank, steps_per_iterate=self.steps_per_iterate)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield an iterate every few steps, and end at the largest rank or where nothing is left to fit."""
        self.check(loss, penalty)
        rng = np.random.default_rng(self.random_state)
        pursuit = _Pursuit(loss, start)
        smallest = float(np.finfo(start.prediction.dtype).eps) * float(np.linalg.norm(loss.observed.values))
        while pursuit.rank < self.max_rank:
            pending = 0
            while pending < self.steps_per_iterate and pursuit.rank < self.max_rank:
                if not pursuit.step(rng, smallest):
                    break
                pending += 1
            if pending == 0:
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
