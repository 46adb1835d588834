"""The fit of ``ell12 complete``: what hidden ratings choose, what they say of it, and predictions for pairs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ell12.commands import CommandError
from ell12.commands.progress import Show
from ell12.completion import Completion, Observed, complete_matrix
from ell12.completion.choice import SearchSpace
from ell12.completion.offsets import fit_offsets
from ell12.completion.search import MOST_SPLITS, search_on_held_out
from ell12.datasets import Ratings
from ell12.minimization import Status
from ell12.wording import number

N_ALPHAS = 20
HIDDEN_FOR_CHOICE = 0.1


@dataclass(frozen=True)
class RatingModel:
    """What is fitted, and how; None is what hidden ratings choose."""

    alpha: float | None
    max_rank: int | None
    center: str  # "auto", "none", or as in `complete_matrix`
    l2_weight: float | None
    tol: float
    max_iter: int
    seed: int


@dataclass(frozen=True)
class RatingChoice:
    """The strength, the weight of the subtracted norm, the bound on the rank, the offsets, and where to begin."""

    alpha: float
    l2_weight: float
    max_rank: int | None
    center: str | None
    x0: Any = None


def fit(
    observed: Observed, model: RatingModel, held_out: float, limits: tuple[float, float], show: Show
) -> tuple[Completion, RatingChoice, list[str]]:
    """The completion of all ratings, what was chosen for it, and sentences on it.

    Some ratings are hidden first, from the fit and from every choice, to measure its error; then all are fitted.

    Raises
    ------
    KeyboardInterrupt
        If the user stopped it.
    """
    train, hidden = _split(observed, held_out, model.seed)
    choice = choose_by_hidden(train, model, show)
    sentences = []
    if hidden is not None:
        measured = _complete(train, choice, model, _shown(show, "measuring the error on hidden ratings", 0.9))
        sentences = describe_error(measured, train, hidden, limits)
        growth = math.sqrt(observed.n_observed / train.n_observed)  # the noise grows so
        alpha = choice.alpha if model.alpha is not None else choice.alpha * growth
        choice = replace(choice, alpha=alpha, x0=measured.x)
    completion = _complete(observed, choice, model, _shown(show, "fitting all ratings", 0.95))
    return completion, choice, [*sentences, _describe(completion, choice)]


def _split(observed: Observed, held_out: float, seed: int) -> tuple[Observed, Observed | None]:
    if held_out == 0:
        return observed, None
    train, hidden = observed.split(held_out, seed)
    if hidden.n_observed == 0:
        raise CommandError("no rating can be hidden without emptying a user or an item: add --held-out 0")
    return train, hidden


def choose_by_hidden(train: Observed, model: RatingModel, show: Show) -> RatingChoice:
    """The options that were given; the others are chosen by ratings that are hidden once more."""
    options = SearchSpace.suited_to(
        train,
        center=None if model.center == "none" else model.center,
        l2_weight="auto" if model.l2_weight is None else model.l2_weight,
        max_rank=model.max_rank or "auto",
    )
    if model.alpha is not None:
        choice = options.without_search()
        return RatingChoice(model.alpha, choice.l2_weight, choice.max_rank, choice.center)
    search = search_on_held_out(
        train,
        options,
        held_out=HIDDEN_FOR_CHOICE,
        random_state=model.seed + 1,
        n_alphas=N_ALPHAS,
        tol=model.tol,
        max_iter=model.max_iter,
        stop=_counted(show, options.most_paths * MOST_SPLITS * N_ALPHAS),
    )
    if search is None:
        raise CommandError("no rating can be hidden to choose by without emptying a user or an item: add --alpha")
    if search.stopped:
        raise KeyboardInterrupt
    best = search.best
    choice = best.choice
    return RatingChoice(best.alpha, choice.l2_weight, choice.max_rank, choice.center, best.x0)


def _complete(
    observed: Observed, choice: RatingChoice, model: RatingModel, stop: Callable[[Any], bool]
) -> Completion:
    completion = complete_matrix(
        observed,
        choice.alpha,
        l2_weight=choice.l2_weight,
        max_rank=choice.max_rank,
        center=choice.center,
        scale=None,
        x0=choice.x0,
        tol=model.tol,
        max_iter=model.max_iter,
        random_state=model.seed,
        stop=stop,
    )
    if completion.status is Status.STOPPED:  # the loop's answer to Ctrl-C
        raise KeyboardInterrupt
    return completion


def _counted(show: Show, most: int) -> Callable[[Any], bool]:
    """A ``stop`` that never stops. It shows which of at most ``most`` runs this is, over the first nine tenths."""
    count = 0

    def stop(history: Any) -> bool:
        nonlocal count
        n_iter = len(history["objective"]) - 1
        count += n_iter == 1
        show(f"choosing by hidden ratings: run {count} of at most {most}, iteration {n_iter}", 0.9 * count / most)
        return False

    return stop


def _shown(show: Show, words: str, done: float) -> Callable[[Any], bool]:
    def stop(history: Any) -> bool:
        show(f"{words}: iteration {len(history['objective']) - 1}", done)
        return False

    return stop


# What comes out


def describe_error(
    measured: Completion, train: Observed, hidden: Observed, limits: tuple[float, float]
) -> list[str]:
    """The error on hidden ratings, beside those of the mean and of biases alone."""
    found = _error(measured.predict(hidden.rows, hidden.columns), hidden.values, limits)
    plain = [
        _error(
            fit_offsets(train, kind).entries(hidden.rows, hidden.columns) + 0 * hidden.values,
            hidden.values,
            limits,
        )
        for kind in ("mean", "biases")
    ]
    return [
        f"RMSE on {hidden.n_observed:,} hidden ratings: {found:.4f} (the mean alone {plain[0]:.4f}, biases of "
        f"users and items {plain[1]:.4f})"
    ]


def _error(predicted: Any, values: Any, limits: tuple[float, float]) -> float:
    return float(np.sqrt(np.mean((np.clip(predicted, *limits) - values) ** 2)))


def _describe(completion: Completion, choice: RatingChoice) -> str:
    ending = "" if completion.status in (Status.CONVERGED, Status.RANK_CAPPED) else f"; {completion.status.value}"
    center = choice.center or "nothing"
    return (
        f"Fit of all ratings: rank {completion.x.rank}, alpha {number(completion.alpha)}, l2_weight "
        f"{choice.l2_weight:g}, taken off before: {center}, {completion.n_iter} iterations{ending}"
    )


def predict_pairs(
    completion: Completion,
    ratings: Ratings,
    observed: Observed,
    pairs: tuple[Any, Any, Any],
    limits: tuple[float, float],
) -> tuple[Any, list[str]]:
    """Predictions for pairs of ids, and sentences on them.

    Where a user or an item has no ratings, the mean and the bias of the other predict.
    """
    rows, columns = ratings.rows_of(pairs[0], "mark"), ratings.columns_of(pairs[1], "mark")
    known = (rows >= 0) & (columns >= 0)
    predicted = np.empty(len(rows))
    predicted[known] = completion.predict(rows[known], columns[known])
    strange = ~known
    biases: Any = fit_offsets(observed, "biases")
    predicted[strange] = biases.mean
    for places, offsets in ((rows, biases.rows), (columns, biases.columns)):
        sure = strange & (places >= 0)
        predicted[sure] += offsets[places[sure]]
    predicted = np.clip(predicted, *limits)
    sentences = []
    if strange.any():
        count = int(strange.sum())
        sentences.append(
            f"{count:,} of {len(rows):,} pairs hold a user or an item without ratings: the mean and the other's "
            "bias predict them"
        )
    if pairs[2] is not None:
        error = _error(predicted, pairs[2], limits)
        sentences.append(f"RMSE on the {len(rows):,} values beside the pairs: {error:.4f}")
    return predicted, sentences
