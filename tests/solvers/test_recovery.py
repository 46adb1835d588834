"""What the plain call recovers by columns that are much alike, against linear programs."""

import numpy as np
import pytest
from scipy.optimize import linprog

from ell12 import L1, L12, SquaredLoss, minimize


def cosines(seed, F, n_nonzero, shape):
    """Oversampled cosines, one frequency a row, and a vector whose entries lie at least 2F apart."""
    random, (m, n) = np.random.default_rng(seed), shape
    A = np.cos(2 * np.pi * random.random((m, 1)) * np.arange(1, n + 1) / F) / np.sqrt(m)
    support = np.sort(random.permutation(n - (n_nonzero - 1) * (2 * F - 1))[:n_nonzero])
    x = np.zeros(n)
    x[support + (2 * F - 1) * np.arange(n_nonzero)] = random.standard_normal(n_nonzero)
    return A, x


def exact_l1(A, b, tilt):
    """``argmin ||x||_1 - tilt' x`` subject to ``A x = b``, by a linear program."""
    found = linprog(np.r_[1 - tilt, 1 + tilt], A_eq=np.hstack([A, -A]), b_eq=b, method="highs").x
    return found[: A.shape[1]] - found[A.shape[1] :]


def exact_dca(A, b):
    """DCA for ``||x||_1 - ||x||_2`` subject to ``A x = b``, from the l1 solution, each step a linear program."""
    x, last = exact_l1(A, b, np.zeros(A.shape[1])), None
    while last is None or np.linalg.norm(x - last) > 1e-7 * np.linalg.norm(x):
        x, last = exact_l1(A, b, x / np.linalg.norm(x)), x
    return x


def error(found, x):
    return np.linalg.norm(found - x) / np.linalg.norm(x)


# With the l1 solution alone as a start, without the tangents that follow, the last two are not recovered.
CASES = [(5, 9, 0), (5, 9, 2), (10, 8, 1), (10, 9, 3), (16, 7, 0), (5, 11, 7), (5, 11, 8), (10, 10, 7)]


@pytest.mark.parametrize(("F", "n_nonzero", "seed"), CASES)
def test_the_plain_call_finds_what_exact_dca_finds(F, n_nonzero, seed):
    A, x = cosines(seed, F, n_nonzero, (40, 300))
    b = A @ x
    assert error(exact_dca(A, b), x) < 1e-6
    result = minimize(SquaredLoss(A, b), L12(1e-6))
    assert result.converged
    assert error(result.x, x) < 1e-3
    convex = minimize(SquaredLoss(A, b), L1(1e-6))
    assert convex.converged
    # Weighted by the same strength, the linear program's solution is a point that the convex run must not exceed.
    program = exact_l1(A, b, np.zeros(300))
    assert convex.objective <= 1e-6 * np.abs(program).sum() * (1 + 1e-9)
