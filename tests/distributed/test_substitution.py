"""Changes of the unknown, against matrices written out."""

import numpy as np
import pytest

from ell12.losses.block_of_rows import Centering, Selection, Substitution

MEANS = np.array([0.5, -2.0, 3.0])
SUBSTITUTIONS = {
    "none": (Substitution(), 4),
    "centred": (Centering(MEANS), 4),
    "centred at a level": (Centering(MEANS, level=5.0), 3),
    "some columns": (Selection(np.array([2, 0]), 4, Substitution()), 2),
    "some centred columns": (Selection(np.array([0, 2]), 3, Centering(MEANS, level=5.0)), 2),
    "some columns and the intercept": (Selection(np.array([1, 3]), 4, Centering(MEANS)), 2),
}


@pytest.mark.parametrize("name", SUBSTITUTIONS)
def test_gradients_go_back_by_the_adjoint_of_the_linear_part(name):
    substitution, size = SUBSTITUTIONS[name]
    matrix = np.stack([substitution.linear(e) for e in np.eye(size)], axis=1)
    random = np.random.default_rng(0)
    x, gradient = random.standard_normal(size), random.standard_normal(4)
    np.testing.assert_allclose(substitution.linear(x), matrix @ x, rtol=1e-13)
    np.testing.assert_allclose(substitution.adjoint(gradient), matrix.T @ gradient, rtol=1e-13)


@pytest.mark.parametrize("level", [None, 5.0])
def test_rows_with_ones_then_predict_what_centred_rows_do(level):
    A, random = np.random.default_rng(1).standard_normal((6, 3)), np.random.default_rng(2)
    x = random.standard_normal(3 if level is not None else 4)
    centering = Centering(MEANS, level)
    found = np.column_stack([A, np.ones(6)]) @ (centering.linear(x) + centering.offset())
    intercept = x[3] if level is None else level
    np.testing.assert_allclose(found, (A - MEANS) @ x[:3] + intercept, rtol=1e-12)


def test_single_precision_is_kept():
    centering, x = Centering(MEANS.astype(np.float32), 5.0), np.ones(3, dtype=np.float32)
    assert (
        centering.linear(x).dtype
        == centering.offset().dtype
        == centering.adjoint(np.ones(4, x.dtype)).dtype
        == "f4"
    )
