"""How strong the penalty of a matrix to be completed should be: where a path begins, and what noise asks for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import as_numpy, inner, like, namespace, norm
from ell12.checks import check_numbers
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed
from ell12.completion.singular_vectors import SPARE, leading_svd
from ell12.completion.squared_error import CompletionLoss
from ell12.penalties.spectral import spectral_norm
from ell12.protocols import Array

BEYOND = 1e-3  # By this share above its limit a strength is surely beyond it: norms are known to a ten-thousandth.
POWER_STEPS = 10  # A rank-one fit begins at what this many power steps on the known entries give.
# Of ratings, what their offsets leave is compared with itself under random signs, which no structure survives. A
# singular value counts as signal where it is above the one of the same place under FLIPS draws of signs by these
# factors, the first and the others: so much differs from draw to draw. MOST_DIRECTIONS are looked at.
SIGNIFICANT, MORE_SIGNIFICANT, FLIPS, MOST_DIRECTIONS, PASSES = 1.03, 1.05, 2, 8, 6
# The strength for ratings in units of the norm under random signs, for one direction of signal and for several: of
# 14 kinds of ratings (other draws than those that are reported) the error was at most 0.6 % above the best over a
# grid of strengths, weights and ranks.
STRENGTH_OF_ONE, STRENGTH_OF_SEVERAL, STRONG = 0.6, 0.5, 1.5
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
    >>> from ell12 import CompletionLoss
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


def noise_alpha(observed: Observed, max_rank: int | None = None, l2_weight: float = 1.0) -> float:
    """The size that pure noise would have: ``sd (sqrt(N/m) + sqrt(N/n))`` with N entries known of m x n.

    That is about the spectral norm of N independent errors of standard deviation sd at random places. Here sd is
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


def noise_strength(observed: Observed, l2_weight: float) -> tuple[float, int]:
    """The strength that suits ratings without their offsets, and a bound on the rank that goes with it.

    The norm of the entries under random signs is what noise has, however unequally they are spread over rows and
    columns. Where no singular value is above it there is no signal: the strength is then the one from which on
    zero is the solution, for ``l2_weight < 1``. Else the bound is a little above the number of those that are, the
    j-th compared with the j-th (parallel analysis; Horn, doi:10.1007/BF02289447).

    Examples
    --------
    >>> from ell12 import Observed
    >>> from ell12.completion.matrix_strength import noise_strength
    >>> noise_strength(Observed([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 0.0, 0.0, 1.0], (2, 2)), 0.5)[1]
    1
    """
    values, random = observed.values, np.random.default_rng(0)
    size = min(MOST_DIRECTIONS + SPARE, *observed.shape)
    basis = like(random.standard_normal((observed.shape[1], size)), values)

    def singular_values(signs: Any) -> np.ndarray:
        matrix = observed.matrix(values * signs)
        return as_numpy(leading_svd(matrix, basis, passes=PASSES, exact=False)[1])[:MOST_DIRECTIONS]

    flips = [like(random.choice([-1.0, 1.0], observed.n_observed), values) for _ in range(FLIPS)]
    noise, found = np.mean([singular_values(signs) for signs in flips], axis=0), singular_values(1.0)
    limits = noise * np.where(np.arange(noise.size) == 0, SIGNIFICANT, MORE_SIGNIFICANT)
    count = int(np.sum(np.cumprod(found > limits)))
    if count == 0 and l2_weight < 1:
        return (1 + BEYOND) * spectral_norm(observed.matrix()) / (1 - l2_weight), 1
    if count <= 1:
        return STRENGTH_OF_ONE * float(noise[0]), 1 + count
    # Signs change nothing of how large strong signal is: the noise is then the smaller part of that norm.
    excess = max(float(found[0] / noise[0]) / STRONG, 1.0)
    return STRENGTH_OF_SEVERAL * float(noise[0]) / excess**1.5, count + 2
