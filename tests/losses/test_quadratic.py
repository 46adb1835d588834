"""A quadratic function against the squared loss of the rows that its matrix is made of."""

import numpy as np
import pytest

from ell12 import L12, RowsL12, SquaredLoss, minimize
from ell12.losses import QuadraticLoss

COLUMNS = np.array([1, 4, 5])


def pair(k=()):
    """The same function of the rows of a matrix, and of their products alone."""
    random = np.random.default_rng(0)
    A, b = random.standard_normal((30, 8)), random.standard_normal((30, *k))
    return SquaredLoss(A, b), QuadraticLoss(A.T @ A, A.T @ b, np.sum(b**2) / 2)


@pytest.mark.parametrize("k", [(), (3,)])
def test_it_is_the_squared_loss(k):
    rows, products = pair(k)
    x, base = np.random.default_rng(1).standard_normal((2, 8, *k))
    point, other = products.point(x), products.point(base)
    assert products.value(point) == pytest.approx(rows.value(rows.point(x)))
    np.testing.assert_allclose(products.gradient(point), rows.gradient(rows.point(x)))
    assert products.divergence(point, other) == pytest.approx(rows.divergence(rows.point(x), rows.point(base)))
    assert rows.lipschitz() * 0.9 <= products.lipschitz() <= rows.lipschitz() * (1 + 1e-9)
    assert products.start().shape == (8, *k)


def test_some_entries_alone_share_predictions_with_the_whole():
    rows, products = pair()
    x = np.zeros(8)
    x[COLUMNS] = [1.0, -2.0, 0.5]
    few, whole = products.restrict(COLUMNS), products.point(x)
    np.testing.assert_allclose(few.point(x[COLUMNS]).prediction, whole.prediction)
    np.testing.assert_allclose(products.point_within(x, COLUMNS).prediction, whole.prediction)
    point = few.point(x[COLUMNS])
    assert few.value(point) == pytest.approx(rows.value(rows.point(x)))
    np.testing.assert_allclose(few.gradient(point), rows.gradient(rows.point(x))[COLUMNS])
    np.testing.assert_allclose(few.hessian(point), rows.hessian(rows.point(x), COLUMNS))
    np.testing.assert_allclose(products.hessian_product(whole, COLUMNS)(point.x), few.hessian(point) @ point.x)
    np.testing.assert_allclose(products.hessian(whole, COLUMNS), rows.hessian(rows.point(x), COLUMNS))
    again = few.restrict(np.array([2]))
    np.testing.assert_allclose(again.hessian(point), products.G[5:6, 5:6])
    assert few.lipschitz() == pytest.approx(np.linalg.eigvalsh(products.hessian(whole, COLUMNS))[-1])


@pytest.mark.parametrize(("k", "penalty"), [((), L12(4.0, 0.0)), ((), L12(4.0)), ((3,), RowsL12(6.0))])
def test_it_is_solved_as_the_rows_are(k, penalty):
    one, other = (minimize(loss, penalty, tol=1e-10) for loss in pair(k))
    assert other.converged
    assert other.solver == one.solver
    np.testing.assert_allclose(other.x, one.x, atol=1e-8)
    for G, words in ((np.eye(3), "G must be square and fit c"), (np.nan * np.eye(2), "G and c must hold finite")):
        with pytest.raises(ValueError, match=words):
            QuadraticLoss(G, np.ones(2))
