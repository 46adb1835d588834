"""Numbers of foreign byte order or at odd addresses, as files and networks give them."""

import numpy as np
import pytest

from ell12 import L12, SquaredLoss, complete_matrix, denoise_tv, minimize, prox_l12


def at_an_odd_address(array):
    raw = np.empty(array.nbytes + 1, dtype=np.uint8)
    raw[1:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return np.frombuffer(raw.data, dtype=array.dtype, offset=1, count=array.size).reshape(array.shape)


def byte_swapped(array):
    return array.astype(array.dtype.newbyteorder("S"))


USES = {
    "prox": lambda A: prox_l12(A, 0.3),
    "prox of rows": lambda A: prox_l12(A[:, :2], 0.3, axis=1),
    "minimize": lambda A: minimize(SquaredLoss(A, A[:, 0]), L12(0.3)).x,
    "denoise_tv": lambda A: denoise_tv(A, 0.1),
    "complete_matrix": lambda A: complete_matrix(A[:40, :30], 5.0, random_state=0).to_array(),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("foreign", [at_an_odd_address, byte_swapped])
@pytest.mark.parametrize("name", USES)
def test_foreign_numbers_give_the_same_answer(name, foreign, dtype):
    A = np.random.default_rng(0).standard_normal((300, 200)).astype(dtype)
    if name == "complete_matrix":
        A[::3, ::2] = np.nan
    assert not (foreign(A).flags.aligned and foreign(A).dtype.isnative)
    expected, found = USES[name](A), USES[name](foreign(A))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("foreign", [at_an_odd_address, byte_swapped])
def test_products_read_native_numbers(foreign):
    A = SquaredLoss(foreign(np.ones((4, 3))), np.ones(4)).A
    assert A.flags.aligned
    assert A.dtype.isnative
