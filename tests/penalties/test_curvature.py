"""Curvatures, against dense matrices and their eigenvalues."""

import numpy as np
import pytest

from ell12.penalties.penalty_base import DiagonalCurvature


@pytest.mark.parametrize("weight", [None, 0.0, 0.7])
def test_a_curvature_is_a_diagonal_and_one_direction(weight):
    random = np.random.default_rng(0)
    diagonal, unit = random.standard_normal(8), random.standard_normal(8)
    unit /= np.linalg.norm(unit)
    dense = np.diag(diagonal) + (0 if weight is None else weight * np.outer(unit, unit))
    curvature = DiagonalCurvature(diagonal) if weight is None else DiagonalCurvature(diagonal, unit, weight)
    for columns in (np.arange(8), np.array([6, 1, 3]), np.array([], dtype=int)):
        block, v = dense[np.ix_(columns, columns)], random.standard_normal(columns.size)
        np.testing.assert_allclose(curvature.matrix(columns), block, atol=1e-15)
        np.testing.assert_allclose(curvature.product(columns)(v), block @ v, atol=1e-14)
    assert np.abs(np.linalg.eigvalsh(dense)).max() <= curvature.largest + 1e-14
    assert weight is not None or curvature.largest == pytest.approx(np.abs(diagonal).max())


def test_the_curvature_of_nothing_is_zero():
    assert DiagonalCurvature(np.zeros(0)).largest == 0.0


def test_other_arrays_have_the_same_curvature(backend):
    diagonal, unit = np.array([-1.0, 2.0, 0.5]), np.array([0.6, 0.0, 0.8])
    curvature = DiagonalCurvature(backend.make_array(diagonal), backend.make_array(unit), 0.5)
    columns = np.array([2, 0])
    expected = (np.diag(diagonal) + 0.5 * np.outer(unit, unit))[np.ix_(columns, columns)]
    found = curvature.matrix(columns)
    assert type(found) is type(backend.make_array(diagonal))
    np.testing.assert_allclose(backend.to_numpy(found), expected, rtol=1e-6)
    v = backend.make_array(np.array([1.0, -2.0]))
    np.testing.assert_allclose(backend.to_numpy(curvature.product(columns)(v)), expected @ [1.0, -2.0], rtol=1e-6)
