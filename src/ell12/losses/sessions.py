"""What a loss remembers: facts about its data, found once, and the memory of one run, a session."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self


class fact:
    """A property that follows from the data alone. It is computed once for a loss and all its sessions.

    Threads may compute it at the same time: they find the same.
    """

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, loss: Any, kind: type) -> Any:
        """The fact."""
        if loss is None:
            return self
        facts = loss._facts
        if self.name not in facts:
            facts[self.name] = self.compute(loss)
        return facts[self.name]


class Sessions:
    """A loss with facts and sessions. Outside a session it remembers nothing but facts: threads may share it."""

    _facts: dict[str, Any]
    _memory: Any = None  # of a session

    def __init__(self) -> None:
        self._facts = {}

    def session(self) -> Self:
        """The same loss with a memory of its own for one run or one path; a session is its own session."""
        if self._memory is not None:
            return self
        session = copy.copy(self)
        session._memory = session._new_memory()
        return session

    def _new_memory(self) -> Any:
        """An empty memory."""
        raise NotImplementedError

    def _derived(self, facts: dict[str, Any] | None = None, **parts: Any) -> Any:
        """A loss with other parts, which are trusted; it knows the given facts alone, and is no session."""
        other = copy.copy(self)
        other._facts, other._memory = {} if facts is None else facts, None
        for name, part in parts.items():
            setattr(other, name, part)
        return other
