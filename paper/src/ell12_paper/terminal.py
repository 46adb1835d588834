"""Commands on a terminal: errors in one line, help with examples, Ctrl-C, progress."""

import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# A terminal obeys control characters instead of showing them. Marks of writing direction can make a line read as
# another. Lone surrogates stand for bytes that are no text.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class CommandError(Exception):
    """Why a command, or a run of experiments, cannot do its work, in one line for its user: files or data."""

    code = 1  # what the process ends with


class UsageError(CommandError):
    """What was typed does not do: options that exclude each other, say, or an output that is there already."""

    code = 2


def printable(text: str) -> str:
    r"""The text on one line, with escapes in place of the characters that a terminal would obey.

    Examples
    --------
    >>> from ell12_paper.terminal import printable
    >>> print(printable("red \x1b[31m, two\nlines"))
    red \x1b[31m, two\nlines
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(text: str, failed: bool = False) -> None:
    """Print one line. Every message goes through here or `printable`: names of files and ids may hold anything."""
    print(printable(text), file=sys.stderr if failed else sys.stdout, flush=True)


def check_folder(folder: Path, create: bool = False) -> None:
    """Raise if nothing can be written to a folder, which is made if wanted."""
    with explained(f"cannot write to the folder {folder}"):
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


@contextmanager
def explained(words: str, remedy: str = "") -> Iterator[None]:
    """Turn what the operating system refuses into one line."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{words}: {error.strerror or error}{remedy}") from error


STOPPED = 130  # the exit code after Ctrl-C, as shells have it


class PlainCommand(TyperCommand):
    """A command whose help has the metavars as they are given, and whose errors name the argument that lacks."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The words of the line "Usage"."""
        return ["[OPTIONS]", *(_in_usage(argument) for argument in _arguments(self))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The lists of arguments and options."""
        records: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            record: Any = parameter.get_help_record(ctx)
            words = record[1].replace("\\[", "[")  # some versions escape it for rich, which is not asked here
            records["Arguments" if is_argument else "Options"].append(
                (str(parameter.metavar) if is_argument else record[0], words)
            )
        for title, found in records.items():
            if found:
                with formatter.section(title):
                    formatter.write_dl(found)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the words of the command line apart.

        Of ``IN... OUT`` one word alone is OUT to the parser, which then misses IN. It is OUT that lacks.
        """
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            last = (_arguments(self) or [None])[-1]
            if error.param is not None and error.param is not last and error.param.nargs == -1:
                given = self.make_parser(ctx).parse_args(words)[0]
                error.param = error.param if given.get(last.name) is None else last
            raise


class PlainGroup(TyperGroup):
    """The commands together."""

    def invoke(self, ctx: Any) -> Any:
        """Call the command; one that has no answer to Ctrl-C of its own ends with a line and the usual code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("Stopped.")
            raise typer.Exit(STOPPED) from None


def _arguments(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == "argument"]


def _in_usage(argument: Any) -> str:
    """Such as ``IN...`` or ``[DIR]``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from ell12_paper.terminal import _in_usage
    >>> from ell12_paper.terminal import _in_usage
    >>> _in_usage(SimpleNamespace(metavar="IN", nargs=-1, required=True))
    'IN...'
    """
    word = argument.metavar + ("..." if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def new_application() -> Any:
    """An application without commands; its own help, and that of all commands, is behind ``-h`` too."""
    return typer.Typer(
        cls=PlainGroup,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def add_command(
    application: Any, function: Callable[..., None], examples: Iterable[str], name: str | None = None
) -> None:
    """Add a command, whose help is the function's docstring and ends with examples."""
    lines = cleandoc(function.__doc__ or "").splitlines()
    epilog = "\n".join(["\b", "Examples:", *(f"  {example}" for example in examples)])
    application.command(name, cls=PlainCommand, epilog=epilog, short_help=lines[0])(function)


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


SECONDS_PER_LINE = 10.0  # between lines of progress where there is no terminal to draw a bar on

Show = Callable[[str, float], None]


@contextmanager
def progress_bar() -> Iterator[Show]:
    """A function that shows what is going on and which part of it, from 0 to 1, is done; it ends at 1."""
    if not sys.stdout.isatty():
        lines = _ProgressLines()
        yield lines.show
        lines.end()
        return
    from rich import progress as parts
    from rich.console import Console

    columns = (parts.TextColumn("{task.description}"), parts.BarColumn(), parts.TimeElapsedColumn())
    with parts.Progress(*columns, console=Console(), refresh_per_second=8, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda words, done: bar.update(task, description=words, completed=done)
        bar.update(task, completed=1.0)


class _ProgressLines:
    """Lines some seconds apart; a command that was shown at all is also shown to end."""

    def __init__(self) -> None:
        self.begin = time.monotonic()
        self.next = self.begin + SECONDS_PER_LINE
        self.last = 1.0  # the part done that the last line showed

    def show(self, words: str, done: float) -> None:
        """A line, if it is time for one."""
        now = time.monotonic()
        if now >= self.next:
            self.next = now + SECONDS_PER_LINE
            self._say(words, done, now)

    def end(self) -> None:
        """The last line, unless there were none or the last one said so already."""
        if self.last < 1:
            self._say("done", 1.0, time.monotonic())

    def _say(self, words: str, done: float, now: float) -> None:
        self.last = done
        share = f" ({100 * done:.0f} %)" if done else ""
        say(f"{words}{share}, {now - self.begin:.0f} s elapsed")
