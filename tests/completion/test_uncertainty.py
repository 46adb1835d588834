"""Intervals hold what is missing as often as they promise, and draws differ as much as errors do."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.stats

from ell12 import L12Imputer, SpectralL12

UNITS = np.geomspace(0.01, 100, 8)
NOISE = np.linspace(0.1, 1.5, 8)


def table(seed, rows=150, missing=0.3):
    """Columns with units and noise of their own, some of it heavy-tailed, and what is missing of them."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, 2)) @ random.standard_normal((2, 8))
    X += NOISE * random.standard_t(np.where(np.arange(8) % 2, 3, 50), (rows, 8))
    X = X * UNITS + 5 * UNITS
    return np.where(random.random(X.shape) < missing, np.nan, X), X


def covered(model, known, X, **options):
    lower, upper = model.intervals(known, **options)
    return (lower <= X) & (upper >= X)


def assert_covered(inside, n_hidden, coverage=0.9, most=0.0):
    """The share is one that is left but once in ten thousand cases on either side, if errors are exchangeable.

    Given n hidden errors, the number of m missing entries below the k-th of them is beta-binomial.
    """
    k = np.ceil((n_hidden + 1) * coverage)
    number = scipy.stats.betabinom(inside.size, k, n_hidden + 1 - k)
    low, high = number.ppf([1e-4, 1 - 1e-4]) / inside.size
    assert low < inside.mean() < max(high, most) + 0.01  # a tenth less is known to the fits that are judged


@pytest.fixture(scope="module")
def fitted():
    """Three draws of the table, each with its imputer."""
    draws = [table(seed) for seed in range(3)]
    return [(L12Imputer("noise", random_state=0).fit(known), known, X) for known, X in draws]


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_intervals_cover_missing_entries_as_often_as_promised(fitted, coverage):
    parts = [covered(model, known, X, coverage=coverage)[np.isnan(known)] for model, known, X in fitted]
    n_hidden = sum(np.count_nonzero(~np.isnan(known)) for _, known, _ in fitted)
    assert_covered(np.concatenate(parts), n_hidden, coverage)


def test_every_column_is_covered_whatever_its_unit_and_its_noise(fitted):
    for column in range(8):
        parts = [covered(model, known, X)[np.isnan(known)[:, column], column] for model, known, X in fitted]
        n_hidden = sum(np.count_nonzero(~np.isnan(known[:, column])) for _, known, _ in fitted)
        assert_covered(np.concatenate(parts), n_hidden)
    model, known, X = fitted[0]
    widths = np.subtract(*model.intervals(known)[::-1]).sum(axis=0) / np.isnan(known).sum(axis=0)
    errors = np.mean(np.abs(model.transform(known) - X), axis=0, where=np.isnan(known))
    assert np.ptp(np.log(widths / errors)) < np.log(2) < np.ptp(np.log(errors / UNITS))


def test_rows_that_were_not_fitted_are_covered_too():
    shares, number = [], 0
    for seed in range(3):
        known, X = table(seed, rows=300)
        model = L12Imputer("noise", random_state=0).fit(known[:100])
        shares.append(covered(model, known[100:], X[100:])[np.isnan(known[100:])])
        number += np.count_nonzero(~np.isnan(known[:100]))
    assert_covered(np.concatenate(shares), number)


def test_known_entries_are_points_and_intervals_hold_what_is_filled_in(fitted):
    model, known, _ = fitted[0]
    before = known.copy()
    lower, upper = model.intervals(known)
    there = ~np.isnan(known)
    np.testing.assert_array_equal(lower[there], known[there])
    np.testing.assert_array_equal(upper[there], known[there])
    filled = model.transform(known)
    assert ((lower <= filled) & (filled <= upper)).all()
    np.testing.assert_array_equal(known, before)


def test_more_coverage_is_a_wider_interval_and_fewer_known_entries_too(fitted):
    model, known, _ = fitted[0]
    widths = [np.subtract(*model.intervals(known, coverage=c)[::-1])[np.isnan(known)] for c in (0.5, 0.8, 0.95)]
    assert (widths[0] <= widths[1]).all()
    assert (widths[1] <= widths[2]).all()
    two = np.full((2, 8), np.nan)
    two[0, :3], two[1, :7] = known[~np.isnan(known[:, :3]).any(axis=1)][0, :3], 5 * UNITS[:7]
    lower, upper = model.intervals(two)
    assert (upper - lower)[0, 7] > (upper - lower)[1, 7]


def test_containers_pickles_threads_and_pairs_agree(fitted):
    model, known, _ = fitted[0]
    expected = np.stack(model.intervals(known))
    there = np.nonzero(~np.isnan(known))
    sparse = scipy.sparse.coo_array((known[there], there), shape=known.shape)
    for X in (pd.DataFrame(known), sparse, np.ma.masked_invalid(known)):
        again = L12Imputer("noise", random_state=0).fit(X)
        np.testing.assert_allclose(np.stack(pickle.loads(pickle.dumps(again)).intervals(X)), expected)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: np.stack(again.intervals(known)), range(2)):
            np.testing.assert_allclose(found, expected)
    rows, columns = np.nonzero(np.isnan(known))
    pairs = np.stack(model.intervals(rows, columns))
    np.testing.assert_allclose(pairs[1] - pairs[0], (expected[1] - expected[0])[rows, columns])
    np.testing.assert_allclose((pairs[0] + pairs[1]) / 2, model.predict(rows, columns))


def test_ratings_are_covered_those_of_rare_items_by_wider_intervals():
    random = np.random.default_rng(0)
    popularity = np.exp(2.0 * random.standard_normal(80))
    items = random.choice(80, 3000, p=popularity / popularity.sum())
    flat = np.unique(random.integers(150, size=3000) * 80 + items)
    rows, columns = np.divmod(flat, 80)
    values = 3.5 + random.normal(0, 0.5, 150)[rows] + random.normal(0, 1.0, 80)[columns]
    values = np.clip(np.round(values + 0.6 * random.standard_normal(flat.size)), 1, 5)
    test = random.random(flat.size) < 0.3
    X = scipy.sparse.coo_array((values[~test], (rows[~test], columns[~test])), shape=(150, 80))
    model = L12Imputer(5.0, penalty=SpectralL12(l2_weight=0.5), max_rank=2, center="biases", random_state=0).fit(X)
    lower, upper = model.intervals(rows[test], columns[test])
    assert_covered((lower <= values[test]) & (values[test] <= upper), np.count_nonzero(~test))
    assert lower.min() >= 1
    assert upper.max() <= 5
    by_number = np.argsort(np.bincount(columns[~test], minlength=80))
    size = model._calibration(False).size(20, by_number)
    assert size[:20].mean() > 1.1 * size[-20:].mean()


def test_too_few_known_entries_are_infinite_intervals_and_a_warning():
    known = np.array([[1.0, 2.0], [5.0, 4.0], [3.0, np.nan]])
    model = L12Imputer(0.1, clip=None).fit(known)
    with pytest.warns(UserWarning, match="5 hidden entries are too few for a coverage of 0.9, which takes 9"):
        lower, upper = model.intervals(known)
    assert (lower[2, 1], upper[2, 1]) == (-np.inf, np.inf)
    lower, upper = model.intervals(known, coverage=0.5)
    assert np.isfinite([lower, upper]).all()
    bounded = L12Imputer(0.1, clip=(0.0, 9.0)).fit(known)
    with pytest.warns(UserWarning, match="too few"):
        lower, upper = bounded.intervals(known)
    assert (lower[2, 1], upper[2, 1]) == (0, 9)


def test_an_interval_ends_at_a_bound_on_which_many_known_entries_lie():
    random = np.random.default_rng(0)
    X = np.maximum(random.standard_normal((80, 1)) + 0.5 * random.standard_normal((80, 6)), 0)
    known = np.where(random.random(X.shape) < 0.3, np.nan, X)
    lower, upper = L12Imputer("noise", random_state=0).fit(known).intervals(known)
    assert lower.min() == 0
    assert upper.max() > np.nanmax(known)  # by the largest value nobody is stopped


@pytest.mark.parametrize("coverage", [1.0, "most"])
def test_wrong_coverages(fitted, coverage):
    with pytest.raises(ValueError, match="coverage"):
        fitted[0][0].intervals(fitted[0][1], coverage=coverage)


def test_draws_keep_known_entries_and_differ_by_as_much_as_errors(fitted):
    model, known, X = fitted[1]
    tables = np.stack(model.draws(known, 20, random_state=0))
    missing = np.isnan(known)
    assert (tables[:, ~missing] == known[~missing]).all()
    one, again, other = (model.draws(known, 1, random_state=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    filled, noise = model.transform(known), UNITS * NOISE
    spread, errors = (np.mean(np.abs((Y - filled) / noise)[..., missing]) for Y in (tables, X))
    assert spread == pytest.approx(errors, rel=0.15)
    inside = covered(model, known, tables)[:, missing].mean()
    assert 0.85 < inside < 0.92  # a fit to other rows adds to what varies


def test_draws_need_a_known_entry_to_hide():
    model = L12Imputer(0.1, keep_empty_features=True).fit([[1.0, np.nan]])
    with pytest.raises(ValueError, match="fit to more known entries"):
        model.draws([[1.0, np.nan]])
    with pytest.raises(ValueError, match="n_draws"):
        model.draws([[1.0, np.nan]], 0)


def test_whole_numbers_stay_whole_and_data_frames_come_out_on_request(fitted):
    _, known, X = fitted[2]
    frame = pd.DataFrame(np.round(known / UNITS), columns=list("abcdefgh"), index=range(7, 157))
    frame = frame.astype(dict.fromkeys("abc", "Int64"))
    model = L12Imputer("noise", random_state=0).set_output(transform="pandas").fit(frame)
    (table,) = model.draws(frame, 1, random_state=0)
    assert [str(dtype) for dtype in table.dtypes] == ["Int64"] * 3 + ["float64"] * 5
    assert (list(table.index), list(table.columns)) == (list(range(7, 157)), list("abcdefgh"))
    lower, upper = model.intervals(frame)
    assert (lower[:, :3] == np.rint(lower[:, :3])).all()
    assert (upper[:, 3:] != np.rint(upper[:, 3:])).any()
    truth = np.round(X / UNITS)
    inside = ((lower <= truth) & (truth <= upper))[:, :3][np.isnan(known)[:, :3]]
    assert_covered(inside, np.count_nonzero(~np.isnan(known[:, :3])), most=1.0)


def test_columns_of_which_nothing_or_one_entry_is_known():
    known = table(4, rows=60)[0].astype(np.float32)
    known[:, 3], known[1:, 5], known[0, 5] = np.nan, np.nan, 2.0
    model = L12Imputer("noise", keep_empty_features=True, random_state=0).fit(known)
    lower, upper = model.intervals(known)
    assert lower.dtype == upper.dtype == np.float32
    assert (lower[1:, [3, 5]] == -np.inf).all()
    assert (upper[1:, [3, 5]] == np.inf).all()
    assert np.isfinite(np.delete(upper, [3, 5], axis=1)).all()
    one, other = model.draws(known, 2, random_state=0)
    assert (one[:, [3, 5]] == other[:, [3, 5]]).all()
    assert np.isfinite(one).all()
