"""The fit of ``ell12 complete``, what hidden ratings say of it, and predictions and lists of a model."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ell12.commands import CommandError, noted
from ell12.commands.progress import Show
from ell12.completion import Observed
from ell12.completion.recommender import L12Recommender
from ell12.datasets import Ratings
from ell12.minimization import Status
from ell12.wording import number

MEASURED = 0.9  # The share of the work that is done when the error is measured: the last fit begins near its end.
SURE = 2.0  # A difference of two errors of less than this many standard deviations may be chance.


def fit(model: L12Recommender, ratings: Ratings, held_out: float, seed: int, show: Show) -> list[str]:
    """Fit all ratings, and return sentences on it.

    Some ratings are hidden first, from the fit and from every choice, to measure its error; then they are added.

    Raises
    ------
    KeyboardInterrupt
        If the user stopped it.
    """
    train, hidden = _split(ratings, held_out, seed)
    share = 1.0 if hidden is None else MEASURED
    with noted() as notes:
        _finish(model.fit(train, report=lambda words, done: show(words, share * done)))
        sentences = [] if hidden is None else describe_error(model, train, hidden)
        if hidden is not None:
            rest = 1.0 - share
            model.refit(hidden, tol=model.tol, report=lambda words, done: show(words, share + rest * done))
            _finish(model)
    if sentences[2:]:  # which says what a warning of the fit says too
        notes = [note for note in notes if "biases" not in note]
    return [*sentences, *notes, _describe(model)]


def _finish(model: L12Recommender) -> None:
    if model.completion_.status is Status.STOPPED:  # the loop's answer to Ctrl-C
        raise KeyboardInterrupt


def _split(ratings: Ratings, held_out: float, seed: int) -> tuple[Ratings, Ratings | None]:
    """Every rating is as likely to be hidden as any other, so that the error is that on new ones."""
    if held_out == 0:
        return ratings, None
    parts = Observed(ratings.rows, ratings.columns, ratings.values, ratings.shape).split(held_out, seed)
    if parts[1].n_observed == 0:
        raise CommandError(f"{len(ratings)} ratings are too few to hide any of them: add --held-out 0")
    train, hidden = (replace(ratings, rows=p.rows, columns=p.columns, values=p.values) for p in parts)
    return train, hidden


# What comes out


def describe_error(model: L12Recommender, train: Ratings, hidden: Ratings) -> list[str]:
    """The errors on hidden ratings, beside those of the mean and of biases alone."""
    biases = model.without_factors()
    pairs = hidden.users[hidden.rows], hidden.items[hidden.columns]
    errors = [found.predict(*pairs) - hidden.values for found in (model, biases)]
    errors.append(float(train.values.mean()) - hidden.values)
    found, plain, mean = (float(np.sqrt(np.mean(error**2))) for error in errors)
    sentences = [
        f"RMSE on {len(hidden):,} hidden ratings: {found:.4f} (the mean alone {mean:.4f}, biases of users and "
        f"items {plain:.4f})",
        _describe_ranking(model, biases, hidden),
    ]
    excess = errors[0] ** 2 - errors[1] ** 2
    if np.mean(excess) * math.sqrt(excess.size) > SURE * np.std(excess):
        sentences.append(
            "Note: biases of users and items alone predict better than this fit: leave out --alpha and "
            "--l2-weight, which hidden ratings then choose, or raise --alpha"
        )
    return sentences


def _describe_ranking(model: L12Recommender, biases: L12Recommender, hidden: Ratings) -> str:
    lists, order = (
        [found.ndcg(hidden, candidates=kind) for found in (model, biases)] for kind in ("unseen", "rated")
    )
    return (
        f"NDCG@10 on the same: {lists[0]:.4f} among all items not rated (biases {lists[1]:.4f}), {order[0]:.4f} "
        f"among the hidden alone (biases {order[1]:.4f})"
    )


def _describe(model: L12Recommender) -> str:
    completion = model.completion_
    center = completion.center or "nothing"
    return (
        f"Fit of all ratings: rank {completion.x.rank}, alpha {number(completion.alpha)}, l2_weight "
        f"{completion.l2_weight:g}, taken off before: {center}, {completion.n_iter} iterations"
    )


def predict_pairs(model: L12Recommender, pairs: tuple[Any, Any, Any]) -> tuple[Any, list[str]]:
    """Predictions for pairs of ids, and sentences on them.

    Where a user or an item has no ratings, the mean and the bias of the other predict.
    """
    users, items, values = pairs
    predicted = model.predict(users, items)
    strange = (model.ratings_.rows_of(users, "mark") < 0) | (model.ratings_.columns_of(items, "mark") < 0)
    sentences = []
    if strange.any():
        sentences.append(
            f"{int(strange.sum()):,} of {len(users):,} pairs hold a user or an item without ratings: the mean and "
            "the other's bias predict them"
        )
    if values is not None:
        error = float(np.sqrt(np.mean((predicted - values) ** 2)))
        sentences.append(f"RMSE on the {len(users):,} values beside the pairs: {error:.4f}")
    return predicted, sentences


def recommend(model: L12Recommender, users: Any, n: int, include_seen: bool) -> tuple[Any, list[str]]:
    """Users, items and scores as three columns, and sentences on them."""
    best = model.recommend(users, n, exclude_seen=not include_seen)
    sentences = []
    strange = 0 if users is None else int(np.sum(model.ratings_.rows_of(best.users, "mark") < 0))
    if strange:
        sentences.append(f"{strange:,} of {len(best.users):,} users have no ratings: the items' biases choose")
    short = int(np.sum(best.counts < n))
    if short:
        sentences.append(f"{short:,} of {len(best.users):,} users have fewer than {n} items left")
    return best.lines(), sentences
