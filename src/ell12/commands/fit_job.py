"""``ell12 fit`` and ``ell12 predict`` at work: from a table to a model, to predictions and to a page."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ell12.commands import CommandError, explained, say
from ell12.commands.outputs import Content, encode_lines
from ell12.commands.progress import progress_bar
from ell12.commands.table_design import design_of, find_column
from ell12.commands.table_fit import Choice, TableFit, fit_table
from ell12.commands.table_model import TableModel
from ell12.commands.table_page import make_page
from ell12.commands.table_target import Target, target_of
from ell12.datasets.table_files import Table, read_table

SMALL = 2**22  # entries of a matrix that one thread of BLAS multiplies as fast as several


@dataclass(frozen=True)
class TableForm:
    """How the lines of a table are written; None is guessed."""

    separator: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class FitJob:
    """What to read, which columns are what, what to write, and how."""

    source: Path
    target: str
    loss: str
    event: str | None
    columns: tuple[str, ...]
    drop: tuple[str, ...]
    row_id: str | None
    missing: str
    most_categories: int
    form: TableForm
    targets: dict[str, Path]
    command: str

    def run(self, choice: Choice, check: Callable[[], None]) -> list[Content]:
        """Read, fit and say; the files that are to be written. ``check`` raises if the user wants to stop.

        Raises
        ------
        CommandError
            If the file cannot be read, or nothing can be learnt from it.
        """
        with progress_bar() as bar:

            def show(words: str, done: float) -> None:
                check()
                bar(words, done)

            show(f"reading {self.source.name}", 0.0)
            table = read_columns(self.source, self.form)
            target = target_of(table, self.target, self.loss, self.event)
            names = self._features(table)
            table, target, notes = self._complete(table, target, names)
            fitted = table.rows(target.known)
            design, found = design_of(fitted, names, self.most_categories)
            X, filled = design.matrix(fitted)
            notes = [*target.notes, *notes, *found, *filled]
            with threadpool_limits(1 if X.size < SMALL else None, user_api="blas"):
                fit = fit_table(design, X, target, choice, self.row_id or "", show)
            show("writing", 1.0)
        say(f"{len(table):,} rows, {len(names)} columns to predict {self.target} from, {X.shape[1]:,} features")
        notes = [
            *notes,
            "all features: brought to mean 0 and standard deviation 1; coefficients are in the file's units",
        ]
        return self._told(fit, table, target, notes)

    def _features(self, table: Table) -> list[str]:
        """The columns to predict from."""
        special = {name for name in (self.target, self.event, self.row_id) if name is not None}
        for name in (*self.columns, *self.drop, *(special - {self.target}), *self.form.words):
            find_column(name, table)
        return [name for name in self.columns or table.columns if name not in {*special, *self.drop}]

    def _complete(self, table: Table, target: Target, names: list[str]) -> tuple[Table, Target, list[str]]:
        """The table and its target without rows that lack a value, if that is wanted."""
        lacking = np.any([table.missing(name) for name in names], axis=0) if names else np.zeros(len(table), bool)
        if self.missing == "mean" or not lacking.any():
            return table, target, []
        first = next(name for name in names if table.missing(name).any())
        if self.missing == "refuse":
            line = table.lines[np.argmax(table.missing(first))]
            raise CommandError(
                f"{table.path}, line {line}: the column {first!r} has no value; {int(lacking.sum()):,} rows "
                "lack one. Fill them in, or say --missing mean or --missing drop"
            )
        kept = table.rows(~lacking)
        notes = [f"{int(lacking.sum()):,} of {len(table):,} rows lack a value; left out"]
        return kept, target_of(kept, self.target, self.loss, self.event), notes

    def _told(self, fit: TableFit, table: Table, target: Target, notes: list[str]) -> list[Content]:
        for note in notes:
            say(f"  {note}")
        for line in ["", *repr(fit.table).splitlines(), "", *fit.notes]:
            say(line)
        say(f"{fit.measure[0].upper()}{fit.measure[1:]}")
        contents: list[Content] = []
        model = fit.model.used()
        if "model" in self.targets:
            contents.append((self.targets["model"], model.encoded(), [f"Model: {self.targets['model']}"]))
        if "predictions" in self.targets:
            path = self.targets["predictions"]
            content, words = encode_lines(self._lines(fit, model, table, target))
            contents.append((path, content, [*words, f"Predictions of rows left out: {path}"]))
        if "page" in self.targets:
            page = make_page(fit, target, self.source.name, [*notes, *fit.notes], self.command)
            contents.append((self.targets["page"], page, [f"Page: {self.targets['page']}"]))
        return contents

    def _lines(self, fit: TableFit, model: TableModel, table: Table, target: Target) -> dict[str, Any]:
        """Every row: fits without it predict it where its target is known, and the model else."""
        found: dict[str, Any] = row_names(table, self.row_id or "")
        found[target.name] = _written(table, target.name)
        if target.event:
            found[target.event] = _written(table, target.event)
        rest = None if target.known.all() else model.predict(table.rows(~target.known))[0]
        for name, values in fit.left_out.items():
            whole = np.empty(len(table), dtype=values.dtype)
            whole[target.known] = values
            if rest is not None:
                whole[~target.known] = rest[name]
            found[name if name not in found else f"{name} (predicted)"] = whole
        found["by"] = np.where(target.known, "fits without the row", "the model")
        return found


def read_columns(path: Path, form: TableForm) -> Table:
    """The table of a file; what is wrong with it in one line."""
    with explained(f"cannot read {path}"):
        try:
            return read_table(path, **vars(form))
        except ValueError as error:
            text = str(error)
            hint = (
                "; say which with --encoding, for example --encoding latin-1"
                if "another encoding?" in text
                else ""
            )
            raise CommandError(text + hint) from error


def row_names(table: Table, row_id: str) -> dict[str, Any]:
    """What to call the rows: their ids, or numbers from 1."""
    if row_id and row_id in table.columns:
        return {row_id: _written(table, row_id)}
    return {"row": np.arange(1, len(table) + 1)}


def _written(table: Table, name: str) -> Any:
    """A column as words; empty where a value is missing."""
    if table.is_text(name):
        return np.where(table.missing(name), "", table.columns[name]).astype(str)
    return np.array(["" if np.isnan(value) else f"{value:.12g}" for value in table.columns[name]])


def predicted_table(model: TableModel, path: Path, form: TableForm, target: Path) -> Content:
    """The predictions of a model for the rows of a file, and how far they are from the truth where it has it."""
    table = read_columns(path, TableForm(form.separator, form.encoding, form.header, tuple(model.words)))
    found, notes = model.predict(table)
    lines = row_names(table, model.row_id) | {
        name if name != model.row_id else f"{name} (predicted)": values for name, values in found.items()
    }
    content, words = encode_lines(lines)
    told = [*notes, *_compared(model, table, found["prediction"]), *words]
    return target, content, [*told, f"{len(table):,} predictions of {model.target}: {target}"]


def _compared(model: TableModel, table: Table, predicted: Any) -> list[str]:
    if model.target not in table.columns or model.loss == "cox":
        return []
    truth, known = _written(table, model.target), ~table.missing(model.target)
    if not known.any():
        return []
    rows = f"{int(known.sum()):,} rows where {model.target} is known"
    if model.classes:
        return [f"{np.mean(truth[known] == predicted[known]):.1%} right of {rows}"]
    if table.is_text(model.target):
        return []
    error = np.sqrt(np.mean((table.columns[model.target][known] - predicted[known]) ** 2))
    return [f"RMSE {error:.4g} on {rows}"]
