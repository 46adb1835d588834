"""One surface: any penalty and any loss as an object, inside scikit-learn's tools; what fits report."""

import pickle
import runpy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import GammaRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ell12 import (
    L1,
    L12,
    MCP,
    GroupL12,
    L12Classifier,
    L12ClassifierCV,
    L12CoxRegressor,
    L12CoxRegressorCV,
    L12Regressor,
    L12RegressorCV,
    information_criteria,
)
from ell12.linear_model import Huber
from ell12.penalties import CappedL1, LogSum, PenaltyBase

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((80, 12))
Y = 2 * X[:, 1] - X[:, 4] + 0.3 * RANDOM.standard_normal(80)
TIMES = RANDOM.exponential(np.exp(-Y / 2))
LABELS = Y + 2 * RANDOM.standard_normal(80) > 0


@dataclass(frozen=True, eq=False)
class Firm(PenaltyBase):
    """Firm thresholding: the slope falls from alpha at 0 to 0 at ``2 alpha``."""

    alpha: float | None = None

    def value(self, x):
        s = np.minimum(np.abs(x), 2 * self.alpha)
        return float(np.sum(self.alpha * s - s**2 / 4))

    def prox(self, x, step):  # for steps below 2; beyond, a hard threshold
        a, s = self.alpha, np.abs(x)
        if step >= 2:
            return np.where(s**2 > 2 * step * a**2, x, 0)
        return np.where(s <= 2 * a, np.sign(x) * np.clip((s - step * a) / (1 - step / 2), 0, None), x)


@dataclass(frozen=True, eq=False)
class Pairs(PenaltyBase):
    """Neighbours in pairs, whatever the number of features is."""

    alpha: float | None = None

    def _groups(self, x):
        return GroupL12(np.arange(len(x)) // 2, self.alpha, l2_weight=0.5)

    def value(self, x):
        return self._groups(x).value(x)

    def prox(self, x, step):
        return self._groups(x).prox(x, step)


Gamma = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "extend" / "gamma.py"))["Gamma"]
PENALTIES = [L1(), MCP(), LogSum(), CappedL1(), GroupL12(np.arange(12) // 2), Firm(), Pairs()]
CHECKED = [
    *(L12Regressor(penalty=penalty) for penalty in (L1(), MCP(), Firm(), Pairs())),
    *(L12Classifier(penalty=penalty) for penalty in (L1(), LogSum())),
    L12RegressorCV(penalty=[L1(), Firm()], alphas=3, eps=0.2, cv=3),
]


@parametrize_with_checks(CHECKED)
def test_any_penalty_passes_the_checks_of_scikit_learn(estimator, check):
    if "sample_weight_equivalence" in str(check):
        estimator = clone(estimator).set_params(tol=1e-11)  # weights and copies of samples are compared to 1e-7
    check(estimator)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_every_penalty_works_in_fit_cross_validation_selection_and_copies(penalty):
    model = L12Regressor(0.2, penalty=penalty, tol=1e-6).fit(X, Y)
    assert model.converged_
    assert model.stationarity_ <= 1e-6
    assert model.penalty_.alpha == 0.2
    assert isinstance(model.results_, tuple)
    for copy in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, Y)):
        np.testing.assert_array_equal(copy.coef_, model.coef_)
    for kind, y in ((clone(model), Y), (L12Classifier(0.1, penalty=penalty), LABELS)):
        selector = SelectFromModel(kind).fit(X, y)
        np.testing.assert_array_equal(selector.get_support(), np.ravel(selector.estimator_.coef_) != 0)
    assert 0 < np.count_nonzero(model.coef_) < 12
    search = L12RegressorCV(penalty=penalty, alphas=10, eps=0.05).fit(X, Y)
    assert search.score(X, Y) > 0.9
    assert search.penalty_.alpha == search.alpha_
    assert (
        L12ClassifierCV(penalty=penalty, alphas=5, eps=0.1, cv=3, tol=1e-3).fit(X, LABELS).score(X, LABELS) > 0.7
    )
    assert np.isfinite(L12CoxRegressor(0.1, penalty=penalty, tol=1e-3).fit(X, TIMES).coef_).all()


@pytest.mark.parametrize(
    "grid",
    [
        {"alpha": [0.01, 0.1]},
        {"penalty__l2_weight": [0.0, 0.5]},
        {"penalty__alpha": [0.01, 0.1]},
        {"penalty": [L12(), MCP(), Firm()]},
        {"penalty": [MCP()], "penalty__gamma": [2, 4]},
    ],
    ids=str,
)
def test_grid_searches_take_penalties_and_their_parameters(grid):
    model = make_pipeline(StandardScaler(), L12Regressor())
    search = GridSearchCV(model, {f"l12regressor__{name}": values for name, values in grid.items()}, cv=3)
    assert search.fit(X, Y).best_score_ > 0.2


SEARCHES = {L12Regressor: L12RegressorCV, L12Classifier: L12ClassifierCV, L12CoxRegressor: L12CoxRegressorCV}
PLAIN = [(L12Regressor, Y, {}), (L12Classifier, LABELS, {})]
OTHERS = [
    (L12CoxRegressor, TIMES, {}),
    (L12Regressor, Y, {"loss": "huber"}),
    (L12Regressor, np.round(np.exp(Y / 2)), {"loss": "poisson"}),
    (L12Classifier, np.digitize(Y, [-1, 1]), {"loss": "multinomial"}),
]
GRIDS = [(*case, penalty) for case in PLAIN for penalty in (GroupL12(np.arange(12) // 2), Firm(), Pairs())]
GRIDS += [(*case, L12(l2_weight=weight)) for case in PLAIN + OTHERS for weight in (0.0, 0.5, 1.0)]


@pytest.mark.parametrize(("kind", "y", "options", "penalty"), GRIDS)
def test_the_grid_begins_where_the_first_feature_enters(kind, y, options, penalty):
    top, entered = SEARCHES[kind](penalty=penalty, alphas=3, cv=3, **options).fit(X, y).alphas_[0], []
    for share in (1.01, 0.9):
        coef = np.atleast_2d(kind(share * top, penalty=penalty, **options).fit(X, y).coef_)
        entered.append(np.unique(penalty.units(12)[coef.any(axis=0)]).size)
    first = isinstance(penalty, L12 | GroupL12) and penalty.l2_weight == 1  # a single one costs nothing
    assert entered[0] == first < entered[1]


def test_a_family_of_ones_own_works_in_fit_cross_validation_and_criteria():
    amounts = RANDOM.gamma(2.0, np.exp(1 + X[:, 1] - 0.5 * X[:, 4]) / 2)
    ours = L12Regressor(0.0, loss=Gamma(), tol=1e-9).fit(X, amounts)
    theirs = GammaRegressor(alpha=0, tol=1e-10, max_iter=10_000).fit(X, amounts)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.score(X, amounts) == pytest.approx(theirs.score(X, amounts), abs=1e-8)
    hours = RANDOM.uniform(1, 3, 80)
    longer = clone(ours).fit(X, amounts * hours, offset=np.log(hours))
    np.testing.assert_allclose(longer.coef_, ours.coef_, atol=1e-7)
    np.testing.assert_allclose(longer.predict(X, np.log(hours)), hours * ours.predict(X), rtol=1e-6)
    search = L12RegressorCV(loss=Gamma(), penalty=[L12(), MCP()], alphas=20).fit(X, amounts)
    assert {1, 4} <= set(np.flatnonzero(search.coef_))
    assert information_criteria(X, amounts, L12Regressor(loss=Gamma()), alphas=5).aic.shape == (5,)


def test_an_offset_of_squares_and_of_hubers_loss_is_subtracted():
    shift = RANDOM.standard_normal(80)
    for loss in ("squared", Huber(1.0)):
        plain, moved = (L12Regressor(0.1, loss=loss, tol=1e-9) for _ in range(2))
        plain.fit(X, Y)
        moved.fit(X, Y + shift, offset=shift)
        np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-8)
        np.testing.assert_allclose(moved.predict(X, shift), plain.predict(X) + shift, atol=1e-7)
        assert moved.score(X, Y + shift, offset=shift) > 0.9
