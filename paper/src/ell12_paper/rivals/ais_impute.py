"""AIS-Impute: accelerated inexact Soft-Impute with continuation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ell12.completion.singular_vectors import leading_svd, random_block
from ell12.protocols import Iterate, Point
from ell12.solvers.proximal_step import next_t
from ell12_paper.rivals.spectral_step import PenalisedRival, merged_basis


@dataclass(frozen=True)
class AISImpute(PenalisedRival):
    """Soft-Impute with momentum, a falling strength and an inexact singular value decomposition.

    For ``1/2 ||S(X - O)||_F^2 + alpha ||X||_*``, in step k::

        Y = X_k + b (X_k - X_{k-1}),  b = (t_{k-1} - 1)/t_k,  Z = Y + S(O - Y)
        alpha_k = alpha + max(alpha_max - alpha, 0) decay^k,  alpha_max = ||S(O)||_2
        X_{k+1} = soft_{alpha_k}(Z)

    The last line is found by a power method that starts from the singular vectors of ``X_k`` and ``X_{k-1}``.
    Momentum starts again when the objective rises.

    Parameters
    ----------
    decay : float, default 0.85
        How fast the strength falls to alpha; 0 starts at alpha.
    passes : int, default 10
        The most passes of the power method in each step. It stops when its first vector moves by less than
        ``max(1e-6, 0.95^k)``.
    spare : int, default 5
        Ritz vectors carried beyond the rank. The published method carries none, and can then miss directions.
    max_rank, random_state
        As in `SoftImpute`.

    Notes
    -----
    The published rule stops when the objective changes by less than a tolerance: give `minimize`
    ``stop=objective_settled(absolute=1e-3)``. The published code leaves the sparse part of Z out of one of the two
    products of the power method; here it is in both.

    References
    ----------
    Yao & Kwok, Accelerated inexact soft-impute for fast large-scale matrix completion, IJCAI 2015;
    extended in doi:10.1109/TKDE.2018.2867533.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SpectralL12, minimize
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import AISImpute
    >>> loss = CompletionLoss([[1, 1, np.nan], [2, 2, 4], [3, 3, 6]])
    >>> result = minimize(loss, SpectralL12(0.01, l2_weight=0.0), solver=AISImpute())
    >>> round(float(result.x.to_array()[0, 2]), 1)
    2.0
    """

    decay: float = 0.85
    passes: int = 10
    spare: int = 5
    max_rank: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.decay < 1:
            raise ValueError(f"decay must lie in [0, 1), got {self.decay}")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        self.check(loss, penalty)
        rng = np.random.default_rng(self.random_state)
        above = max(_largest_strength(loss, rng) - penalty.alpha, 0.0)
        x = previous = start
        ritz = ritz_previous = start.x.V
        t_previous, t, value = 1.0, 1.0, math.inf
        for k in itertools.count(1):
            excess, b = above * self.decay**k, (t_previous - 1) / t
            y = [(1 + b, x), (-b, previous)]
            kept = self.next_basis(ritz, x.x.rank, rng)
            basis = merged_basis(kept, ritz_previous[:, : previous.x.rank])
            eased = replace(penalty, alpha=penalty.alpha + excess)
            previous, ritz_previous = x, ritz
            x, ritz = self.step(loss, eased, y, basis, tol=max(1e-6, 0.95**k))
            iterate = self.iterate(loss, penalty, x, y, excess)
            yield iterate
            t_previous, t = t, next_t(t)
            if iterate.objective > value:
                previous, t_previous, t = x, 1.0, 1.0
            value = iterate.objective


def _largest_strength(loss: Any, rng: np.random.Generator) -> float:
    """``||S(O)||_2`` by five power steps: from here on up, the solution is zero."""
    gradient = loss.gradient(loss.point(loss.start()))
    start = random_block(rng, gradient.shape[1], 1, gradient.dtype)
    return float(leading_svd(gradient, start, passes=4)[1][0])
