"""Precision: single precision agrees with double to its own rounding, and stays single."""

import numpy as np
import pytest
from tests.laws.case import assert_close
from tests.laws.table import cases, names

CASES = cases(lambda case: case.single)


def in_single(x):
    if x.dtype.kind == "c":
        return x.astype(np.complex64)
    return x.astype(np.float32) if x.dtype.kind == "f" else x


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_single_precision_agrees_with_double(case, seed):
    data = {name: in_single(x) for name, x in case.data(np.random.default_rng(seed)).items()}
    found = case.solve(**data, **case.loose).numbers
    widened = {name: x.astype(np.result_type(x, float)) if x.dtype.kind in "fc" else x for name, x in data.items()}
    assert found.dtype in (np.float32, np.complex64)
    assert_close(found, case.solve(**widened).numbers, case.single)
