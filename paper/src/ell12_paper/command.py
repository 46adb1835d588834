"""The command ``ell12-paper``: run the paper's experiments, show them, check runs from elsewhere."""

import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ell12 import __version__
from ell12.commands import CommandError, say
from ell12.commands.application import STOPPED, add_command, new_application
from ell12.commands.progress import progress_bar
from ell12_paper import EXPERIMENTS, commands
from ell12_paper.archive import check_target, pack
from ell12_paper.display import run_display
from ell12_paper.provenance import PAGE_FILES, command_line, seal
from ell12_paper.run import RunOutcome, run

RUN = ["ell12-paper run --jobs 2", "ell12-paper run prox level-curves --out prox-run --archive prox-run.zip"]
PresetName = StrEnum("PresetName", ["quick", "paper"])


def main() -> None:
    """Entry point of the command ``ell12-paper``."""
    application = new_application()

    @application.callback()
    def ell12_paper() -> None:
        """The experiments of the paper behind ell12."""

    add_command(application, measure, RUN, "run")
    add_command(application, report, ["ell12-paper report reproduction"])
    commands.add_to(application)
    try:
        application(prog_name="ell12-paper")
    except CommandError as error:
        say(f"ell12-paper: {error}", failed=True)
        raise SystemExit(error.code) from None
    except OSError as error:
        say(f"ell12-paper: {error}", failed=True)
        raise SystemExit(1) from None


def measure(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help=f"Experiments (default: all): {', '.join(EXPERIMENTS)}."),
    ] = None,
    preset: Annotated[
        PresetName, typer.Option(metavar="quick|paper", help="A few minutes, or the paper's own size.")
    ] = PresetName.quick,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the rows and the page.")] = Path(
        "reproduction"
    ),
    seed: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="The same seed gives the same problems.")] = 0,
    jobs: Annotated[
        int, typer.Option(metavar="COUNT", min=1, help="Trials at a time; at most the free cores.")
    ] = 1,
    repeats: Annotated[
        int | None, typer.Option(metavar="COUNT", min=1, help="Fewer repeats than the preset's.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="SETTING=VALUES", help="Some trials, as --only i=1,2,4.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the rows in the folder.")] = False,
    archive: Annotated[
        Path | None, typer.Option(metavar="RUN.zip", help="Also pack rows, page, provenance into one file.")
    ] = None,
) -> None:
    """Measure the paper's experiments and make the page that shows them."""
    check_target(archive)
    with run_display() as progress:
        outcome = run(names or (), preset.value, out, seed, jobs, resume, progress, repeats, only or ())
    if outcome.interrupted:
        command = _resume_command(names or (), preset, out, seed, jobs, repeats, only or (), archive)
        say(f"Stopped: {outcome.kept + outcome.written} of {outcome.total} trials are on disk.")
        say(f"To go on: {command}")
        raise typer.Exit(STOPPED)
    if outcome.kept + outcome.written:
        _show_report(out, archive)
    _show_failures(outcome)
    raise typer.Exit(1 if outcome.failures else 0)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the rows.")] = Path("reproduction"),
) -> None:
    """Make the page again from the rows in DIR."""
    _show_report(folder)


def _show_report(folder: Path, archive: Path | None = None) -> None:
    """Make the page and, if wanted, the archive; print what the page finds, and name it."""
    from ell12_paper import report

    with progress_bar() as show:
        show("drawing the page", 0.0)
        page, lines = report.report(folder), report.verdict_lines(folder)
    seal(folder, PAGE_FILES, page={"ell12": __version__, "verdicts": lines})
    for line in lines:
        say(line)
    say(f"The page: {page.resolve()}")
    if archive is not None:
        pack(folder, archive)
        say(f"The archive: {archive.resolve()}")


def _show_failures(outcome: RunOutcome) -> None:
    """What raised, with its settings; the reason is the last line of the traceback."""
    for trial, error in outcome.failures:
        reason = error.strip().splitlines()[-1]
        say(f"ell12-paper: this trial failed: {trial.key}", failed=True)
        say(f"  {reason}", failed=True)
    if outcome.failures:
        count = len(outcome.failures)
        say(f"ell12-paper: {count} of {outcome.total} trials failed; --resume tries them again", failed=True)


def _resume_command(
    names: Sequence[str],
    preset: PresetName,
    out: Path,
    seed: int,
    jobs: int,
    repeats: int | None,
    only: Sequence[str],
    archive: Path | None,
) -> str:
    words = [*command_line(names, preset.value, seed, jobs, repeats, only), "--out", str(out)]
    return shlex.join([*words, *(["--archive", str(archive)] if archive else []), "--resume"])
