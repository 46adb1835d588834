"""``ell12 complete`` and its kin at work: from files of ratings to models, predictions and lists."""

import csv
import io
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from ell12.checks import check_entries
from ell12.commands import CommandError, UsageError, explained, say
from ell12.commands.progress import progress_bar
from ell12.commands.rating_fit import fit, predict_pairs, recommend
from ell12.completion.estimators.recommender import L12Recommender
from ell12.datasets import Ratings, load_ratings
from ell12.datasets.rating_files import read_pairs
from ell12.datasets.text_files import kind_of
from ell12.files import write_atomically

# A spreadsheet executes a cell that begins with one of these; the wide signs count in East Asian settings.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


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


Content = tuple[Path, bytes, list[str]]  # where to, what, and what is said of it


def predicted_content(model: L12Recommender, pairs: tuple[Any, Any, Any], target: Path) -> Content:
    """The predictions for pairs as lines."""
    predicted, words = predict_pairs(model, pairs)
    content, notes = encode_lines(("user", "item", "prediction"), (*pairs[:2], predicted))
    return target, content, [*words, *notes, f"Predictions: {target}"]


def recommended_content(
    model: L12Recommender, users: list[str] | None, n: int, include_seen: bool, target: Path
) -> Content:
    """The best items of each user as lines."""
    try:
        lines, words = recommend(model, users, n, include_seen)
    except ValueError as error:  # the model of an old file does not know what was seen
        raise CommandError(f"{error}, or add --include-seen") from error
    content, notes = encode_lines(("user", "item", "score"), lines)
    return target, content, [*words, *notes, f"Recommendations: {target}"]


def write(contents: list[Content]) -> None:
    """Write files, and say what they are."""
    for target, content, words in contents:
        write_atomically(target, content)
        for sentence in words:
            say(sentence)


def read_model(path: Path) -> L12Recommender:
    """A model; what is wrong with its file in one line."""
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
    if kind_of(path) in (".mtx", ".parquet", ".pq"):
        raise UsageError(f"{path}: pairs are read from lines of text, user and item")
    with explained(f"cannot read {path}"):
        try:
            return read_pairs(path, **vars(form))
        except ValueError as error:
            raise CommandError(str(error)) from error


def encode_lines(names: tuple[str, str, str], columns: tuple[Any, Any, Any]) -> tuple[bytes, list[str]]:
    """Lines of user, item and a number, and a sentence on ids that were quoted."""
    ids = [column.tolist() for column in columns[:2]]
    users, items = ([_quoted(name) for name in part] for part in ids)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(users, items, (f"{value:.6g}" for value in columns[2]), strict=True))
    changed = sum(a != b for a, b in zip((*users, *items), (*ids[0], *ids[1]), strict=True))
    note = f"{changed:,} ids look like formulas to a spreadsheet: an apostrophe stands before each of them"
    return text.getvalue().encode(), [note] if changed else []


def _quoted(name: Any) -> Any:
    """An id with an apostrophe before it if a spreadsheet would execute it; plain numbers stay as they are.

    Examples
    --------
    >>> from ell12.commands.rating_job import _quoted
    >>> _quoted("=1+1"), _quoted("-5"), _quoted("film 3")
    ("'=1+1", '-5', 'film 3')
    """
    is_formula = isinstance(name, str) and name.startswith(_FORMULA) and not _NUMBER.fullmatch(name)
    return f"'{name}" if is_formula else name
