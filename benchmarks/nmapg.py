"""One iteration of nmAPG against the same algorithm written plainly in NumPy.

Squared loss with l1-2 on the compressed-sensing problem. The plain version computes A y, A' r and A z in every
step; ell12 keeps A x beside x, which saves one of the three, and sums over the nonzeros where x is sparse. Both
start at zero with the step 1/L, L computed beforehand, and take the same number of iterations, so the objectives
should agree. Time is per iteration. What ell12 prepares once per loss (L, a copy of A by columns) is the row
"preparation", one iteration included. Target: the plain version takes at least 1.5 times as long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import ell12
from timing import Row, median_seconds, version_of

BASELINE = "an iteration of ell12"
# Rows of A (a quarter of its columns), alpha, iterations: the two largest alphas of the paper, far enough for x
# to become sparse at the larger.
PROBLEMS = [(500, 0.01, 1000), (500, 0.0025, 1000), (2000, 0.01, 300), (2000, 0.0025, 300)]
DELTA, ETA = 1e-4, 0.8


def rows() -> Iterator[Row]:
    for n_rows, alpha, n_iter in PROBLEMS:
        yield from compare(n_rows, alpha, n_iter)


def compare(n_rows: int, alpha: float, n_iter: int) -> Iterator[Row]:
    data = ell12.datasets.compressed_sensing(0, n_samples=n_rows)
    A, b, penalty = data.A, data.b, ell12.L12(alpha)
    loss = ell12.SquaredLoss(A, b)
    step = 1.0 / loss.lipschitz()

    def ours() -> ell12.Result:
        return ell12.minimize(loss, penalty, solver=ell12.NonmonotoneAPG(), tol=0.0, max_iter=n_iter)

    def preparation() -> ell12.Result:
        return ell12.minimize(ell12.SquaredLoss(A, b), penalty, solver=ell12.NonmonotoneAPG(), tol=0.0, max_iter=1)

    def plain() -> tuple[float, int]:
        return plain_nmapg(A, b, alpha, step, n_iter)

    seconds = median_seconds({"ours": ours, "plain": plain, "preparation": preparation}, budget=5.0)
    result, (objective, products) = ours(), plain()
    if result.n_iter != n_iter:
        raise RuntimeError(f"ell12 took {result.n_iter} iterations instead of {n_iter}: {result.status}")
    problem = f"{n_rows} x {A.shape[1]}, alpha = {alpha}, {n_iter} iterations"
    base, slow, once = seconds["ours"] / n_iter, seconds["plain"] / n_iter, seconds["preparation"]
    version, reached = version_of("ell12"), result.history["objective"][-1]
    note = f"{products / n_iter:.2f} products with A or A' an iteration"
    yield Row(problem, "ell12", version, base, 1.0, reached, "the baseline")
    yield Row(problem, "plain NumPy", version_of("numpy"), slow, slow / base, objective, note)
    yield Row(problem, "ell12, preparation", version, once, once / base, note="once per loss, not per iteration")


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


def plain_nmapg(A: np.ndarray, b: np.ndarray, alpha: float, step: float, n_iter: int) -> tuple[float, int]:
    """Run the method of Li & Lin (2015) as printed: the last objective, and the number of products."""

    def proximal_step(y: np.ndarray) -> np.ndarray:
        return plain_prox(y - step * (A.T @ (A @ y - b)), step * alpha)

    x_old = x = z = np.zeros(A.shape[1])
    t_old, t, q, products = 0.0, 1.0, 1.0, 1
    value = c = value_at(A, b, alpha, x)
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
    return value, products
