"""What the rivals share that bound a rank or a norm instead of adding a penalty."""

from __future__ import annotations

from typing import Any


def check_no_penalty(penalty: Any, solver: Any) -> None:
    """Raise where a penalty is given to a solver that would not look at it."""
    if penalty.alpha:
        name = type(solver).__name__
        raise TypeError(
            f"{name} takes no penalty but has parameters of its own: give NoPenalty(), not {penalty!r}"
        )
