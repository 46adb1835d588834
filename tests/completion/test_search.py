"""The search on hidden entries: what it tries, in which order, and what its choices are worth."""

from types import SimpleNamespace

import numpy as np

from ell12 import L12Imputer, Observed, Status, complete_matrix
from ell12.completion import search as module
from ell12.completion.choice import Choice, SearchSpace
from ell12.completion.offsets import fit_offsets
from ell12.completion.path import completion_path
from ell12.completion.search import Search, search_on_held_out
from ell12.completion.solve import Task
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
    space = SearchSpace(("biases", None), (1.0, 0.5, 0.0), (8, 4, 2, 16), of_ratings=True)
    assert SearchSpace.suited_to(sparse, **AUTO) == space
    assert SearchSpace.suited_to(dense, **AUTO) == SearchSpace(
        ("columns", "biases", None), (1.0, 0.5, 0.0), (None,)
    )
    asked = SearchSpace.suited_to(sparse, center=None, l2_weight=0.3, max_rank=5, scale=None)
    assert asked == SearchSpace((None,), (0.3,), (5,), of_ratings=True)
    assert asked.most_paths == 1
    assert asked.without_search() == Choice(None, None, 0.3, 5)
    assert SearchSpace.suited_to(sparse, **AUTO).without_search() == Choice("biases", None, 0.5, 8)
    assert SearchSpace.suited_to(dense, **AUTO).without_search() == Choice("columns", None, 1.0, None)


def tried(monkeypatch, errors, options):
    """What a search tries where the errors of its paths are known beforehand."""
    seen = []

    def path(tasks, hidden, alphas, choice, settings):
        seen.append((choice.center, choice.l2_weight, choice.max_rank))
        return SimpleNamespace(errors=[errors(*seen[-1])], best=0, alphas=[1.0]), False

    monkeypatch.setattr(module, "_path", path)
    search = search_on_held_out(ratings(), options, held_out=0.1, random_state=0)
    best = search.best.choice
    assert len(seen) <= options.most_paths
    return seen, (best.center, best.l2_weight, best.max_rank)


OPTIONS = SearchSpace(("biases", "mean"), (1.0, 0.5, 0.0), (8, 4, 2, 16))


def test_smaller_ranks_while_they_help(monkeypatch):
    seen, best = tried(monkeypatch, lambda center, weight, rank: rank + weight + (center == "mean"), OPTIONS)
    assert seen == [
        ("biases", 1.0, 8), ("biases", 0.5, 8), ("biases", 0.0, 8), ("mean", 0.0, 8), ("biases", 0.0, 4),
        ("biases", 0.0, 2),
    ]  # fmt: skip
    assert best == ("biases", 0.0, 2)


def test_larger_ranks_where_smaller_ones_do_not_help(monkeypatch):
    seen, best = tried(monkeypatch, lambda center, weight, rank: (center == "biases") - weight - rank, OPTIONS)
    assert seen == [("biases", 1.0, 8), ("biases", 0.5, 8), ("mean", 1.0, 8), ("mean", 1.0, 4), ("mean", 1.0, 16)]
    assert best == ("mean", 1.0, 16)


def test_the_level_of_all_entries_is_not_shrunken(monkeypatch):
    options = SearchSpace(("biases", None), (1.0, 0.5), (8,))
    seen, best = tried(monkeypatch, lambda center, weight, _: weight - 2 * (center is None), options)
    assert seen == [("biases", 1.0, 8), ("biases", 0.5, 8), (None, 1.0, 8)]
    assert best == (None, 1.0, 8)


# How they are judged


def test_few_hidden_entries_are_hidden_in_turn(monkeypatch):
    observed = ratings()
    splits = module._splits(observed, 0.1, 0)
    assert len(splits) == module.MOST_SPLITS
    assert len({tuple(hidden.flat) for _, hidden in splits}) == len(splits)
    monkeypatch.setattr(module, "ENOUGH", 300)
    assert len(module._splits(observed, 0.1, 0)) == 1


def test_errors_are_those_over_all_splits():
    observed = ratings()
    splits = module._splits(observed, 0.1, 0)
    choice = Choice("biases", None, 0.5, 3)
    tasks = [Task.of(train, choice.center) for train, _ in splits]
    path, stopped = module._path(tasks, [hidden for _, hidden in splits], [12.0, 6.0], choice, {"random_state": 0})
    assert not stopped
    squares = []
    for train, hidden in splits:
        single = completion_path(train, alphas=[12.0, 6.0], held_out=hidden, max_rank=3)
        squares.append([error(c.predict(hidden.rows, hidden.columns), hidden) ** 2 for c in single.results])
    np.testing.assert_allclose(path.errors, np.sqrt(np.mean(squares, axis=0)))


def test_ctrl_c_ends_the_search_with_what_is_done(ctrl_c_after):
    options = SearchSpace.suited_to(ratings(), **AUTO)
    search = search_on_held_out(ratings(), options, held_out=0.1, random_state=0, stop=ctrl_c_after(12))
    assert search.stopped
    assert len(search.candidates) == 1
    assert search.best.path.results[-1].status in (Status.STOPPED, Status.CONVERGED, Status.RANK_CAPPED)
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
    assert steps.max() < 0.2
    assert {words.split(":")[0] for words, _ in seen} == {"choosing by hidden entries", "fitting"}


def test_a_fit_without_a_search_tells_how_far_it_is():
    shares = []
    complete_matrix(ratings(), 30.0, tol=1e-6, report=lambda _, share: shares.append(share))
    assert shares[0] < 0.5
    assert shares[-1] == 1
    assert np.diff(shares).min() >= 0
