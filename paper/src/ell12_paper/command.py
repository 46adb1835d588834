"""The command ``ell12-paper``: run the paper's studies, show them, check a run from elsewhere."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ell12_paper import STUDIES
from ell12_paper.studies.images import FOLDER
from ell12_paper.trial_runs import RunError, Show, Trial, Wish, run
from ell12_paper.words import duration

STOPPED = 130  # the exit code after Ctrl-C, as shells have it
SECONDS_PER_LINE = 10.0  # between lines of progress where there is no terminal to draw a bar on
application = typer.Typer(help="The experiments of the paper behind ell12.", pretty_exceptions_enable=False)


def main() -> None:
    """Entry point."""
    try:
        application(prog_name="ell12-paper")
    except (RunError, OSError) as error:
        typer.echo(f"ell12-paper: {error}", err=True)
        raise SystemExit(1) from None


@application.command("run")
def measure(
    names: Annotated[list[str] | None, typer.Argument(help=f"By default all: {', '.join(STUDIES)}.")] = None,
    preset: Annotated[str, typer.Option(help="quick (minutes) or paper (hours).")] = "quick",
    out: Annotated[Path, typer.Option(help="Folder of the rows and the page.")] = Path("reproduction"),
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same problems.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Trials at a time; at most the free cores.")] = 1,
    repeats: Annotated[int | None, typer.Option(min=1, help="Fewer repeats than the preset's.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Some trials, as --only i=1,2,4.")] = None,
    images: Annotated[Path | None, typer.Option(help="A folder of pictures in place of the stand-ins.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the rows in the folder.")] = False,
) -> None:
    """Measure the paper's studies and make the page that shows them."""
    take_pictures(images)
    wish = Wish(names or (), preset, seed, repeats, only or ())
    with progress() as show:
        outcome = run(wish, out, jobs, resume, show)
    if outcome.interrupted:
        again = [*wish.words(), "--jobs", str(jobs), "--out", str(out), "--resume"]
        again += ["--images", str(images)] if images else []
        typer.echo(f"Stopped: {outcome.done} of {outcome.total} trials are on disk. To go on: {shlex.join(again)}")
        raise typer.Exit(STOPPED)
    if outcome.done:
        report(out)
    for trial, error in outcome.failures:
        typer.echo(f"failed: {trial.key}: {error.strip().splitlines()[-1]}", err=True)
    if outcome.failures:
        typer.echo(f"{len(outcome.failures)} trials failed; --resume tries them again", err=True)
        raise typer.Exit(1)


@application.command()
def report(
    source: Annotated[Path, typer.Argument(help="Folder or zip file of a run.")] = Path("reproduction"),
    out: Annotated[Path | None, typer.Option(help="Folder of the page; by default that of the run.")] = None,
) -> None:
    """Make the page again from the rows of a run."""
    from ell12_paper import page  # loads matplotlib

    target = out or (source if source.is_dir() else source.with_suffix(""))
    typer.echo("\n".join(page.report(source, target)))
    typer.echo(f"The page: {(target / page.PAGE).resolve()}")


@application.command()
def verify(
    source: Annotated[Path, typer.Argument(help="Folder or zip file of a run.")],
    trials: Annotated[int | None, typer.Option(min=0, help="How many to measure again.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed chooses other trials.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Trials at a time.")] = 1,
    images: Annotated[Path | None, typer.Option(help="The folder of pictures that the run had.")] = None,
) -> None:
    """Tell whether a run's file is sound, and its numbers and ratios of times are the same here."""
    from ell12_paper.verify import verify as found_by

    take_pictures(images)
    with progress() as show:
        lines, sound = found_by(source, trials, seed, jobs, show)
    typer.echo("\n".join(lines))
    raise typer.Exit(0 if sound else 1)


def take_pictures(folder: Path | None) -> None:
    """Let the pictures of a folder stand for the photographs, here and in the processes of a run."""
    if folder is not None:
        os.environ[FOLDER] = str(folder.resolve())


@contextmanager
def progress() -> Iterator[Show]:
    """How far a run is: a bar on a terminal, else a line now and then."""
    begun = last = time.monotonic()

    def line(done: int, total: int, trial: Trial | None, left: float | None) -> None:
        nonlocal last
        now = time.monotonic()
        if done == total or now - last >= SECONDS_PER_LINE or trial is None:
            last = now
            typer.echo(f"{done} of {total} trials, {duration(now - begun)}{_left(left)}")

    if not sys.stdout.isatty():
        yield line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[left]}"), console=Console()) as bar:
        task = bar.add_task("", total=None, left="")
        yield lambda done, total, trial, left: bar.update(
            task, completed=done, total=total, description=str(trial or ""), left=_left(left)
        )


def _left(seconds: float | None) -> str:
    return f", about {duration(round(seconds))} left" if seconds else ""
