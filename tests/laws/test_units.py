"""Units: data in other units give the answer in other units, in as many steps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.case import FEW, assert_close
from tests.laws.table import cases, names

CASES = cases(lambda case: case.units)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
@settings(max_examples=4, **FEW)
@given(power=st.floats(-6, 6), seed=st.integers(0, 2))
def test_scaled_data_give_the_scaled_answer_in_at_most_twice_the_steps(case, power, seed):
    c = 10.0**power
    data = case.data(np.random.default_rng(seed))
    plain = case.solve(**data)
    for unit in case.units:
        scaled = data | {name: c * data[name] for name in unit.arguments}
        found = case.solve(**scaled, **unit.options(c))
        assert_close(found.numbers * c**-unit.power, plain.numbers, 1e-6)
        assert found.steps <= 2 * max(plain.steps, 1), (unit.arguments, c, found.steps, plain.steps)
        assert found.converged == plain.converged
