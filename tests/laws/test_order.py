"""Order: permuted rows change nothing, permuted columns permute the answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.case import FEW, assert_close
from tests.laws.table import cases, names

CASES = cases(lambda case: case.orders)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
@settings(max_examples=3, **FEW)
@given(seed=st.integers(0, 10))
def test_a_permutation_of_the_data_is_one_of_the_answer_at_most(case, seed):
    random = np.random.default_rng(seed)
    data = case.data(random)
    plain = case.solve(**data).numbers
    for order in case.orders:
        (size,) = {data[name].shape[axis] for name, axis in order.axes.items()}
        shuffled = random.permutation(size)
        moved = data | {name: np.take(data[name], shuffled, axis=axis) for name, axis in order.axes.items()}
        found = case.solve(**moved).numbers
        expected = plain if order.answer is None else np.take(plain, shuffled, axis=order.answer)
        assert_close(found, expected, 1e-6)
