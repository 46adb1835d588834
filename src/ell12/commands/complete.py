"""Ctrl-C for commands that have not written yet."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from ell12.commands import say
from ell12.commands.application import STOPPED


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
