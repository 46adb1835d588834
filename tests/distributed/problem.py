"""One regression problem in chunks, for all tests of rows on workers."""

import dask.array as da
import numpy as np

ROWS, COLUMNS, CHUNKS = 240, 5, (70, 30, 90, 50)

_random = np.random.default_rng(0)
A = _random.standard_normal((ROWS, COLUMNS)) + np.array([0, 1, -1, 0, 0.5])
B = A @ [2.0, -1.0, 0.0, 0.0, 0.5] + 0.3 * _random.standard_normal(ROWS) + 4
WEIGHT = _random.random(ROWS)
CENTRED = A - A.mean(axis=0)
LEVEL = B - B.mean()


def chunked(values, rows=CHUNKS):
    """A dask array whose chunks hold some rows each."""
    return da.from_array(values, chunks=(rows, *values.shape[1:]))


def assert_same(one, other, atol=1e-8):
    """Two estimators have the same coefficients."""
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=0, atol=10 * atol)
