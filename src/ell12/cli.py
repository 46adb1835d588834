"""The command line: the commands of `ell12.commands`."""

import io
import sys
from contextlib import redirect_stderr
from importlib.util import find_spec
from typing import Annotated, Any, TextIO

from ell12 import __version__
from ell12.commands import CommandError, printable, say

NEEDED = ("typer", "rich", "matplotlib", "jinja2")


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
    from ell12.commands.application import new_application

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
        """Learning with the l1-2 regulariser: sparse models, ratings, images.

        `ell12 COMMAND -h` explains a command and has examples of it.
        """

    fit.add_to(application)
    complete.add_to(application)
    recommend.add_to(application)
    restore.add_to(application)
    return application
