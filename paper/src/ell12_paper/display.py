"""How far a run is: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ell12.commands import printable, say
from ell12.commands.progress import SECONDS_PER_LINE
from ell12_paper.run import RunDisplay, RunState


@contextmanager
def run_display() -> Iterator[RunDisplay]:
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
    >>> from ell12_paper.display import _clock
    >>> _clock(59.6), _clock(3725)
    ('1:00', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
