"""The command line: ``reproduce``, ``report``, and the commands of `ell12_paper` and `ell12.commands`."""

import io
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TextIO

from ell12 import __version__
from ell12.commands import CommandError, printable, say
from ell12.commands.progress import progress_bar
from ell12_paper import EXPERIMENTS
from ell12_paper.archive import check_target, pack
from ell12_paper.display import run_display
from ell12_paper.provenance import PAGE_FILES, command_line, seal
from ell12_paper.run import RunOutcome, run

NEEDED = ("typer", "rich", "matplotlib", "jinja2")
REPRODUCE = ["ell12 reproduce --jobs 2", "ell12 reproduce prox level-curves --out prox-run --archive prox-run.zip"]
PresetName = StrEnum("PresetName", ["quick", "paper"])


def main() -> None:
    """Entry point of the command ``ell12``."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        names = " and ".join(missing)
        _fail(f"the command line needs {names}, which cannot be found: pip install 'ell12[report]'", 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that cannot be shown is no reason to fail
    try:
        with redirect_stderr(_Printable(sys.stderr)):  # typer too names what it was given
            _application()(args=sys.argv[1:] or ["--help"], prog_name="ell12")
    except CommandError as error:
        _fail(str(error), error.code)
    except OSError as error:
        unknown = type(error).__name__ == "ShellDetectionFailure"  # of a library that typer uses, if it is there
        _fail("no shell was found to complete for: start ell12 from one" if unknown else str(error), 1)


class _Printable(io.TextIOBase):
    """A stream without characters that a terminal would obey, but for ends of lines."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write("\n".join(map(printable, text.split("\n"))))

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()


def _fail(message: str, code: int) -> None:
    say(f"ell12: {message}", failed=True)
    raise SystemExit(code)


def _application() -> Any:
    """The commands; made here, because typer is optional."""
    import typer

    from ell12.commands import complete, fit, recommend, restore
    from ell12.commands.application import STOPPED, add_command, new_application
    from ell12_paper import commands

    application = new_application()

    def show_version(wanted: bool) -> None:
        if wanted:
            say(f"ell12 {__version__}")
            raise typer.Exit

    @application.callback()
    def ell12(
        version: Annotated[
            bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")
        ] = False,
    ) -> None:
        """Learning with the l1-2 regulariser: sparse models, ratings, images, and the paper's experiments.

        `ell12 COMMAND -h` explains a command and has examples of it.
        """

    def reproduce(
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
        seed: Annotated[
            int, typer.Option(metavar="NUMBER", min=0, help="The same seed gives the same problems.")
        ] = 0,
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

    fit.add_to(application)
    complete.add_to(application)
    recommend.add_to(application)
    restore.add_to(application)
    add_command(application, reproduce, REPRODUCE)
    add_command(application, report, ["ell12 report reproduction"])
    commands.add_to(application)
    return application


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
        say(f"ell12: this trial failed: {trial.key}", failed=True)
        say(f"  {reason}", failed=True)
    if outcome.failures:
        count = len(outcome.failures)
        say(f"ell12: {count} of {outcome.total} trials failed; --resume tries them again", failed=True)


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
