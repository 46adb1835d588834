"""The command line as its tests call it."""

import sys
from typing import NamedTuple

import pytest


class Outcome(NamedTuple):
    """The exit code of a command, and what it printed to each stream."""

    code: int
    out: str
    error: str


@pytest.fixture
def call(monkeypatch, capsys):
    """Run `ell12` with arguments, in this process."""
    from ell12 import cli

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ell12", *map(str, arguments)])
        with pytest.raises(SystemExit) as raised:
            cli.main()
        return Outcome(raised.value.code or 0, *capsys.readouterr())

    return run
