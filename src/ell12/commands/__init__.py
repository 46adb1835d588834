"""Commands beyond the experiments: one file per group of them, each with a function ``add_to(application)``."""

from collections.abc import Iterator
from contextlib import contextmanager


class CommandError(Exception):
    """Why a command cannot begin, in one line for its user."""


@contextmanager
def explained(words: str) -> Iterator[None]:
    """Turn what the operating system refuses into one line."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{words}: {error.strerror or error}") from error
