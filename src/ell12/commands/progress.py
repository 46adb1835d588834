"""How far a command is: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ell12.commands import say

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
        say(f"{words} ({100 * done:.0f} %), {now - self.begin:.0f} s elapsed")
