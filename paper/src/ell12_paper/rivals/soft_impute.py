"""Soft-Impute: the plain ancestor of the proximal methods for matrix completion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.protocols import Iterate, Point
from ell12_paper.rivals.spectral_step import PenalisedRival


@dataclass(frozen=True)
class SoftImpute(PenalisedRival):
    """``X <- soft_alpha(X + S(O - X))``: fill in, decompose, shrink the singular values.

    It minimises ``1/2 ||S(X - O)||_F^2 + alpha ||X||_*``; with the prox of another spectral penalty it is the
    proximal gradient method for that one. The filled-in matrix is sparse plus low-rank and is never formed; its
    singular vectors come from a power method warm-started by the last step's.

    Parameters
    ----------
    passes : int, default 3
        Passes of the power method in each step.
    spare : int, default 10
        Ritz vectors carried beyond the rank.
    max_rank : int, optional
        The largest rank.
    random_state : int, default 0
        Seed of the first block.

    References
    ----------
    Mazumder, Hastie & Tibshirani, Spectral regularization algorithms for learning large incomplete matrices,
    JMLR 11 (2010) 2287-2322.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SpectralL12, minimize
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import SoftImpute
    >>> loss = CompletionLoss([[1, 1, np.nan], [2, 2, 4], [3, 3, 6]])
    >>> result = minimize(loss, SpectralL12(0.01, l2_weight=0.0), solver=SoftImpute())
    >>> round(float(result.x.to_array()[0, 2]), 1)
    2.0
    """

    passes: int = 3
    spare: int = 10
    max_rank: int | None = None
    random_state: int = 0

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        self.check(loss, penalty)
        rng = np.random.default_rng(self.random_state)
        point, ritz = start, start.x.V
        while True:
            y = [(1.0, point)]
            point, ritz = self.step(loss, penalty, y, self.next_basis(ritz, point.x.rank, rng))
            yield self.iterate(loss, penalty, point, y)
