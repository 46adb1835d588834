"""What is to be predicted: numbers, classes, counts or survival times, and the folds to judge by."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.commands import CommandError, UsageError
from ell12.commands.table_design import find_column, first_word
from ell12.datasets.table_files import Table

FEWEST_ROWS = 6
MOST_CLASSES = 50


@dataclass(frozen=True)
class Target:
    """The target of the rows where it is known.

    Parameters
    ----------
    name : str
        The column.
    loss : str
        That of the model: "squared", "huber", "poisson", "logistic" or "cox".
    y : array
        Numbers; labels as words; or times beside events, 0 or 1.
    known : array of bool
        The rows of the table where it is known.
    notes : list of str
        What was guessed and is worth knowing.
    event : str
        The column of events, with "cox".
    """

    name: str
    loss: str
    y: Any
    known: Any
    notes: list[str]
    event: str = ""

    def folds(self, n_folds: int, seed: int) -> list[tuple[Any, Any]]:
        """Rows to fit and rows to judge by: random, with the same share of each class, or of events, in all."""
        strata = np.zeros(len(self.y), dtype=int)
        if self.loss == "logistic":
            strata = np.unique(self.y, return_inverse=True)[1]
            n_folds = min(n_folds, int(np.bincount(strata).min()))
        elif self.loss == "cox":
            strata = self.y[:, 1].astype(int)
        order = np.random.default_rng(seed).permutation(len(self.y))
        order = order[np.argsort(strata[order], kind="stable")]
        fold = np.empty(len(self.y), dtype=int)
        fold[order] = np.arange(len(self.y)) % n_folds
        return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def target_of(table: Table, name: str, loss: str, event: str | None) -> Target:
    """The target; ``loss="auto"`` is logistic for words and for two different numbers, and else squared.

    Raises
    ------
    CommandError
        If there is no such column, or nothing can be learnt from it.
    """
    find_column(name, table, "target")
    known = ~table.missing(name)
    notes = (
        [f"{name}: {int(np.sum(~known)):,} rows without it are predicted, not fitted"] if not known.all() else []
    )
    values = table.columns[name][known]
    if len(values) < FEWEST_ROWS:
        rows = f"{len(values)} row{'' if len(values) == 1 else 's'}"
        raise CommandError(f"{table.path} has {rows} where the target {name!r} is known: {FEWEST_ROWS} are needed")
    if loss == "auto":
        loss = "logistic" if table.is_text(name) or len(np.unique(values)) == 2 else "squared"
    if loss == "logistic":
        return Target(name, loss, _labels(table, name, values), known, notes)
    if table.is_text(name):
        line, word = first_word(table, name)
        raise CommandError(f"{table.path}, line {line}: the target {name!r} must be a number, not {word!r}")
    if loss == "cox":
        return _survival(table, name, event, known, notes)
    if values.min() == values.max():
        raise CommandError(f"the target {name!r} is {values[0]:g} in all rows: there is nothing to predict")
    if loss == "poisson" and values.min() < 0:
        raise CommandError(f"the target {name!r} is {values.min():g} somewhere: counts (--loss poisson) are >= 0")
    return Target(name, loss, values, known, notes)


def _labels(table: Table, name: str, values: Any) -> Any:
    labels = values.astype(str) if table.is_text(name) else np.array([f"{value:.12g}" for value in values])
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) == 1:
        raise CommandError(f"the target {name!r} is {str(classes[0])!r} in all rows: there is nothing to predict")
    if len(classes) > MOST_CLASSES:
        line, word = first_word(table, name) if table.is_text(name) else (int(table.lines[0]), str(classes[0]))
        raise CommandError(
            f"the target {name!r} has {len(classes)} different words, as {word!r} in line {line}: classes are at "
            f"most {MOST_CLASSES}, and a number must be written as one"
        )
    if counts.min() < 2:
        rare = classes[np.argmin(counts)]
        raise CommandError(
            f"the target {name!r} is {str(rare)!r} in one row only: each class needs two or more rows"
        )
    return labels


def _survival(table: Table, name: str, event: str | None, known: Any, notes: list[str]) -> Target:
    if event is None:
        raise UsageError("--loss cox needs --event COLUMN: 1 where the event was seen, 0 where it was not yet")
    find_column(event, table)
    seen = table.columns[event]
    if table.is_text(event) or not np.isin(seen[known], (0, 1)).all() or not np.any(seen[known] == 1):
        raise CommandError(f"the column {event!r} of events must hold 0 or 1 in every row, and 1 somewhere")
    return Target(name, "cox", np.column_stack([table.columns[name], seen])[known], known, notes, event)
