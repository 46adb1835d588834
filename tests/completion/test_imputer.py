"""L12Imputer: what goes in, what comes out, and what its automatic choices are worth."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

from ell12 import L12Imputer, SpectralL12, Status
from ell12.completion import imputer as module
from ell12.datasets import synthetic_ratings

EXACT = {"tol": 1e-9, "clip": None}


def table(seed=0, shape=(60, 12)):
    random = np.random.default_rng(seed)
    X = random.standard_normal((shape[0], 2)) @ random.standard_normal((2, shape[1]))
    X += 0.1 * random.standard_normal(shape) + 5 * np.arange(shape[1])
    return np.where(random.random(shape) < 0.3, np.nan, X), X


def test_known_entries_are_kept_and_the_others_are_better_than_means():
    known, X = table()
    filled = L12Imputer(random_state=0).fit_transform(known)
    missing = np.isnan(known)
    np.testing.assert_array_equal(filled[~missing], known[~missing])
    means = SimpleImputer().fit_transform(known)
    assert np.linalg.norm((filled - X)[missing]) < 0.3 * np.linalg.norm((means - X)[missing])
    np.testing.assert_array_equal(L12Imputer(random_state=0).fit_transform(X), X)  # nothing is missing


@pytest.mark.parametrize("center", ["mean", "columns", "biases", None])
@pytest.mark.parametrize("alpha", [1.0, 5.0])
def test_the_rows_of_the_training_data_are_completed_as_they_were_fitted(center, alpha):
    known = table()[0]
    model = L12Imputer(alpha=alpha, center=center, **EXACT).fit(known)
    full, missing = model.completion_.to_array(), np.isnan(known)
    # A new row's bias is found from its own entries, given the fitted columns.
    atol = 0.1 if center == "biases" else 1e-5
    np.testing.assert_allclose(model.transform(known)[missing], full[missing], atol=atol)
    np.testing.assert_allclose(model.predict([3, 0], [1, 11]), full[[3, 0], [1, 11]])
    np.testing.assert_allclose(model.predict(known), full, atol=atol)


def test_unseen_rows_are_completed_from_their_own_entries():
    known, X = table(shape=(120, 12))
    model = L12Imputer(random_state=0).fit(known[:80])
    filled = model.transform(known[80:])
    missing = np.isnan(known[80:])
    means = np.broadcast_to(np.nanmean(known[:80], axis=0), missing.shape)
    assert np.linalg.norm((filled - X[80:])[missing]) < 0.4 * np.linalg.norm((means - X[80:])[missing])
    one_by_one = np.vstack([model.transform(row[None]) for row in known[80:]])
    np.testing.assert_allclose(filled, one_by_one)


@pytest.mark.parametrize("scale", [None, "columns"])
def test_without_centring_a_row_without_entries_has_the_means_of_the_columns(scale):
    known = table(shape=(30, 8))[0]
    known[4] = np.nan
    model = L12Imputer(alpha=1.0, tol=1e-6, center=None, scale=scale, clip=None).fit(known)
    np.testing.assert_allclose(model.transform(known)[4], np.nanmean(known, axis=0))


@pytest.fixture(scope="module")
def split_ratings():
    drawn = synthetic_ratings(0, 150, 100, 3000, rank=2, factor_deviation=0.9, noise=0.4)
    test = np.random.default_rng(1).random(3000) < 0.2
    entries = drawn.rows[test], drawn.columns[test], drawn.values[test]
    return drawn.part(~test).sparse(), entries


def error(model, entries):
    rows, columns, values = entries
    return np.sqrt(np.mean((model.predict(rows, columns) - values) ** 2))


def test_ratings_choose_their_rank_and_offsets(split_ratings):
    X, entries = split_ratings
    model, noise = L12Imputer(random_state=0).fit(X), L12Imputer("noise", random_state=0).fit(X)
    for fit in (model, noise):
        assert (fit.center_, fit.penalty_.l2_weight, fit.max_rank_ in (4, 8, 16)) == ("biases", 0.5, True)
    biases = L12Imputer(1e6, penalty=SpectralL12(l2_weight=0.0), center="biases").fit(X)  # nothing else is left
    assert biases.completion_.x.rank == 0
    assert error(model, entries) < 0.95 * error(biases, entries)
    # The signal is strong here, far more so than in ratings by people, for which the guess is made.
    assert error(noise, entries) < 1.2 * error(model, entries)


def test_what_cannot_be_done_is_said(split_ratings, monkeypatch):
    model = L12Imputer(alpha=1.0, max_rank=2, center="biases").fit(split_ratings[0])
    assert model.completion_.status is Status.RANK_CAPPED  # no reason to warn
    monkeypatch.setattr(module, "AT_ONCE", 100)
    with pytest.raises(ValueError, match="predict"):  # a large sparse matrix is not made dense unasked
        model.transform(split_ratings[0])
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        L12Imputer(alpha=0.01, max_iter=2).fit(table()[0])
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match=r"X is a Dask Array.*X\.compute\(\).*ell12\.distributed\.complete_matrix"):
        L12Imputer(1.0).fit(da.ones((4, 3)))


@parametrize_with_checks(
    [L12Imputer(random_state=0), L12Imputer(alpha=0.5, penalty=SpectralL12(l2_weight=0.5), random_state=0)]
)
def test_the_imputer_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
