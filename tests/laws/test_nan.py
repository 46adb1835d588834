"""What goes in as NaN comes out as NaN, or is an error: for every prox and every value."""

import math
import warnings

import numpy as np
import pytest
from tests.laws.linear_cases import MATRICES, PENALTIES

from ell12.backend import as_numpy
from ell12.penalties import MCP, SCAD, CappedL1, LogSum, Lp, TransformedL1

NAMES = [name for name in PENALTIES if name not in ("TotalVariationL12", "NoPenalty")]


def with_one(name, value):
    """An array of a shape that the penalty takes, with this number in it."""
    x = np.linspace(-2.0, 3.0, 12).reshape(4, 3) if name in MATRICES else np.linspace(-2.0, 3.0, 12)
    if name == "GroupL12":
        x = np.linspace(-2.0, 3.0, PENALTIES[name].groups.labels.size)
    x.flat[4] = value
    return x


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays(name):
    penalty, x = PENALTIES[name], with_one(name, math.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (lambda: penalty.value(x), lambda: as_numpy(penalty.prox(x, 0.7)).flat[4]):
            assert math.isnan(make())


@pytest.mark.parametrize("kind", [LogSum, CappedL1, Lp, MCP, SCAD, TransformedL1])
def test_infinity_is_shrunk_by_next_to_nothing(kind):
    z = np.array([math.inf, -math.inf, 0.1])
    np.testing.assert_array_equal(kind(0.5).prox(z, 0.7)[:2], z[:2])
