"""Weights: a whole number is as many rows, zero is none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.case import FEW, assert_close
from tests.laws.table import cases, names

CASES = cases(lambda case: case.weights)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
@settings(max_examples=3, **FEW)
@given(seed=st.integers(0, 10))
def test_whole_weights_are_repeated_rows_and_zero_is_a_missing_row(case, seed):
    data = case.data(np.random.default_rng(seed))
    weight = data["sample_weight"].astype(int)
    assert (weight == 0).any()
    repeated = data | {name: np.repeat(data[name], weight, axis=0) for name in case.weights}
    repeated["sample_weight"] = np.ones(weight.sum())
    weighted = case.solve(**data).numbers
    assert_close(weighted, case.solve(**repeated).numbers, 1e-6)
    del repeated["sample_weight"]
    assert_close(weighted, case.solve(**repeated).numbers, 1e-6)
