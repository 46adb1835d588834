"""The problems on which solvers race, by seed, and how far a point is from solving them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.signal import lfilter

import ell12

ALPHAS = [0.01 * 0.25**i for i in range(5)]  # the paper's


@dataclass(frozen=True)
class Problem:
    """``loss(A x, b) + alpha (||x||_1 - l2_weight ||x||_2)``, the squared loss being a sum, not a mean."""

    name: str
    A: Any
    b: Any
    alpha: float
    l2_weight: float = 1.0
    kind: type = ell12.SquaredLoss

    def loss(self) -> Any:
        """A fresh loss, which has computed nothing yet."""
        return self.kind(self.A, self.b)

    @property
    def penalty(self) -> Any:
        return ell12.L12(self.alpha, self.l2_weight)

    def objective(self, x: np.ndarray) -> float:
        loss = self.loss()
        return loss.value(loss.point(x)) + self.penalty.value(x)

    def error(self, x: np.ndarray) -> float:
        """Stationarity; where the problem is convex the duality gap relative to half the square of b."""
        if self.l2_weight > 0:
            return ell12.stationarity(self.loss(), self.penalty, x)
        residual = self.b - self.A @ x
        scale = min(1.0, self.alpha / max(np.max(np.abs(self.A.T @ residual)), 1e-300))
        primal = 0.5 * residual @ residual + self.alpha * np.sum(np.abs(x))
        dual = 0.5 * self.b @ self.b - 0.5 * np.sum((self.b - scale * residual) ** 2)
        return float(max(primal - dual, 0.0) / (0.5 * self.b @ self.b))


def paper(i: int, l2_weight: float = 1.0) -> Problem:
    """The paper's compressed sensing, 500 x 2000."""
    data = ell12.datasets.compressed_sensing(0)
    return Problem(f"paper, alpha = 0.01/4^{i}", data.A, data.b, ALPHAS[i], l2_weight)


def coherent() -> Problem:
    """Cosines with oversampling 10, one draw a row: neighbouring columns are nearly equal."""
    random = np.random.default_rng(0)
    n, p = 500, 2000
    A = np.cos(2 * np.pi * np.outer(random.random(n), np.arange(1, p + 1)) / 10) / math.sqrt(n)
    x = np.zeros(p)
    x[np.arange(20) * 100 + 50] = random.standard_normal(20)
    b = A @ x + 0.01 * random.standard_normal(n)
    return Problem("coherent cosines, 500 x 2000", A, b, 0.01 * float(np.max(np.abs(A.T @ b))))


def correlated(n: int, p: int, name: str, share: float, l2_weight: float = 1.0, nonzero: int = 50) -> Problem:
    """Gaussian rows whose neighbouring columns have correlation 0.9; alpha is a share of max |A'b|."""
    random = np.random.default_rng(0)
    A = lfilter([math.sqrt(1 - 0.9**2)], [1.0, -0.9], random.standard_normal((n, p + 50)), axis=1)[:, 50:]
    A = np.ascontiguousarray(A) / math.sqrt(n)
    x = np.zeros(p)
    x[random.choice(p, nonzero, replace=False)] = random.standard_normal(nonzero)
    b = A @ x
    b += 0.2 * np.linalg.norm(b) / math.sqrt(n) * random.standard_normal(n)
    return Problem(f"{name}, {n} x {p}", A, b, share * float(np.max(np.abs(A.T @ b))), l2_weight)


def text_like(l2_weight: float = 1.0) -> Problem:
    """Sparse, 20,000 x 100,000, one entry in a thousand, columns of falling frequency, rows of length 1."""
    random = np.random.default_rng(0)
    n, p, size = 20_000, 100_000, 2_000_000
    columns = np.minimum(p * random.random(size) ** 2, p - 1).astype(np.int32)
    rows = random.integers(0, n, size).astype(np.int32)
    A = scipy.sparse.csr_array((random.lognormal(size=size), (rows, columns)), shape=(n, p))
    lengths = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).reshape(-1))
    A = scipy.sparse.csc_array(scipy.sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ A)
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)  # as scikit-learn wants them
    x = np.zeros(p)
    x[random.choice(2000, 100, replace=False)] = random.standard_normal(100)
    b = A @ x + 0.05 * random.standard_normal(n)
    return Problem("sparse text-like, 20000 x 100000", A, b, 0.05 * float(np.max(np.abs(A.T @ b))), l2_weight)


def breast_cancer() -> Problem:
    """Logistic loss on scikit-learn's breast cancer data, standardised."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    A = (X - X.mean(axis=0)) / X.std(axis=0)
    return Problem("logistic, breast cancer, 569 x 30", A, 2.0 * y - 1, 2.0, 0.5, ell12.LogisticLoss)


L12_PROBLEMS: list[Callable[[], Problem]] = [
    *(lambda i=i: paper(i) for i in range(5)),
    coherent,
    lambda: correlated(500, 20_000, "correlated wide", 0.05),
    lambda: correlated(50_000, 500, "correlated tall", 0.01),
    text_like,
    breast_cancer,
]
LASSO_PROBLEMS: list[Callable[[], Problem]] = [
    lambda: paper(3, 0.0),
    lambda: paper(4, 0.0),
    lambda: correlated(500, 20_000, "correlated wide", 0.05, 0.0),
    lambda: correlated(50_000, 500, "correlated tall", 0.01, 0.0),
    lambda: text_like(0.0),
]
