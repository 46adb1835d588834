"""The search on hidden entries: what it may choose, how choices are compared, and what they are worth."""

import itertools
import time

import numpy as np
import pytest
from scipy.optimize import least_squares

from ell12 import L12Imputer, Observed, Run, SpectralL12, Status, complete_matrix, stationarity
from ell12.completion import CompletionLoss
from ell12.completion.complete import completed
from ell12.completion.hidden_entries import (
    HiddenEntrySearch,
    hidden_error,
    hidden_from,
    largest_strength,
    noise_alpha,
    rank_one_fit,
)
from ell12.completion.offsets import Centred, fit_offsets
from ell12.datasets import synthetic_ratings
from ell12.protocols import with_alpha

SHAPES = SpectralL12(l2_weight=0.5), SpectralL12(l2_weight=1.0)


def ratings(seed=0, shape=(150, 120), count=3000, **options):
    drawn = synthetic_ratings(seed, *shape, count, **options)
    return Observed(drawn.rows, drawn.columns, drawn.values, drawn.shape)


def test_choices_are_those_of_the_least_error_and_fits_are_near_exact_ones():
    observed = ratings(0, (200, 150), 5000, rank=3, factor_deviation=1.0, noise=0.5)
    search = HiddenEntrySearch(observed, None, 9, 1000, np.inf)
    plain = {"center": ("biases",), "scale": (None,), "penalty": SHAPES, "max_rank": (1, 4)}
    spaces = [plain | {"penalty": [shape], "max_rank": [rank]} for shape in SHAPES for rank in (1, 4)]
    alone = [search.best(space).error for space in spaces]
    best = search.best(plain | {"center": ("biases", "mean")})
    assert best.error <= min(alone) * 1.01 < max(alone)
    ((centred, hidden),) = best.tasks
    exact = completed(centred, with_alpha(best.penalty, best.alpha), best.max_rank, tol=1e-6)
    assert best.error == pytest.approx(hidden_error(exact.x, hidden), rel=1e-2)


@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_a_search_whose_time_is_over_leaves_the_rest_to_the_fit(monkeypatch, seconds):
    monkeypatch.setattr(time, "monotonic", itertools.count(0, 10).__next__)  # ten seconds later at each call
    result = complete_matrix(ratings(), run=Run(max_seconds=seconds))
    assert (result.status, result.n_iter, result.center) == (Status.MAX_SECONDS, 1, "biases")


@pytest.mark.parametrize(("center", "scale"), [(None, None), ("columns", "columns"), (None, "columns")])
def test_errors_on_hidden_entries_are_those_of_the_prediction(center, scale):
    train, hidden = ratings(count=400).split(0.3, 1)
    centred = Centred.of(train, center, scale)
    fit = completed(centred, SpectralL12(3.0), 2, tol=1e-3, max_iter=3)
    miss = fit.predict(hidden.rows, hidden.columns) - hidden.values
    miss = miss if fit.offsets.scales is None else miss / fit.offsets.scales[hidden.columns]
    expected = np.sqrt(np.nanmean(miss**2))  # NaN in a column of unknown unit
    assert hidden_error(fit.x, hidden_from(centred, hidden)) == pytest.approx(expected, rel=1e-10)


def test_tables_are_judged_on_three_parts_ratings_on_one_and_a_single_entry_on_none():
    table = np.random.default_rng(0).standard_normal((30, 20))
    splits = HiddenEntrySearch(Observed.of(table), None, 0, 1, np.inf).splits
    assert len(splits) == len({tuple(hidden.flat) for _, hidden in splits}) == 3
    assert len(HiddenEntrySearch(ratings(), None, 0, 1, np.inf).splits) == 1
    assert np.isfinite(L12Imputer(keep_empty_features=True).fit_transform([[1.0, np.nan]])).all()


@pytest.mark.parametrize(
    ("draw", "most"),
    [
        ({"shape": (300, 200), "count": 4000, "rank": 0, "noise": 1.0}, 1.005),
        ({"shape": (200, 150), "count": 5000, "rank": 3, "factor_deviation": 1.0, "noise": 0.5}, 0.85),
    ],
    ids=["noise is not taken for signal", "signal is found"],
)
def test_what_the_choices_are_worth(draw, most):
    train, hidden = ratings(0, **draw).split(0.25, 9)
    own = L12Imputer(random_state=0).fit(train.sparse()).predict(hidden.rows, hidden.columns)
    biases = np.clip(fit_offsets(train, "biases").entries(hidden.rows, hidden.columns), 1, 5)
    assert np.linalg.norm(own - hidden.values) < most * np.linalg.norm(biases - hidden.values)


def test_a_matrix_of_low_rank_is_found_by_default():
    """Nothing is subtracted from it, and the search goes down as far as the error falls."""
    random = np.random.default_rng(2)
    X = random.standard_normal((100, 3)) @ random.standard_normal((3, 80))
    missing = random.random(X.shape) < 0.3
    fit = complete_matrix(np.where(missing, np.nan, X))
    assert fit.center is None
    assert np.sqrt(np.mean((fit.to_array() - X)[missing] ** 2)) < 2e-3


@pytest.mark.parametrize("seed", [246, 350])
def test_a_strength_is_one_that_was_tried_or_lies_next_to_it(seed):
    """The table of scikit-learn's check of sparse input; the search ended at 3e-6 and 4e-41 here."""
    X = np.random.RandomState(0).uniform(size=(40, 3))
    fit = complete_matrix(np.where(X < 0.6, np.nan, X), random_state=seed)
    assert fit.converged
    assert fit.alpha > 1e-3


def problem(seed=0, shape=(12, 9), known=0.7):
    random = np.random.default_rng(seed)
    X = 3 * np.outer(random.uniform(1, 2, shape[0]), random.uniform(1, 2, shape[1]))
    X = X + random.standard_normal(shape)
    mask = random.random(shape) < known
    return X, mask, Observed.from_mask(X, mask)


def test_a_rank_one_fit_is_the_nearest_by_another_method():
    X, mask, observed = problem()
    fit = rank_one_fit(observed).to_array()

    def errors(factors):
        return (np.outer(factors[:12], factors[12:]) - X)[mask]

    best = least_squares(errors, np.ones(21), xtol=1e-14, ftol=1e-14)
    assert np.sum((fit - X)[mask] ** 2) == pytest.approx(2 * best.cost, rel=1e-7)
    assert np.linalg.matrix_rank(fit) == 1


@pytest.mark.parametrize("l2_weight", [0.0, 0.6])
def test_below_one_zero_is_a_solution_from_the_largest_strength_on(l2_weight):
    X, mask, observed = problem()
    loss = CompletionLoss(observed)
    top = largest_strength(loss, l2_weight)
    assert top == pytest.approx(np.linalg.norm(mask * X, 2) / (1 - l2_weight), rel=1e-6)
    assert stationarity(loss, SpectralL12(1.001 * top, l2_weight), loss.start()) < 1e-8
    assert stationarity(loss, SpectralL12(0.99 * top, l2_weight), loss.start()) > 1e-3


def test_at_one_the_rank_one_fit_is_a_solution_from_the_largest_strength_on():
    X, mask, observed = problem()
    loss, fit = CompletionLoss(observed), rank_one_fit(observed)
    top = largest_strength(loss)
    assert top == pytest.approx(np.linalg.norm(mask * (X - fit.to_array()), 2), rel=1e-6)
    assert stationarity(loss, SpectralL12(1.001 * top), fit) < 3e-4
    assert stationarity(loss, SpectralL12(0.98 * top), fit) > 1e-3
    assert (
        largest_strength(CompletionLoss(np.outer(np.arange(1.0, 5), np.arange(1.0, 4)))) == 0.0
    )  # rank one fits all


def test_the_strength_that_noise_asks_for_is_about_the_norm_of_the_noise():
    random = np.random.default_rng(0)
    noise, mask = 0.5 * random.standard_normal((200, 150)), random.random((200, 150)) < 0.3
    X = 10 * np.outer(random.uniform(1, 2, 200), random.uniform(1, 2, 150)) + noise
    observed = Observed.from_mask(X, mask)
    assert noise_alpha(observed) == pytest.approx(np.linalg.norm(mask * noise, 2), rel=0.1)
