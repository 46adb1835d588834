"""Cross-validation as people use it: sorted rows, rare events, zero weights, groups of rows, short grids."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from scipy.linalg import toeplitz
from sklearn import config_context
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ell12 import L1, L12, L12ClassifierCV, L12CoxRegressorCV, L12Regressor, L12RegressorCV

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((80, 10))
Y = X[:, 2] - X[:, 6] + 0.5 * RANDOM.standard_normal(80)
SHORT = {"alphas": 10, "eps": 0.05}


def test_rows_that_are_sorted_do_no_harm():
    """Spikes under a blur: those of a block of rows that is left out cannot be seen from the other rows."""
    random = np.random.default_rng(0)
    blur = toeplitz(np.exp(-0.5 * (np.arange(300) / 2) ** 2))
    truth = np.where(random.random(300) < 0.1, random.uniform(1, 5, 300), 0)
    y = blur @ truth + 0.1 * random.standard_normal(300)
    model = L12RegressorCV(penalty=L12(positive=True), alphas=30, relax=False).fit(blur, y)
    assert np.mean(model.coef_[truth > 0] > 0) > 0.7
    with pytest.warns(UserWarning, match="is the first of the grid"):
        contiguous = L12RegressorCV(penalty=L12(positive=True), alphas=30, cv=KFold(5), relax=False).fit(blur, y)
    assert np.mean(contiguous.coef_[truth > 0] > 0) < 0.2


@pytest.mark.filterwarnings("default:the chosen alpha")
def test_a_strength_at_an_end_of_the_grid_is_a_warning():
    with pytest.warns(UserWarning, match="is the last of the grid: a smaller eps"):
        L12RegressorCV(alphas=10, eps=0.5, relax=False).fit(X, Y)
    with pytest.warns(UserWarning, match="is the first of the grid"):
        L12RegressorCV(penalty=L12(l2_weight=0.5), alphas=10).fit(X, np.random.default_rng(1).standard_normal(80))


@pytest.mark.parametrize("kind", [L12RegressorCV, L12ClassifierCV, L12CoxRegressorCV])
def test_a_fold_whose_rows_have_no_weight_is_left_out(kind):
    y = {L12RegressorCV: Y, L12ClassifierCV: Y > 0, L12CoxRegressorCV: np.exp(Y)}[kind]
    weight = np.where(np.arange(80) < 32, 0.0, 1.0)  # the first of five contiguous folds, and most of the second
    with pytest.warns(UserWarning, match=r"[12] of 5 folds are left out: .*weight"):
        model = kind(cv=KFold(5), **SHORT).fit(X, y, weight)
    scores = model.mse_path_ if kind is L12RegressorCV else model.scores_
    assert np.isnan(scores).all(axis=0).sum() in (1, 2)
    assert np.isfinite(model.standard_error_)
    assert {2, 6} <= set(np.flatnonzero(np.ravel(model.coef_)))
    kind(**SHORT).fit(X, y, weight)  # shuffled folds have some weight each


def test_rare_events_and_counts_leave_folds_out():
    time = np.column_stack([np.exp(Y), np.isin(np.arange(80), (3, 40, 70))])
    with pytest.warns(UserWarning, match="2 of 5 folds are left out: a fold leaves out no event"):
        L12CoxRegressorCV(cv=KFold(5), alphas=[0.5, 0.3], scoring=None).fit(X, time)
    with pytest.warns(UserWarning, match="3 of 5 folds are left out: y holds no pair of samples"):
        L12CoxRegressorCV(cv=KFold(5), alphas=[0.5, 0.3]).fit(X, time)
    counts = np.where(np.arange(80) < 10, 5, 0)
    with pytest.warns(UserWarning, match="1 of 5 folds are left out: y holds no count"):
        L12RegressorCV(loss="poisson", cv=KFold(5), alphas=[3.0, 2.0]).fit(X, counts)
    with pytest.raises(ValueError, match="no fold can be scored"):
        L12RegressorCV(cv=[(np.arange(40), np.arange(40, 80))]).fit(X, Y, (np.arange(80) < 40).astype(float))


def test_groups_of_rows_stay_together():
    groups = np.arange(80) % 8
    folds = list(GroupKFold(4).split(X, Y, groups))
    for kind, y in ((L12RegressorCV, Y), (L12ClassifierCV, Y > 0), (L12CoxRegressorCV, np.exp(Y))):
        model = kind(cv=GroupKFold(4), **SHORT).fit(X, y, groups=groups)
        np.testing.assert_array_equal(model.coef_, kind(cv=folds, **SHORT).fit(X, y).coef_)
    with pytest.raises(ValueError, match="groups"):
        L12RegressorCV(cv=GroupKFold(4)).fit(X, Y)
    with config_context(enable_metadata_routing=True):
        search = L12RegressorCV(cv=GroupKFold(4), **SHORT).set_fit_request(groups=True)
        routed = make_pipeline(StandardScaler(), search).fit(X, Y, groups=groups)
    direct = L12RegressorCV(cv=GroupKFold(4), **SHORT).fit(StandardScaler().fit_transform(X), Y, groups=groups)
    np.testing.assert_array_equal(routed[-1].coef_, direct.coef_)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_several_classes_at_once_may_have_more_columns_than_a_working_set(form, fit_intercept):
    random = np.random.default_rng(0)
    wide = random.standard_normal((60, 1000))
    classes = np.argmax(wide[:, :3], axis=1)
    options = {"loss": "multinomial", "fit_intercept": fit_intercept, "cv": 3, "alphas": 20, "eps": 0.1}
    model = L12ClassifierCV(**options).fit(form(wide), classes)
    assert model.converged_
    assert {0, 1, 2} <= set(np.flatnonzero(model.coef_.any(axis=0)))
    few = L12ClassifierCV(**options, penalty=L1()).fit(
        form(wide[:30, 10:70]), np.arange(30) % 3
    )  # nothing to find
    assert few.converged_


def test_one_estimator_may_be_fitted_by_many_threads():
    model, expected = L12Regressor(0.05), L12Regressor(0.05).fit(X, Y).coef_
    with ThreadPoolExecutor(8) as pool:
        for fitted in pool.map(lambda _: model.fit(X, Y).coef_.copy(), range(64)):
            np.testing.assert_array_equal(fitted, expected)
