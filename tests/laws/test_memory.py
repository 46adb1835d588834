"""Memory: what a call holds at its peak, in multiples of its data."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

import ell12

random = np.random.default_rng(0)
A = random.standard_normal((600, 1000)).astype(np.float32)
b = A[:, :5].sum(axis=1)
TALL = random.standard_normal((40_000, 20))
SPARSE = scipy.sparse.random_array((20_000, 20_000), density=1e-3, rng=0, format="csc")
ONES, SUM = np.ones(20_000), SPARSE[:, list(range(20))].sum(axis=1)
LONG = TALL[:20_000, 0]
LOSS = ell12.SquaredLoss(SPARSE, ONES)
IMAGE = random.standard_normal((300, 400))
TABLE = np.where(random.random((2000, 60)) < 0.5, np.nan, 1.0) * (TALL[:2000, :1] + random.random(60))
SHAPE = ell12.L12(l2_weight=0.5)

# By name: the data, a call, and how many copies of the data it may hold next to them.
CALLS = {
    "prox_l12": (TALL, lambda: ell12.prox_l12(TALL, 0.5), 2),
    "prox_l12 of rows": (TALL, lambda: ell12.prox_l12(TALL, 0.5, axis=1), 2),
    "SquaredLoss": (A, lambda: ell12.SquaredLoss(A, b), 0.01),
    "SquaredLoss, sparse": (SPARSE, lambda: ell12.SquaredLoss(SPARSE, ONES), 0.02),
    "minimize": (A, lambda: ell12.minimize(ell12.SquaredLoss(A, b), ell12.L12(50.0, 0.5)), 0.4),
    # The columns in use have dense products: 346 of them, six matrices of a fifth of the data at the peak.
    "minimize, sparse": (SPARSE, lambda: ell12.minimize(LOSS, ell12.L12(15.0, 0.5)), 2.5),
    "L12Regressor": (A, lambda: ell12.L12Regressor(1.0, penalty=SHAPE).fit(A, b), 1.5),
    "L12Regressor, sparse": (SPARSE, lambda: ell12.L12Regressor(0.005, penalty=SHAPE).fit(SPARSE, LONG), 1),
    "l12_path": (A, lambda: ell12.l12_path(A, b, alphas=10, eps=0.1, penalty=SHAPE), 0.5),
    "L12RegressorCV": (A, lambda: ell12.L12RegressorCV(alphas=5, eps=0.1, cv=3, penalty=SHAPE).fit(A, b), 3),
    "L12Classifier": (A, lambda: ell12.L12Classifier(0.1, penalty=SHAPE).fit(A, b > 0), 2.5),
    "complete_matrix": (TABLE, lambda: ell12.complete_matrix(TABLE, 5.0, max_rank=3), 14),
    "denoise_tv": (IMAGE, lambda: ell12.denoise_tv(IMAGE, 0.3), 4),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_holds_few_copies_of_its_data(name):
    data, call, most = CALLS[name]
    size = data.data.nbytes + data.indices.nbytes if scipy.sparse.issparse(data) else data.nbytes
    call()  # loads modules, compiles loops
    tracemalloc.start()
    try:
        call()
        assert tracemalloc.get_traced_memory()[1] <= most * size
    finally:
        tracemalloc.stop()
