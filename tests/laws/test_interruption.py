"""Interruption: Ctrl-C at any step returns something usable, and the next call finds what it would have found."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.case import FEW
from tests.laws.table import cases, names

CASES = cases(lambda case: case.interrupts)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
@settings(max_examples=3, **FEW)
@given(share=st.floats(0, 1))
def test_ctrl_c_returns_what_was_found_and_the_next_call_is_as_ever(case, share):
    data = case.data(np.random.default_rng(3))
    whole = case.solve(**data)
    step = 1 + int(share * max(whole.steps - 1, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # estimators warn of what has not converged
        part = case.solve(**data, interrupt_at=step)
    assert np.isfinite(part.numbers).all()
    assert part.numbers.shape == whole.numbers.shape
    assert not part.converged or part.steps >= whole.steps
    assert np.array_equal(case.solve(**data).numbers, whole.numbers)
