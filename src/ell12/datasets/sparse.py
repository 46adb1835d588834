"""Problems by seed: the paper's compressed sensing, and a correlated design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# How the paper's text can be read (setup -> length factor of a column, noise's standard deviation). "stated" takes
# it literally; "calibrated" halves the columns and lowers the noise, which comes close to the printed errors.
COMPRESSED_SENSING_SETUPS = {"stated": (1.0, 0.01), "calibrated": (0.5, 0.004)}


@dataclass(frozen=True)
class SparseProblem:
    """Observations ``b = A x + noise`` of a sparse x."""

    A: Any
    b: Any
    x: Any

    def relative_error(self, estimate: Any) -> float:
        """``||estimate - x|| / ||x||``, the paper's RMSE."""
        return float(np.linalg.norm(estimate - self.x) / np.linalg.norm(self.x))


def compressed_sensing(
    seed: int,
    *,
    setup: str = "stated",
    n_samples: int = 500,
    n_features: int | None = None,
    nonzero: float = 0.05,
    one_draw_per_row: bool = False,
) -> SparseProblem:
    """The paper's problem: an oversampled cosine dictionary, 5 % of the entries of x drawn from N(0, 1).

    Parameters
    ----------
    seed : int
        The same seed gives the same problem.
    setup : {"stated", "calibrated"}, default "stated"
        Columns of norm about ``sqrt(1/2)`` and noise 0.01, or half that norm and noise 0.004.
    n_samples, n_features : int, default 500 and None
        Shape of A; four times as many columns as rows by default.
    nonzero : float, default 0.05
        Fraction of the entries of x that are not zero.
    one_draw_per_row : bool, default False
        Draw one frequency per row, as the paper's source does. A then has a low numerical rank.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.datasets import compressed_sensing
    >>> problem = compressed_sensing(0, n_samples=50)
    >>> problem.A.shape, int(np.count_nonzero(problem.x))
    ((50, 200), 10)
    """
    if setup not in COMPRESSED_SENSING_SETUPS:
        raise ValueError(f"setup must be one of {', '.join(COMPRESSED_SENSING_SETUPS)}; got {setup!r}")
    n_features = 4 * n_samples if n_features is None else n_features
    length, noise = COMPRESSED_SENSING_SETUPS[setup]
    random = np.random.default_rng(seed)
    draws = random.random((n_samples, 1 if one_draw_per_row else n_features))
    A = np.cos(2 * np.pi / 20 * np.arange(1, n_features + 1) * draws) * (length / np.sqrt(n_samples))
    x = _sparse_normal(random, n_features, round(nonzero * n_features))
    return SparseProblem(A, A @ x + noise * random.standard_normal(n_samples), x)


def correlated_design(
    seed: int,
    *,
    n_samples: int = 200,
    n_features: int = 1000,
    n_nonzero: int = 20,
    correlation: float = 0.9,
    noise: float = 0.2,
) -> SparseProblem:
    """Gaussian columns in which neighbours correlate (Toeplitz), x with entries from N(0, 1).

    ``noise`` is the noise's standard deviation as a fraction of the signal's.

    Examples
    --------
    >>> from ell12.datasets import correlated_design
    >>> correlated_design(0, n_samples=10, n_features=30, n_nonzero=3).A.shape
    (10, 30)
    """
    random = np.random.default_rng(seed)
    A = random.standard_normal((n_samples, n_features))
    for j in range(1, n_features):
        A[:, j] = correlation * A[:, j - 1] + np.sqrt(1 - correlation**2) * A[:, j]
    x = _sparse_normal(random, n_features, n_nonzero)
    signal = A @ x
    return SparseProblem(A, signal + noise * signal.std() * random.standard_normal(n_samples), x)


def _sparse_normal(random: np.random.Generator, size: int, count: int) -> Any:
    x = np.zeros(size)
    x[random.permutation(size)[:count]] = random.standard_normal(count)
    return x
