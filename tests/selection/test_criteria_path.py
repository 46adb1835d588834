"""Criteria written out along a path, and refits against fits without a penalty by other packages."""

import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from ell12 import (
    L1,
    L12,
    Columns,
    GroupL12,
    L12Classifier,
    L12CoxRegressor,
    L12Regressor,
    L12RegressorCV,
    RowsL12,
    information_criteria,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((80, 10))
Y = X[:, :3] @ [2, -1, 0.5] + RANDOM.standard_normal(80) + 5


def test_the_criteria_of_a_lasso_are_their_formulas():
    path = information_criteria(X, Y, L12Regressor(penalty=L1()), alphas=12)
    fitted = X @ path.coefs + path.intercepts
    size = np.count_nonzero(path.coefs, axis=0)
    deviance = 80 * np.log(np.mean((Y[:, None] - fitted) ** 2, axis=0))
    np.testing.assert_array_equal(path.n_selected, size)
    np.testing.assert_allclose(path.df, size + 1)
    np.testing.assert_allclose(path.deviance, deviance)
    np.testing.assert_allclose(path.aic, deviance + 2 * (size + 1), atol=1e-6)
    np.testing.assert_allclose(path.bic, deviance + math.log(80) * (size + 1), atol=1e-6)
    models = [2 * math.log(math.comb(10, s)) for s in size]
    np.testing.assert_allclose(path.ebic - path.bic, models, atol=2e-6)
    assert [path.best(name) for name in ("aic", "bic", "ebic")] == [
        np.argmin(values) for values in (path.aic, path.bic, path.ebic)
    ]


def test_they_are_those_by_which_cross_validated_models_choose():
    options = {"penalty": L12(l2_weight=0.5, ridge=0.1, weights=np.r_[0.0, np.ones(9)])}
    weight = np.arange(80) % 4
    path = information_criteria(X, Y, L12Regressor(**options), alphas=8, eps=0.05, sample_weight=weight)
    for name in ("aic", "ebic"):
        model = L12RegressorCV(alphas=8, eps=0.05, selection=name, **options).fit(X, Y, weight)
        np.testing.assert_array_equal(getattr(path, name), model.criterion_path_)
        assert path.alphas[path.best(name)] == model.alpha_
    assert path.n_observations == 60


def test_a_refit_is_the_least_squares_fit_of_the_features_selected():
    path = information_criteria(X, Y, alphas=20)
    model = path.refit("ebic")
    columns = np.flatnonzero(path.coefs[:, path.best("ebic")])
    assert set(columns) >= {0, 1}
    expected = np.linalg.lstsq(np.c_[X[:, columns], np.ones(80)], Y, rcond=None)[0]
    np.testing.assert_allclose(np.r_[model.coef_[columns], model.intercept_], expected)
    assert np.count_nonzero(model.coef_) == columns.size
    assert model.predict(X).shape == (80,)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(path)).refit("ebic").coef_, model.coef_)


def test_a_logistic_path_is_refitted_without_a_penalty():
    y = np.where(Y + RANDOM.standard_normal(80) > 5, "yes", "no")
    path = information_criteria(X, y, L12Classifier(), alphas=10, eps=0.05)
    shares = expit(X @ path.coefs + path.intercepts).T
    deviance = [2 * log_loss(y == "yes", share, normalize=False) for share in shares]
    np.testing.assert_allclose(path.deviance, deviance)
    model = path.refit("bic")
    columns = np.flatnonzero(model.coef_[0])
    expected = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(X[:, columns], y)
    np.testing.assert_allclose(model.coef_[:, columns], expected.coef_, rtol=1e-4)
    assert set(model.predict(X)) == {"yes", "no"}


def test_several_targets_and_classes_have_sums_and_a_row_each():
    both = np.c_[Y, X[:, 5] + 0.5 * RANDOM.standard_normal(80)]
    path = information_criteria(X, both, alphas=[0.5, 0.2])
    parts = [information_criteria(X, target, alphas=[0.5, 0.2]) for target in both.T]
    assert path.coefs.shape == (2, 10, 2)
    assert path.intercepts.shape == (2, 2)
    np.testing.assert_allclose(path.bic, sum(part.bic for part in parts))
    np.testing.assert_allclose(path.refit("bic").coef_[1], parts[1].refit("bic").coef_, rtol=1e-6)
    classes = np.digitize(Y, [4, 6])
    softmax = information_criteria(X, classes, L12Classifier(loss="multinomial", penalty=L1()), alphas=[0.1, 0.05])
    np.testing.assert_allclose(softmax.df, np.count_nonzero(softmax.coefs, axis=(0, 1)) + 2)
    with pytest.raises(ValueError, match="no unique solution"):
        softmax.refit("bic")


def test_survival_times_count_events():
    time = RANDOM.exponential(np.exp(-X[:, 2]))
    path = information_criteria(X, np.c_[time, np.arange(80) % 2], L12CoxRegressor(), alphas=5)
    assert path.n_observations == 40
    np.testing.assert_allclose(path.bic - path.aic, (math.log(40) - 2) * path.df, atol=1e-5)
    assert path.alphas[-1] == pytest.approx(0.01 * path.alphas[0])
    assert path.refit("bic").coef_.shape == (10,)


SIMULATED = {
    "squared": (0.3, lambda eta, random: eta + 1.5 * random.standard_normal(200), L12Regressor(penalty=L1())),
    "poisson": (0.35, lambda eta, random: random.poisson(np.exp(eta)), L12Regressor(loss="poisson", penalty=L1())),
    "logistic": (0.12, lambda eta, random: random.uniform(size=200) < expit(eta), L12Classifier(penalty=L1())),
    "cox": (0.2, lambda eta, random: random.exponential(np.exp(-eta)), L12CoxRegressor(penalty=L1())),
}


@pytest.mark.parametrize("loss", SIMULATED)
def test_the_marginal_rate_of_false_features_is_that_of_a_simulation(loss):
    """Independent columns, all of them false but three: the expected number against the mean of 20 draws."""
    (first, draw, model), expected, found = SIMULATED[loss], np.zeros(6), np.zeros(6)
    for seed in range(20):
        random = np.random.default_rng(seed)
        A = random.standard_normal((200, 60))
        y = draw(A[:, :3] @ [1.0, -0.8, 0.6], random)
        path = information_criteria(A, y, model, alphas=first * 0.9 ** np.arange(6))
        expected += path.marginal_fdr() * path.n_selected / 20
        found += np.count_nonzero(path.coefs[3:], axis=0) / 20
    assert found[0] < 1.5 < found[-1]
    np.testing.assert_allclose(expected, found, rtol=0.35, atol=0.5)


def test_the_marginal_rate_knows_weights_and_signs_and_refuses_groups():
    rate = information_criteria(X, Y, L12Regressor(penalty=L1()), alphas=[9.0, 0.3]).marginal_fdr()
    assert rate[0] == 0 < rate[1] < 1
    free = L1(weights=np.r_[0.0, np.full(9, 1.0)], positive=True)
    signed = information_criteria(X, Y, L12Regressor(penalty=free), alphas=[0.3]).marginal_fdr()
    assert signed[0] >= 0
    with pytest.raises(ValueError, match="takes them together"):
        information_criteria(X, Y, L12Regressor(penalty=GroupL12(np.arange(10) // 2)), alphas=2).marginal_fdr()


def test_columns_out_of_memory_have_sparse_coefficients():
    model = L12Regressor(tol=1e-8)
    path, plain = (information_criteria(A, Y, model, alphas=6, eps=0.05) for A in (Columns(X), X))
    assert scipy.sparse.issparse(path.coefs)
    np.testing.assert_allclose(path.coefs.toarray(), plain.coefs, atol=1e-6)
    np.testing.assert_allclose(path.ebic, plain.ebic, atol=1e-4)
    np.testing.assert_allclose(path.refit().coef_, plain.refit().coef_, atol=1e-6)


def test_strengths_that_fit_too_closely_are_not_taken():
    wide = RANDOM.standard_normal((20, 60))
    path = information_criteria(wide, wide[:, 0] + 0.1 * RANDOM.standard_normal(20), alphas=20)
    full = ~(path.df <= 10)
    assert full.any()
    assert np.isinf(path.aic[full]).all()
    assert np.isfinite(path.aic[~full]).all()
    undefined = information_criteria(X[:1], Y[:1], alphas=[1.0])
    with pytest.raises(ValueError, match="no alpha has a finite BIC"):
        undefined.best("bic")
    assert "no strength has a finite criterion" in repr(undefined)


def test_constant_targets_and_columns_select_nothing():
    constant = np.c_[X[:, :2], np.ones(80)]
    path = information_criteria(constant, np.full(80, 3.0), alphas=3)
    assert path.best("ebic") == 0
    assert not path.refit("ebic").coef_.any()
    assert not information_criteria(constant, Y, alphas=5).coefs[2].any()


def test_what_has_no_unique_finite_fit_warns():
    path = information_criteria(X[:, [0, 0]], Y, L12Regressor(penalty=L1(ridge=0.5)), alphas=[0.1])
    with pytest.warns(ConvergenceWarning, match="no unique finite coefficients"):
        path.refit("aic")
    with pytest.warns(ConvergenceWarning, match="no finite minimiser"):  # one feature separates the classes
        path = information_criteria(X, X[:, 0] > 0, L12Classifier(penalty=L12()), alphas=5)
    with pytest.warns(ConvergenceWarning, match="no finite minimiser|no unique finite coefficients"):
        path.refit("bic")


def test_the_table_and_pandas_say_what_was_found():
    path = information_criteria(X, Y, alphas=15)
    assert [line.split()[0] for line in str(path).splitlines()[2:]] == ["AIC", "BIC", "EBIC"]
    assert "<table" in path._repr_html_()
    frame = path.table
    assert list(frame.columns) == ["alpha", "n_selected", "df", "deviance", "aic", "bic", "ebic"]
    np.testing.assert_array_equal(frame["ebic"], path.ebic)


def test_the_picture_marks_the_least_of_each():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    path = information_criteria(X, Y, alphas=15)
    axes = path.plot()
    lines = axes.get_lines()
    for line, mark, values in zip(lines[::2], lines[1::2], (path.aic, path.bic, path.ebic), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), path.alphas)
        np.testing.assert_array_equal(line.get_ydata(), np.where(np.isfinite(values), values, np.nan))
        assert mark.get_ydata()[0] == values.min()
    other_axes = next(other for other in axes.figure.axes if other is not axes)
    np.testing.assert_array_equal(other_axes.get_lines()[0].get_ydata(), path.n_selected)
    given = plt.figure().add_subplot()
    assert information_criteria(X[:1], Y[:1], alphas=[1.0]).plot(axes=given) is given
    plt.close("all")


def test_the_model_stays_as_it_is_and_others_are_refused():
    model = L12Regressor(0.7)
    with warnings.catch_warnings(action="error"):
        information_criteria(X, Y, model, alphas=3)
    assert model.alpha == 0.7
    assert not hasattr(model, "coef_")
    path = information_criteria(X, Y, alphas=[0.5])
    assert path != information_criteria(X, Y, alphas=[0.5])  # two objects: arrays are not compared
    with pytest.raises(ValueError, match="name"):
        path.best("cp")
    for wrong in (L12RegressorCV(), L12Regressor, LogisticRegression()):
        with pytest.raises(TypeError, match="model must be an L12Regressor"):
            information_criteria(X, Y, wrong)


WRONG = {
    "likelihood": {"model": L12Regressor(loss="huber")},
    "joint": {"model": L12Regressor(penalty=RowsL12()), "y": np.c_[Y, Y]},
    "offset": {"model": L12Classifier(), "offset": Y},
    "sample_weight": {"sample_weight": -np.ones(80)},
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_arguments_are_named(words):
    with pytest.raises(ValueError, match=words):
        information_criteria(**{"X": X, "y": Y} | WRONG[words])
