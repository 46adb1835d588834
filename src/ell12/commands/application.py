"""What all commands share: ``-h``, examples in their help, plain words in it, and how Ctrl-C ends them.

Versions of typer write the names of arguments in several ways; here they are the words that the command gives.
"""

from collections.abc import Callable, Iterable
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ell12.commands import say

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
    >>> from ell12.commands.application import _in_usage
    >>> from ell12.commands.application import _in_usage
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
