"""One iteration of nmAPG against the same algorithm written plainly in NumPy.

Squared loss with l1-2 on the compressed-sensing problem (oversampled cosines, 5 % nonzeros, noise 0.01). The plain
version computes A y, A' r and A z in every step; ell12 keeps A x beside x, which saves one of the three. Both start
at zero with the step 1/L, L computed beforehand, and take the same number of iterations, so the objectives should
agree. Time is per iteration. Target: the plain version takes at least 1.5 times as long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from timing import Row, median_seconds, version_of

import ell12

BASELINE = "ell12"
PROBLEMS = [(500, 2000, 0.0025, 200), (2000, 8000, 0.0025, 20)]  # rows, columns, alpha, iterations
DELTA, ETA = 1e-4, 0.8


def rows() -> Iterator[Row]:
    for n_rows, n_columns, alpha, n_iter in PROBLEMS:
        A, b = compressed_sensing(n_rows, n_columns)
        loss, penalty = ell12.SquaredLoss(A, b), ell12.L12(alpha)
        step = 1.0 / loss.lipschitz()
        options = {"solver": ell12.NonmonotoneAPG(), "tol": 0.0, "max_iter": n_iter}
        calls = {
            "ell12": lambda: ell12.minimize(loss, penalty, **options),
            "plain NumPy": lambda: plain_nmapg(A, b, alpha, step, n_iter),
        }
        seconds = median_seconds(calls, budget=10.0)
        result, (x, products) = calls["ell12"](), calls["plain NumPy"]()
        if result.n_iter != n_iter:
            raise RuntimeError(f"ell12 took {result.n_iter} iterations instead of {n_iter}: {result.status}")
        problem = f"{n_rows} x {n_columns}, alpha = {alpha}, {n_iter} iterations"
        times = {method: value / n_iter for method, value in seconds.items()}
        values = {"ell12": value_at(A, b, alpha, result.x), "plain NumPy": value_at(A, b, alpha, x)}
        notes = {
            "ell12": "the baseline",
            "plain NumPy": f"{products / n_iter:.2f} products with A or A' a step",
        }
        for method, package in (("ell12", "ell12"), ("plain NumPy", "numpy")):
            multiple = times[method] / times["ell12"]
            yield Row(
                problem, method, version_of(package), times[method], multiple, values[method], notes[method]
            )


def compressed_sensing(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    frequency = np.arange(1, n_columns + 1) * (2 * math.pi / 20)
    A = np.cos(frequency * generator.random((n_rows, n_columns))) / math.sqrt(n_rows)
    x = np.zeros(n_columns)
    support = generator.choice(n_columns, n_columns // 20, replace=False)
    x[support] = generator.standard_normal(support.size)
    return A, A @ x + 0.01 * generator.standard_normal(n_rows)


def value_at(A: np.ndarray, b: np.ndarray, alpha: float, x: np.ndarray) -> float:
    residual = A @ x - b
    return float(0.5 * residual @ residual + alpha * (np.abs(x).sum() - np.linalg.norm(x)))


def plain_prox(z: np.ndarray, t: float) -> np.ndarray:
    shrunk = np.sign(z) * np.maximum(np.abs(z) - t, 0)
    length = np.linalg.norm(shrunk)
    if length > 0:
        return (1 + t / length) * shrunk
    largest = np.argmax(np.abs(z))
    shrunk[largest] = z[largest]
    return shrunk


def plain_nmapg(
    A: np.ndarray, b: np.ndarray, alpha: float, step: float, n_iter: int
) -> tuple[np.ndarray, int]:
    """The method of Li & Lin (2015) as printed: the last x, and the number of products with A and A'."""

    def proximal_step(y: np.ndarray) -> np.ndarray:
        return plain_prox(y - step * (A.T @ (A @ y - b)), step * alpha)

    x_old = x = z = np.zeros(A.shape[1])
    t_old, t, q, c, products = 0.0, 1.0, 1.0, value_at(A, b, alpha, x), 1
    for _ in range(n_iter):
        y = x + (t_old / t) * (z - x) + ((t_old - 1) / t) * (x - x_old)
        x_old, z = x, proximal_step(y)
        x, value = z, value_at(A, b, alpha, z)
        products += 3
        if value > c - DELTA * np.sum((z - y) ** 2):
            v = proximal_step(x_old)
            value_v = value_at(A, b, alpha, v)
            products += 3
            if value_v < value:
                x, value = v, value_v
        t_old, t = t, (1 + math.sqrt(1 + 4 * t * t)) / 2
        q_old, q = q, ETA * q + 1
        c = (ETA * q_old * c + value) / q
    return x, products
