"""The search on hidden entries: what it may choose, how choices are compared, and what they are worth."""

import math
import time

import numpy as np
import pytest

from ell12 import L12Imputer, Observed, SpectralL12, complete_matrix
from ell12.completion import hidden_entries as module
from ell12.completion.complete import completed
from ell12.completion.hidden_entries import HiddenEntries, HiddenEntryChoice, HiddenEntrySearch, SearchSpace
from ell12.completion.offsets import Centred, fit_offsets
from ell12.datasets import synthetic_ratings

AUTO = {"center": "auto", "penalty": None, "max_rank": "auto", "scale": "auto"}
SHAPES = SpectralL12(l2_weight=0.5), SpectralL12(l2_weight=1.0)


def ratings(seed=0, shape=(150, 120), count=3000, **options):
    drawn = synthetic_ratings(seed, *shape, count, **options)
    return Observed(drawn.rows, drawn.columns, drawn.values, drawn.shape)


def test_ratings_and_tables_have_their_options():
    sparse, dense = ratings(), Observed.from_mask(np.ones((4, 4)), np.eye(4) < 1)
    spaces = [SearchSpace.suited_to(observed, **AUTO) for observed in (sparse, dense)]
    assert [space.centers for space in spaces] == [("biases",), ("columns", None)]
    assert [[shape.l2_weight for shape in space.penalties] for space in spaces] == [[0.5], [1.0, 0.5]]
    assert [space.ranks for space in spaces] == [(8, 4, 16), (None,)]
    asked = SearchSpace.suited_to(sparse, center=None, penalty=SHAPES[0], max_rank=5, scale=None)
    assert asked.first == HiddenEntryChoice(None, None, SHAPES[0], 5)
    assert (asked.centers, asked.ranks) == ((None,), (5,))


def test_one_thing_is_changed_at_a_time_and_what_helps_is_kept(monkeypatch):
    """The errors of all choices are known beforehand."""
    seen, search = [], HiddenEntrySearch(ratings(), None, 0)

    def tried(self, found, alpha):
        choice = found.choice
        case = (choice.center, choice.penalty.l2_weight, choice.max_rank)
        seen.extend([case] if case not in seen else [])
        error = case[2] - case[1] + (case[0] == "mean") + 0.01 * math.log(alpha / 5.0) ** 2
        found.tried[alpha] = error, found.starts
        return error

    monkeypatch.setattr(HiddenEntrySearch, "_tried", tried)
    best = search.best(SearchSpace(("biases", "mean"), SHAPES, (8, 4, 16)))
    assert seen == [
        ("biases", 0.5, 8), ("mean", 0.5, 8), ("biases", 1.0, 8), ("biases", 1.0, 4), ("biases", 1.0, 16)
    ]  # fmt: skip
    assert (best.choice.center, best.choice.penalty.l2_weight, best.choice.max_rank) == ("biases", 1.0, 4)
    assert best.alpha == pytest.approx(5.0, rel=1e-3)


def test_few_entries_of_a_table_are_hidden_several_times(monkeypatch):
    observed = Observed.of(np.random.default_rng(0).standard_normal((30, 20)))
    search = HiddenEntrySearch(observed, None, 0)
    assert len(search.splits) == len({tuple(hidden.flat) for _, hidden in search.splits}) == module.SPLITS
    assert len(HiddenEntrySearch(ratings(), None, 0).splits) == 1
    monkeypatch.setattr(module, "ENOUGH", 60)
    assert len(HiddenEntrySearch(observed, None, 0).splits) == 1


@pytest.mark.parametrize(("center", "scale"), [(None, None), ("columns", "columns"), (None, "columns")])
def test_errors_on_hidden_entries_are_those_of_the_prediction(center, scale):
    train, hidden = ratings(count=400).split(0.3, 1)
    centred = Centred.of(train, center, scale)
    fit = completed(centred, SpectralL12(3.0), 2, tol=1e-3, max_iter=3)
    miss = fit.predict(hidden.rows, hidden.columns) - hidden.values
    miss = miss if fit.offsets.scales is None else miss / fit.offsets.scales[hidden.columns]
    expected = np.sqrt(np.nanmean(miss**2))  # NaN in a column of unknown unit
    assert HiddenEntries(centred, hidden).error(fit.x) == pytest.approx(expected, rel=1e-10)


def test_rough_fits_are_near_the_exact_one():
    search = HiddenEntrySearch(ratings(0, (200, 150), 5000, rank=3, factor_deviation=1.0, noise=0.5), None, 9)
    found = search.best(SearchSpace(("biases",), SHAPES[:1], (4,)))
    ((centred, hidden),) = search.tasks["biases"]
    for alpha, (rough, _) in found.tried.items():
        exact = completed(centred, SpectralL12(alpha, 0.5), 4, tol=1e-6, max_iter=1000)
        assert rough == pytest.approx(hidden.error(exact.x), rel=5e-2)


def test_the_search_ends_in_time():
    search = HiddenEntrySearch(ratings(), None, 0, end=time.monotonic())
    assert len(search.best(SearchSpace.suited_to(ratings(), **AUTO)).tried) == 1


def test_nothing_to_hide():
    single = Observed([1], [2], [3.0], (3, 3))
    assert HiddenEntrySearch(single, None, 0).n_hidden == 0
    assert np.isfinite(L12Imputer(keep_empty_features=True).fit_transform([[1.0, np.nan]])).all()


# What the choices are worth


def errors(draw, share):
    """Of the biases alone, and of the default, on hidden ratings."""
    train, hidden = draw.split(share, 9)
    model = L12Imputer(random_state=0).fit(train.sparse())
    biases = np.clip(fit_offsets(train, "biases").entries(hidden.rows, hidden.columns), 1, 5)
    own = model.predict(hidden.rows, hidden.columns)
    return [np.sqrt(np.mean((found - hidden.values) ** 2)) for found in (biases, own)]


@pytest.mark.parametrize(
    ("draw", "most"),
    [
        ({"shape": (300, 200), "count": 4000, "rank": 0, "noise": 1.0}, 1.005),
        ({"shape": (200, 150), "count": 5000, "rank": 3, "factor_deviation": 1.0, "noise": 0.5}, 0.85),
    ],
    ids=["noise is not taken for signal", "signal is found"],
)
def test_what_the_choices_are_worth(draw, most):
    biases, own = errors(ratings(0, **draw), 0.25)
    assert own < most * biases


def test_a_matrix_of_low_rank_is_found_by_default():
    """Nothing is subtracted from it, and the search goes down as far as the error falls."""
    random = np.random.default_rng(2)
    X = random.standard_normal((100, 3)) @ random.standard_normal((3, 80))
    missing = random.random(X.shape) < 0.3
    fit = complete_matrix(np.where(missing, np.nan, X))
    assert fit.center is None
    assert np.sqrt(np.mean((fit.to_array() - X)[missing] ** 2)) < 2e-3
