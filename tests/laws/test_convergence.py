"""Convergence: what claims to have converged fulfils the first-order condition, written out in the tests."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.case import FEW
from tests.laws.table import cases, names

CASES = cases(lambda case: case.violation)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
@settings(max_examples=3, **FEW)
@given(seed=st.integers(0, 20))
def test_a_claim_of_convergence_is_true(case, seed):
    data = case.data(np.random.default_rng(seed))
    answer = case.solve(**data)
    assert answer.converged is not False  # these problems are easy
    assert case.violation(data, answer) <= 1.01
