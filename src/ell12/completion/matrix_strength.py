"""How strong the penalty of a matrix to be completed should be: where a path begins, and what noise asks for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import inner, like, namespace, norm
from ell12.checks import check_numbers
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed
from ell12.completion.singular_vectors import leading_svd
from ell12.completion.squared_error import CompletionLoss
from ell12.penalties import SpectralL12
from ell12.penalties.spectral import spectral_norm
from ell12.protocols import Array

POWER_STEPS = 10  # A rank-one fit begins at what this many power steps on the known entries give.
SWEEPS = 30  # It ends after this many sweeps, whose change of the residual is then far below the noise.


def rank_one_fit(observed: Observed) -> LowRank:
    """The matrix of rank one that is nearest to the known entries, by alternating least squares.

    Examples
    --------
    >>> from ell12 import Observed
    >>> from ell12.completion.matrix_strength import rank_one_fit
    >>> rank_one_fit(Observed([0, 1], [0, 1], [2.0, 2.0], (2, 2))).rank
    1
    """
    xp = namespace(observed.values)
    matrix, known = observed.matrix(), observed.matrix(xp.ones_like(observed.values))
    v = like(np.random.default_rng(0).standard_normal(observed.shape[1]), observed.values)
    v = leading_svd(matrix, v[:, None], passes=POWER_STEPS)[2][:, 0]
    for _ in range(SWEEPS):
        u = _quotient(matrix @ v, known @ (v * v))
        length = norm(u)
        if length == 0:
            return LowRank.zeros(observed.shape, like=observed.values)
        v = _quotient(matrix.T @ (u / length), known.T @ (u / length) ** 2)
    return LowRank.from_factors((u / length)[:, None], v[:, None])


def _quotient(a: Array, b: Array) -> Array:
    """``a / b``, zero where b is."""
    xp = namespace(a)
    return xp.where(b > 0, a / xp.where(b > 0, b, 1), 0)


def largest_strength(loss: CompletionLoss, l2_weight: float = 1.0) -> float:
    """The alpha at which a path begins: above it the matrix of least rank that is a solution stays one.

    For ``l2_weight < 1`` that is zero, and ``alpha = ||S(O)||_2 / (1 - l2_weight)``. For ``l2_weight >= 1`` a
    matrix of rank one costs nothing: the best of them, X1, is a solution from ``||S(O - X1)||_2`` on.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.completion import CompletionLoss
    >>> from ell12.completion.matrix_strength import largest_strength
    >>> round(largest_strength(CompletionLoss(np.diag([5.0, 3.0]))), 6)
    3.0
    """
    check_numbers(single=True, l2_weight=l2_weight)
    zero = loss.point(loss.start())
    if l2_weight < 1:
        return spectral_norm(loss.gradient(zero)) / (1 - l2_weight)
    single = loss.point(rank_one_fit(loss.observed))
    rounding = 100 * float(namespace(zero.prediction).finfo(zero.prediction.dtype).eps)
    if loss.value(single) <= rounding**2 * loss.value(zero):  # rank one fits all there is to fit
        return 0.0
    return spectral_norm(loss.gradient(single))


def weight_of(penalty: Any) -> float:
    """The weight of the subtracted norm; 0 where nothing is subtracted."""
    return float(penalty.l2_weight) if isinstance(penalty, SpectralL12) else 0.0


def noise_alpha(observed: Observed, max_rank: int | None = None, l2_weight: float = 1.0) -> float:
    """The size that pure noise would have: ``sd (sqrt(N/m) + sqrt(N/n))`` with N entries known of m x n.

    That is about the spectral norm of N independent errors of standard deviation sd, anywhere. Here sd is
    what the best matrix of rank one leaves, so that structure counts as noise: a good strength for ratings. A
    bound on the rank keeps noise out by itself, and half of it is better then, for an l2_weight of 1 or more.

    Examples
    --------
    >>> from ell12 import Observed
    >>> from ell12.completion.matrix_strength import noise_alpha
    >>> noise_alpha(Observed([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 0.0, 0.0, 1.0], (2, 2))) > 0
    True
    """
    loss = CompletionLoss(observed)
    residual = loss.residual(loss.point(rank_one_fit(observed)))
    return alpha_of_noise(inner(residual, residual), observed, max_rank, l2_weight)


def alpha_of_noise(square: float, observed: Any, max_rank: int | None, l2_weight: float) -> float:
    """`noise_alpha` where a matrix of rank one leaves this sum of squares."""
    m, n = observed.shape
    size = math.sqrt(observed.n_observed / m) + math.sqrt(observed.n_observed / n)
    deviation = math.sqrt(max(square, 0.0) / observed.n_observed)
    return deviation * size * (1.0 if max_rank is None or l2_weight < 1 else 0.5)
