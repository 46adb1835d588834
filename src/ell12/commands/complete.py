"""``ell12 complete``: ratings completed by a matrix of low rank under the l1-2 penalty."""

import csv
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ell12.commands import UsageError, check_folder, check_form, say
from ell12.commands.application import STOPPED, add_command

Center = StrEnum("Center", ["auto", "none", "mean", "columns", "biases"])  # what is taken off the ratings before
Duplicates = StrEnum("Duplicates", ["last", "first", "mean", "error"])  # what counts of a pair that is rated twice


def add_to(application: Any) -> None:
    """Add the command to the application."""
    add_command(
        application,
        complete,
        [
            "ell12 complete ratings.csv",
            "ell12 complete ratings.csv --predict pairs.csv --out predicted.csv",
            "ell12 complete u.data --columns 0,1,2 --alpha 5 --max-rank 8",
        ],
    )


def complete(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RATINGS",
            help="Lines of user, item, value (csv, u.data, ratings.dat), .mtx, .parquet; .gz, .bz2, .xz of them.",
        ),
    ],
    out: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Where to write: the model as .npz, predictions for --predict as .csv."),
    ] = None,
    predict: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Lines of user, item to predict; values there are compared with."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", min=0.0, help="Strength; hidden ratings choose it by default."),
    ] = None,
    max_rank: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT",
            min=1,
            help="Largest rank; chosen likewise. Given --alpha: 8, none if a quarter is known.",
        ),
    ] = None,
    center: Annotated[
        Center,
        typer.Option(
            metavar="|".join(Center),
            help="What to take off before; auto is chosen likewise, but may put rare items first for everybody.",
        ),
    ] = Center.biases,
    l2_weight: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", min=0.0, help="1 is l1-2, 0 the nuclear norm; chosen likewise. Given --alpha: 0.5."
        ),
    ] = None,
    held_out: Annotated[
        float,
        typer.Option(
            metavar="SHARE", min=0.0, max=0.9, help="Part of the ratings hidden to measure the error; 0 is none."
        ),
    ] = 0.1,
    clip: Annotated[bool, typer.Option(help="Cut predictions to the range of the ratings.")] = True,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="USER,ITEM,VALUE",
            help="Names or positions from 0, as in who,film,stars; known names or the first three by default.",
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What stands between columns, \\t for a tab; found by default."),
    ] = None,
    encoding: Annotated[
        str,
        typer.Option(metavar="NAME", help="Of the lines, such as latin-1; a mark at the beginning tells UTF-16."),
    ] = "utf-8",
    duplicates: Annotated[
        Duplicates, typer.Option(metavar="|".join(Duplicates), help="What a pair rated twice counts with.")
    ] = Duplicates.last,
    tol: Annotated[float, typer.Option(metavar="NUMBER", min=0.0, help="Accuracy of the fit.")] = 1e-3,
    max_iter: Annotated[int, typer.Option(metavar="COUNT", min=1, help="Iterations of a fit at most.")] = 1000,
    seed: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="The same seed hides the same ratings.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> None:
    """Complete ratings, say how well hidden ones are predicted, and write the model or predictions.

    `ell12 predict` and `ell12 recommend` read the model.
    """
    for name, value in (("--alpha", alpha), ("--l2-weight", l2_weight)):
        if value == math.inf:
            raise UsageError(f"{name} must be a finite number")
    places, separator = None if columns is None else parse_columns(columns), check_form(separator, encoding)
    targets = plan_targets(source, out or [], predict, force)
    from ell12.commands import rating_job  # only now, since it loads much

    options = {
        "alpha": "holdout" if alpha is None else alpha,
        "max_rank": max_rank or "auto",
        "center": None if center is Center.none else center.value,
        "l2_weight": "auto" if l2_weight is None else l2_weight,
        "clip": "observed" if clip else None,
        "tol": tol,
        "max_iter": max_iter,
    }
    form = rating_job.LineForm(places, separator, encoding)
    job = rating_job.RatingJob(source, predict, targets, duplicates.value, held_out, seed, form)
    with stopping():
        job.run(options)


@contextmanager
def stopping() -> Iterator[Callable[[], None]]:
    """Ctrl-C ends a command that has not written yet.

    A solver answers Ctrl-C by ending its own run alone. The function that is yielded raises KeyboardInterrupt if
    there was one.
    """
    pressed: list[int] = []

    def note(number: int, _: Any) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    is_ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    try:
        if is_ours:
            signal.signal(signal.SIGINT, note)
        yield check
    except KeyboardInterrupt:
        say("Stopped: nothing is written.")
        raise typer.Exit(STOPPED) from None
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)


def parse_columns(text: str) -> tuple[str | int, str | int, str | int]:
    """Three names or positions; names that hold a comma stand in quotes."""
    words = [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [])]
    if len(words) != 3 or not all(words):
        raise UsageError(f"--columns must be three names or positions, as in user,item,rating; got {text!r}")
    user, item, value = (int(word) if word.isdecimal() else word for word in words)
    return user, item, value


def plan_targets(source: Path, out: list[Path], predict: Path | None, force: bool) -> list[Path]:
    """The files to write.

    Raises
    ------
    UsageError
        If one is there already, is of an unknown kind or cannot be written: before anything is computed.
    """
    sources = [path for path in (source, predict) if path is not None]
    for path in sources:
        if path.is_dir():
            raise UsageError(f"{path} is a folder: name a file")
    default = source.with_name(f"{source.stem}.completed.npz")
    if predict is not None:
        default = predict.with_name(f"{predict.stem}.predicted.csv")
    targets = out or [default]
    for target in targets:
        if target.suffix not in (".npz", ".csv"):
            raise UsageError(f"{target} has an unknown suffix: .npz holds the model, .csv predictions")
        if target.suffix == ".csv" and predict is None:
            raise UsageError(f"{target} would hold predictions: say for which pairs with --predict FILE")
        check_target(target, sources, force)
    if predict is not None and not any(target.suffix == ".csv" for target in targets):
        raise UsageError("--predict needs a .csv file among the --out to write the predictions to")
    return targets


def check_target(target: Path, sources: list[Path], force: bool, create: bool = False) -> None:
    """Raise if a file cannot be written, is there already, or is one that is read; its folder may be made."""
    if target.exists() and not force:
        raise UsageError(f"{target} is there already: add --force to overwrite it")
    if target.is_dir():
        raise UsageError(f"{target} is a folder: choose another --out")
    if os.path.realpath(target) in map(os.path.realpath, sources):  # whichever way it is spelled
        raise UsageError(f"{target} is read from: choose another --out")
    if not create or target.parent.exists():
        check_folder(target.parent)
