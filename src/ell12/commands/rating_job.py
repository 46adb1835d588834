"""``ell12 complete`` and its kin at work: from files of ratings to models, predictions and lists."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from ell12.checks import check_entries
from ell12.commands import CommandError, UsageError, explained, say
from ell12.commands.outputs import Content, encode_lines, write
from ell12.commands.progress import progress_bar
from ell12.commands.rating_fit import fit, predict_pairs, recommend
from ell12.completion.recommender import L12Recommender
from ell12.completion.saved import model_kind
from ell12.datasets import Ratings, load_ratings
from ell12.datasets.rating_files import read_pairs
from ell12.datasets.text_files import kind_of as suffix_of


@dataclass(frozen=True)
class LineForm:
    """How lines are written; None is detected."""

    columns: tuple[str | int, str | int, str | int] | None = None
    separator: str | None = None
    encoding: str = "utf-8"


@dataclass(frozen=True)
class RatingJob:
    """What to read, what to write, and how."""

    source: Path
    predict: Path | None
    targets: list[Path]
    duplicates: str
    held_out: float
    seed: int
    form: LineForm

    def run(self, options: dict[str, Any]) -> None:
        """Read, fit a recommender with these options, say and write.

        Raises
        ------
        CommandError
            If a file cannot be read, or holds too little.
        KeyboardInterrupt
            If the user stopped it: nothing is written then.
        """
        ratings = read_ratings(self.source, self.duplicates, self.form)
        pairs = None if self.predict is None else read_pairs_of(self.predict, self.form)
        model = L12Recommender(**options, random_state=self.seed + 1)  # hides other ratings than the measurement
        # The factors are narrow: a second thread of BLAS waits more than it works. One thread alone took 7 s of
        # processor time for 100,000 ratings on two busy cores, two took 55 s. Sweeps have threads of their own.
        with progress_bar() as show, threadpool_limits(1, user_api="blas"):
            sentences = fit(model, ratings, self.held_out, self.seed, show)
        for sentence in sentences:
            say(sentence)
        contents = []  # all of them before the first is written
        for target in self.targets:
            if target.suffix == ".npz":
                contents.append((target, model.encoded(), [f"Model: {target}"]))
            elif pairs is not None:
                contents.append(predicted_content(model, pairs, target))
        write(contents)


def predicted_content(model: L12Recommender, pairs: tuple[Any, Any, Any], target: Path) -> Content:
    """The predictions for pairs as lines."""
    predicted, words = predict_pairs(model, pairs)
    content, notes = encode_lines({"user": pairs[0], "item": pairs[1], "prediction": predicted})
    return target, content, [*words, *notes, f"Predictions: {target}"]


def recommended_content(
    model: L12Recommender, users: list[str] | None, n: int, include_seen: bool, target: Path
) -> Content:
    """The best items of each user as lines."""
    try:
        lines, words = recommend(model, users, n, include_seen)
    except ValueError as error:  # the model of an old file does not know what was seen
        raise CommandError(f"{error}, or add --include-seen") from error
    content, notes = encode_lines(dict(zip(("user", "item", "score"), lines, strict=True)))
    return target, content, [*words, *notes, f"Recommendations: {target}"]


def kind_of(path: Path) -> str:
    """What kind of model a file holds; what is wrong with it in one line."""
    with explained(f"cannot read {path}"):
        try:
            return model_kind(path)
        except ValueError as error:
            raise CommandError(str(error)) from error


def read_model(path: Path) -> L12Recommender:
    """A model; what is wrong with its file in one line."""
    if kind_of(path) == "TableModel":
        raise CommandError(f"{path} is a model of ell12 fit, not of ratings: ell12 predict reads it")
    with explained(f"cannot read {path}"):
        try:
            return L12Recommender.load(path)
        except ValueError as error:
            raise CommandError(str(error)) from error


def read_ratings(source: Path, duplicates: str, form: LineForm) -> Ratings:
    """The ratings, and a sentence on what they are; what is wrong with the file in one line."""
    with warnings.catch_warnings(record=True) as caught, explained(f"cannot read {source}"):
        warnings.simplefilter("always")
        try:
            ratings = load_ratings(source, duplicates=duplicates, **vars(form))
            check_entries(ratings.values, str(source))
        except (ValueError, ImportError) as error:
            raise CommandError(str(error)) from error
    n_users, n_items = ratings.shape
    low, high = ratings.values.min(), ratings.values.max()
    share = len(ratings) / (n_users * n_items)
    say(
        f"{len(ratings):,} ratings from {low:g} to {high:g} by {n_users:,} users of {n_items:,} items "
        f"({100 * share:.3g} % of the pairs)"
    )
    for warning in caught:
        say(f"Note: {warning.message}")
    return ratings


def read_pairs_of(path: Path, form: LineForm) -> tuple[Any, Any, Any]:
    """Pairs of user and item, and their values if there are any."""
    if suffix_of(path) in (".mtx", ".parquet", ".pq"):
        raise UsageError(f"{path}: pairs are read from lines of text, user and item")
    with explained(f"cannot read {path}"):
        try:
            return read_pairs(path, **vars(form))
        except ValueError as error:
            raise CommandError(str(error)) from error
