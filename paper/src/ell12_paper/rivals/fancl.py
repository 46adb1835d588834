"""FaNCL: fast proximal gradient for nonconvex penalties of the singular values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.protocols import Iterate, Point
from ell12_paper.rivals.spectral_step import PenalisedRival, merged_basis


@dataclass(frozen=True)
class FaNCL(PenalisedRival):
    """``X <- prox(X + S(O - X))`` for a nonconvex spectral penalty such as log-sum, with inexact decompositions.

    Run with `ell12.SpectralLogSum` it minimises ``1/2 ||S(X - O)||_F^2 + alpha sum_i log(1 + sigma_i / theta)``;
    the published choice is ``theta = sqrt(alpha)``. Step k starts its power method from the singular vectors of
    X_k and those of X_{k-1} that are farther than ``1e-6 sqrt(k)`` (squared) from their span.

    Parameters
    ----------
    passes, spare, max_rank, random_state
        As in `SoftImpute`.

    Notes
    -----
    The published rule stops when the relative decrease falls below a tolerance: give `minimize`
    ``stop=objective_settled(relative=...)``. The published log pairs the loss of one step with the penalty of the
    next; here both are those of the iterate.

    References
    ----------
    Yao, Kwok & Zhong, Fast low-rank matrix learning with nonconvex regularization, doi:10.1109/ICDM.2015.9.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SpectralLogSum, minimize
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import FaNCL
    >>> loss = CompletionLoss([[1, 1, np.nan], [2, 2, 4], [3, 3, 6]])
    >>> result = minimize(loss, SpectralLogSum(0.01, theta=0.1), solver=FaNCL())
    >>> round(float(result.x.to_array()[0, 2]), 2)
    2.0
    """

    passes: int = 3
    spare: int = 5
    max_rank: int | None = None
    random_state: int = 0

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        self.check(loss, penalty)
        rng = np.random.default_rng(self.random_state)
        x, previous, ritz = start, start, start.x.V
        for k in itertools.count(1):
            kept, y = self.next_basis(ritz, x.x.rank, rng), [(1.0, x)]
            basis = merged_basis(kept, previous.x.V, tol=1e-6 * math.sqrt(k))
            previous = x
            x, ritz = self.step(loss, penalty, y, basis)
            yield self.iterate(loss, penalty, x, y)
