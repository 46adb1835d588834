"""Conjugate gradients against direct solutions, and where the map is not positive."""

import numpy as np
import pytest

from ell12.operators.krylov import conjugate_gradients

CURVATURES = np.array([3.0, 1.0, -2.0])


def system(kind=float, size=12):
    """A positive definite matrix and a right-hand side."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((size, size)).astype(kind)
    right = rng.standard_normal(size).astype(kind)
    if kind is complex:
        root, right = root + 1j * rng.standard_normal((size, size)), right * (1 + 2j)
    return root.conj().T @ root + np.eye(size), right


@pytest.mark.parametrize("kind", [float, complex])
def test_the_solution_is_that_of_the_dense_system(kind):
    matrix, right = system(kind)
    expected = np.linalg.solve(matrix, right)
    for start in (None, np.ones_like(right)):
        found = conjugate_gradients(lambda v: matrix @ v, right, start, tol=1e-12, max_iter=100)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_arrays_of_any_shape_and_precision_are_solved_for():
    matrix, right = system()
    found = conjugate_gradients(
        lambda v: (matrix @ v.reshape(-1)).reshape(3, 4), right.reshape(3, 4), tol=1e-12, max_iter=100
    )
    np.testing.assert_allclose(found.reshape(-1), np.linalg.solve(matrix, right), rtol=1e-9)
    single = matrix.astype(np.float32)
    assert conjugate_gradients(lambda v: single @ v, single[0], tol=1e-4, max_iter=9).dtype == np.float32


def test_the_residual_meets_the_tolerance_and_no_more_products_are_taken():
    matrix, right = system()
    counts = []

    def product(v):
        counts.append(1)
        return matrix @ v

    for tol in (0.5, 1e-2, 1e-6):
        counts.clear()
        x = conjugate_gradients(product, right, tol=tol, max_iter=100)
        assert np.linalg.norm(matrix @ x - right) <= tol * np.linalg.norm(right) * (1 + 1e-9)
        fewer = conjugate_gradients(product, right, tol=0.0, max_iter=len(counts) - 1)
        assert np.linalg.norm(matrix @ fewer - right) > tol * np.linalg.norm(right)


def test_the_limit_of_steps_holds():
    matrix, right = system()
    counts = []
    conjugate_gradients(lambda v: counts.append(1) or matrix @ v, right, tol=0.0, max_iter=4)
    assert len(counts) == 4


def test_negative_curvature_at_the_first_step_gives_the_direction_of_steepest_descent():
    right = np.array([0.1, 0.0, 1.0])
    np.testing.assert_array_equal(conjugate_gradients(lambda v: CURVATURES * v, right, tol=0.0, max_iter=9), right)


def test_negative_curvature_at_the_first_step_gives_the_start_where_there_is_one():
    right, start = np.array([0.1, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    found = conjugate_gradients(lambda v: CURVATURES * v, right, start, tol=0.0, max_iter=9)
    np.testing.assert_array_equal(found, start)


def test_negative_curvature_later_gives_what_was_found_so_far():
    right = np.array([1.0, 1.0, 0.1])
    first = conjugate_gradients(lambda v: CURVATURES * v, right, tol=0.0, max_iter=1)
    second = conjugate_gradients(lambda v: CURVATURES * v, right, tol=0.0, max_iter=2)
    found = conjugate_gradients(lambda v: CURVATURES * v, right, tol=0.0, max_iter=9)
    np.testing.assert_array_equal(found, second)
    assert not np.array_equal(first, second)
    assert found @ right > 0
