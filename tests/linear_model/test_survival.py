"""Cox regression: against R's glmnet and survival, a count of all pairs, and definitions."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from ell12 import L1, L12CoxRegressor, L12CoxRegressorCV
from ell12.linear_model.cox_regressor import concordance_index, survival_times
from ell12.losses import CoxLoss

R = json.loads((Path(__file__).parents[1] / "data" / "glmnet.json").read_text())
X, WEIGHTS, EVENTS = np.array(R["X"]), np.array(R["weights"], dtype=float), np.array(R["events"])
TIMES, TIED = np.array(R["times"]), np.array(R["tied"])
Y, YT = np.column_stack([TIMES, EVENTS]), np.column_stack([TIED, EVENTS])
N = len(X)


def objective(coef, y, alpha, weight=None):
    """glmnet's objective, with Breslow's partial likelihood written out."""
    weight = np.ones(N) if weight is None else weight
    eta, total = X @ coef, 0.0
    for i in np.flatnonzero(y[:, 1]):
        at_risk = y[:, 0] >= y[i, 0]
        total += weight[i] * (math.log(weight[at_risk] @ np.exp(eta[at_risk])) - eta[i])
    return total / weight.sum() + alpha * np.abs(coef).sum()


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("name", "y", "weight", "ties"),
    [
        ("cox", Y, None, "efron"),  # glmnet has Breslow's form alone: without ties the two are one
        ("cox_weights", Y, WEIGHTS, "efron"),
        ("cox_breslow", YT, None, "breslow"),
    ],
)
def test_survival_times_are_fitted_as_by_glmnet(name, y, weight, ties, form):
    found = R[name]
    model = L12CoxRegressor(found["alpha"], penalty=L1(), ties=ties, tol=1e-8).fit(
        form(X), y, sample_weight=weight
    )
    ours, theirs = (objective(np.array(c), y, found["alpha"], weight) for c in (model.coef_, found["coef"]))
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert ours <= theirs + 1e-12
    np.testing.assert_allclose(model.coef_, found["coef"], atol=1e-6)


def all_pairs(time, event, risk, weight):
    """Harrell's index by two loops."""
    right = known = 0.0
    for i in range(len(time)):
        for j in range(len(time)):
            sooner = time[i] < time[j] or (time[i] == time[j] and not event[j])
            if event[i] and sooner and i != j:
                known += weight[i] * weight[j]
                right += weight[i] * weight[j] * (1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0)
    return right / known


@pytest.mark.parametrize("seed", range(5))
def test_the_index_of_concordance_counts_all_pairs(seed):
    random = np.random.default_rng(seed)
    time, event = random.integers(0, 9, 40), random.random(40) < 0.6
    risk, weight = random.integers(0, 5, 40).astype(float), random.integers(0, 3, 40).astype(float)
    y = np.column_stack([time, event])
    assert concordance_index(y, risk) == pytest.approx(all_pairs(time, event, risk, np.ones(40)), rel=1e-12)
    assert concordance_index(y, risk, weight) == pytest.approx(all_pairs(time, event, risk, weight), rel=1e-12)


def test_the_index_of_concordance_is_that_of_survival():
    """Of R's survival package and of scikit-survival 0.28.0, with and without equal times."""
    risk = X @ np.array(R["beta"])
    for y, name, theirs in ((Y, "times", 0.48005066497783405), (YT, "tied", 0.4814020028612303)):
        assert concordance_index(y, risk) == pytest.approx(R["concordance"][name], rel=1e-12)
        assert concordance_index(y, risk) == pytest.approx(theirs, rel=1e-12)


def test_the_score_is_the_concordance_of_the_predictions():
    model = L12CoxRegressor(0.02).fit(X, YT)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, atol=1e-12)
    assert model.score(X, YT) == concordance_index(YT, X @ model.coef_)
    assert model.intercept_ == 0


def test_every_form_of_y_is_the_same():
    structured = np.array(list(zip(EVENTS.astype(bool), TIED, strict=True)), dtype=[("e", bool), ("t", float)])
    swapped = np.array(list(zip(TIED, EVENTS.astype(bool), strict=True)), dtype=[("t", float), ("e", bool)])
    expected = L12CoxRegressor(0.02).fit(X, YT).coef_
    for y in (structured, swapped, YT.tolist()):
        np.testing.assert_array_equal(L12CoxRegressor(0.02).fit(X, y).coef_, expected)
    pandas = pytest.importorskip("pandas")
    np.testing.assert_array_equal(L12CoxRegressor(0.02).fit(X, pandas.DataFrame(YT)).coef_, expected)
    all_had_it = L12CoxRegressor(0.02).fit(X, TIED).coef_
    np.testing.assert_array_equal(all_had_it, L12CoxRegressor(0.02).fit(X, np.c_[TIED, np.ones(N)]).coef_)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.c_[TIED, 2 * EVENTS], "y must hold 0 and 1 only"),
        (np.c_[TIED, EVENTS, EVENTS], "y must be a structured array, or hold two columns"),
        (np.c_[np.full(N, np.nan), EVENTS], "y"),
        (np.c_[TIED, 0 * EVENTS], "no event of positive weight"),
        (np.array([("a", 1.0)] * N, dtype=[("e", "U1"), ("t", float)]), "y must have one field of truth values"),
        (np.ma.array(YT, mask=YT == 3), "y"),
    ],
)
def test_wrong_times_and_events_are_refused_by_name(y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        L12CoxRegressor(0.02).fit(X, y)


def test_times_in_any_unit_and_columns_moved_by_a_constant_change_nothing():
    plain = L12CoxRegressor(0.02, tol=1e-9).fit(X, YT).coef_
    for times in (1e9 * TIED, np.exp(TIED), TIED - 100):
        np.testing.assert_array_equal(L12CoxRegressor(0.02, tol=1e-9).fit(X, np.c_[times, EVENTS]).coef_, plain)
    np.testing.assert_allclose(L12CoxRegressor(0.02, tol=1e-9).fit(X + 1e4, YT).coef_, plain, atol=1e-7)


def test_folds_are_judged_by_what_they_add_to_the_partial_likelihood():
    alphas, weight = [0.1, 0.02], WEIGHTS
    model = L12CoxRegressorCV(alphas=alphas, cv=StratifiedKFold(3), tol=1e-8, relax=False, scoring=None)
    model.fit(X, YT, sample_weight=weight)
    for k, (train, test) in enumerate(StratifiedKFold(3).split(X, EVENTS)):
        part = L12CoxRegressor(0.02, tol=1e-8).fit(X[train], YT[train], sample_weight=weight[train])
        whole = CoxLoss(X, TIED, EVENTS, sample_weight=weight)
        fitted = CoxLoss(X[train], TIED[train], EVENTS[train], sample_weight=weight[train])
        added = fitted.value(fitted.point(part.coef_)) - whole.value(whole.point(part.coef_))
        assert model.scores_[1, k] == pytest.approx(added / (weight[test] @ EVENTS[test]), rel=1e-4)
    assert model.alpha_ == alphas[int(np.argmax(model.scores_.mean(axis=1)))]


def test_folds_can_be_judged_by_the_concordance():
    alphas = [0.1, 0.02]

    def concordance(model, X, y):
        return model.score(X, y)

    options = {"alphas": alphas, "cv": StratifiedKFold(3), "tol": 1e-8, "relax": False}
    model = L12CoxRegressorCV(scoring=concordance, **options).fit(X, YT)
    train, test = next(iter(StratifiedKFold(3).split(X, EVENTS)))
    part = L12CoxRegressor(0.02, tol=1e-8).fit(X[train], YT[train])
    assert model.scores_[1, 0] == pytest.approx(part.score(X[test], YT[test]), rel=1e-12)
    named = L12CoxRegressorCV(scoring="concordance", **options).fit(X, YT)
    np.testing.assert_allclose(named.scores_, model.scores_, rtol=1e-12)
    search = GridSearchCV(L12CoxRegressor(), {"alpha": alphas}, cv=3).fit(X, YT)
    assert search.best_params_["alpha"] in alphas


def test_times_keep_their_precision_next_to_samples_in_single_precision():
    y = survival_times(np.c_[1e9 + np.arange(N), EVENTS])
    assert np.unique(y[:, 0]).size == N
    moved = L12CoxRegressor(0.02).fit(X.astype(np.float32), np.c_[1e9 + TIMES, EVENTS]).coef_
    np.testing.assert_array_equal(moved, L12CoxRegressor(0.02).fit(X.astype(np.float32), Y).coef_)


def breslow(eta, time, event, weight):
    """The cumulative hazard of a risk of 1 at the times of events, by its definition."""
    times = np.unique(time[(event > 0) & (weight > 0)])
    steps = [weight[(time == t) & (event > 0)].sum() / (weight * np.exp(eta))[time >= t].sum() for t in times]
    return times, np.cumsum(steps)


@pytest.mark.parametrize("weight", [np.ones(N), WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("kind", [L12CoxRegressor, L12CoxRegressorCV])
def test_curves_are_breslows(kind, weight):
    model = (kind(0.02) if kind is L12CoxRegressor else kind(alphas=[0.05, 0.02])).fit(X, YT, sample_weight=weight)
    times, hazard = breslow(X @ model.coef_, TIED, EVENTS, weight)
    np.testing.assert_array_equal(model.unique_times_, times)
    np.testing.assert_allclose(model.baseline_hazard_, hazard, rtol=1e-12)
    expected = np.exp(model.predict(X[:5]))[:, None] * hazard
    np.testing.assert_allclose(model.predict_cumulative_hazard_function(X[:5], return_array=True), expected)
    functions = model.predict_survival_function(X[:5])
    for function, row in zip(functions, expected, strict=True):
        np.testing.assert_allclose(function(times), np.exp(-row))
        assert function(times[0] - 1) == 1
        assert function(times[-1] + 1) == function(times[-1])
    middle = (times[0] + times[1]) / 2
    assert functions[0](middle) == functions[0](times[0])


def test_without_features_the_curve_is_that_of_nelson_and_aalen_in_any_units():
    model = L12CoxRegressor(1e3).fit(1e3 * X, YT)
    _, hazard = breslow(np.zeros(N), TIED, EVENTS, np.ones(N))
    np.testing.assert_allclose(model.predict_survival_function(X[:1], return_array=True)[0], np.exp(-hazard))
    far = L12CoxRegressor(0.02).fit(X + 1e4, YT)  # a baseline that no double holds
    near = L12CoxRegressor(0.02).fit(X, YT)
    curves = far.predict_survival_function(X + 1e4, return_array=True)
    np.testing.assert_allclose(curves, near.predict_survival_function(X, return_array=True), atol=1e-4)


def test_the_metrics_of_scikit_survival_take_the_curves():
    metrics = pytest.importorskip("sksurv.metrics")
    y = np.array(list(zip(EVENTS.astype(bool), TIED, strict=True)), dtype=[("e", bool), ("t", float)])
    model = L12CoxRegressor(0.02).fit(X, y)
    times = np.quantile(TIED, [0.3, 0.5, 0.7])
    curves = np.stack([function(times) for function in model.predict_survival_function(X)])
    assert 0 < metrics.integrated_brier_score(y, y, curves, times) < 0.25
