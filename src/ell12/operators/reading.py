"""How columns are read: by which threads, and what errors say."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def naming_columns(first: int, last: int) -> Iterator[None]:
    """Errors of reading say which columns were asked for."""
    try:
        yield
    except (OSError, EOFError) as error:
        raise OSError(f"columns {first} to {last} of X could not be read: {error}") from error


def in_threads(function: Callable[..., None], arguments: Iterator[tuple[Any, ...]], count: int) -> None:
    """Call a function with one tuple of arguments after the other, which this thread makes, by many threads."""
    with ThreadPoolExecutor(count) as threads:
        waiting: deque[Any] = deque()
        for each in arguments:
            if count == 1:
                function(*each)
                continue
            waiting.append(threads.submit(function, *each))
            if len(waiting) > count:  # no more are in memory than are worked on, and one
                waiting.popleft().result()
        for task in waiting:
            task.result()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
