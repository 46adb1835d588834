"""Known entries: what each container says, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from ell12 import Observed

TABLE = np.array([[1.0, np.nan, 0.0], [np.nan, 2.0, np.nan]])
KNOWN = ~np.isnan(TABLE)
SPARSE = scipy.sparse.coo_array(([1.0, 0.0, 2.0], ([0, 0, 1], [0, 2, 1])), shape=(2, 3))  # one explicit zero


MASKED = np.ma.array([1, 100], mask=[False, True])


@pytest.mark.parametrize(
    "X",
    [
        TABLE,
        TABLE.tolist(),
        np.ma.masked_array(np.where(KNOWN, TABLE, 7.0), ~KNOWN),
        pd.DataFrame(TABLE),
        pd.DataFrame(TABLE).convert_dtypes(),
        SPARSE,
        SPARSE.tocsr(),
        SPARSE.tocsc(),
        scipy.sparse.coo_matrix(SPARSE),
        Observed([1, 0, 0], [1, 2, 0], [2.0, 0.0, 1.0], (2, 3)),
    ],
)
def test_every_container_says_the_same(X):
    observed = Observed.of(X)
    np.testing.assert_array_equal(observed.rows, [0, 0, 1])
    np.testing.assert_array_equal(observed.columns, [0, 2, 1])
    np.testing.assert_array_equal(observed.values, [1.0, 0.0, 2.0])
    assert observed.shape == (2, 3)
    assert observed.fraction == 0.5
    np.testing.assert_array_equal(observed.mask(), KNOWN)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.full((2, 2), np.nan), ValueError, "no known entry"),
        (scipy.sparse.csr_array((3, 3)), ValueError, "no known entry"),
        (np.array([[1.0, np.inf]]), ValueError, "infinity"),
        (np.array([1.0, 2.0]), ValueError, "matrix"),
        (np.array([[1j]]), TypeError, "real"),
        (np.array([["a"]]), TypeError, "numbers"),
        (scipy.sparse.coo_array(([np.nan], ([0], [0])), shape=(1, 1)), ValueError, "stores NaN"),
        (scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2)), ValueError, "row 0, column 1"),
    ],
)
def test_what_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        Observed.of(X)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0, 0], [1, 1], [1.0, 2.0], (1, 2)), ValueError, "more than once"),
        (([0], [2], [1.0], (1, 2)), ValueError, "columns must lie in 0 .. 1"),
        (([-1], [0], [1.0], (1, 2)), ValueError, "rows must lie"),
        (([0.0], [0], [1.0], (1, 2)), TypeError, "integers"),
        (([0], [0], [np.nan], (1, 2)), ValueError, "finite"),
        (([0, 0], [0], [1.0], (1, 2)), ValueError, "as long as"),
        (([0, 1], [0, 1], MASKED, (2, 2)), TypeError, "values must not be a masked array"),
        ((MASKED, [0, 1], [1.0, 2.0], (200, 2)), TypeError, "rows must not be a masked array"),
    ],
)
def test_wrong_entries(arguments, error, message):
    with pytest.raises(error, match=message):
        Observed(*arguments)


def test_a_split_shares_the_entries():
    random = np.random.default_rng(0)
    observed = Observed.from_mask(random.standard_normal((30, 20)), random.random((30, 20)) < 0.2)
    train, hidden = observed.split(0.3, 1)
    assert hidden.n_observed == round(0.3 * observed.n_observed)
    both = np.sort(np.concatenate([train.flat, hidden.flat]))
    np.testing.assert_array_equal(both, observed.flat)
    np.testing.assert_array_equal(observed.split(0.3, 1)[1].flat, hidden.flat)
    assert [part.n_observed for part in Observed([1], [2], [3.0], (2, 3)).split(0.9, 0)] == [1, 0]


def test_every_entry_is_as_likely_to_be_held_out_as_any_other():
    """Also those that are the only one of their row or column: they are the hardest to predict."""
    rows, columns = np.array([0, 0, 0, 0, 0, 1, 2]), np.array([0, 1, 2, 3, 4, 1, 5])
    observed = Observed(rows, columns, np.ones(7), (3, 6))
    counts = np.zeros(18)
    for seed in range(700):
        counts[observed.split(2 / 7, seed)[1].flat] += 1
    # 200 of each on average; the deviation of a count is below 12.
    np.testing.assert_allclose(counts[observed.flat], 200, atol=50)


def test_entries_by_column_are_those_of_the_transpose():
    random = np.random.default_rng(0)
    observed = Observed.from_mask(random.standard_normal((9, 7)), random.random((9, 7)) < 0.5)
    order, starts = observed.by_column
    expected = observed.sparse().T.tocsr()
    np.testing.assert_array_equal(observed.values[order], expected.data)
    np.testing.assert_array_equal(observed.rows[order], expected.indices)
    np.testing.assert_array_equal(starts, expected.indptr)
