"""``ell12 fit``: a sparse model of a table, with cross-validation."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ell12.commands import UsageError, check_folder, check_form
from ell12.commands.application import add_command
from ell12.commands.complete import check_target, stopping

TableLoss = StrEnum("TableLoss", ["auto", "squared", "huber", "poisson", "logistic", "cox"])
Missing = StrEnum("Missing", ["mean", "drop", "refuse"])
OUTPUTS = {".npz": "model", ".csv": "predictions", ".html": "page"}
NAMES = {"model": "model.npz", "predictions": "predictions.csv", "page": "page.html"}


def add_to(application: Any) -> None:
    """Add the command to the application."""
    add_command(
        application,
        fit,
        [
            "ell12 fit houses.csv --target price",
            "ell12 fit patients.csv --target ill --id name --drop ward,doctor --stability",
            "ell12 fit trial.csv --target months --event died --loss cox --out trial",
            "ell12 fit houses.csv --target price --one-se --out price.npz --out p.html",
        ],
    )


def fit(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="Lines of columns with names above them (csv and its kin); .gz, .bz2, .xz of them.",
        ),
    ],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="What to predict.")],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR|FILE",
            help="Folder of model, predictions and page (DATA.fit by default), or files: .npz, .csv, .html.",
        ),
    ] = None,
    loss: Annotated[
        TableLoss,
        typer.Option(
            metavar="|".join(TableLoss),
            help="auto is logistic for words and for two different numbers, and else squared; huber bears "
            "outliers, poisson is for counts, cox for survival times.",
        ),
    ] = TableLoss.auto,
    event: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With cox: 1 where the event was seen, 0 where not yet.")
    ] = None,
    columns: Annotated[
        str, typer.Option(metavar="NAMES", help="Columns to predict from, with commas; all by default.")
    ] = "",
    drop: Annotated[str, typer.Option(metavar="NAMES", help="Columns to leave out, with commas.")] = "",
    row_id: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="What rows are called; no feature.")
    ] = None,
    categories: Annotated[
        str, typer.Option(metavar="NAMES", help="Columns of numbers that are codes, to be taken as words.")
    ] = "",
    max_categories: Annotated[
        int, typer.Option(metavar="COUNT", min=2, help="A column of more different words is left out.")
    ] = 30,
    missing: Annotated[
        Missing,
        typer.Option(
            metavar="|".join(Missing),
            help="Missing numbers: their column's mean, drop the row, or refuse. Missing words are a category.",
        ),
    ] = Missing.mean,
    l2_weight: Annotated[
        str,
        typer.Option(metavar="NUMBERS", help="1 is l1-2, 0 the Lasso; of several the folds choose."),
    ] = "1,0.5,0",
    one_se: Annotated[
        bool, typer.Option("--one-se", help="Fewer features: the strongest penalty within one standard error.")
    ] = False,
    folds: Annotated[int, typer.Option(metavar="COUNT", min=2, help="Of the cross-validation.")] = 5,
    stability: Annotated[
        bool, typer.Option("--stability", help="How often 100 halves of the rows select each feature.")
    ] = False,
    intervals: Annotated[
        bool,
        typer.Option("--intervals", help="Confidence intervals of the coefficients; not of classes over two."),
    ] = False,
    separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Between columns, \\t for a tab; guessed by default.")
    ] = None,
    encoding: Annotated[str, typer.Option(metavar="NAME", help="Of the lines, such as latin-1.")] = "utf-8",
    no_header: Annotated[
        bool, typer.Option("--no-header", help="The first line has no names: columns are c1, c2, ...")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="The same seed makes the same folds.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> None:
    """Fit a sparse model to the columns of a file, and show which of them count.

    The strength of the penalty is chosen by cross-validation. `ell12 predict` reads the model.
    """
    if event is not None and loss is not TableLoss.cox:
        raise UsageError("--event is for --loss cox")
    weights, separator = _weights(l2_weight), check_form(separator, encoding)
    targets = _planned(source, out or [], force)
    from ell12.commands import fit_job  # only now, since it loads much
    from ell12.commands.outputs import write
    from ell12.commands.table_fit import Choice

    form = fit_job.TableForm(separator, encoding, not no_header, _names(categories))
    options: dict[str, Any] = {"columns": _names(columns), "drop": _names(drop), "row_id": row_id, "form": form}
    options |= {"loss": loss.value, "event": event, "missing": missing.value, "most_categories": max_categories}
    command = shlex.join(["ell12", *sys.argv[1:]])
    job = fit_job.FitJob(source, target, targets=targets, command=command, **options)
    with stopping() as check:
        contents = job.run(Choice(weights, folds, one_se, seed, stability, intervals), check)
        for path in targets.values():
            check_folder(path.parent, create=True)
        write(contents)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _weights(text: str) -> tuple[float, ...]:
    try:
        weights = tuple(map(float, _names(text)))
    except ValueError:
        weights = ()
    if not weights or not all(0 <= weight <= 1 for weight in weights):
        raise UsageError(f"--l2-weight must be numbers from 0 to 1 with commas between them, got {text!r}")
    return weights


def _planned(source: Path, out: list[Path], force: bool) -> dict[str, Path]:
    """The files to write, by what they hold."""
    if source.is_dir():
        raise UsageError(f"{source} is a folder: name a file")
    known = [path for path in out if path.suffix.lower() in OUTPUTS]
    if known and len(known) < len(out):
        raise UsageError("--out is a folder, or files that end in .npz, .csv or .html, not both")
    targets = {OUTPUTS[path.suffix.lower()]: path for path in known}
    if len(targets) < len(known) or (not known and len(out) > 1):
        raise UsageError("--out names two files of one kind, or two folders: give one of them")
    if not known:
        folder = out[0] if out else source.with_name(f"{source.name.partition('.')[0]}.fit")
        targets = {what: folder / name for what, name in NAMES.items()}
    for path in targets.values():
        check_target(path, [source], force, create=not known)
    return targets
