"""Compiled loops (numba): cached on disk if that works, else compiled anew in each process, else left out.

Every compiled loop has a plain twin. A caller asks `can_compile` first, imports its compiled module only if the
answer is yes, and takes the twin otherwise. No fault of the cache reaches the caller. Where the twin is bearable a
caller may ask `is_compiled` and `pays` too, and leave small problems to the twin first: compiling takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any


@cache
def can_compile() -> bool:
    """Whether numba is there and works; the first call loads it."""
    try:
        import numba
    except Exception:  # not installed, too old for this NumPy, or a library of its own does not load
        return False
    # Without the compiler, as some set it to debug, the loops would be far slower than their twins.
    return not getattr(numba.config, "DISABLE_JIT", 0)


# A loop that is not compiled yet is compiled once plain operations took, or would take, this many seconds of this
# process: about as long as compiling takes. So it never takes more than twice the time of the better choice.
PATIENCE = 3.0
_plainly = [0.0]


def foresee(seconds: float) -> None:
    """Say that plain operations will take so long."""
    _plainly[0] += seconds


def pays(seconds: float) -> bool:
    """Whether compiling a loop pays, if plain operations would take so long once more."""
    return _plainly[0] + seconds >= PATIENCE


def is_compiled(loop: Any, fits: Callable[[Any], bool], values: dict[int, Any]) -> bool:
    """Whether a compiled loop is there for arguments whose types fit and, at some places, are those of values."""
    from numba import typeof

    kinds = {place: typeof(value) for place, value in values.items()}

    def is_right(types: Any) -> bool:
        return fits(types) and all(types[place] == kind for place, kind in kinds.items())

    if any(map(is_right, loop.signatures)):
        return True
    try:
        index = loop._cache._cache_file._load_index()
    except Exception:  # no cache, a damaged one, or another version of numba: then it is as it always was
        return True
    return any(is_right(key[0]) for key in index)


def compiled_loop(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit(cache=True, **options)`` that compiles without a cache where none can be read or written."""
    from numba import njit

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        with suppress(Exception):  # where no folder can be written to: numba's error or the file system's
            dispatcher._cache = _forgiving_cache()(function)
        return dispatcher

    return decorate


@cache
def _forgiving_cache() -> Any:
    """The class of numba's caches, with faults that end the caching and not the call."""
    from numba.core.caching import FunctionCache

    class ForgivingCache(FunctionCache):
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:  # a damaged file: unpickling it may raise anything
                self._attempt(self.flush)  # writes an empty index, so that the next process finds a whole one
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            self._attempt(super().save_overload, sig, data)

        def _attempt(self, action: Callable[..., None], *arguments: Any) -> None:
            try:
                action(*arguments)
            except Exception:  # a full disk, a folder that has become read-only, an index damaged meanwhile
                self.disable()

    return ForgivingCache
