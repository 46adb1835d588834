"""L12Imputer: what goes in, what comes out, and what its automatic choices are worth."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

from ell12 import L12Imputer, SpectralL12, Status
from ell12.completion import imputer as module

EXACT = {"tol": 1e-9, "clip": None}


def table(seed=0, shape=(60, 12)):
    random = np.random.default_rng(seed)
    X = random.standard_normal((shape[0], 2)) @ random.standard_normal((2, shape[1]))
    X += 0.1 * random.standard_normal(shape) + 5 * np.arange(shape[1])
    return np.where(random.random(shape) < 0.3, np.nan, X), X


def ratings(seed=0, shape=(150, 100), count=3000):
    random = np.random.default_rng(seed)
    flat = random.choice(shape[0] * shape[1], count, replace=False)
    rows, columns = np.divmod(flat, shape[1])
    W, H = random.standard_normal((shape[0], 2)), random.standard_normal((shape[1], 2))
    values = 3.5 + random.normal(0, 0.5, shape[0])[rows] + random.normal(0, 0.5, shape[1])[columns]
    values += 0.7 * np.sum(W[rows] * H[columns], axis=1) + 0.4 * random.standard_normal(count)
    return rows, columns, np.clip(np.round(values), 1, 5)


def test_known_entries_are_kept_and_the_others_are_better_than_means():
    known, X = table()
    filled = L12Imputer(random_state=0).fit_transform(known)
    missing = np.isnan(known)
    np.testing.assert_array_equal(filled[~missing], known[~missing])
    means = SimpleImputer().fit_transform(known)
    assert np.linalg.norm((filled - X)[missing]) < 0.3 * np.linalg.norm((means - X)[missing])


@pytest.mark.parametrize("center", ["mean", "columns", "biases", None])
@pytest.mark.parametrize("alpha", [1.0, 5.0])
def test_the_rows_of_the_training_data_are_completed_as_they_were_fitted(center, alpha):
    known = table()[0]
    model = L12Imputer(alpha=alpha, center=center, **EXACT).fit(known)
    missing = np.isnan(known)
    # A new row's bias is found from its own entries, given the fitted columns.
    atol = 0.1 if center == "biases" else 1e-5
    np.testing.assert_allclose(model.transform(known)[missing], model.completion_.to_array()[missing], atol=atol)


def test_unseen_rows_are_completed_from_their_own_entries():
    known, X = table(shape=(120, 12))
    model = L12Imputer(random_state=0).fit(known[:80])
    filled = model.transform(known[80:])
    missing = np.isnan(known[80:])
    means = np.broadcast_to(np.nanmean(known[:80], axis=0), missing.shape)
    assert np.linalg.norm((filled - X[80:])[missing]) < 0.4 * np.linalg.norm((means - X[80:])[missing])
    one_by_one = np.vstack([model.transform(row[None]) for row in known[80:]])
    np.testing.assert_allclose(filled, one_by_one)


def test_explicit_zeros_are_known():
    X = scipy.sparse.coo_array(([0.0, 4.0, 4.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert L12Imputer(alpha=0.1).fit_transform(X)[0, 0] == 0


def test_predict_gives_entries_and_rows():
    known = table()[0]
    model = L12Imputer(alpha=1.0, **EXACT).fit(known)
    full = model.completion_.to_array()
    np.testing.assert_allclose(model.predict([3, 0], [1, 11]), full[[3, 0], [1, 11]])
    np.testing.assert_allclose(model.predict(known), full, atol=1e-5)


def test_clipping():
    known = table()[0]
    low, high = np.nanmin(known), np.nanmax(known)
    extreme = np.full((1, 12), np.nan)
    extreme[0, :3] = [100.0, -300.0, 200.0]
    filled = L12Imputer(alpha=0.1).fit(known).transform(extreme)
    assert filled[0, 3:].min() >= low
    assert filled[0, 3:].max() <= high
    np.testing.assert_array_equal(filled[0, :3], extreme[0, :3])
    assert L12Imputer(alpha=0.1, clip=(0.0, 1.0)).fit(known).predict([5], [11])[0] == 1.0


def test_rows_and_columns_with_nothing_known():
    known = table(shape=(30, 8))[0]
    known[4], known[:, 5] = np.nan, np.nan
    model = L12Imputer(alpha=1.0, tol=1e-6, keep_empty_features=True).fit(known)
    filled = model.transform(known)
    means = np.nanmean(known[:, [0, 7]], axis=0)
    np.testing.assert_allclose(filled[4, [0, 7]], means, atol=1e-3)
    np.testing.assert_array_equal(filled[:, 5], 0)


@pytest.mark.parametrize("scale", [None, "columns"])
def test_without_centring_a_row_without_entries_has_the_means_of_the_columns(scale):
    known = table(shape=(30, 8))[0]
    known[4] = np.nan
    model = L12Imputer(alpha=1.0, tol=1e-6, center=None, scale=scale, clip=None).fit(known)
    np.testing.assert_allclose(model.transform(known)[4], np.nanmean(known, axis=0))


def test_a_complete_table_comes_back_as_it_is():
    X = table()[1]
    np.testing.assert_array_equal(L12Imputer(random_state=0).fit_transform(X), X)


# Ratings


@pytest.fixture(scope="module")
def split_ratings():
    rows, columns, values = ratings()
    test = np.random.default_rng(1).random(rows.size) < 0.2
    X = scipy.sparse.coo_array((values[~test], (rows[~test], columns[~test])), shape=(150, 100))
    return X, (rows[test], columns[test], values[test])


def error(model, entries):
    rows, columns, values = entries
    return np.sqrt(np.mean((model.predict(rows, columns) - values) ** 2))


def test_ratings_choose_their_rank_and_offsets(split_ratings):
    X, entries = split_ratings
    model = L12Imputer(random_state=0).fit(X)
    assert model.max_rank_ in (2, 4, 8, 16)
    assert model.penalty_.l2_weight in (1.0, 0.5)
    assert model.center_ in ("biases", None)
    biases = L12Imputer(1e6, penalty=SpectralL12(l2_weight=0.0), center="biases").fit(X)  # nothing else is left
    assert biases.completion_.x.rank == 0
    assert error(model, entries) < 0.95 * error(biases, entries)


def test_noise_is_not_far_from_the_hidden_entries_choice(split_ratings):
    X, entries = split_ratings
    noise = L12Imputer("noise", random_state=0).fit(X)
    assert (noise.center_, noise.penalty_.l2_weight) == ("biases", 0.5)
    assert noise.max_rank_ <= 10
    assert L12Imputer(4.0).fit(X).penalty_.l2_weight == 0.5
    # The signal is strong here, far more so than in ratings by people, for which the guess is made.
    assert error(noise, entries) < 1.2 * error(L12Imputer(random_state=0).fit(X), entries)


def test_a_bound_rank_is_no_reason_to_warn(split_ratings):
    model = L12Imputer(alpha=1.0, max_rank=2, center="biases").fit(split_ratings[0])
    assert model.completion_.status is Status.RANK_CAPPED


def test_a_large_sparse_matrix_is_not_made_dense_unasked(split_ratings, monkeypatch):
    X, _ = split_ratings
    model = L12Imputer(alpha=3.0).fit(X)
    monkeypatch.setattr(module, "AT_ONCE", 100)
    with pytest.raises(ValueError, match="predict"):
        model.transform(X)


# Errors and progress


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({}, np.full((3, 2), np.nan), "no known entry"),
        ({}, np.array([[1.0, np.inf], [1.0, 2.0]]), "infinity"),
        ({"alpha": -1.0}, None, "alpha"),
        ({"alpha": "best"}, None, "alpha must be a finite number >= 0, 'noise' or None, got 'best'"),
        ({"center": "rows"}, None, "center"),
        ({"max_rank": 0}, None, "max_rank"),
        ({"clip": (2.0, 1.0)}, None, "clip"),
        ({"clip": "range"}, None, "clip"),
    ],
)
def test_wrong_arguments(options, X, message):
    with pytest.raises(ValueError, match=message):
        L12Imputer(**options).fit(table()[0] if X is None else X)


def test_too_few_iterations_are_a_warning():
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        L12Imputer(alpha=0.01, max_iter=2).fit(table()[0])


def test_a_dask_array_is_refused_with_what_to_do():
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match=r"X is a Dask Array.*X\.compute\(\).*ell12\.distributed\.complete_matrix"):
        L12Imputer(1.0).fit(da.ones((4, 3)))


@parametrize_with_checks([L12Imputer(), L12Imputer(alpha=0.5, penalty=SpectralL12(l2_weight=0.5))])
def test_the_imputer_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
