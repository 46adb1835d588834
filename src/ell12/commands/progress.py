"""How far a command is: a bar on a terminal, else a line now and then."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ell12.commands import printable, say

SECONDS_PER_LINE = 10.0  # between lines of progress where there is no terminal to draw a bar on
PATIENCE = 2.0  # seconds of work on the only image before a bar is drawn: most take less

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


class ImageDisplay:
    """What became of each image: a line; where there is no terminal, also one now and then on how far it is."""

    def __init__(self) -> None:
        self.lines = _ProgressLines()

    def line(self, text: str, failed: bool = False) -> None:
        """Say something about an image."""
        say(text, failed)

    def follow(self, words: str, done: float) -> None:
        """Show how far the work on an image is, from 0 to 1."""
        self.lines.show(words, done)

    def next(self) -> None:
        """Go on to the next image."""


class _ImageBar(ImageDisplay):
    """One bar for all images, below the lines."""

    def __init__(self, bar: Any, task: Any) -> None:
        self.bar, self.task, self.finished = bar, task, 0

    def line(self, text: str, failed: bool = False) -> None:
        style = "red" if failed else None
        self.bar.console.print(printable(text), markup=False, highlight=False, style=style, soft_wrap=True)

    def follow(self, words: str, done: float) -> None:
        self.bar.update(self.task, words=printable(words), completed=self.finished + done)

    def next(self) -> None:
        self.finished += 1
        self.bar.update(self.task, words="", completed=self.finished)


class _LateBar(ImageDisplay):
    """A bar for the only image, drawn when it has taken long, and gone before its line is said."""

    def __init__(self, bar: Any, task: Any) -> None:
        self.bar, self.task = bar, task
        self.timer = threading.Timer(PATIENCE, bar.start)
        self.timer.daemon = True
        self.timer.start()

    def line(self, text: str, failed: bool = False) -> None:
        self.end()
        say(text, failed)

    def follow(self, words: str, done: float) -> None:
        self.bar.update(self.task, words=printable(words), completed=done, total=1.0 if done else None)

    def end(self) -> None:
        """Take the bar away."""
        self.timer.cancel()
        self.timer.join()
        self.bar.stop()


@contextmanager
def image_display(total: int) -> Iterator[ImageDisplay]:
    """Lines about so many images; on a terminal also a bar, at once for several, after some seconds for one."""
    if not sys.stdout.isatty():
        yield ImageDisplay()
        return
    from rich import progress as parts
    from rich.console import Console

    words = parts.TextColumn("{task.fields[words]}", markup=False)
    if total > 1:
        count = (parts.MofNCompleteColumn(), parts.TimeRemainingColumn())
        with parts.Progress(
            parts.TextColumn("images"), parts.BarColumn(), *count, words, console=Console()
        ) as bar:
            yield _ImageBar(bar, bar.add_task("images", total=total, words=""))
        return
    bar = parts.Progress(parts.BarColumn(), parts.TimeElapsedColumn(), words, console=Console(), transient=True)
    display = _LateBar(bar, bar.add_task("image", total=None, words="starting"))
    try:
        yield display
    finally:
        display.end()
