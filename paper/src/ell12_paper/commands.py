"""``ell12-paper verify``, ``join``, ``export-benchopt``: runs from elsewhere, in parts, by another tool."""

import json
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from ell12.commands import say
from ell12.commands.application import STOPPED, add_command
from ell12.commands.complete import stopping
from ell12_paper.display import run_display


def add_to(application: Any) -> None:
    """Add the commands to the application."""
    add_command(
        application, verify, ["ell12-paper verify run.zip", "ell12-paper verify reproduction --trials 5 --json"]
    )
    add_command(application, join, ["ell12-paper join monday.zip tuesday.zip --out whole"])
    add_command(application, export, ["ell12-paper export-benchopt my-benchmark"], "export-benchopt")


def verify(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or the .zip file of one.")],
    trials: Annotated[
        int | None,
        typer.Option(metavar="COUNT", min=0, help="How many to measure again; by default about a minute of them."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Another seed chooses other trials.")] = 0,
    jobs: Annotated[
        int, typer.Option(metavar="COUNT", min=1, help="Trials at a time; at most the free cores.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, and no progress.")] = False,
) -> None:
    """Check a run from elsewhere, measure some of its trials again, and tell which claims hold here."""
    from ell12_paper.verify import verify as verified  # only now, since it loads much

    with stopping(), nullcontext() if as_json else run_display() as progress:
        found = verified(source, trials, seed, jobs, progress)
    if as_json:
        print(json.dumps(found.as_json(), indent=2))
    else:
        for line in found.lines():
            say(line)
    raise typer.Exit(STOPPED if found.interrupted else 0 if found.agrees else 1)


def join(
    parts: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Folders of runs, or .zip files, with one preset and seed.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new or empty folder.")],
) -> None:
    """Join parts of one study, measured on several machines or with several --only, into one run."""
    from ell12_paper.joining import join as joined  # only now, since it loads much

    found = joined(parts, out)
    left = {"measured twice": found.repeated, "damaged": found.damaged}
    words = ", ".join(f"{count} {what}" for what, count in left.items() if count)
    without = f" ({words}: left out)" if words else ""
    say(f"{out} has {len(found.rows)} rows of {len(parts)} runs{without}. To see them: ell12-paper report {out}")


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
) -> None:
    """Write the paper's compressed sensing as a benchmark that `benchopt run DIR` executes."""
    from ell12_paper.benchopt_folder import export_benchopt  # only now, since it loads much

    count = len(export_benchopt(folder))
    say(f"{count} files are written. To run them: {shlex.join(['benchopt', 'run', str(folder)])}")
