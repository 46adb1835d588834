"""The search on hidden entries: what it tries, in which order, and what its choices are worth."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from ell12 import L12Imputer, Observed, SpectralL12, Status, complete_matrix
from ell12.completion.choosing import search as module
from ell12.completion.choosing.arms import Arm, RoughFits
from ell12.completion.choosing.choice import Choice, SearchSpace
from ell12.completion.choosing.judged import HiddenEntries
from ell12.completion.choosing.search import Search, search_on_held_out
from ell12.completion.offsets import fit_offsets
from ell12.completion.solve import Task, solve_completion
from ell12.datasets import synthetic_ratings

AUTO = {"center": "auto", "l2_weight": "auto", "max_rank": "auto", "scale": "auto"}


def ratings(seed=0, shape=(150, 120), count=3000, **options):
    drawn = synthetic_ratings(seed, *shape, count, **options)
    return Observed(drawn.rows, drawn.columns, drawn.values, drawn.shape)


def error(predicted, hidden):
    return np.sqrt(np.mean((predicted - hidden.values) ** 2))


# What may be chosen


def test_ratings_and_tables_have_their_options():
    sparse, dense = ratings(), Observed.from_mask(np.ones((4, 4)), np.eye(4) < 1)
    space = SearchSpace(("biases", None), (0.5, 1.0, 0.0), (8, 4, 2, 16), of_ratings=True)
    assert SearchSpace.suited_to(sparse, **AUTO) == space
    assert SearchSpace.suited_to(dense, **AUTO) == SearchSpace(
        ("columns", "biases", None), (1.0, 0.5, 0.0), (None,)
    )
    asked = SearchSpace.suited_to(sparse, center=None, l2_weight=0.3, max_rank=5, scale=None)
    assert asked == SearchSpace((None,), (0.3,), (5,), of_ratings=True)
    assert asked.without_search() == Choice(None, None, 0.3, 5)
    assert SearchSpace.suited_to(sparse, **AUTO).without_search() == Choice("biases", None, 0.5, 8)
    assert SearchSpace.suited_to(dense, **AUTO).without_search() == Choice("columns", None, 1.0, None)


def tried(monkeypatch, errors, options, rank=99):
    """What a search tries where the errors of its choices are known beforehand, and all matrices have a rank."""
    seen = []

    def fits(self, alpha, starts):
        place = (self.choice.center, self.choice.l2_weight, self.choice.max_rank)
        seen.extend([place] if place not in seen else [])
        x = SimpleNamespace(rank=min(rank, place[2]), truncate=lambda _: x)
        return [SimpleNamespace(x=x)], errors(*place)

    monkeypatch.setattr(RoughFits, "__call__", fits)
    search = search_on_held_out(ratings(), options, held_out=0.1, random_state=0)
    best = search.best.choice
    return seen, (best.center, best.l2_weight, best.max_rank)


OPTIONS = SearchSpace(("biases", "mean"), (0.5, 1.0, 0.0), (8, 4, 2, 16))


def test_smaller_weights_and_ranks_while_they_help(monkeypatch):
    seen, best = tried(monkeypatch, lambda center, weight, rank: rank + weight + (center == "mean"), OPTIONS)
    assert seen == [
        ("biases", 0.5, 8), ("biases", 1.0, 8), ("biases", 0.0, 8), ("mean", 0.0, 8), ("biases", 0.0, 4),
        ("biases", 0.0, 2),
    ]  # fmt: skip
    assert best == ("biases", 0.0, 2)


def test_larger_weights_and_ranks_where_they_help(monkeypatch):
    seen, best = tried(
        monkeypatch, lambda center, weight, rank: 40 + (center == "biases") - weight - rank, OPTIONS
    )
    assert seen == [("biases", 0.5, 8), ("biases", 1.0, 8), ("mean", 1.0, 8), ("mean", 1.0, 4), ("mean", 1.0, 16)]
    assert best == ("mean", 1.0, 16)


def test_bounds_that_do_not_bind_are_not_tried(monkeypatch):
    seen, _ = tried(monkeypatch, lambda center, weight, rank: 1 + weight + (center == "mean"), OPTIONS, rank=3)
    assert [rank for _, _, rank in seen] == [8, 8, 8, 8, 2]


def test_the_level_of_all_entries_is_not_shrunken(monkeypatch):
    options = SearchSpace(("biases", None), (1.0, 0.5), (8,))
    seen, best = tried(monkeypatch, lambda center, weight, _: 3 + weight - 2 * (center is None), options)
    assert seen == [("biases", 1.0, 8), ("biases", 0.5, 8), (None, 1.0, 8)]
    assert best == (None, 1.0, 8)


@pytest.mark.parametrize(("gain", "chosen"), [(0.01, "biases"), (0.03, None)])
def test_nothing_is_taken_off_only_where_that_is_clearly_better(monkeypatch, gain, chosen):
    options = SearchSpace(("biases", None), (1.0,), (8,))
    _, best = tried(monkeypatch, lambda center, *_: 1.0 - gain * (center is None), options)
    assert best[0] == chosen


def alphas_tried(curve, around, rival=math.inf, n_alphas=20):
    """Where an arm looks whose error is a known function of the logarithm of alpha."""
    seen = []

    def fits(alpha, starts):
        seen.append(alpha)
        return [SimpleNamespace(x=None)], curve(math.log(alpha))

    arm = Arm(fits, np.geomspace(100.0, 1.0, n_alphas), [None])
    fits.stopped = False
    arm.follow(around, rival, lambda *_: True)
    return seen, arm.alpha


@pytest.mark.parametrize("around", [1000.0, 60.0, 7.0, 0.1])
def test_the_best_alpha_of_the_grid_is_found_wherever_it_begins(around):
    seen, best = alphas_tried(lambda t: 1 + (t - math.log(7.0)) ** 2, around)
    grid = np.geomspace(100.0, 1.0, 20)
    assert best == grid[np.argmin(np.abs(np.log(grid / 7.0)))]
    assert len(seen) == len(set(seen)) < 14


def test_alphas_are_left_where_they_cannot_win():
    seen, _ = alphas_tried(lambda t: 2 + 0.01 * (t - math.log(7.0)) ** 2, 60.0, rival=1.0)
    assert len(seen) == 2
    seen, _ = alphas_tried(lambda t: 1.01 + (t - math.log(7.0)) ** 2, 7.0, rival=1.0)
    assert len(seen) == 3  # one on each side, and none between


# How they are judged


def test_few_hidden_entries_are_hidden_in_turn(monkeypatch):
    observed = ratings()
    splits = module._splits(observed, 0.1, 0)
    assert len(splits) == module.MOST_SPLITS
    assert len({tuple(hidden.flat) for _, hidden in splits}) == len(splits)
    monkeypatch.setattr(module, "ENOUGH", 300)
    assert len(module._splits(observed, 0.1, 0)) == 1


def test_errors_are_those_over_all_splits():
    splits = module._splits(ratings(), 0.1, 0)
    choice = Choice("biases", None, 0.5, 3)
    tasks = [Task.of(train, choice.center) for train, _ in splits]
    judged = [(task, HiddenEntries(task, hidden)) for task, (_, hidden) in zip(tasks, splits, strict=True)]
    fits = RoughFits(choice, judged, {"random_state": 0, "tol": 1e-2})
    results, found = fits(12.0, [None] * len(tasks))
    pairs = zip(results, splits, strict=True)
    squares = [error(fit.predict(hidden.rows, hidden.columns), hidden) ** 2 for fit, (_, hidden) in pairs]
    assert found == pytest.approx(math.sqrt(np.mean(squares)), rel=1e-12)


@pytest.mark.parametrize(("center", "scale"), [(None, None), ("columns", "columns"), (None, "columns")])
def test_errors_on_hidden_entries_are_those_of_the_prediction(center, scale):
    """Rows and columns without a known entry included: with nothing taken off biases predict them."""
    train, hidden = ratings(count=400).split(0.3, 1)
    fit = solve_completion(Task.of(train, center, scale), SpectralL12(3.0), max_rank=2, max_iter=3)
    judged = HiddenEntries(Task.of(train, center, scale), hidden)
    miss = fit.predict(hidden.rows, hidden.columns) - hidden.values
    miss = miss if fit.offsets.scales is None else miss / fit.offsets.scales[hidden.columns]
    expected = np.sqrt(np.nanmean(miss**2))  # NaN in a column of unknown unit
    assert judged.error(fit.x) == pytest.approx(expected, rel=1e-10)


def test_rough_fits_are_near_the_exact_one():
    train, hidden = ratings(0, (200, 150), 5000, rank=3, factor_deviation=1.0, noise=0.5).split(0.25, 9)
    task = Task.of(train, "biases")
    judged = HiddenEntries(task, hidden)
    fits = RoughFits(Choice("biases", None, 0.5, 4), [(task, judged)], {"random_state": 0, "tol": 1e-2})
    results, found = fits(5.0, [None])
    exact = solve_completion(task, SpectralL12(5.0, 0.5), max_rank=4, tol=1e-6)
    assert found == pytest.approx(judged.error(exact.x), rel=3e-3)
    assert results[0].n_iter < exact.n_iter / 2


def test_the_search_ends_in_time():
    search = search_on_held_out(ratings(), OPTIONS, held_out=0.1, random_state=0, max_seconds=0.0)
    assert len(search.candidates) == 1
    assert len(search.best.path.alphas) == 1
    assert search.best.path.results[0].n_iter == 1
    result = complete_matrix(ratings(), max_seconds=0.0)
    assert (result.status, result.n_iter) == (Status.MAX_SECONDS, 1)
    with pytest.raises(ValueError, match="max_seconds must be a number >= 0"):
        complete_matrix(ratings(), max_seconds="long")


def test_ctrl_c_ends_the_search_with_what_is_done(ctrl_c_after):
    options = SearchSpace.suited_to(ratings(), **AUTO)
    search = search_on_held_out(ratings(), options, held_out=0.1, random_state=0, stop=ctrl_c_after(12))
    assert search.stopped
    assert len(search.candidates) == 1
    done = (Status.STOPPED, Status.CONVERGED, Status.RANK_CAPPED, Status.ENDED)  # the last: its error settled
    assert search.best.path.results[-1].status in done
    assert not Search([]).stopped


def test_nothing_to_hide():
    single = Observed([1], [2], [3.0], (3, 3))
    assert search_on_held_out(single, OPTIONS, held_out=0.1, random_state=0) is None


# What the choices are worth


def test_noise_is_not_taken_for_signal():
    """Biases and noise alone: an unpenalised matrix of rank one costs several per cent, and is not chosen."""
    train, hidden = ratings(0, (300, 200), 4000, rank=0, noise=1.0).split(0.25, 9)
    model = L12Imputer(random_state=0).fit(train.sparse())
    assert model.l2_weight_ < 1
    biases = np.clip(fit_offsets(train, "biases").entries(hidden.rows, hidden.columns), 1, 5)
    assert error(model.predict(hidden.rows, hidden.columns), hidden) < 1.005 * error(biases, hidden)


def test_signal_is_found():
    train, hidden = ratings(0, (200, 150), 5000, rank=3, factor_deviation=1.0, noise=0.5).split(0.25, 9)
    model = L12Imputer(random_state=0).fit(train.sparse())
    biases = np.clip(fit_offsets(train, "biases").entries(hidden.rows, hidden.columns), 1, 5)
    assert error(model.predict(hidden.rows, hidden.columns), hidden) < 0.85 * error(biases, hidden)


# How far it is


def test_the_share_done_rises_steadily_to_the_whole():
    seen = []
    complete_matrix(ratings(), report=lambda words, share: seen.append((words, share)))
    shares = np.array([share for _, share in seen])
    assert shares[-1] == 1
    steps = np.diff(shares, prepend=0.0)
    assert steps.min() >= 0
    assert steps.max() < 0.25
    assert {words.split(":")[0] for words, _ in seen} == {"choosing by hidden entries", "fitting"}


def test_a_fit_without_a_search_tells_how_far_it_is():
    shares = []
    complete_matrix(ratings(), 30.0, tol=1e-6, report=lambda _, share: shares.append(share))
    assert shares[0] < 0.5
    assert shares[-1] == 1
    assert np.diff(shares).min() >= 0
