"""Signs, groups, refits and criteria in the estimators, by scipy, scikit-learn and methods written out here."""

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.optimize import lsq_linear, nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV, LinearRegression, LogisticRegression, PoissonRegressor

from ell12 import (
    L1,
    L12,
    MCP,
    GroupL12,
    L12Classifier,
    L12CoxRegressor,
    L12Regressor,
    L12RegressorCV,
    RowsL12,
)

RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((60, 12)) + 1
Y = X[:, :5] @ [3, -2, 1, 0.5, -1] + 0.5 * RANDOM.standard_normal(60)
LABELS = Y + 2 * RANDOM.standard_normal(60) > Y.mean()
WEIGHT = RANDOM.integers(1, 4, 60)
GROUPS = np.array(list("aabbbccdddde"))


SIGNS = np.arange(12) % 3 == 0


def test_without_a_penalty_signs_are_bounds_of_lsq_linear():
    found = L12Regressor(0.0, penalty=L12(positive=SIGNS), tol=1e-9).fit(X, Y)
    expected = lsq_linear(X - X.mean(axis=0), Y - Y.mean(), (np.where(SIGNS, 0, -np.inf), np.inf), tol=1e-14)
    np.testing.assert_allclose(found.coef_, expected.x, atol=1e-6)


def group_lasso(alpha, factors):
    """The group lasso of centred columns, by proximal steps written out."""
    A, b = X - X.mean(axis=0), Y - Y.mean()
    labels = np.unique(GROUPS, return_inverse=True)[1]
    step, x = 60 / np.linalg.norm(A, 2) ** 2, np.zeros(12)
    for _ in range(3000):
        x = x - step * A.T @ (A @ x - b) / 60
        for g, factor in enumerate(factors):
            size = np.linalg.norm(x[labels == g])
            x[labels == g] *= max(1 - step * alpha * factor / size, 0) if size > 0 else 0
    return x


@pytest.mark.parametrize("factors", [np.ones(5), np.sqrt([2, 3, 2, 4, 1]), np.array([0.0, 1, 1, 2, 1])])
def test_without_a_subtracted_norm_groups_are_the_group_lasso(factors):
    found = L12Regressor(0.5, penalty=GroupL12(GROUPS, l2_weight=0, weights=factors), tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(found.coef_, group_lasso(0.5, factors), atol=1e-7)
    if factors[1] == 1 and factors[0] == 1:
        plain = L12Regressor(0.5, penalty=GroupL12(GROUPS, l2_weight=0), tol=1e-10).fit(X, Y)
        np.testing.assert_allclose(plain.coef_, found.coef_, atol=1e-9)


COUNTS, BOTH = RANDOM.poisson(np.exp(0.3 * X[:, 0] - 0.2 * X[:, 1])), np.c_[Y, X[:, 1] + 0.1 * Y]
REFITS = [
    *((L12Regressor(0.3, penalty=penalty), Y, LinearRegression()) for penalty in (L12(), L1(), MCP())),
    (L12Regressor(0.3, penalty=GroupL12(GROUPS)), Y, LinearRegression()),
    (L12Regressor(0.5, penalty=RowsL12()), BOTH, LinearRegression()),
    (L12Classifier(0.08), LABELS, LogisticRegression(C=1e12, tol=1e-10, max_iter=10_000)),
    (L12Regressor(0.2, loss="poisson"), COUNTS, PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000)),
]


@pytest.mark.parametrize(("model", "y", "theirs"), REFITS)
def test_a_refit_is_the_fit_of_scikit_learn_to_the_support(model, y, theirs):
    penalised, found = (clone(model).set_params(relax=relax).fit(X, y, WEIGHT) for relax in (False, True))
    support = np.flatnonzero(np.any(np.atleast_2d(penalised.coef_), axis=0))
    assert 0 < support.size < 12
    theirs.fit(X[:, support], y, WEIGHT)
    rtol = 1e-8 if isinstance(theirs, LinearRegression) else 1e-4
    np.testing.assert_allclose(np.atleast_2d(found.coef_)[:, support], np.atleast_2d(theirs.coef_), rtol=rtol)
    np.testing.assert_allclose(found.intercept_, theirs.intercept_, rtol=rtol)
    assert np.count_nonzero(found.coef_) == np.count_nonzero(penalised.coef_)
    np.testing.assert_array_equal(found.results_[0].x, penalised.results_[0].x)


def test_a_refit_keeps_signs():
    found = L12Regressor(0.3, penalty=L12(positive=True), relax=True).fit(X, Y)
    support = np.flatnonzero(found.results_[0].x)
    expected = nnls((X - X.mean(axis=0))[:, support], Y - Y.mean())[0]
    np.testing.assert_allclose(found.coef_[support], expected, atol=1e-7)


WIDE = RANDOM.standard_normal((8, 40))


@pytest.mark.parametrize(
    ("X", "y", "model"),
    [
        (X, X[:, 0] > 1, L12Classifier(0.02)),
        (np.c_[X, X[:, 0]], Y, L12Regressor(0.05, penalty=L1(ridge=0.5))),
        (WIDE, WIDE[:, 0], L12Regressor(1e-3, penalty=L1(ridge=1))),
    ],
    ids=["separable", "dependent", "wide"],
)
def test_where_there_is_no_refit_a_warning_says_so_and_the_penalised_fit_stays(X, y, model):
    with pytest.warns(ConvergenceWarning, match="no unique finite coefficients"):
        found = clone(model).set_params(relax=True).fit(X, y)
    np.testing.assert_array_equal(found.coef_, model.fit(X, y).coef_)


def test_cross_validation_judges_the_refitted_coefficients():
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    model = L12RegressorCV(relax=True, alphas=[0.3, 0.1], cv=folds).fit(X, Y)
    for k, (train, test) in enumerate(folds):
        one = L12Regressor(0.3, relax=True).fit(X[train], Y[train])
        np.testing.assert_allclose(model.mse_path_[0, k], np.mean((one.predict(X[test]) - Y[test]) ** 2))
    plain = L12RegressorCV(relax=False, alphas=[0.3, 0.1], cv=folds).fit(X, Y)
    assert np.all(model.mse_path_ != plain.mse_path_)


def errors_by_hand(y, alphas, folds):
    """The mean squared errors of the fit, of the mean of fit and refit, and of the refit, on each fold."""
    errors = np.empty((3, len(alphas), len(folds)))
    for i, alpha in enumerate(alphas):
        for j, (train, test) in enumerate(folds):
            fit, refit = (
                L12Regressor(alpha, relax=relax, tol=1e-9).fit(X[train], y[train]).predict(X[test])
                for relax in (False, True)
            )
            for k, share in enumerate((0, 0.5, 1)):
                errors[k, i, j] = np.mean((y[test] - (1 - share) * fit - share * refit) ** 2)
    return errors


def test_by_default_a_refit_is_taken_where_it_is_better_by_half_a_standard_error():
    folds, taken = [(np.flatnonzero(np.arange(60) % 4 != k), np.arange(k, 60, 4)) for k in range(4)], set()
    noise = np.random.default_rng(0).standard_normal((2, 60))
    for y in (
        Y,
        X[:, 0] + 0.5 * noise[0],
        X[:, :2] @ [2, 1] + noise[1],
        X @ np.linspace(-1, 1, 12) + 6 * noise[0],
    ):
        model = L12RegressorCV(alphas=8, eps=0.02, cv=folds, tol=1e-9).fit(X, y)
        errors = errors_by_hand(y, model.alphas_, folds)
        plain = errors[0].mean(axis=1).argmin()
        k, best = np.unravel_index(errors.mean(axis=2).argmin(), errors.shape[:2])
        gain = errors[0, plain] - errors[k, best]
        if gain.mean() <= 0.5 * gain.std(ddof=1) / 2:
            k, best = 0, plain
        assert (model.relaxed_, model.alpha_) == (k / 2, model.alphas_[best])
        np.testing.assert_allclose(model.mse_path_, errors[k], rtol=1e-6)
        fit, refit = (L12Regressor(model.alpha_, relax=relax, tol=1e-9).fit(X, y) for relax in (False, True))
        np.testing.assert_allclose(model.coef_, (1 - k / 2) * fit.coef_ + k / 2 * refit.coef_, atol=1e-6)
        np.testing.assert_allclose(model.intercept_, (1 - k / 2) * fit.intercept_ + k / 2 * refit.intercept_)
        taken.add(model.relaxed_)
    assert len(taken) > 1
    for selection in ("aic", "bic"):
        assert L12RegressorCV(selection=selection, alphas=3).fit(X, Y).relaxed_ == 0


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_by_default_few_false_features_are_selected(rho):
    random, selected = np.random.default_rng(0), []
    design = random.standard_normal((120, 300)) @ np.linalg.cholesky(toeplitz(rho ** np.arange(300.0))).T
    y = design[:, 7:240:40] @ [1, -1, 1, 1, -1, 1] + 0.7 * random.standard_normal(120)
    for model in (L12RegressorCV(), L12RegressorCV(relax=False), LassoCV()):
        selected.append(np.flatnonzero(model.fit(design, y).coef_))
    assert all(set(range(7, 240, 40)) <= set(own) for own in selected)
    assert selected[0].size < selected[1].size < selected[2].size
    assert selected[0].size <= 8


def test_criteria_and_folds_leave_their_own_attributes():
    model = L12RegressorCV(penalty=L1(), alphas=[1.0, 0.5, 0.2, 0.1], selection="ebic").fit(X, Y)
    assert model.alpha_ == model.alphas_[np.argmin(model.criterion_path_)]
    assert not hasattr(model, "mse_path_")
    relaxed = L12RegressorCV(relax=True, alphas=[0.3], selection="bic").fit(X, Y)
    assert relaxed.df_path_[0] == np.count_nonzero(relaxed.coef_) + 1
    assert model.set_params(selection="min").fit(X, Y).mse_path_.shape == (4, 5)
    assert not hasattr(model, "df_path_")


def test_a_criterion_does_not_fall_for_a_saturated_fit():
    wide = RANDOM.standard_normal((40, 200))
    y = wide[:, :3] @ [2, -2, 1.5] + 0.3 * RANDOM.standard_normal(40)
    model = L12RegressorCV(selection="bic", alphas=30).fit(wide, y)
    assert {0, 1, 2} <= set(np.flatnonzero(model.coef_))
    assert np.count_nonzero(model.coef_) < 15
    several = L12RegressorCV(selection="ebic", alphas=10, penalty=[L12(l2_weight=0.5), L12()]).fit(wide, y)
    assert several.criterion_path_.shape == several.df_path_.shape == (2, 10)


def test_survival_times_are_refitted_too():
    time = RANDOM.exponential(np.exp(-X[:, 2]))
    survival = L12CoxRegressor(0.1, relax=True, penalty=GroupL12(GROUPS, l2_weight=0.5)).fit(X, time)
    support = np.flatnonzero(survival.coef_)
    assert np.array_equal(support, np.flatnonzero(np.isin(GROUPS, GROUPS[support])))
    alone = L12CoxRegressor(0.0, tol=1e-9).fit(X[:, support], time)
    np.testing.assert_allclose(survival.coef_[support], alone.coef_, rtol=1e-5)


def test_a_criterion_of_counts_has_their_likelihood():
    counts = RANDOM.poisson(np.exp(0.3 * X[:, 0]))
    poisson = L12RegressorCV(loss="poisson", alphas=[0.3, 0.1], penalty=L1(), selection="aic").fit(X, counts)
    one = L12Regressor(0.1, loss="poisson", penalty=L1()).fit(X, counts)
    mean = one.predict(X)
    expected = 2 * np.sum(mean - counts * np.log(mean)) + 2 * (np.count_nonzero(one.coef_) + 1)
    first = L12Regressor(0.3, loss="poisson", penalty=L1()).fit(X, counts)
    other = first.predict(X)
    change = expected - 2 * np.sum(other - counts * np.log(other)) - 2 * (np.count_nonzero(first.coef_) + 1)
    np.testing.assert_allclose(np.diff(poisson.criterion_path_)[0], change, atol=1e-3)


def test_classes_at_once_take_groups():
    classes = np.digitize(Y, [-1, 3])
    grouped = L12Classifier(0.05, loss="multinomial", penalty=GroupL12(GROUPS, l2_weight=0.5)).fit(X, classes)
    for row in grouped.coef_:
        assert all(np.unique(row[label == GROUPS] != 0).size == 1 for label in "abcde")


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (L12Regressor(penalty=GroupL12([0, 1])), Y, "penalty"),
        (L12Regressor(penalty=L12(weights=[1.0, 2.0])), Y, "penalty"),
        (L12Regressor(penalty=L12(positive=[True, False])), Y, "penalty"),
        (L12RegressorCV(penalty=GroupL12([0, 1])), Y, "penalty"),
        (L12RegressorCV(penalty=L12(alpha=0.1)), Y, "leave it out of"),
        (L12Regressor(0.1, penalty=L12(alpha=0.2)), Y, "alpha is given twice"),
        (L12Regressor(relax="auto"), Y, "relax"),
        (L12RegressorCV(relax="yes"), Y, "relax"),
        (L12RegressorCV(selection="cp"), Y, "selection"),
        (L12Regressor(penalty=None), Y, "penalty must be a dataclass"),
        (L12Regressor(penalty=L12), Y, "penalty must be a dataclass"),
        (L12RegressorCV(penalty="l1"), Y, "penalty must be a dataclass"),
        (L12Classifier(loss="multinomial", relax=True), np.digitize(Y, [-1, 3]), "relax=True does not take"),
        (L12Classifier(penalty=RowsL12()), LABELS, "RowsL12 is for targets of a regression"),
        (L12Regressor(penalty=RowsL12(), loss="huber"), BOTH, "RowsL12 is for targets of a regression"),
        (L12RegressorCV(penalty=RowsL12(), selection="bic", alphas=[1.0]), BOTH, "selection='bic'"),
    ],
)
def test_options_of_a_wrong_kind_are_refused_by_name(model, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(X, y)
