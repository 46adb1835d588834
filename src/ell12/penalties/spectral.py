"""Penalties of a matrix that are functions of its singular values."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from ell12.backend import all_finite, arange_like, as_array_of, count_true, max_abs, namespace, norm
from ell12.checks import as_array, as_step
from ell12.operators.krylov import norm_from_gram
from ell12.penalties.penalty_base import PenaltyBase
from ell12.penalties.separable import LogSum
from ell12.protocols import Array, Factored, offers
from ell12.prox.batching import as_decomposable
from ell12.prox.closed_form import prox_vector

DENSE_NORM = 2**15  # the entries up to which the norm of a sparse matrix is found from the dense one


class DistantMatrix(Protocol):
    """A gradient that is elsewhere, such as on workers: it finds its norm there, in fewer passes over the data."""

    def norm_beyond(self, U: Array | None, V: Array | None, enough: float) -> float:
        """As `norm_beyond` of this module."""
        ...


class Spectral(PenaltyBase, ABC):
    """A penalty of the singular values; the matrix is dense, or factored as `ell12.LowRank` is.

    It is a difference of convex functions, the first a multiple of the nuclear norm. A subclass says what it is
    for a vector of singular values, in falling order, and what is subtracted.
    """

    @abstractmethod
    def value_of(self, s: Array) -> float:
        """The penalty of singular values."""

    @abstractmethod
    def prox_values(self, s: Array, step: float) -> Array:
        """The singular values of the prox of a matrix that has these, in falling order."""

    @abstractmethod
    def subtracted_slopes(self, s: Array) -> Array:
        """The derivatives of the subtracted part by the singular values; zero at zero."""

    def slope_at_zero(self, rank: int) -> float:  # noqa: ARG002
        """The derivative by one more singular value, which is zero, next to ``rank`` positive ones."""
        return self.strength

    def slopes_of(self, s: Array) -> Array:
        """The derivatives by positive singular values."""
        return self.slope_at_zero(sys.maxsize) - self.subtracted_slopes(s)

    @property
    def convex(self) -> SpectralL12:
        """The convex part: a multiple of the nuclear norm."""
        return SpectralL12(self.slope_at_zero(sys.maxsize), l2_weight=0.0)

    def subtracted_gradient(self, x: Any) -> Any:
        """The matrix with the subtracted slopes as singular values."""
        if offers(x, Factored):
            return replace(x, s=self.subtracted_slopes(x.s))
        U, s, Vh = namespace(x).linalg.svd(x, full_matrices=False)
        return (U * self.subtracted_slopes(s)) @ Vh

    def value(self, x: Any) -> float:
        """The penalty at a matrix."""
        return self.value_of(x.s if offers(x, Factored) else _singular_values(x))

    def prox(self, x: Array, step: float) -> Array:
        """`prox_values` of the singular values of a dense matrix."""
        given, step = _as_matrix(x), as_step(step)
        xp, x = namespace(given), as_decomposable(given)
        if not all_finite(x):
            return xp.full_like(given, math.nan)
        U, s, Vh = xp.linalg.svd(x, full_matrices=False)
        return xp.astype((U * self.prox_values(s, step)) @ Vh, given.dtype, copy=False)

    def violation(self, x: Any, gradient: Array) -> float:
        """The largest violation of the first-order condition where the loss has this gradient, in spectral norms.

        With x = U diag(s) V' that is the size of ``G V + U diag(slopes)`` and of ``G'U + V diag(slopes)``, and
        what the norm of G has, beyond the spaces of U and V, above the slope at zero. At x = 0, where the
        subtracted norm has no gradient, the singular value that one proximal step brings. It is infinite where x
        or the gradient holds NaN or infinity.
        """
        if not all(map(all_finite, (x.U, x.s, x.V) if offers(x, Factored) else (x,))):
            return math.inf
        U, s, V = _factors(x)
        if s.shape[0] == 0:
            top = spectral_norm(gradient)
            return float(self.prox_values(as_array_of(np.array([top]), s), 1.0)[0]) if top < math.inf else top
        slope = self.slope_at_zero(s.shape[0])
        beyond = norm_beyond(gradient, U, V, enough=slope) - slope
        return max(beyond, self.tangent_violation(x, gradient), 0.0) if beyond < math.inf else beyond

    def tangent_violation(self, x: Any, gradient: Array) -> float:
        """The part of the violation that remains where the rank may not grow."""
        U, s, V = _factors(x)
        if s.shape[0] == 0:
            return 0.0
        slopes = self.slopes_of(s)
        return max(thin_norm(gradient @ V + U * slopes), thin_norm(gradient.T @ U + V * slopes))


@dataclass(frozen=True, eq=False, repr=False)
class SpectralL12(Spectral):
    """The l1-2 penalty of the singular values of a matrix.

    ``alpha (||X||_* - l2_weight ||X||_F)``: the sum of the singular values minus their length (Yao, Kwok & Guo,
    arXiv:1610.09461, equation 21; the proximal operator is Proposition IV.1).

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty.
    l2_weight : float, default 1.0
        Weight of the subtracted norm: 1 is l1-2, 0 the nuclear norm.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SpectralL12
    >>> round(SpectralL12(1.0).value(np.array([[1.0, 2.0], [2.0, 4.0]])), 12)
    0.0
    """

    alpha: float | None = None
    l2_weight: float = 1.0

    def __post_init__(self) -> None:
        self._set_numbers("l2_weight")

    def value_of(self, s: Array) -> float:
        """The penalty of singular values."""
        return self.strength * (float(namespace(s).sum(s)) - self.l2_weight * norm(s))

    def prox_values(self, s: Array, step: float) -> Array:
        """`ell12.prox.prox_l12` of the singular values."""
        return prox_vector(s, self.strength * step, self.l2_weight, positive=True)

    def subtracted_slopes(self, s: Array) -> Array:
        """``alpha l2_weight s / ||s||``; zero at zero."""
        return self.strength * self.l2_weight * (s / (norm(s) or 1.0))

    def slopes_of(self, s: Array) -> Array:
        """``alpha (1 - l2_weight s / ||s||)``."""
        return self.strength * (1 - (self.l2_weight / (norm(s) or 1.0)) * s)


@dataclass(frozen=True, eq=False, repr=False)
class NoPenalty(PenaltyBase):
    """No penalty, for solvers that bound the rank or a norm themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.penalties import NoPenalty
    >>> NoPenalty().value(np.eye(2))
    0.0
    """

    alpha: float = field(default=0.0, init=False)

    def value(self, x: Any) -> float:  # noqa: ARG002
        """0."""
        return 0.0

    def prox(self, x: Array, step: float) -> Array:  # noqa: ARG002
        """``x`` itself."""
        return as_array(x, "x")

    def violation(self, x: Any, gradient: Array) -> float:  # noqa: ARG002
        """The spectral norm of the gradient of a matrix; of other arrays the largest entry."""
        return spectral_norm(gradient) if len(gradient.shape) == 2 else max_abs(gradient)

    def tangent_violation(self, x: Factored, gradient: Array) -> float:
        """The size of ``G V`` and ``G'U``: what remains of it where the rank may not grow."""
        return max(thin_norm(gradient @ x.V), thin_norm(gradient.T @ x.U))


def _as_matrix(x: Any) -> Array:
    """``x`` as a matrix of numbers."""
    x = as_array(x, "x")
    if len(x.shape) != 2:
        raise ValueError(f"x must be a matrix, got shape {tuple(x.shape)}")
    return x


def _singular_values(x: Any) -> Array:
    x = as_decomposable(_as_matrix(x))
    xp = namespace(x)
    return xp.linalg.svdvals(x) if all_finite(x) else math.nan * xp.abs(x[0, : min(x.shape)])


def spectral_norm(matrix: Any) -> float:
    """The largest singular value of a sparse or dense matrix."""
    return norm_beyond(matrix, None, None)


def norm_beyond(G: Any, U: Array | None, V: Array | None, enough: float = 0.0) -> float:
    """The spectral norm of ``(I - U U') G (I - V V')``, U and V with orthonormal columns.

    Exact for small and for dense matrices; of large sparse ones by Lanczos, to a ten-thousandth, or, where the
    norm is surely below ``enough``, only a bound that is.
    """
    if offers(G, DistantMatrix):
        return G.norm_beyond(U, V, enough)
    is_sparse = scipy.sparse.issparse(G)
    if not all_finite(G.data if is_sparse else G):
        return math.inf
    if is_sparse and (math.prod(G.shape) > DENSE_NORM):
        return lanczos_norm(G, U, V, enough, G.data)
    G = G.toarray() if is_sparse else G
    if U is not None:
        G = G - U @ (U.T @ G)
        G = G - (G @ V) @ V.T  # type: ignore[union-attr]
    values = namespace(G).linalg.svdvals(G)
    return float(values[0]) if values.shape[0] else 0.0


def lanczos_norm(G: Any, U: Array | None, V: Array | None, enough: float, values: Array) -> float:
    """`norm_beyond` from products with G, arrays of the kind of its ``values``, and its transpose."""
    if G.shape[0] < G.shape[1]:
        G, U, V = G.T, V, U

    def beyond(x: Array, Q: Array | None) -> Array:
        return x if Q is None else x - Q @ (Q.T @ x)

    def gram(v: Array) -> Array:
        u = beyond(G @ beyond(v, V), U)
        return beyond(G.T @ u, V)

    return norm_from_gram(gram, as_array_of(np.random.default_rng(0).standard_normal(G.shape[1]), values), enough)


def thin_norm(A: Array) -> float:
    """The spectral norm of a matrix with few columns."""
    xp = namespace(A)
    size = norm(A)
    if size == 0 or not math.isfinite(size):
        return size
    gram = (A / size).T @ (A / size)
    return size * math.sqrt(max(float(xp.linalg.eigvalsh(gram)[-1]), 0.0))


def _factors(x: Any) -> tuple[Array, Array, Array]:
    """U, s and V of a matrix, without the singular values that are rounding."""
    if offers(x, Factored):
        return x.U, x.s, x.V
    xp = namespace(x)
    U, s, Vh = xp.linalg.svd(x, full_matrices=False)
    top = float(s[0]) if s.shape[0] else 0.0
    rank = count_true(s > max(x.shape) * float(xp.finfo(s.dtype).eps) * top)
    return U[:, :rank], s[:rank], Vh.T[:, :rank]


@dataclass(frozen=True, eq=False, repr=False)
class SpectralLogSum(Spectral):
    """The log-sum penalty of the singular values of a matrix.

    ``alpha sum_i log(1 + sigma_i / theta)`` over the singular values of a matrix.

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty. The slope
        at zero is ``alpha / theta``.
    theta : float, default 1.0
        Singular values much larger cost next to nothing more.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.penalties import SpectralLogSum
    >>> round(SpectralLogSum(2.0, theta=1.0).value(np.eye(2)), 6)
    2.772589
    """

    alpha: float | None = None
    theta: float = 1.0

    def __post_init__(self) -> None:
        self._set_numbers(positive="theta")

    def value_of(self, s: Array) -> float:
        """The penalty of singular values."""
        return self._of_values.value(s)

    def prox_values(self, s: Array, step: float) -> Array:
        """`ell12.penalties.LogSum.prox` of the singular values."""
        return self._of_values.prox(s, step)

    def subtracted_slopes(self, s: Array) -> Array:
        """Slope at zero minus slope at s."""
        return self._of_values.subtracted_gradient(s)

    def slope_at_zero(self, rank: int) -> float:  # noqa: ARG002
        """``alpha / theta``."""
        return self.strength / self.theta

    @property
    def _of_values(self) -> LogSum:
        return LogSum(self.strength, self.theta)


@dataclass(frozen=True, eq=False, repr=False)
class TruncatedNuclear(Spectral):
    """The sum of all singular values but the largest ones.

    ``alpha sum_{i > rank} sigma_i``: the largest ones are not penalised (Hu et al., doi:10.1109/TPAMI.2012.271).

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty.
    rank : int, default 1
        How many singular values are not penalised.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.penalties import TruncatedNuclear
    >>> TruncatedNuclear(2.0, rank=1).value(np.diag([3.0, 0.5]))
    1.0
    """

    alpha: float | None = None
    rank: int = 1

    def __post_init__(self) -> None:
        self._set_numbers()
        if not isinstance(self.rank, int | np.integer) or self.rank < 0:
            raise ValueError(f"rank must be an integer >= 0, got {self.rank!r}")

    def value_of(self, s: Array) -> float:
        """The sum of all but the largest."""
        return self.strength * float(namespace(s).sum(s[min(self.rank, s.shape[0]) :]))

    def prox_values(self, s: Array, step: float) -> Array:
        """The largest stay, the others are soft-thresholded."""
        return namespace(s).where(arange_like(s) < self.rank, s, prox_vector(s, self.strength * step, 0.0))

    def subtracted_slopes(self, s: Array) -> Array:
        """Alpha for the largest, zero beyond."""
        return namespace(s).where((arange_like(s) < self.rank) & (s > 0), self.strength, 0 * s)

    def slope_at_zero(self, rank: int) -> float:
        """Alpha, or 0 while one more would not be penalised."""
        return self.strength if rank >= self.rank else 0.0
