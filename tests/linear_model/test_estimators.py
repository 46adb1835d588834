"""The estimators against scikit-learn's convex ones, and in company with its tools."""

import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import Lasso, LassoCV, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ell12 import FISTA, L1, L12, L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV, Run, stationarity
from ell12.datasets import correlated_design
from ell12.path import alpha_max, squared_loss

MODELS = [
    L12Regressor(0.05),
    L12Classifier(0.05),
    L12RegressorCV(alphas=5, eps=0.1, cv=3),
    L12ClassifierCV(alphas=5, eps=0.1, cv=3),
]
FORMS = {"dense": np.asarray, "csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_matrix}


def data(n=60, p=12, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, p)) + random.uniform(-1, 1, p)
    X[random.random((n, p)) < 0.4] = 0
    return X, 3 + X[:, 1] - 2 * X[:, 4] + 0.5 * random.standard_normal(n), random.uniform(0.2, 2, n)


def target(model, y):
    return y > 3 if "Classifier" in type(model).__name__ else y


# The convex twin


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_the_l2_norm_it_is_the_lasso(fit_intercept, weighted, positive, form):
    X, y, weight = data()
    X, weight = FORMS[form](X), weight if weighted else None
    options = {"alpha": 0.05, "fit_intercept": fit_intercept}
    ours = L12Regressor(penalty=L1(positive=positive), tol=1e-9, **options).fit(X, y, weight)
    theirs = Lasso(tol=1e-12, max_iter=100_000, positive=positive, **options).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)
    assert np.count_nonzero(ours.coef_) == np.count_nonzero(theirs.coef_)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_the_l2_norm_it_is_the_lasso_in_cross_validation(fit_intercept, weighted, form):
    X, y, weight = data()
    X, weight = FORMS[form](X), weight if weighted else None
    ours = L12RegressorCV(penalty=L1(), alphas=10, fit_intercept=fit_intercept, cv=KFold(3), tol=1e-8)
    ours.fit(X, y, weight)
    theirs = LassoCV(alphas=10, fit_intercept=fit_intercept, cv=3, tol=1e-12, max_iter=100_000).fit(X, y, weight)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-8)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert np.isclose(ours.alpha_, theirs.alpha_, rtol=1e-8)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_the_l2_norm_it_is_logistic_regression(fit_intercept, weighted, form):
    X, y, weight = data()
    X, weight = FORMS[form](X), weight if weighted else None
    total = len(y) if weight is None else weight.sum()
    ours = L12Classifier(0.03, penalty=L1(), fit_intercept=fit_intercept, tol=1e-9).fit(X, y > 3, weight)
    theirs = LogisticRegression(
        C=1 / (0.03 * total), l1_ratio=1, solver="saga", fit_intercept=fit_intercept, tol=1e-10, max_iter=100_000
    ).fit(X, y > 3, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-5)


# The l1-2 model itself


@pytest.mark.parametrize("form", FORMS)
def test_a_fit_is_a_stationary_point_of_the_objective_that_the_docstring_states(form):
    X, y, weight = data()
    model = L12Regressor(0.1, tol=1e-8).fit(FORMS[form](X), y, weight)
    loss = squared_loss(np.column_stack([X, np.ones(len(y))]), y, weight)
    penalty = L12(0.1, weights=np.append(np.ones(12), 0.0))
    assert stationarity(loss, penalty, np.append(model.coef_, model.intercept_)) < 1e-6


def test_positive_binds_the_coefficients_and_not_the_intercept():
    X, y, _ = data()
    model = L12Classifier(0.02, penalty=L12(l2_weight=0.5, positive=True)).fit(X, y > 4)
    assert (model.coef_ >= 0).all()
    assert (model.coef_ > 0).any()
    assert model.intercept_[0] < 0


@pytest.mark.parametrize("model", [L12Regressor(0.3), L12Classifier(0.1)], ids=repr)
def test_a_feature_of_factor_zero_is_not_penalised(model):
    X, y, _ = data()
    factors = np.ones(12)
    factors[[4, 8]] = 0
    model = clone(model).set_params(penalty__weights=factors, tol=1e-8).fit(X, target(model, y))
    row = np.atleast_2d(model.coef_)[0]
    assert row[8] != 0
    residual = (model.predict_proba(X)[:, 1] if hasattr(model, "classes_") else model.predict(X)) - target(
        model, y
    )
    np.testing.assert_allclose(X[:, [4, 8]].T @ residual / len(y), 0, atol=1e-7)
    with pytest.raises(ValueError, match=r"^penalty: weights"):
        model.set_params(penalty__weights=[1.0, 2.0]).fit(X, target(model, y))


def test_several_targets_are_separate_problems():
    X, y, weight = data()
    both = L12Regressor(0.05).fit(X, np.column_stack([y, -(y**2)]), weight)
    alone = L12Regressor(0.05).fit(X, -(y**2), weight)
    np.testing.assert_array_equal(both.coef_[1], alone.coef_)
    assert both.intercept_[1] == alone.intercept_
    assert both.n_iter_[1] == alone.n_iter_
    assert both.predict(X).shape == (60, 2)
    search = L12RegressorCV(alphas=5, cv=3).fit(X, np.column_stack([y, -y]))
    assert search.coef_.shape == (2, 12)
    assert isinstance(search.alpha_, float)


def test_several_classes_are_one_against_the_rest():
    X, y, _ = data(120)
    names = np.array(["low", "mid", "top"])[np.digitize(y, [2, 4])]
    model = L12Classifier(0.01).fit(X, names)
    top = L12Classifier(0.01).fit(X, names == "top")
    np.testing.assert_allclose(model.coef_[2], top.coef_[0], atol=1e-12)
    assert model.coef_.shape == (3, 12)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.decision_function(X).argmax(axis=1))
    assert model.score(X, names) > 0.7
    search = L12ClassifierCV(alphas=5, eps=0.05, cv=3).fit(X, names)
    assert search.scores_.shape == (5, 3)
    far = model.predict_proba(1e6 * X)
    assert np.isfinite(far).all()


def test_a_warm_start_begins_where_the_last_fit_ended():
    X, y, _ = data()
    for model in (L12Regressor(0.05, warm_start=True), L12Classifier(0.05, warm_start=True)):
        first = np.max(model.fit(X, target(model, y)).n_iter_)
        assert np.max(model.fit(X, target(model, y)).n_iter_) < first / 2
        model.fit(X[:, :5], target(model, y))  # another number of features: from zero
        assert np.atleast_2d(model.coef_).shape == (1, 5)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_constant_target_or_constant_columns_do_no_harm(model):
    X, y, _ = data()
    X[:, 3] = 0.1
    model = clone(model).fit(X, target(model, y))
    assert np.atleast_2d(model.coef_)[0, 3] == 0
    if not hasattr(model, "classes_"):
        model.fit(X, np.full(60, 0.1))
        assert not model.coef_.any()
        assert np.isclose(model.intercept_, 0.1)


# Data types


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_float32_stays_float32(model, form):
    X, y, weight = data()
    single = clone(model).fit(FORMS[form](X.astype(np.float32)), target(model, y), weight)
    double = clone(model).fit(X, target(model, y), weight)
    assert single.coef_.dtype == np.float32
    assert single.intercept_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, atol=2e-3)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_sparse_data_are_never_made_dense(model, monkeypatch):
    X, y, weight = data()
    dense = clone(model).fit(X, target(model, y), weight)
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_array):
        make_dense = form.toarray

        def only_gram_matrices(matrix, make_dense=make_dense, **options):
            assert matrix.shape[0] <= X.shape[1] < 2 * len(X) / 3, "rows of X were made dense"
            return make_dense(matrix, **options)

        monkeypatch.setattr(form, "toarray", only_gram_matrices)
        monkeypatch.setattr(form, "todense", only_gram_matrices)
    sparse = clone(model).fit(scipy.sparse.csr_array(X), target(model, y), weight)
    sparse.predict(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-3)


def test_large_sparse_data_take_little_memory():
    import tracemalloc

    random = np.random.default_rng(0)
    rows, columns, per_row = 4000, 20_000, 200
    places = random.integers(0, columns, rows * per_row), np.arange(0, rows * per_row + 1, per_row)
    X = scipy.sparse.csr_array((random.standard_normal(rows * per_row), *places), shape=(rows, columns))
    X.sum_duplicates()
    y = X @ np.where(np.arange(columns) < 50, 1.0, 0.0)
    for model in (L12Regressor(6e-3, penalty=L12(l2_weight=0.5), tol=1e-2), L12Classifier(2e-3, tol=1e-2)):
        model.fit(X, target(model, y + 3))  # so that the modules which this loads are not counted
        tracemalloc.start()
        model.fit(X, target(model, y + 3))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert np.count_nonzero(model.coef_) >= 40
        data_size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        assert data_size + peak < 3 * data_size


# Cross-validation


def test_one_standard_error_takes_a_larger_alpha():
    X, y, _ = data()
    least = L12RegressorCV(alphas=20, cv=4).fit(X, y)
    simple = L12RegressorCV(alphas=20, cv=4, selection="1se").fit(X, y)
    np.testing.assert_array_equal(least.mse_path_, simple.mse_path_)
    means = least.mse_path_.mean(axis=1)
    best = means.argmin()
    assert least.alpha_ == least.alphas_[best]
    allowed = means[best] + least.mse_path_[best].std(ddof=1) / 2
    assert simple.alpha_ == simple.alphas_[means <= allowed].max()
    assert simple.alpha_ > least.alpha_
    with pytest.raises(ValueError, match="selection must be"):
        L12RegressorCV(selection="most").fit(X, y)


def test_the_grid_begins_with_one_feature_and_is_shared_by_the_folds():
    X, y, _ = data()
    model = L12RegressorCV(alphas=6, cv=KFold(3)).fit(X, y)
    assert np.isclose(model.alphas_[0], alpha_max(squared_loss(X - X.mean(axis=0), y - y.mean()), L12()))
    train, test = next(KFold(3).split(X))
    path = L12Regressor(warm_start=True)
    errors = []
    for alpha in model.alphas_:
        path.set_params(alpha=alpha).fit(X[train], y[train])
        errors.append(np.mean((y[test] - path.predict(X[test])) ** 2))
    np.testing.assert_allclose(errors, model.mse_path_[:, 0], rtol=1e-4)


@pytest.mark.parametrize("model", MODELS[2:], ids=repr)
def test_folds_in_parallel_give_the_same(model):
    X, y, weight = data()
    one = clone(model).fit(X, target(model, y), weight)
    two = clone(model).set_params(n_jobs=2).fit(X, target(model, y), weight)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_a_scorer_may_be_given():
    X, y, weight = data()
    model = L12ClassifierCV(alphas=4, eps=0.1, cv=3, scoring="accuracy").fit(X, y > 3, weight)
    assert ((model.scores_ >= 0) & (model.scores_ <= 1)).all()
    assert model.scores_.max() > 0.8
    by_default = L12ClassifierCV(alphas=4, eps=0.1, cv=3).fit(X, y > 3, weight)
    log_loss = clone(by_default).set_params(scoring="neg_log_loss").fit(X, y > 3, weight)
    np.testing.assert_allclose(by_default.scores_, log_loss.scores_, rtol=1e-9)


# In company


def test_not_converged_is_a_warning_that_says_what_to_do(monkeypatch):
    X, y, _ = data()
    with pytest.warns(
        ConvergenceWarning, match=r"stationarity .* in 2 iterations, tol=1e-12.* Raise max_iter or tol"
    ):
        model = L12Regressor(0.05, max_iter=2, tol=1e-12).fit(X, y)
    assert not model.results_[0].converged
    monkeypatch.setattr(L12RegressorCV, "max_iter", 1)
    with pytest.warns(ConvergenceWarning) as caught:
        L12RegressorCV(alphas=4, cv=3, tol=1e-12).fit(X, y)
    assert "in 12 of 12 problems" in str(caught[0].message)


def test_progress_is_printed_when_asked(capsys):
    X, y, _ = data()
    L12Regressor(0.05).fit(X, y)
    assert capsys.readouterr().out == ""
    L12Regressor(0.05, run=Run(verbose=True)).fit(X, y)
    assert capsys.readouterr().out.startswith("ell12: iteration")


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_select_from_model_keeps_every_feature_that_is_not_zero(model):
    X, y, _ = data()
    selector = SelectFromModel(model).fit(X, target(model, y))
    nonzero = np.atleast_2d(selector.estimator_.coef_)[0] != 0
    assert 0 < nonzero.sum() < 12
    np.testing.assert_array_equal(selector.get_support(), nonzero)
    assert selector.threshold_ == 1e-5


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_copies_pickles_and_pipelines(model, tmp_path):
    X, y, _ = data()
    y = target(model, y)
    fitted = clone(model).fit(X, y)
    joblib.dump(fitted, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))
    assert scipy.sparse.issparse(fitted.sparse_coef_)
    np.testing.assert_array_equal(fitted.sparse_coef_.toarray(), np.atleast_2d(fitted.coef_))
    pipeline = make_pipeline(StandardScaler(), clone(model))
    assert pipeline.fit(X, y).score(X, y) > 0.7
    search = GridSearchCV(clone(model), {"penalty": [L1(), L12(l2_weight=0.5)]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.7


def test_another_solver_reaches_the_same_convex_solution():
    X, y, _ = data()
    default = L12Regressor(0.05, penalty=L1(), tol=1e-9).fit(X, y)
    other = clone(default).set_params(solver=FISTA()).fit(X, y)
    np.testing.assert_allclose(default.coef_, other.coef_, atol=1e-7)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_sample_weights_are_routed(model):
    X, y, weight = data()
    y = target(model, y)
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = make_pipeline(scaler, clone(model).set_fit_request(sample_weight=True)).fit(
            X, y, sample_weight=weight
        )
        without = make_pipeline(scaler, clone(model).set_fit_request(sample_weight=False)).fit(X, y)
    direct = clone(model).fit(StandardScaler().fit_transform(X), y, weight)
    np.testing.assert_array_equal(routed[-1].coef_, direct.coef_)
    assert (without[-1].coef_ != direct.coef_).any()


def test_errors_are_clear():
    X, y, weight = data()
    for wrong, message in [
        ({"alpha": -1.0}, "alpha must be a finite number >= 0"),
        ({"max_iter": -1}, "max_iter"),
    ]:
        with pytest.raises(ValueError, match=message):
            L12Regressor(**wrong).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        L12Regressor().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="class"):
        L12Classifier().fit(X, np.ones(60))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        L12Regressor().fit(X, y, -weight)
    with pytest.raises(ValueError, match=r"zero"):
        L12Regressor().fit(X, y, 0 * weight)
    model = L12Regressor(0.1).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :3])


# What it is for


def test_on_correlated_columns_the_support_is_found_better_than_by_the_lasso(capsys):
    scores = []
    for seed in range(3):
        problem = correlated_design(seed, n_samples=120, n_features=300, n_nonzero=12)
        grid = {"cv": 5, "eps": 0.01}
        ours = L12RegressorCV(alphas=20, tol=1e-3, **grid).fit(problem.A, problem.b)
        theirs = LassoCV(alphas=20, max_iter=20_000, **grid).fit(problem.A, problem.b)
        scores.append([support_f1(model.coef_, problem.x) for model in (ours, theirs)])
    means = np.mean(scores, axis=0)
    with capsys.disabled():
        print(f"\nsupport F1: l1-2 {means[0]:.3f}, lasso {means[1]:.3f}")
    assert means[0] > means[1]


def support_f1(estimate, truth):
    found, wanted = estimate != 0, truth != 0
    return 2 * np.sum(found & wanted) / (found.sum() + wanted.sum())
