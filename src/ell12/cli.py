"""The command line: the paper's experiments (``reproduce``, ``report``) and the commands of `ell12.commands`."""

import io
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TextIO

from ell12 import __version__
from ell12.commands import CommandError, printable, say
from ell12.commands.progress import SECONDS_PER_LINE
from ell12.experiments import EXPERIMENTS
from ell12.experiments.run import RunDisplay, RunOutcome, RunState, run

NEEDED = ("typer", "rich", "matplotlib", "jinja2")
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
            _application()(prog_name="ell12")
    except CommandError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(str(error), 1)


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

    application = typer.Typer(
        add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
    )

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
        """The nonconvex l1-2 regulariser: reproduce the paper's experiments, restore images, complete ratings."""

    @application.command()
    def reproduce(
        names: Annotated[
            list[str] | None, typer.Argument(help=f"Experiments (default: all): {', '.join(EXPERIMENTS)}.")
        ] = None,
        preset: Annotated[
            PresetName, typer.Option(help="A few minutes, or the paper's own size.")
        ] = PresetName.quick,
        out: Annotated[Path, typer.Option(help="Folder of the rows and the page.")] = Path("reproduction"),
        seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same problems.")] = 0,
        jobs: Annotated[int, typer.Option(min=1, help="Trials at a time; at most the free cores.")] = 1,
        repeats: Annotated[int | None, typer.Option(min=1, help="Fewer repeats than the preset's.")] = None,
        resume: Annotated[bool, typer.Option("--resume", help="Go on with the rows in the folder.")] = False,
    ) -> None:
        """Measure the paper's experiments and make the page that shows them."""
        with _display() as progress:
            outcome = run(names or (), preset.value, out, seed, jobs, resume, progress, repeats)
        if outcome.interrupted:
            command = _resume_command(names or (), preset, out, seed, jobs, repeats)
            say(f"Stopped: {outcome.kept + outcome.written} of {outcome.total} trials are on disk.")
            say(f"To go on: {command}")
            raise typer.Exit(130)
        if outcome.kept + outcome.written:
            _show_report(out)
        _show_failures(outcome)
        raise typer.Exit(1 if outcome.failures else 0)

    @application.command()
    def report(
        folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the rows.")] = Path("reproduction"),
    ) -> None:
        """Make the page again from the rows in DIR."""
        _show_report(folder)

    from ell12.commands import complete, recommend, restore

    complete.add_to(application)
    recommend.add_to(application)
    restore.add_to(application)
    return application


def _show_report(folder: Path) -> None:
    """Make the page, print what it finds, and name it."""
    from ell12.experiments import report

    page = report.report(folder)
    for line in report.verdict_lines(folder):
        say(line)
    say(f"The page: {page.resolve()}")


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
    names: Sequence[str], preset: PresetName, out: Path, seed: int, jobs: int, repeats: int | None
) -> str:
    options = ["--preset", preset.value, "--out", str(out), "--seed", str(seed), "--jobs", str(jobs)]
    options += [] if repeats is None else ["--repeats", str(repeats)]
    return shlex.join(["ell12", "reproduce", *names, *options, "--resume"])


@contextmanager
def _display() -> Iterator[RunDisplay]:
    """A bar on a terminal, else a line now and then."""
    if not sys.stdout.isatty():
        yield _RunLines()
        return
    from rich import progress as parts
    from rich.console import Console
    from rich.table import Column

    what = parts.TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    left = parts.TextColumn("{task.fields[left]}")
    columns = (what, parts.BarColumn(), parts.MofNCompleteColumn(), parts.TimeElapsedColumn(), left)
    with parts.Progress(*columns, console=Console(), expand=True, refresh_per_second=4) as bar:
        yield _RunBar(bar)


class _RunBar(RunDisplay):
    """A run as a bar of rich: what is running, how much is done, how long it took and will take."""

    def __init__(self, bar: Any) -> None:
        self.bar, self.task = bar, bar.add_task("starting", total=None, left="")

    def note(self, text: str) -> None:
        """A line above the bar."""
        self.bar.console.print(printable(text), markup=False, highlight=False)

    def update(self, state: RunState) -> None:
        """Redraw."""
        what = " | ".join(map(str, state.running)) or "done"
        left = _time_left(state)
        self.bar.update(self.task, completed=state.done, total=state.total, description=what, left=left)


class _RunLines(RunDisplay):
    """A run as plain lines: the first, the last, and one every few seconds."""

    def __init__(self) -> None:
        self.begin = time.monotonic()
        self.next = self.begin

    def note(self, text: str) -> None:
        """One line."""
        say(text)

    def update(self, state: RunState) -> None:
        """A line, if it is time for one."""
        now = time.monotonic()
        if now < self.next and state.running:
            return
        self.next = now + SECONDS_PER_LINE
        words = [f"{state.done} of {state.total} trials done", f"{_clock(now - self.begin)} elapsed"]
        running = " | ".join(map(str, state.running))
        line = ", ".join(filter(None, (*words, _time_left(state))))
        say(line + (f"; running {running}" if running else ""))


def _time_left(state: RunState) -> str:
    known = state.running and state.seconds_left is not None
    return f"about {_clock(state.seconds_left or 0.0)} left" if known else ""


def _clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    Examples
    --------
    >>> _clock(59.6), _clock(3725)
    ('1:00', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
