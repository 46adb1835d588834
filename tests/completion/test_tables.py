"""Tables: columns with units of their own, ranges, empty columns, indicators, whole numbers and data frames."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ell12 import L12Imputer, Observed, SpectralL12, complete_matrix
from ell12.completion.hidden_entries import has_own_units
from ell12.completion.offsets import fit_offsets

UNITS = 10.0 ** np.array([0, 4, -6, 6, -2, 1, 3])


def table(seed=0, shape=(40, 7), missing=0.3):
    random = np.random.default_rng(seed)
    X = random.standard_normal((shape[0], 2)) @ random.standard_normal((2, shape[1]))
    X = (X + 0.2 * random.standard_normal(shape)) / X.std(axis=0) + random.normal(0, 3, shape[1])
    return np.where(random.random(shape) < missing, np.nan, X), X


def frame(**dtypes):
    known, _ = table(shape=(40, 4))
    X = pd.DataFrame(known, columns=list("abcd"), index=range(100, 140))
    X["b"] = X["b"].round().astype(dtypes.get("b", "Int64"))
    X["c"] = (X["c"] > X["c"].mean()).astype("boolean").mask(X["c"].isna()).astype(dtypes.get("c", "boolean"))
    return X


@settings(max_examples=3, deadline=None)
@given(powers=st.lists(st.floats(-6, 6), min_size=5, max_size=5), shift=st.floats(-3, 3))
def test_columns_in_other_units_give_the_same_table_in_these_units(powers, shift):
    known, _ = table()
    known = known * UNITS
    factors = np.array([1.0, 1.0, *(10.0**power for power in powers)])  # the first two differ by 1e4 in either
    model = L12Imputer(random_state=0)
    plain = model.fit_transform(known)
    other = clone(model).fit(known * factors + shift * factors * UNITS)
    assert model.scale_ == other.scale_ == "columns"
    assert other.n_iter_ == model.n_iter_
    found = other.transform(known * factors + shift * factors * UNITS)
    np.testing.assert_allclose((found / factors - shift * UNITS) / UNITS, plain / UNITS, rtol=0, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales_are_standard_deviations_and_of_use_where_there_are_none(dtype):
    known = table()[0].astype(dtype) * (UNITS * 10.0 ** np.array([0, 0, -25, 8, 0, 0, 0])).astype(dtype)
    known[:, 4] = np.where(np.isnan(known[:, 4]), np.nan, 0.1)  # constant, up to rounding
    known[1:, 5], known[0, 5] = np.nan, 7.0
    known[:, 6] = np.nan
    for center in ("columns", "biases"):
        offsets = fit_offsets(Observed.of(known), center, "columns")
        np.testing.assert_allclose(offsets.scales[:4], np.nanstd(known.astype(float)[:, :4], axis=0), rtol=1e-4)
        np.testing.assert_allclose(offsets.scales[4:], [0.1, 7.0, np.nan], rtol=1e-6)
        assert offsets.scales.dtype == dtype
    with pytest.warns(UserWarning, match="x6"):
        filled = L12Imputer("noise").fit_transform(known)
    assert filled.shape == (40, 6)
    np.testing.assert_allclose(filled[:, 4:], np.broadcast_to([0.1, 7.0], (40, 2)), rtol=1e-6)


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        (np.ones(20), False),
        (np.linspace(1, 2, 20), False),
        (np.r_[np.ones(19), 1e4], True),  # dollars
        (np.r_[np.ones(19), 1e-4], True),
        (np.geomspace(1, 8, 20), True),
        (np.r_[np.ones(19), 0], False),  # a constant column is no reason
    ],
)
def test_columns_are_scaled_where_their_deviations_differ_beyond_chance(scales, expected):
    X = np.random.default_rng(0).standard_normal((200, 20)) * scales + 0.1
    assert has_own_units(Observed.of(X)) == expected
    assert has_own_units(Observed.of(1e-5 * X)) == expected
    few = np.random.default_rng(1).standard_normal((20, 6, 20))  # whose deviations differ by chance
    deviations = few.std(axis=1)
    assert np.mean(deviations.max(axis=1) > 3 * deviations.min(axis=1)) > 0.5
    assert np.mean([has_own_units(Observed.of(table)) for table in few]) < 0.2


def test_predictions_stay_in_the_range_of_their_column():
    known = table()[0] * UNITS
    model = L12Imputer(0.1, tol=1e-7).fit(known)
    extreme = np.full((1, 7), np.nan)
    extreme[0, :2] = 1e3 * UNITS[:2]
    filled = model.transform(extreme)[0, 2:]
    low, high = np.nanmin(known, axis=0), np.nanmax(known, axis=0)
    assert np.all((filled >= low[2:]) & (filled <= high[2:]))
    np.testing.assert_array_equal(model.clip_.low, low)
    np.testing.assert_array_equal(model.clip_.high, high)
    rows, columns = np.nonzero(np.isnan(known))
    np.testing.assert_allclose(model.predict(rows, columns), model.predict(known)[rows, columns], rtol=1e-3)
    given = L12Imputer(0.1, clip=(low - 1, 1e9)).fit(known)
    np.testing.assert_array_equal(given.clip_.low, low - 1)
    for wrong in ((low[:2], high), (high, low), (low, "high"), 3.0):
        with pytest.raises(ValueError, match="clip must"):
            L12Imputer(0.1, clip=wrong).fit(known)


@pytest.mark.filterwarnings("ignore:Skipping features:UserWarning")  # scikit-learn's
@pytest.mark.parametrize("keep", [False, True])
def test_a_column_of_a_table_without_entries_is_treated_as_by_scikit_learn(keep):
    known = pd.DataFrame(table()[0] * UNITS, columns=list("abcdefg"))
    known["c"] = np.nan
    options = {"keep_empty_features": keep, "add_indicator": True}
    peer = SimpleImputer(**options).set_output(transform="pandas").fit(known)
    model = L12Imputer(0.5, **options).set_output(transform="pandas")
    if keep:
        model.fit(known)
    else:
        with pytest.warns(UserWarning, match="leaves out columns without any known entry: c. Nothing"):
            model.fit(known)
    new = known.iloc[:5].assign(c=7.0)  # known in new rows, but of no use to them
    filled, expected = model.transform(new), peer.transform(new)
    assert list(filled.columns) == list(expected.columns) == list(model.get_feature_names_out())
    others = [name for name in filled.columns if "missing" in name or name == "c"]
    pd.testing.assert_frame_equal(filled[others], expected[others])
    assert not filled.isna().any().any()
    without = model.transform(known.iloc[:5])
    assert not keep or (without["c"] == 0).all()
    np.testing.assert_array_equal(without[["a", "d"]], filled[["a", "d"]])
    assert model.predict(known.iloc[:5]).shape == (5, 7 if keep else 6)


def test_a_column_of_ratings_without_entries_is_filled_by_biases():
    random = np.random.default_rng(0)
    X = (1 + random.random((30, 20))) * (random.random((30, 20)) < 0.2) * (np.arange(20) != 3)
    X, options = scipy.sparse.csr_array(X), {"center": "biases", "scale": None, "max_rank": 3, "clip": None}
    model = L12Imputer(1.0, penalty=SpectralL12(l2_weight=0.5), **options).fit(X)
    filled = model.transform(X)
    assert filled.shape == (30, 20)
    offsets = model.completion_.offsets.for_rows(Observed.of(X))
    np.testing.assert_allclose(filled[:, 3], offsets.mean + offsets.rows)
    assert np.ndim(model.clip_.low) == 0


def test_a_completion_says_which_columns_it_cannot_complete():
    known = table()[0] * UNITS
    known[:, 2] = np.nan
    completion = complete_matrix(known, 1.0)
    with pytest.warns(UserWarning, match="columns without any known entry are NaN: 2"):
        full = completion.to_array()
    np.testing.assert_array_equal(np.isnan(full).all(axis=0), np.arange(7) == 2)
    assert not np.isnan(np.delete(full, 2, axis=1)).any()
    one_unit = table()[0]
    one_unit[:, 2] = np.nan
    assert not np.isnan(complete_matrix(one_unit, 1.0, scale=None).to_array()).any()


@pytest.mark.parametrize("dtypes", [{}, {"b": "Int8"}, {"b": "int64[pyarrow]", "c": "bool[pyarrow]"}])
def test_integer_columns_of_a_data_frame_come_back_as_whole_numbers_of_their_dtype(dtypes):
    if any("pyarrow" in dtype for dtype in dtypes.values()):
        pytest.importorskip("pyarrow")
    X = frame(**dtypes)
    model = L12Imputer(0.5, random_state=0).set_output(transform="pandas")
    filled = model.fit_transform(X)
    assert filled.dtypes.to_dict() == X.dtypes.to_dict()
    assert filled.index.equals(X.index)
    assert not filled.isna().any().any()
    known = X.notna()
    for name in X.columns:
        assert (filled[name][known[name]] == X[name][known[name]]).all()
        assert filled[name].min() >= X[name].min()
        assert filled[name].max() <= X[name].max()
    plain = clone(model).set_output(transform="default").fit_transform(X)
    assert plain.dtype == np.float64
    np.testing.assert_array_equal(plain, filled.to_numpy(dtype=float))
    floats = L12Imputer(0.5, random_state=0).fit_transform(X.astype(float))
    np.testing.assert_array_equal(plain[:, [0, 3]], floats[:, [0, 3]])
    np.testing.assert_array_equal(plain[:, 1], np.rint(floats[:, 1]))
    assert np.any(floats[:, 1] % 1)
    bounded = L12Imputer(0.5, clip=(-0.5, 1.5), random_state=0).set_output(transform="pandas").fit(X)
    assert set(bounded.transform(X)["b"][X["b"].isna()]) <= {0, 1}
    new = X.astype(float)
    new.loc[100, "b"] = 0.25  # a new fraction stays a fraction
    found = bounded.transform(new)
    assert (found.loc[100, "b"], found["c"].dtype) == (0.25, X["c"].dtype)


def mixed(rows=120, seed=0):
    """Numbers and categories that follow two factors."""
    random = np.random.default_rng(seed)
    W = random.standard_normal((rows, 2))
    numbers = W @ random.standard_normal((2, 4)) + 0.1 * random.standard_normal((rows, 4))
    kind = np.array(["ash", "elm", "oak"])[np.digitize(W[:, 0], [-0.5, 0.5])]
    sex = pd.Categorical.from_codes((W[:, 1] > 0).astype(int), ["f", "m"])
    table = pd.DataFrame(numbers, columns=list("abcd")).assign(kind=kind, sex=sex)
    return table, table.mask(random.random(table.shape) < 0.2)


def test_categories_are_completed_and_come_back_whole():
    truth, holes = mixed()
    model = L12Imputer(random_state=0)
    found = model.fit_transform(holes)
    assert list(found.columns) == list(truth.columns) == list(model.get_feature_names_out())
    assert found.dtypes.equals(holes.dtypes)
    assert not found.isna().any().any()
    for name in truth:
        known = holes[name].notna()
        assert (found[name][known] == truth[name][known]).all()
    missing = holes["kind"].isna()
    most = (truth["kind"][missing] == truth["kind"].mode()[0]).mean()
    assert (found["kind"] == truth["kind"])[missing].mean() > most + 0.2
    assert (found["sex"] == truth["sex"])[holes["sex"].isna()].mean() > 0.8
    numbers = list("abcd")
    miss = (found[numbers] - truth[numbers]).to_numpy()[holes[numbers].isna().to_numpy()]
    assert np.sqrt(np.mean(miss**2)) < 0.6 * truth[numbers].to_numpy().std()


def test_categories_of_new_rows_indicators_and_draws():
    truth, holes = mixed()
    model = L12Imputer(1.0, add_indicator=True, random_state=0).fit(holes)
    new = holes.iloc[:5].copy()
    new["kind"] = ["yew", None, None, "oak", None]  # the first was never seen
    found = model.transform(new)
    assert found["kind"].iloc[0] == "yew"
    assert set(found["kind"].iloc[[1, 2, 4]]) <= {"ash", "elm", "oak"}
    assert found["missingindicator_kind"].tolist() == [0, 1, 1, 0, 1]
    assert model.n_features_in_ == 6
    one, two = model.draws(holes, 2, random_state=0)
    assert (one["kind"] != two["kind"]).any()
    assert (one["kind"] == truth["kind"])[holes["kind"].notna()].all()
    for call in (model.predict, model.intervals):
        with pytest.raises(ValueError, match="for tables of numbers"):
            call(holes)
    with pytest.raises(TypeError, match="X must be a DataFrame with the columns of fit"):
        model.transform(np.ones((2, 6)))
    with pytest.raises(ValueError, match="neither numbers nor categories: day"):
        model.fit(holes.assign(day=pd.Timestamp("2026-01-01")))


def test_tables_go_through_pipelines_searches_and_pickles():
    X = frame().assign(town=["a", "b"] * 20)
    y = table()[1][:, 0]
    numbers = make_pipeline(L12Imputer("noise", add_indicator=True, random_state=0), StandardScaler())
    both = ColumnTransformer([("numbers", numbers, list("abcd")), ("town", OneHotEncoder(), ["town"])])
    model = make_pipeline(both, Ridge()).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert "numbers__missingindicator_a" in both.fit(X).get_feature_names_out()
    grid = {"columntransformer__numbers__l12imputer__scale": ["auto", None]}
    assert GridSearchCV(model, grid, cv=2).fit(X, y).best_score_ > 0


def times_the_error_of_means(X, seed):
    random = np.random.default_rng(seed)
    known = np.where(random.random(X.shape) < 0.3, np.nan, X)
    missing = np.isnan(known)
    tables = L12Imputer(random_state=seed).fit_transform(known), SimpleImputer().fit_transform(known)
    errors = [np.linalg.norm(((filled - X) / X.std(axis=0))[missing]) for filled in tables]
    return errors[0] / errors[1]


def test_a_small_table_is_better_than_column_means_and_one_of_noise_hardly_worse():
    assert max(times_the_error_of_means(load_iris().data, seed) for seed in range(4)) < 0.75
    tables = np.random.default_rng(1).standard_normal((6, 20, 15))
    assert np.mean([times_the_error_of_means(X, seed) for seed, X in enumerate(tables)]) < 1.04
