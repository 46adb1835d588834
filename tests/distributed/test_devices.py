"""Chunks of another library of arrays, as CuPy's on a GPU: the work is done there, and NumPy arrays come back."""

import dask.array as da
import numpy as np
import pytest
from dask.delayed import delayed

from ell12 import L12, LogisticLoss, SquaredLoss, minimize
from ell12.distributed import rows_loss

ROWS, COLUMNS = 60, 5


def chunks_of(make_array, A):
    """A dask array of two chunks made by another library, as ``X.map_blocks(cupy.asarray)`` makes them."""
    halves = [delayed(make_array)(half) for half in (A[:40], A[40:])]
    shapes = [(40, *A.shape[1:]), (20, *A.shape[1:])]
    return da.concatenate(
        [da.from_delayed(half, shape, dtype=A.dtype) for half, shape in zip(halves, shapes, strict=True)]
    )


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    A = random.standard_normal((ROWS, COLUMNS))
    return A, A @ [2.0, -1.0, 0.0, 0.0, 0.5] + 0.1 * random.standard_normal(ROWS), random.random(ROWS)


@pytest.mark.parametrize(("kind", "gram"), [(SquaredLoss, True), (LogisticLoss, "auto")])
def test_a_loss_over_such_chunks_is_the_one_over_numpy(each_library, data, kind, gram):
    if each_library.name == "jax":
        pytest.skip("JAX holds double precision in the thread alone that asked for it")
    A, b, weight = data
    b = np.sign(b) if kind is LogisticLoss else b
    options = {"intercept": True, "gram": gram}
    X, y = chunks_of(each_library.make_array, A), chunks_of(each_library.make_array, b)
    far = rows_loss(kind, X, y, sample_weight=weight, **options)
    near = rows_loss(kind, da.from_array(A, chunks=20), b, sample_weight=weight, **options)
    x = np.linspace(-1, 1, COLUMNS + 1)
    assert far.value(far.point(x)) == pytest.approx(near.value(near.point(x)), rel=1e-12)
    gradient = far.gradient(far.point(x))
    assert isinstance(gradient, np.ndarray)
    np.testing.assert_allclose(gradient, near.gradient(near.point(x)), rtol=1e-11)
    assert far.lipschitz() == pytest.approx(near.lipschitz(), rel=1e-9)
    if gram is True:
        found, expected = (minimize(loss, L12(0.5), tol=1e-8) for loss in (far, near))
        np.testing.assert_allclose(found.x, expected.x, atol=1e-7)
