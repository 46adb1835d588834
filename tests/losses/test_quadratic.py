import numpy as np
import pytest

from ell12 import L12, RowsL12, SquaredLoss, WorkingSet, minimize
from ell12.losses import QuadraticLoss
from ell12.minimization.solver_choice import unmet

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
    np.testing.assert_allclose(products.hessian(whole, COLUMNS), rows.hessian(rows.point(x), COLUMNS))
    again = few.restrict(np.array([2]))
    np.testing.assert_allclose(again.hessian(point), products.G[5:6, 5:6])
    assert few.lipschitz() == pytest.approx(np.linalg.eigvalsh(products.hessian(whole, COLUMNS))[-1])


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_working_sets_solve_it_as_they_solve_the_rows(l2_weight):
    rows, products = pair()
    penalty = L12(4.0, l2_weight)
    assert unmet(WorkingSet(), products, penalty, products.start()) == ""
    one, other = (minimize(loss, penalty, solver=WorkingSet(), tol=1e-11) for loss in (rows, products))
    assert other.converged
    np.testing.assert_allclose(other.x, one.x, atol=1e-10)


def test_several_right_hand_sides_share_a_support():
    rows, products = pair((3,))
    one, other = (minimize(loss, RowsL12(6.0), tol=1e-9) for loss in (rows, products))
    np.testing.assert_allclose(other.x, one.x, atol=1e-8)
    with pytest.raises(ValueError, match="G must be square and fit c"):
        QuadraticLoss(np.eye(3), np.ones(2))
