"""``ell12 predict`` and ``ell12 recommend``: what a model that ``ell12 fit`` or ``ell12 complete`` wrote says."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ell12.commands import CommandError, UsageError, check_form, explained, outputs
from ell12.commands.application import add_command
from ell12.commands.complete import check_target, parse_columns, stopping
from ell12.commands.progress import progress_bar

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The .npz file that `ell12 complete` wrote.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]


def add_to(application: Any) -> None:
    """Add the commands to the application."""
    examples = [
        "ell12 predict houses.fit/model.npz new.csv",
        "ell12 predict ratings.completed.npz pairs.csv --force",
    ]
    add_command(application, predict, examples)
    examples = [
        "ell12 recommend ratings.completed.npz -n 5",
        "ell12 recommend model.npz --users alice,bob --force",
    ]
    add_command(application, recommend, examples)


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The .npz file that `ell12 fit` or `ell12 complete` wrote.")
    ],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="After fit: columns with the names of those that it selected. After complete: lines of user, "
            "item. Values of what is predicted are compared with.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write, as .csv; DATA.predicted.csv by default.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="USER,ITEM,VALUE", help="Of ratings: names or positions from 0; found by default."),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What stands between columns, \\t for a tab; found by default."),
    ] = None,
    encoding: Annotated[str, typer.Option(metavar="NAME", help="Of the lines, such as latin-1.")] = "utf-8",
    no_header: Annotated[
        bool, typer.Option("--no-header", help="After fit: the first line has no names; columns are c1, c2, ...")
    ] = False,
    force: Force = False,
) -> None:
    """Predict the rows of a table, or the ratings of pairs of user and item, from a model."""
    places, separator = None if columns is None else parse_columns(columns), check_form(separator, encoding)
    target = _planned(out or source.with_name(f"{source.stem}.predicted.csv"), [model, source], force)
    with stopping(), progress_bar() as show:
        show(f"reading {model.name}", 0.0)
        from ell12.commands import rating_job  # only now, since it loads much

        if rating_job.kind_of(model) != "TableModel":
            form = rating_job.LineForm(places, separator, encoding)
            fitted, read = rating_job.read_model(model), rating_job.read_pairs_of(source, form)
            content = rating_job.predicted_content(fitted, read, target)
        else:
            if places is not None:
                raise UsageError(f"--columns is for models of ratings; {model} is a model of ell12 fit")
            from ell12.commands import fit_job, table_model

            shape = fit_job.TableForm(separator, encoding, not no_header)
            content = fit_job.predicted_table(table_model.read_table_model(model), source, shape, target)
    outputs.write([content])


def recommend(
    model: Model,
    users: Annotated[
        str | None, typer.Option(metavar="USER,...", help="Ids, with commas between them; all users by default.")
    ] = None,
    users_file: Annotated[Path | None, typer.Option(metavar="FILE", help="A file with one id per line.")] = None,
    n: Annotated[int, typer.Option("-n", metavar="COUNT", min=1, help="How many items for each user.")] = 10,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Items that a user has rated may be recommended too.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write, as .csv; MODEL.recommended.csv by default."),
    ] = None,
    force: Force = False,
) -> None:
    """Write the items with the highest predicted ratings for each user, the best first."""
    if users is not None and users_file is not None:
        raise UsageError("--users and --users-file say the same: give one of them")
    sources = [model] if users_file is None else [model, users_file]
    target = _planned(out or model.with_name(f"{model.stem}.recommended.csv"), sources, force)
    ids = None if users is None else [name.strip() for name in users.split(",") if name.strip()]
    if users_file is not None:
        ids = _read_ids(users_file)
    if ids is not None and not ids:
        kind = CommandError if users is None else UsageError
        raise kind("there are no users to recommend anything to")
    from ell12.commands import rating_job  # only now, since it loads much

    with stopping(), progress_bar() as show:
        show(f"reading {model.name}", 0.0)
        content = rating_job.recommended_content(rating_job.read_model(model), ids, n, include_seen, target)
    outputs.write([content])


def _planned(target: Path, sources: list[Path], force: bool) -> Path:
    for source in sources:
        if source.is_dir():
            raise UsageError(f"{source} is a folder: name a file")
    if target.suffix != ".csv":
        raise UsageError(f"{target} has an unknown suffix: lines are written as .csv")
    check_target(target, sources, force)
    return target


def _read_ids(path: Path) -> list[str]:
    with explained(f"cannot read {path}"):
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise CommandError(f"{path} is no text in utf-8: {error}") from error
    return [line.strip() for line in lines if line.strip()]
