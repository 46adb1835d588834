"""FaNCL: fast proximal gradient for nonconvex penalties of the singular values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.checks import check_counts
from ell12.completion.baselines.rival import PenalisedRival
from ell12.completion.baselines.spectral_step import SpectralStep, iterate_at, merged_basis, next_basis
from ell12.protocols import Iterate, Point


@dataclass(frozen=True)
class FaNCL(PenalisedRival):
    """``X <- prox(X + S(O - X))`` for a nonconvex spectral penalty such as log-sum, with inexact decompositions.

    Run with `ell12.SpectralLogSum` it minimises ``1/2 ||S(X - O)||_F^2 + alpha sum_i log(1 + sigma_i / theta)``;
    the published choice is ``theta = sqrt(alpha)``. Step k starts its power method from the singular vectors of
    X_k and those of X_{k-1} that are farther than ``1e-6 sqrt(k)`` (squared) from their span.

    Parameters
    ----------
    passes : int
        Passes of the power method in each step.
    spare : int
        Ritz vectors carried beyond the rank, and random columns to begin with.
    max_rank : int, optional
        The largest rank.
    random_state : int
        Seed of the first block.

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
    >>> from ell12 import minimize
    >>> from ell12.completion import CompletionLoss, as_observed
    >>> from ell12.penalties import SpectralLogSum
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 2.0])
    >>> X[0, 2] = np.nan
    >>> result = minimize(CompletionLoss(as_observed(X)), SpectralLogSum(0.01, theta=0.1), solver=FaNCL())
    >>> round(float(result.x.to_array()[0, 2]), 2)
    2.0
    """

    passes: int = 3
    spare: int = 5
    max_rank: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        check_counts(passes=self.passes, spare=self.spare)
        check_counts(least=1, max_rank=self.max_rank)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        self.check(loss, penalty)
        rng = np.random.default_rng(self.random_state)
        take_step = SpectralStep(loss, self.passes, self.max_rank)
        x = previous = start
        ritz, k = start.x.V, 0
        while True:
            k += 1
            kept = next_basis(ritz, x.x.rank, self.spare, rng)
            basis = merged_basis(kept, previous.x.V, tol=1e-6 * math.sqrt(k))
            new, ritz = take_step(penalty, [(1.0, x.x)], x.prediction, basis)
            yield iterate_at(loss, penalty, new, x.prediction, self.max_rank)
            x, previous = new, x
