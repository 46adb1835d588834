"""How far a command is: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS_PER_LINE = 10.0

Show = Callable[[str, float], None]


@contextmanager
def progress_bar() -> Iterator[Show]:
    """A function that shows what is going on and which part of it, from 0 to 1, is done."""
    if not sys.stdout.isatty():
        yield _lines()
        return
    from rich import progress as parts

    columns = (parts.TextColumn("{task.description}"), parts.BarColumn(), parts.TimeElapsedColumn())
    with parts.Progress(*columns, refresh_per_second=8, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda words, done: bar.update(task, description=words, completed=done)


def _lines() -> Show:
    begin = time.monotonic()
    next_line = begin + SECONDS_PER_LINE

    def show(words: str, done: float) -> None:
        nonlocal next_line
        now = time.monotonic()
        if now >= next_line:
            next_line = now + SECONDS_PER_LINE
            print(f"{words} ({100 * done:.0f} %), {now - begin:.0f} s elapsed", flush=True)

    return show
