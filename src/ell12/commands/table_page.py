"""The page of ``ell12 fit``: one file that needs no network."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ell12.commands.table_fit import TableFit
from ell12.commands.table_target import Target
from ell12.plots.pages import cross_validation_svg, predictions_svg

MOST_ROWS = 200  # of the table of features


@dataclass(frozen=True)
class ShownTable:
    """Names of columns and rows of words; of a square table the diagonal may be marked."""

    names: list[str]
    rows: list[list[str]]
    diagonal: bool = False
    words: tuple[str, ...] = ("class", "feature")  # the columns that stand on the left


def make_page(fit: TableFit, target: Target, source: str, notes: list[str], command: str) -> bytes:
    """The page as a file."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ell12.commands"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    drawings = [("How the strength was chosen", cross_validation_svg(fit.search))]
    if target.loss not in ("logistic", "cox"):
        drawings.append(("Predicted and true", predictions_svg(target.y, fit.left_out["prediction"], target.name)))
    page = environment.get_template("fit.html").render(
        target=target.name,
        source=source,
        measure=f"{fit.measure[0].upper()}{fit.measure[1:]}.",
        facts=[("model", fit.table.title), *fit.table.head.items()],
        features=_features(fit.table),
        table_notes=fit.table.notes,
        confusion=_confusion(target.y, fit.left_out["prediction"]) if target.loss == "logistic" else None,
        drawings=drawings,
        notes=notes,
        command=command,
        version=fit.model.version,
    )
    return page.encode()


def _features(table: Any) -> ShownTable:
    """The features in words; those of the largest effect first."""
    columns = replace(table, max_rows=MOST_ROWS).cells()
    names, rows = list(columns), [list(row) for row in zip(*columns.values(), strict=True)]
    left = len(table.columns["feature"]) - len(rows)
    return ShownTable(names, rows + ([[f"... and {left:,} more", *([""] * (len(names) - 1))]] if left > 0 else []))


def _confusion(y: Any, predicted: Any) -> ShownTable:
    classes = np.unique(y)
    counts = [[int(np.sum((y == true) & (predicted == found))) for found in classes] for true in classes]
    names = ["class", *(f"→ {name}" for name in classes)]
    rows = [[str(name), *(f"{count:,}" for count in row)] for name, row in zip(classes, counts, strict=True)]
    return ShownTable(names, rows, diagonal=True)
