"""`recover_sparse`: A x = b, or a residual that meets the noise, whatever holds A."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse.linalg import aslinearoperator

from ell12 import L1, L12, MCP, Run, recover_sparse
from ell12.recovery import recover_sparse_ratio


def problem(seed=0, shape=(40, 120), n_nonzero=8):
    random = np.random.default_rng(seed)
    x = np.zeros(shape[1])
    x[random.permutation(shape[1])[:n_nonzero]] = random.standard_normal(n_nonzero)
    return random.standard_normal(shape) / np.sqrt(shape[0]), x


def cosines(seed=0, shape=(40, 300), F=10, n_nonzero=9):
    random = np.random.default_rng(seed)
    A = np.cos(2 * np.pi * random.random((shape[0], 1)) * np.arange(1, shape[1] + 1) / F)
    x = np.zeros(shape[1])
    x[2 * F * random.permutation(shape[1] // (2 * F))[:n_nonzero]] = random.standard_normal(n_nonzero)
    return A, x


@pytest.mark.parametrize("make", [problem, cosines])
def test_the_vector_behind_exact_measurements_comes_back_to_rounding(make):
    A, x = make()
    np.testing.assert_allclose(recover_sparse(A, A @ x), x, atol=1e-9)


def test_the_matrix_may_be_a_linear_operator():
    A, x = problem(1, (30, 60), 4)
    np.testing.assert_allclose(recover_sparse(aslinearoperator(A), A @ x), x, atol=1e-6)


def test_without_the_subtracted_norm_it_is_basis_pursuit():
    A, x = problem(2, n_nonzero=25)  # too many entries to be found: what is minimised still counts
    b = A @ x
    cost = linprog(np.ones(240), A_eq=np.hstack([A, -A]), b_eq=b, method="highs").fun
    found = recover_sparse(A, b, penalty=L1())
    assert np.linalg.norm(A @ found - b) <= 1e-6 * np.linalg.norm(b)
    assert np.abs(found).sum() <= cost * (1 + 1e-5)


def test_the_residual_meets_the_noise():
    A, x = problem(3)
    noise = 0.02 * np.random.default_rng(9).standard_normal(40)
    size = float(np.linalg.norm(noise))
    found = recover_sparse(A, A @ x + noise, size, return_result=True)
    assert found.met
    assert 0.99 * size <= found.residual <= size * 1.001
    assert found.residual == pytest.approx(np.linalg.norm(A @ found.x - A @ x - noise))
    assert np.linalg.norm(found.x - x) < 0.15 * np.linalg.norm(x)
    assert found.alpha > 0
    assert f"{found.n_nonzero} entries" in found.message


def test_units_change_the_answer_by_their_ratio_with_noise_too():
    A, x = problem(4)
    b = A @ x + 0.01 * np.sin(np.arange(40))
    found = recover_sparse(1e5 * A, 1e-3 * b, 1e-4)
    np.testing.assert_allclose(found, 1e-8 * recover_sparse(A, b, 0.1), rtol=1e-6, atol=1e-16)


def test_signs_zeros_and_equal_columns():
    A, x = problem(5)
    np.testing.assert_allclose(recover_sparse(A, A @ abs(x), penalty=L12(positive=True)), abs(x), atol=1e-9)
    assert not recover_sparse(A, np.zeros(40)).any()
    assert not recover_sparse(A, A @ x, noise=1e3).any()
    found = recover_sparse(np.hstack([A, A]), A @ x)  # equal columns share what one of them had
    np.testing.assert_allclose(found[:120] + found[120:], x, atol=1e-9)


def test_measurements_that_no_vector_explains_are_an_error_that_says_what_to_do():
    random = np.random.default_rng(8)
    A, b = random.standard_normal((30, 10)), random.standard_normal(30)
    with pytest.raises(ValueError, match="Give a larger noise"):
        recover_sparse(A, b)
    found = recover_sparse(A, b, return_result=True)
    least = np.linalg.norm(A @ np.linalg.lstsq(A, b, rcond=None)[0] - b)
    assert not found.met
    assert found.residual == pytest.approx(least, rel=1e-3)
    with pytest.raises(ValueError, match="one by one"):
        recover_sparse(np.eye(3), np.ones((3, 2)))


def test_a_signal_that_cannot_be_recovered_is_still_a_solution():
    A, x = cosines(n_nonzero=14)
    found = recover_sparse(A, A @ x, return_result=True)
    assert found.met
    assert found.residual == pytest.approx(np.linalg.norm(A @ found.x - A @ x), rel=1e-3, abs=1e-13)
    assert found.residual <= 1e-6 * np.linalg.norm(A @ x)


def test_restarts_find_a_signal_that_the_first_answer_is_not():
    random = np.random.default_rng(1005)
    A = np.cos(2 * np.pi * random.random((64, 1)) * np.arange(1, 257) / 10)
    A, x = A / np.linalg.norm(A, axis=0), np.zeros(256)
    x[random.permutation(256)[:8]] = random.standard_normal(8)
    np.testing.assert_allclose(recover_sparse(A, A @ x), x, atol=1e-9)


def test_any_penalty_with_a_convex_part_and_no_strength_is_taken():
    A, x = problem()
    np.testing.assert_allclose(recover_sparse(A, A @ x, penalty=MCP()), x, atol=1e-8)
    with pytest.raises(ValueError, match="give L12\\(\\) without alpha"):
        recover_sparse(A, A @ x, penalty=L12(0.1))
    with pytest.raises(ValueError, match="max_seconds"):
        recover_sparse(A, A @ x, run=Run(max_seconds=-1))
    in_double = np.asarray(recover_sparse(A.astype(np.longdouble), A @ x), dtype=float)
    np.testing.assert_allclose(in_double, x, atol=1e-6)


def of_high_dynamic_range(seed, rows=64, columns=400, n_nonzero=18, digits=5):
    """Cosines of random frequencies, and entries of very different sizes, as in arXiv:1905.08946."""
    random = np.random.default_rng(seed)
    A = np.cos(2 * np.pi * np.outer(random.random(rows), np.arange(columns))) / np.sqrt(rows)
    x = np.zeros(columns)
    sizes = 10 ** (digits * random.random(n_nonzero))
    x[random.permutation(columns)[:n_nonzero]] = random.choice([-1, 1], n_nonzero) * sizes
    return A, x


def test_the_ratio_of_norms_recovers_signals_of_high_dynamic_range():
    recovered = np.zeros(2)  # by the ratio, by l1
    for seed in range(4):
        A, x = of_high_dynamic_range(seed)
        first, convex = (recover_sparse(A, A @ x, penalty=p, return_result=True).x for p in (L12(), L1()))
        ratio = recover_sparse_ratio(A, A @ x)
        least, before = (np.abs(v).sum() / np.linalg.norm(v) for v in (ratio, first))
        assert least <= before * (1 + 1e-9)
        recovered += [np.linalg.norm(v - x) < 1e-3 * np.linalg.norm(x) for v in (ratio, convex)]
    assert recovered[0] > recovered[1]
