"""The choice of alpha and l2_weight: grids, scores, standard errors; by scikit-learn's own cross-validation."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import make_scorer, median_absolute_error
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score

import ell12
from ell12 import L1, L12, L12Classifier, L12ClassifierCV, L12Regressor, RowsL12
from ell12.linear_model.alpha_search import choose
from ell12.penalties import MCP

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((60, 15))
Y = X[:, 0] - 2 * X[:, 4] + X[:, 7] + RANDOM.standard_normal(60) + 1
WEIGHTS = [0.0, 0.5, 1.0]
PENALTIES = [L12(l2_weight=weight) for weight in WEIGHTS]
GRID = {"alphas": 5, "eps": 0.02, "tol": 1e-9}
L12RegressorCV = partial(ell12.L12RegressorCV, relax=False)  # other tests are of refits


@pytest.mark.parametrize(
    ("kind", "y", "table"), [(L12RegressorCV, Y, "mse_path_"), (L12ClassifierCV, Y > 1, "scores_")]
)
def test_several_l2_weights_make_one_table_of_single_searches(kind, y, table):
    model = kind(penalty=PENALTIES, cv=3, **GRID).fit(X, y)
    singles = [kind(penalty=penalty, cv=3, **GRID).fit(X, y) for penalty in PENALTIES]
    np.testing.assert_array_equal(getattr(model, table), [getattr(single, table) for single in singles])
    np.testing.assert_array_equal(model.alphas_, [single.alphas_ for single in singles])
    sign = -1 if table == "mse_path_" else 1
    best = max(singles, key=lambda single: np.max(sign * getattr(single, table).mean(axis=1)))
    assert (model.penalty_.l2_weight, model.alpha_) == (best.penalty_.l2_weight, best.alpha_)
    np.testing.assert_array_equal(model.coef_, best.coef_)


def test_given_alphas_are_the_same_for_every_l2_weight():
    model = L12RegressorCV(penalty=[L12(l2_weight=0.2), L12(l2_weight=0.8)], alphas=[0.1, 0.3], cv=2).fit(X, Y)
    np.testing.assert_array_equal(model.alphas_, [0.3, 0.1])
    assert model.mse_path_.shape == (2, 2, 2)
    alone = L12RegressorCV(penalty=[L12(l2_weight=0.2)], alphas=[0.1, 0.3], cv=2).fit(X, Y)
    assert alone.mse_path_.shape == (1, 2, 2)
    assert alone.penalty_.l2_weight == 0.2


def test_a_number_of_alphas_is_the_length_of_the_grid():
    grid = L12RegressorCV(alphas=4, cv=2).fit(X, Y).alphas_
    np.testing.assert_array_equal(L12RegressorCV(alphas=np.int64(4), cv=2).fit(X, Y).alphas_, grid)
    assert grid.shape == (4,)
    for wrong in (0, True, 0.5):
        with pytest.raises(ValueError, match="alphas"):
            L12RegressorCV(alphas=wrong).fit(X, Y)


@pytest.mark.parametrize(
    ("scoring", "y"),
    [("r2", Y), ("neg_mean_absolute_error", Y), (make_scorer(median_absolute_error), Y), ("roc_auc", Y > 1)],
)
def test_the_scores_are_those_of_scikit_learn(scoring, y):
    kinds = (L12ClassifierCV, L12Classifier) if y.dtype == bool else (L12RegressorCV, L12Regressor)
    model = kinds[0](penalty=L12(l2_weight=0.5), cv=3, scoring=scoring, **GRID).fit(X, y)
    folds = (StratifiedKFold if y.dtype == bool else KFold)(3, shuffle=True, random_state=0)
    for alpha, scores in zip(model.alphas_, model.scores_, strict=True):
        single = kinds[1](alpha, penalty=L12(l2_weight=0.5), tol=1e-9)
        np.testing.assert_allclose(scores, cross_val_score(single, X, y, cv=folds, scoring=scoring), rtol=1e-5)
    assert model.alpha_ == model.alphas_[np.argmax(model.scores_.mean(axis=1))]


def test_minus_the_squared_error_is_the_default_score():
    weight = RANDOM.uniform(0.5, 2, 60)
    both = np.stack([Y, Y[::-1]], axis=1)
    for y in (Y, both):
        plain = L12RegressorCV(cv=3, **GRID).fit(X, y, weight)
        named = L12RegressorCV(cv=3, scoring="neg_mean_squared_error", **GRID).fit(X, y, weight)
        np.testing.assert_allclose(named.scores_, -plain.mse_path_, rtol=1e-10)
        assert not hasattr(named, "mse_path_")
        assert not hasattr(plain, "scores_")
    named.set_params(scoring=None).fit(X, both)
    assert hasattr(named, "mse_path_")
    assert not hasattr(named, "scores_")


def test_a_scoring_that_is_none_is_an_error_before_anything_is_solved():
    for wrong, message in (("no such score", "no such score"), (["r2"], "scoring must be the name of a score")):
        with pytest.raises(ValueError, match=message):
            L12RegressorCV(scoring=wrong, n_jobs="not asked").fit(X, Y)


def test_one_standard_error_is_that_of_the_best_mean():
    model = L12RegressorCV(penalty=PENALTIES, cv=4, selection="1se", alphas=60).fit(X, Y)
    means = model.mse_path_.mean(axis=2)
    which, best = np.unravel_index(means.argmin(), means.shape)
    assert model.standard_error_ == pytest.approx(np.std(model.mse_path_[which, best], ddof=1) / 2)
    assert model.penalty_.l2_weight == WEIGHTS[which]
    within = [means[which] <= means[which, best] + k * model.standard_error_ for k in (0, 0.5, 1, 2)]
    none, half, one, two = (model.alphas_[which][good].max() for good in within)
    assert none < half < one < two
    assert model.alpha_ == one
    split = L12RegressorCV(cv=[(np.arange(40), np.arange(40, 60))], alphas=3).fit(X, Y)
    assert np.isnan(split.standard_error_)


def test_of_equal_scores_the_first_l2_weight_and_the_largest_alpha_are_taken():
    equal = np.ones((2, 3, 2))
    assert choose(equal, "min") == ((0, 0), 0.0)
    equal[0] = np.nan
    assert choose(equal, "1se") == ((1, 0), 0.0)
    with pytest.raises(ValueError, match="NaN"):
        choose(np.full((1, 2, 2), np.nan), "min")


@pytest.mark.parametrize("penalties", [[], [L12(), RowsL12()], [L12(), L12(0.1)]])
def test_a_wrong_list_of_penalties_is_named(penalties):
    with pytest.raises(ValueError, match=r"penalty|leave it out"):
        L12RegressorCV(penalty=penalties).fit(X, Y)


def test_a_list_of_penalties_survives_a_clone_and_a_grid_search():
    model = L12RegressorCV(penalty=PENALTIES, alphas=3, cv=2)
    assert [penalty.l2_weight for penalty in clone(model).get_params()["penalty"]] == WEIGHTS
    search = GridSearchCV(model, {"penalty": [PENALTIES[::2], MCP(), L1(ridge=0.1)]}, cv=2).fit(X, Y)
    assert search.best_estimator_.penalty_.alpha == search.best_estimator_.alpha_
