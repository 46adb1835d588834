"""The dual gap, by scikit-learn's Lasso, ElasticNet and MultiTaskElasticNet, and by the minimum itself."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import ElasticNet, MultiTaskElasticNet, MultiTaskLasso

from ell12 import L1, L12, MCP, L12Regressor, NonmonotoneAPG, RowsL12
from ell12.linear_model.regressor import dual_gap
from ell12.path import squared_loss

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((50, 20))
Y = np.stack([X[:, 0] - X[:, 5], X[:, 2]], axis=1) + 0.5 * RANDOM.standard_normal((50, 2)) + 2
WEIGHT = RANDOM.uniform(0.5, 2, 50)


def theirs(alpha, ridge, kind=ElasticNet, **options):
    return kind(alpha * (1 + ridge), l1_ratio=1 / (1 + ridge), **options)


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("positive", [False, True])
def test_at_the_coefficients_of_scikit_learn_it_is_its_dual_gap(ridge, positive):
    options = {"fit_intercept": False, "positive": positive}
    model = theirs(0.1, ridge, tol=1e-2, max_iter=5, **options).fit(X, Y[:, 0])
    assert model.dual_gap_ > 1e-6  # far from the solution, so that something is compared
    found = dual_gap(squared_loss(X, Y[:, 0]), model.coef_, L1(0.1, ridge=ridge, positive=positive))
    assert found == pytest.approx(model.dual_gap_, rel=1e-9)


def test_targets_that_share_a_support_have_one_gap():
    shared = theirs(0.1, 0.7, MultiTaskElasticNet, tol=1e-2, fit_intercept=False).fit(X, Y)
    found = dual_gap(squared_loss(X, Y), shared.coef_.T, RowsL12(0.1, l2_weight=0, ridge=0.7))
    assert found == pytest.approx(shared.dual_gap_, rel=1e-9)
    ours = L12Regressor(0.1, penalty=RowsL12(l2_weight=0), tol=1e-3).fit(X, Y)
    best = MultiTaskLasso(0.1, tol=1e-14, max_iter=100_000).fit(X, Y)
    assert isinstance(ours.dual_gap_, float)
    assert excess(ours, best, np.ones(50), 0.0) <= ours.dual_gap_ + 1e-12


def excess(ours, best, weight, ridge):
    """How far our objective lies above that of scikit-learn's solution."""

    def objective(model):
        rest = np.atleast_2d((Y if model.coef_.ndim == 2 else Y[:, 0]) - model.predict(X)).reshape(50, -1)
        coef = np.atleast_2d(model.coef_)
        loss = 0.5 * (weight[:, None] * rest**2).sum() / weight.sum()
        return loss + 0.1 * (np.linalg.norm(coef, axis=0).sum() + 0.5 * ridge * (coef**2).sum())

    return objective(ours) - objective(best)


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("form", [np.array, scipy.sparse.csr_array])
def test_the_objective_lies_above_the_minimum_by_no_more(form, ridge):
    best = theirs(0.1, ridge, tol=1e-15, max_iter=100_000).fit(X, Y[:, 0], WEIGHT)
    for tol in (1.0, 1e-2):
        ours = L12Regressor(0.1, penalty=L1(ridge=ridge), tol=tol, solver=NonmonotoneAPG())
        ours.fit(form(X), Y[:, 0], WEIGHT)
        assert 1e-9 < excess(ours, best, WEIGHT, ridge) <= ours.dual_gap_
    exact = L12Regressor(0.1, penalty=L1(ridge=ridge), tol=1e-10).fit(form(X), Y[:, 0], WEIGHT)
    assert abs(exact.dual_gap_) < 1e-9


def test_targets_rows_in_chunks_and_single_precision_have_one_too():
    ours = L12Regressor(0.1, penalty=L1(), tol=1e-3).fit(X, Y)
    singles = [L12Regressor(0.1, penalty=L1(), tol=1e-3).fit(X, y).dual_gap_ for y in Y.T]
    np.testing.assert_allclose(ours.dual_gap_, singles, rtol=1e-6, atol=1e-14)
    parts = L12Regressor(0.1, penalty=L1(), tol=1e-9)
    parts.partial_fit(X[:20], Y[:20, 0]).partial_fit(X[20:], Y[20:, 0])
    assert abs(parts.dual_gap_) < 1e-8
    single = L12Regressor(0.1, penalty=L1()).fit(X.astype(np.float32), Y[:, 0])
    assert abs(single.dual_gap_) < 1e-3


@pytest.mark.parametrize("penalty", [L12(0.1, l2_weight=0.5), L1(0.0), L1(0.1, weights=np.ones(20)), MCP(0.1)])
def test_where_the_problem_is_another_there_is_none(penalty):
    model = L12Regressor(penalty=penalty).fit(X, Y[:, 0])
    assert not hasattr(model, "dual_gap_")
    with pytest.raises(AttributeError, match="only where the problem is the Lasso's: penalty=L1"):
        _ = model.dual_gap_
    with pytest.raises(AttributeError, match="once it is fitted"):
        _ = L12Regressor(penalty=L1()).dual_gap_
