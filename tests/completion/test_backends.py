"""Completion on arrays of every library: nothing but numbers comes to the host."""

import numpy as np
import pytest

from ell12 import LowRank, Observed, complete_matrix
from ell12.completion import BlockAPG


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    X = random.standard_normal((20, 2)) @ random.standard_normal((2, 16)) + 0.1 * random.standard_normal((20, 16))
    return X, random.random(X.shape) < 0.7


def observed_on(backend, table):
    values, mask = table
    dtype = {} if backend.float64 else {"dtype": np.float32}
    # What is not known must not be used.
    return Observed.from_mask(
        backend.make_array(np.where(mask, values, np.nan), **dtype), backend.make_array(mask)
    )


@pytest.mark.parametrize("max_rank", [None, 1])
def test_complete_matrix_keeps_the_kind_of_array(each_library, table, max_rank):
    observed = observed_on(each_library, table)
    options = {"center": "biases", "max_rank": max_rank, "solver": BlockAPG(max_rank)}
    result = complete_matrix(observed, 3.0, **options, tol=1e-4 if each_library.float64 else 1e-3)
    expected = complete_matrix(Observed.from_mask(*table), 3.0, **options, tol=1e-5)
    assert type(result.x.V) is type(observed.values)
    assert (result.status, result.x.rank) == (expected.status, expected.x.rank)
    assert result.objective == pytest.approx(expected.objective, rel=1e-6 if each_library.float64 else 1e-4)
    np.testing.assert_allclose(
        each_library.to_numpy(result.to_array()), expected.to_array(), atol=1e-3 if each_library.float64 else 1e-2
    )
    rows, columns = each_library.make_array(np.array([0, 5])), each_library.make_array(np.array([3, 2]))
    np.testing.assert_allclose(
        each_library.to_numpy(result.predict(rows, columns)),
        each_library.to_numpy(result.to_array())[[0, 5], [3, 2]],
        rtol=1e-5,
    )


def test_a_low_rank_matrix_of_every_library(backend):
    random = np.random.default_rng(1)
    W, H, B = random.standard_normal((7, 3)), random.standard_normal((5, 3)), random.standard_normal((5, 2))
    dtype = {} if backend.float64 else {"dtype": np.float32}
    X = LowRank.from_factors(backend.make_array(W, **dtype), backend.make_array(H, **dtype))
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if not backend.float64 else {"rtol": 1e-10, "atol": 1e-12}
    full = W @ H.T
    rows, columns = np.array([6, 0, 0]), np.array([1, 4, 4])
    np.testing.assert_allclose(backend.to_numpy(X.to_array()), full, **tolerance)
    np.testing.assert_allclose(backend.to_numpy(X @ backend.make_array(B, **dtype)), full @ B, **tolerance)
    np.testing.assert_allclose(backend.to_numpy(X.T.to_array()), full.T, **tolerance)
    np.testing.assert_allclose(backend.to_numpy(X.entries(rows, columns)), full[rows, columns], **tolerance)
    assert X.norm() == pytest.approx(np.linalg.norm(full), rel=1e-5)
    assert X.nuclear_norm() == pytest.approx(np.linalg.norm(full, "nuc"), rel=1e-5)
