"""``ell12 complete`` at work: from a file of ratings to files of factors and predictions."""

import csv
import io
import math
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ell12.checks import check_entries
from ell12.commands import CommandError, explained, say
from ell12.commands.progress import progress_bar
from ell12.commands.rating_fit import RatingModel, fit, predict_pairs
from ell12.completion import Completion, Observed
from ell12.datasets import Ratings, load_ratings
from ell12.datasets.rating_files import read_pairs
from ell12.datasets.text_files import kind_of
from ell12.files import write_atomically

__all__ = ["LineForm", "RatingJob", "RatingModel"]

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
    clip: bool
    form: LineForm

    def run(self, model: RatingModel) -> None:
        """Read, fit, say and write.

        Raises
        ------
        CommandError
            If a file cannot be read, or holds too little.
        KeyboardInterrupt
            If the user stopped it: nothing is written then.
        """
        ratings = read_ratings(self.source, self.duplicates, self.form)
        pairs = None if self.predict is None else _read_pairs(self.predict, self.form)
        observed = Observed(ratings.rows, ratings.columns, ratings.values, ratings.shape)
        limits = (float(ratings.values.min()), float(ratings.values.max())) if self.clip else (-math.inf, math.inf)
        with progress_bar() as show:
            completion, choice, sentences = fit(observed, model, self.held_out, limits, show)
        for sentence in sentences:
            say(sentence)
        contents = []  # all of them before the first is written
        for target in self.targets:
            if target.suffix == ".npz":
                factors = encode_factors(completion, ratings, choice.l2_weight, limits)
                contents.append((target, factors, [f"Factors: {target}"]))
            elif pairs is not None:
                predicted, words = predict_pairs(completion, ratings, observed, pairs, limits)
                content, notes = encode_predictions(pairs, predicted)
                contents.append((target, content, [*words, *notes, f"Predictions: {target}"]))
        for target, content, words in contents:
            write_atomically(target, content)
            for sentence in words:
                say(sentence)


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


def _read_pairs(path: Path, form: LineForm) -> tuple[Any, Any, Any]:
    if kind_of(path) in (".mtx", ".parquet", ".pq"):
        raise CommandError(f"{path}: pairs are read from lines of text, user and item")
    with explained(f"cannot read {path}"):
        try:
            return read_pairs(path, **vars(form))
        except ValueError as error:
            raise CommandError(str(error)) from error


def encode_factors(
    completion: Completion, ratings: Ratings, l2_weight: float, limits: tuple[float, float]
) -> bytes:
    """An .npz file without pickles: ``U diag(s) V' + mean + user_offsets + item_offsets``, and the ids."""
    x, offsets = completion.x, completion.offsets
    content = {"U": x.U, "s": x.s, "V": x.V, "users": ratings.users, "items": ratings.items}
    content |= {"mean": np.float64(offsets.mean)}
    for name, values, size in (("user", offsets.rows, x.shape[0]), ("item", offsets.columns, x.shape[1])):
        content[f"{name}_offsets"] = np.zeros(size) if values is None else values
    content |= {
        "alpha": np.float64(completion.alpha),
        "l2_weight": np.float64(l2_weight),
        "limits": np.array(limits),
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **content)
    return buffer.getvalue()


def encode_predictions(pairs: tuple[Any, Any, Any], predicted: Any) -> tuple[bytes, list[str]]:
    """Lines of user, item and prediction, and a sentence on ids that were quoted."""
    users, items = ([_quoted(name) for name in names.tolist()] for names in pairs[:2])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("user", "item", "prediction"))
    writer.writerows(zip(users, items, (f"{p:.6g}" for p in predicted), strict=True))
    changed = sum(a != b for a, b in zip((*users, *items), (*pairs[0].tolist(), *pairs[1].tolist()), strict=True))
    note = f"{changed:,} ids look like formulas to a spreadsheet: an apostrophe stands before each of them"
    return text.getvalue().encode(), [note] if changed else []


def _quoted(name: Any) -> Any:
    """An id with an apostrophe before it if a spreadsheet would execute it; plain numbers stay as they are.

    Examples
    --------
    >>> _quoted("=1+1"), _quoted("-5"), _quoted("film 3")
    ("'=1+1", '-5', 'film 3')
    """
    is_formula = isinstance(name, str) and name.startswith(_FORMULA) and not _NUMBER.fullmatch(name)
    return f"'{name}" if is_formula else name
