"""Estimators on columns out of memory find what they find in memory, and read the columns few times."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from ell12 import (
    L1,
    L12,
    Columns,
    L12Classifier,
    L12ClassifierCV,
    L12CoxRegressor,
    L12Regressor,
    L12RegressorCV,
    l12_path,
)

ROWS, WIDTH, TOL = 60, 200, 1e-8


@pytest.fixture(scope="module")
def data():
    """Genotypes with a column that is constant, and one that is so in the first two folds of three."""
    random = np.random.default_rng(0)
    X = np.asfortranarray(random.integers(0, 3, (ROWS, WIDTH)).astype(np.int8))
    X[:, 17], X[:40, 18] = 1, 2
    y = X[:, :4] @ [1.0, -1.0, 1.0, 0.5] + 0.3 * random.standard_normal(ROWS)
    return X, y, random.integers(0, 3, ROWS).astype(float)


class Source:
    """A format of one's own."""

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def block(self, first, last):
        return self.X[:, first:last]

    def take(self, columns):
        return self.X[:, columns]


def assert_same_fit(model, X, dense, y, most_reads, **weights):
    there, here = clone(model).fit(X, y, **weights), clone(model).fit(dense, y, **weights)
    size = np.abs(here.coef_).max()
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6 * size)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-6)
    np.testing.assert_allclose(there.predict(X), here.predict(dense), atol=1e-6)
    assert there.score(X, y) == pytest.approx(here.score(dense, y), abs=1e-6)
    assert there.n_features_in_ == WIDTH
    assert X.reads <= most_reads
    return there, here


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"penalty": L1()},
        {"fit_intercept": False},
        {"penalty": L12(positive=True), "relax": True},
        {"penalty": L12(weights=np.where(np.arange(WIDTH) < 3, 0.0, 1.0))},
        {"loss": "huber"},
    ],
)
def test_a_regression_is_that_of_the_dense_array(data, options):
    X, y, weight = data
    for given in ({}, {"sample_weight": weight}):
        assert_same_fit(L12Regressor(0.1, tol=TOL, **options), Columns(X), X.astype(float), y, 10, **given)


def test_two_reads_tell_all_that_a_path_begins_with(data):
    X, y, _ = data
    columns = Columns(X, scale=True)
    L12Regressor(100.0, penalty=L1()).fit(columns, y)
    assert columns.reads == 2


def test_scaled_columns_are_the_scaled_matrix(data):
    X, y, weight = data
    deviations = X.std(axis=0)
    deviations[17] = 1
    scaled = Columns(X, scale=True)
    there, _ = assert_same_fit(L12Regressor(0.1, tol=TOL), scaled, X / deviations, y, 10)
    np.testing.assert_allclose(there.predict(Columns(X[:5], scale=scaled.scales)), there.predict(scaled)[:5])
    means = np.average(X, axis=0, weights=weight)
    weighted = Columns(X, scale=True, sample_weight=weight).scales
    expected = np.sqrt(np.average((X - means) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(weighted, np.where(np.arange(WIDTH) == 17, 1, expected))


def test_sparse_columns_in_a_folder_and_a_source_of_ones_own_are_taken_too(data, tmp_path):
    X, y, _ = data
    dense = X.astype(float)
    Columns.save(scipy.sparse.csc_array(X), tmp_path / "X")
    assert_same_fit(L12Regressor(0.1, tol=TOL), Columns(tmp_path / "X"), dense, y, 10)
    here = L12Regressor(0.1, tol=TOL).fit(dense, y)
    np.testing.assert_allclose(L12Regressor(0.1, tol=TOL).fit(Source(X), y).coef_, here.coef_, atol=1e-8)
    np.testing.assert_allclose(here.predict(Source(X)), here.predict(dense))
    (_, there, _), (_, here, _) = (
        l12_path(A, y, alphas=5, tol=TOL, penalty=L12(l2_weight=0.0)) for A in (Source(X), dense)
    )
    there = there.toarray() if scipy.sparse.issparse(there) else there
    np.testing.assert_allclose(there, here, atol=1e-6)


def test_counts_several_targets_classes_and_survival_times(data):
    X, y, weight = data
    dense = X.astype(float)
    assert_same_fit(L12Regressor(0.1, loss="poisson", tol=TOL), Columns(X), dense, np.round(np.exp(y / 3)), 10)
    assert_same_fit(L12Regressor(0.1, tol=TOL), Columns(X), dense, np.column_stack([y, -(y**2)]), 25)
    for labels, reads in ((y > 1, 10), (np.digitize(y, [0, 1]), 25)):
        model = L12Classifier(0.05, tol=TOL, class_weight="balanced")
        there, here = assert_same_fit(
            model, Columns(X), dense, labels.astype(int), reads, sample_weight=weight + 1
        )
        np.testing.assert_allclose(there.predict_proba(Columns(X)), here.predict_proba(dense), atol=1e-6)
    times = np.column_stack([np.exp(-y), weight > 0])
    assert_same_fit(L12CoxRegressor(0.05, tol=TOL), Columns(X), dense, times, 15)


@pytest.mark.parametrize("scoring", [None, "r2"])
def test_cross_validation_chooses_as_in_memory(data, scoring):
    X, y, weight = data
    model = L12RegressorCV(alphas=16, eps=0.03, cv=3, tol=TOL, penalty=L1(), scoring=scoring, relax=False)
    there, here = assert_same_fit(model, Columns(X), X.astype(float), y, 40, sample_weight=weight + 1)
    assert there.alpha_ == pytest.approx(here.alpha_)
    paths = [found.mse_path_ if scoring is None else found.scores_ for found in (there, here)]
    np.testing.assert_allclose(*paths, rtol=1e-5, atol=1e-7)


def test_classes_are_cross_validated_and_criteria_choose(data):
    X, y, _ = data
    dense = X.astype(float)
    model = L12ClassifierCV(alphas=5, eps=0.2, cv=3, tol=TOL)
    there, here = assert_same_fit(model, Columns(X), dense, (y > 1).astype(int), 130)
    np.testing.assert_allclose(there.scores_, here.scores_, rtol=1e-5)
    assert_same_fit(L12RegressorCV(alphas=5, eps=0.2, selection="ebic", tol=TOL), Columns(X), dense, y, 40)


def test_what_needs_rows_in_memory_says_so(data):
    X, y, _ = data
    columns, model = Columns(X), L12Regressor(0.1)
    with pytest.raises(TypeError, match=r"partial_fit needs NumPy arrays or sparse matrices, got Columns"):
        model.partial_fit(columns, y)
    for call, message in (
        (lambda: L12Classifier(loss="multinomial").fit(columns, np.digitize(y, [0, 1])), "needs X in memory"),
        (lambda: L12Regressor(0.0).fit(columns, y), "alpha must be > 0"),
        (lambda: model.fit(columns, y[1:]), "inconsistent numbers of samples"),
        (lambda: model.fit(columns, y).predict(Columns(X[:, :5])), f"X has 5 features, but .* expecting {WIDTH}"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
