"""Bounds on the largest eigenvalue on spectra that mislead Lanczos, and conjugate gradients, against LAPACK."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ell12.operators.krylov import conjugate_gradients, largest_eigenvalue, norm_from_gram

SEEDS = st.integers(0, 2**32 - 1)


def symmetric(eigenvalues, seed, kind=float):
    """A symmetric (Hermitian) matrix with these eigenvalues, in a random basis."""
    rng = np.random.default_rng(seed)
    basis = rng.standard_normal((len(eigenvalues), len(eigenvalues))).astype(kind)
    if kind is complex:
        basis = basis + 1j * rng.standard_normal(basis.shape)
    Q = np.linalg.qr(basis)[0]
    matrix = (Q * np.asarray(eigenvalues)) @ Q.conj().T
    return (matrix + matrix.conj().T) / 2


def bound_of(matrix, seed=0, **options):
    start = np.random.default_rng(seed).standard_normal(len(matrix)).astype(matrix.dtype)
    return largest_eigenvalue(lambda v: matrix @ v, start, **options)


def check_tight(bound, exact, rtol=1e-2):
    assert bound >= exact * (1 - 1e-10)
    assert bound <= exact * (1 + rtol) * (1 + 1e-12)


@given(
    eigenvalues=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    seed=SEEDS,
    kind=st.sampled_from([float, complex]),
)
def test_any_spectrum(eigenvalues, seed, kind):
    matrix = symmetric([*eigenvalues, 1.0], seed, kind)
    check_tight(bound_of(matrix, seed + 1), float(np.linalg.eigvalsh(matrix)[-1]))


@given(size=st.integers(2, 60), gap=st.floats(-12, 1).map(lambda e: 10.0**e), top=st.integers(1, 3), seed=SEEDS)
def test_a_top_just_above_a_cluster_is_not_missed(size, gap, top, seed):
    matrix = symmetric(np.r_[np.ones(size), np.full(top, 1 + gap)], seed)
    check_tight(bound_of(matrix, seed + 1), 1 + gap)


@pytest.mark.parametrize("gap", [1e-4, 1e-3, 1e-2, 0.05, 0.5])
def test_one_direction_of_many_stands_out(gap):
    """The first Ritz value has a small residual here, yet misses the top."""
    diagonal = np.ones(20_000)
    diagonal[7] += gap
    start = np.random.default_rng(0).standard_normal(diagonal.size)
    check_tight(largest_eigenvalue(lambda v: diagonal * v, start), 1 + gap)


def test_a_dense_edge_needs_more_products_than_allowed_and_stays_a_bound():
    diagonal = np.linspace(0, 1, 5000) ** 0.5
    start = np.random.default_rng(0).standard_normal(diagonal.size)
    for max_iter in (1, 5, 20):
        bound = largest_eigenvalue(lambda v: diagonal * v, start, max_iter=max_iter)
        assert 1.01 < bound < np.inf
    check_tight(largest_eigenvalue(lambda v: diagonal * v, start), 1.0)


@pytest.mark.parametrize("value", [0.0, 1e-300, 3.0, 1e300])
def test_one_by_one(value):
    check_tight(bound_of(np.array([[value]])), value)
    for size in (1, 2, 5):
        found = norm_from_gram(lambda v: value * v, np.random.default_rng(0).standard_normal(size))
        assert found == pytest.approx(np.sqrt(value), rel=1e-4)


@pytest.mark.parametrize(("room", "most"), [(2.0, 12), (1.2, 22), (1.0001, 400), (0.9, 400)])
def test_a_norm_far_below_what_is_enough_takes_few_products(room, most):
    G = np.random.default_rng(0).standard_normal((900, 600))
    exact, products = np.linalg.norm(G, 2), []

    def gram(v):
        products.append(1)
        return G.T @ (G @ v)

    found = norm_from_gram(gram, np.random.default_rng(1).standard_normal(600), enough=room * exact)
    assert len(products) <= most
    if room > 1.1:
        assert exact <= found <= room * exact
    else:
        assert found == pytest.approx(exact, rel=1e-4)


CURVATURES = np.array([3.0, 1.0, -2.0])


def system(kind=float, size=12):
    """A positive definite matrix and a right-hand side."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((size, size)).astype(kind)
    right = rng.standard_normal(size).astype(kind)
    if kind is complex:
        root, right = root + 1j * rng.standard_normal((size, size)), right * (1 + 2j)
    return root.conj().T @ root + np.eye(size), right


@pytest.mark.parametrize(("kind", "tol"), [(float, 1e-12), (complex, 1e-12), (np.float32, 1e-5)])
def test_the_solution_is_that_of_the_dense_system_for_arrays_of_any_shape_and_precision(kind, tol):
    matrix, right = system(kind)
    expected = np.linalg.solve(matrix, right)
    for start in (None, np.ones_like(right).reshape(3, 4)):
        found = conjugate_gradients(
            lambda v: (matrix @ v.reshape(-1)).reshape(3, 4), right.reshape(3, 4), start, tol=tol, max_iter=100
        )
        assert found.dtype == kind
        np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e3 * tol, atol=1e2 * tol)


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


@pytest.mark.parametrize("start", [None, np.array([0.0, 1.0, 0.0])])
def test_negative_curvature_gives_what_was_found_so_far_or_at_first_the_start_or_steepest_descent(start):
    def solve(right, start=None, max_iter=9):
        return conjugate_gradients(lambda v: CURVATURES * v, right, start, tol=0.0, max_iter=max_iter)

    right, later = np.array([0.1, 0.0, 1.0]), np.array([1.0, 1.0, 0.1])
    np.testing.assert_array_equal(solve(right, start), right if start is None else start)
    np.testing.assert_array_equal(solve(later), solve(later, max_iter=2))
    assert not np.array_equal(solve(later, max_iter=1), solve(later, max_iter=2))
    assert solve(later) @ later > 0
