"""The factored matrix type."""

import numpy as np
import pytest

from ell12 import LowRank
from ell12.completion import low_rank
from ell12.completion.low_rank import gathered_sums_of_products


@pytest.fixture
def factors():
    random = np.random.default_rng(0)
    return random.standard_normal((9, 4)), random.standard_normal((6, 4))


def test_from_factors_is_the_singular_value_decomposition(factors):
    W, H = factors
    X = LowRank.from_factors(W, H)
    np.testing.assert_allclose(X.s, np.linalg.svd(W @ H.T)[1][:4])
    np.testing.assert_allclose(X.U.T @ X.U, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(X.V.T @ X.V, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(X.to_array(), W @ H.T)
    C = np.arange(18.0).reshape(2, 9)
    np.testing.assert_allclose(C @ X, C @ W @ H.T)  # all other products: test_backends
    assert "rank 4" in repr(X)
    assert np.asarray(X).dtype == object  # no array of numbers
    assert LowRank.from_factors(np.hstack([W, W]), np.hstack([H, -H])).rank == 0
    assert LowRank.from_factors(np.hstack([W, W]), np.hstack([H, H])).rank == 4


def test_zero():
    zero = LowRank.zeros((9, 6), like=np.float32(0))
    assert (zero.rank, zero.norm(), zero.nuclear_norm(), zero.dtype) == (0, 0.0, 0.0, np.float32)
    np.testing.assert_array_equal(zero.to_array(), np.zeros((9, 6)))
    np.testing.assert_array_equal(zero.entries([0, 8], [0, 5]), [0, 0])


def test_truncation_is_the_nearest_matrix_of_the_rank(factors):
    X = LowRank.from_factors(*factors)
    assert (X.truncate(2).rank, X.truncate(0).rank) == (2, 0)
    assert np.linalg.norm(X.to_array() - X.truncate(2).to_array()) == pytest.approx(np.hypot(*X.s[2:]))
    assert X.truncate(9) is X


def test_entries_in_chunks(factors, monkeypatch):
    W, H = factors
    monkeypatch.setattr(low_rank, "AT_ONCE", 8)  # two rows at a time
    rows, columns = np.array([0, 8, 3, 3, 1]), np.array([5, 0, 2, 2, 1])
    np.testing.assert_allclose(gathered_sums_of_products(W, H, rows, columns), (W @ H.T)[rows, columns])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda X: X.entries([9], [0]), ValueError, "rows must lie in 0 .. 8"),
        (lambda X: X.entries([0], [-1]), ValueError, "columns must lie in 0 .. 5"),
        (lambda X: X.entries([0.5], [0]), TypeError, "integers"),
        (lambda X: X.entries([0, 1], [0]), ValueError, "same length"),
        (lambda X: LowRank(X.U, X.s[:1], X.V), ValueError, "shapes"),
        (lambda X: LowRank.from_factors(X.U, X.V[:, :2]), ValueError, "as many columns"),
        (lambda X: LowRank.from_factors(np.ma.array(X.U), X.V), TypeError, "W must not be a masked array"),
        (lambda X: X.entries([0, 1], np.ma.array([0, 1], mask=[0, 1])), TypeError, "columns must not be a masked"),
        (lambda X: X.truncate(-1), ValueError, "rank must be a whole number >= 0, got -1"),
        (lambda X: X + np.ones((9, 6)), TypeError, "does not support ufuncs"),
    ],
)
def test_wrong_arguments(factors, call, error, message):
    with pytest.raises(error, match=message):
        call(LowRank.from_factors(*factors))
