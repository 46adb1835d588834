"""The columns of a table as features: words as categories, missing numbers as means, all of one scale."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.commands import CommandError
from ell12.datasets.table_files import Table

MISSING = "(missing)"  # the category of a word that is not there


@dataclass(frozen=True)
class Column:
    """A column of a table: one feature if it holds numbers; of words one for each category but the base.

    Parameters
    ----------
    name : str
        As in the file.
    mean : float
        What stands in for a missing number.
    categories : tuple of str, optional
        Of words those that have a feature, 1 where it is the word of the row and else 0.
    base : str
        The most frequent word, which has none: the others are compared with it.
    """

    name: str
    mean: float = 0.0
    categories: tuple[str, ...] | None = None
    base: str = ""

    @property
    def features(self) -> list[str]:
        """What the features are called."""
        return [self.name] if self.categories is None else [f"{self.name}={word}" for word in self.categories]

    def cells(self, table: Table) -> tuple[Any, list[str]]:
        """The features of all rows, and sentences on what is missing or new."""
        column, missing = table.columns[self.name], table.missing(self.name)
        if self.categories is None:
            notes = [f"{self.name}: {_so_many(missing)} missing, filled in by the mean {self.mean:.4g}"]
            return np.where(missing, self.mean, column)[:, None], notes if missing.any() else []
        words = np.where(missing, MISSING, column)
        known = np.isin(words.astype(str), (*self.categories, self.base))
        notes = [f"{self.name}: {_so_many(~known)} of words that the fit has not seen, taken as {self.base!r}"]
        return np.stack([words == word for word in self.categories], axis=1).astype(float), (
            [] if known.all() else notes
        )


def _so_many(where: Any) -> str:
    count = int(np.sum(where))
    return f"{count:,} value{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Design:
    """Features of mean 0 and standard deviation 1, from the columns of a table."""

    columns: tuple[Column, ...]
    means: Any
    scales: Any

    @property
    def features(self) -> list[str]:
        """What the features are called."""
        return [name for column in self.columns for name in column.features]

    def matrix(self, table: Table) -> tuple[Any, list[str]]:
        """The features of the rows of a table, and sentences on what was filled in."""
        for column in self.columns:
            check_column(column, table)
        parts, notes = zip(*(column.cells(table) for column in self.columns), strict=True)
        return (np.hstack(parts) - self.means) / self.scales, [note for found in notes for note in found]

    def part(self, used: Any) -> tuple["Design", Any]:
        """The columns of which some feature is used, and which features theirs are."""
        owner = np.repeat(np.arange(len(self.columns)), [len(column.features) for column in self.columns])
        chosen = np.unique(owner[used]) if np.any(used) else np.arange(1)
        kept = np.isin(owner, chosen)
        return Design(tuple(self.columns[k] for k in chosen), self.means[kept], self.scales[kept]), kept


def check_column(column: Column, table: Table) -> None:
    """Raise if a table lacks a column, or holds words where numbers are needed."""
    find_column(column.name, table)
    if column.categories is None and table.is_text(column.name):
        line, word = first_word(table, column.name)
        raise CommandError(
            f"{table.path}, line {line}: the column {column.name!r} must hold numbers, not {word!r}"
        )


def first_word(table: Table, name: str) -> tuple[int, str]:
    """The first cell of a column of words that is no number, and its line."""
    for line, word in zip(table.lines, table.columns[name], strict=True):
        try:
            float(word or 0)
        except ValueError:
            return int(line), word
    return int(table.lines[0]), str(table.columns[name][0])


def find_column(name: str, table: Table, what: str = "column") -> str:
    """The name, if the table has such a column; else an error with the names that are near."""
    if name in table.columns:
        return name
    small = {known.lower(): known for known in table.columns}
    near = [small[found] for found in difflib.get_close_matches(name.lower(), small, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {_listed(table.columns)}"
    raise CommandError(f"{table.path} has no {what} {name!r}; {hint}")


def _listed(names: Any) -> str:
    shown = ", ".join(map(repr, list(names)[:12]))
    return f"{shown} and {len(names) - 12} more" if len(names) > 12 else shown


def design_of(table: Table, names: Sequence[str], most_categories: int) -> tuple[Design, list[str]]:
    """The features that columns make, and sentences on columns that make none.

    Raises
    ------
    CommandError
        If no column is left.
    """
    columns, notes = [], []
    for name in names:
        column, note = _column_of(table, name, most_categories)
        columns += [column] if column is not None else []
        notes += [note] if note else []
    if not columns:
        raise CommandError(f"{table.path} has no column left to predict from: {'; '.join(notes) or 'add some'}")
    values = np.hstack([column.cells(table)[0] for column in columns])
    means = values.mean(axis=0)
    return Design(tuple(columns), means, np.sqrt(np.mean((values - means) ** 2, axis=0))), notes


def _counts_rows(values: Any) -> bool:
    return len(values) > 2 and values[0] in (0, 1) and bool(np.all(np.diff(values) == 1))


def _column_of(table: Table, name: str, most_categories: int) -> tuple[Column | None, str]:
    """A column, or why it is left out."""
    values, missing = table.columns[name], table.missing(name)
    if missing.all():
        return None, f"{name}: no value is known; left out"
    if not table.is_text(name):
        known = values[~missing]
        if known.min() == known.max():
            return None, f"{name}: one value only ({known[0]:g}); left out"
        if _counts_rows(values):
            return None, f"{name}: it only counts the rows; left out"
        return Column(name, float(known.mean())), ""
    words, counts = np.unique(np.where(missing, MISSING, values).astype(str), return_counts=True)
    if len(words) == 1:
        return None, f"{name}: one word only ({str(words[0])!r}); left out"
    if len(words) > most_categories:
        return None, (
            f"{name}: {len(words):,} different words, as {str(words[0])!r}; left out (--max-categories "
            f"{len(words)} keeps it)"
        )
    base = int(np.argmax(counts))
    others = tuple(str(word) for k, word in enumerate(words) if k != base)
    note = f"{name}: {len(words)} categories, each compared with {str(words[base])!r}"
    return Column(name, 0.0, others, str(words[base])), note
