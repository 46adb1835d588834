"""Whether a trial that is measured again gives what its row says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ell12_paper.rows import Row
from ell12_paper.words import number, percent

TIME = "seconds"  # in the name of a result that a clock decided
# How far results may differ, as a fraction. Another processor rounds sums in another order. On 489 trials of the
# quick study, with kernels of OpenBLAS and NumPy for another processor, objectives differed by up to 2.6e-6 and
# errors of recovery by up to 1.7e-2; those of SketchyCGM, whose steps follow rounding, by up to 6.5e-2.
MOST_OF_OBJECTIVES, MOST, MOST_OF_FREE = 1e-4, 5e-2, 1e-1
OBJECTIVES = frozenset(("objective", "smoothed_objective", "value", "values"))
FREE_METHODS = frozenset(("SketchyCGM",))
# Results that tell the way to the end. In that comparison the iterations of nmAPG differed by up to 20 %. So these
# are judged only where the end is the same to the last digit.
WAY = frozenset(("alpha", "difference", "early", "history", "n_iter", "rules", "stationarity", "status", "tried"))
COUNTS = 5e-2  # of whole numbers, such as entries that are not zero, and one more


@dataclass(frozen=True)
class Agreement:
    """Whether results are the same to the last digit, the largest difference as a fraction, and what differs."""

    is_exact: bool
    largest: float = 0.0
    differing: tuple[str, ...] = ()


def compare(there: Row, here: Row, is_free: bool = False) -> Agreement:
    """Compare two results of one trial, but for times; ``is_free`` where its method's steps follow rounding.

    Examples
    --------
    >>> from ell12_paper.agreement import compare
    >>> compare({"rmse": 0.5, "n_iter": 7, "seconds": 1.0}, {"rmse": 0.5, "n_iter": 7, "seconds": 9.0})
    Agreement(is_exact=True, largest=0.0, differing=())
    >>> compare({"rmse": 0.5, "n_iter": 7}, {"rmse": 0.501, "n_iter": 8}).differing
    ()
    >>> compare({"objective": 0.5}, {"objective": 0.501}).differing
    ('objective is 0.5 there and 0.501 here (+0.20 %)',)
    """
    theirs, ours = dict(_leaves(there)), dict(_leaves(here))
    pairs = {name: (theirs.get(name, GONE), ours.get(name, GONE)) for name in {**theirs, **ours}}
    unequal = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    judged = {name: pair for name, pair in unequal.items() if name.partition(".")[0] not in WAY} or unequal
    gaps = {name: _gap(*pair) for name, pair in judged.items()}
    wrong = [name for name, gap in gaps.items() if gap is None or gap > _most(name, pairs[name], is_free)]
    largest = max((gap for gap in gaps.values() if gap is not None), default=0.0)
    return Agreement(not unequal, largest, tuple(_words(name, *pairs[name]) for name in wrong))


GONE = object()


def _most(name: str, pair: tuple[Any, Any], is_free: bool) -> float:
    """How far the two values of a result may differ."""
    if all(isinstance(value, int) for value in pair):
        return math.inf if is_free else COUNTS + 1 / max(map(abs, pair))
    return MOST_OF_FREE if is_free else MOST_OF_OBJECTIVES if name in OBJECTIVES else MOST


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The results by name, those of nested dictionaries with a dot, without times; lists are left whole."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key, entry in value.items():
        if TIME not in key:
            yield from _leaves(entry, f"{name}.{key}" if name else key)


def _gap(a: Any, b: Any) -> float | None:
    """The difference of two numbers or lists, as a fraction of the largest entry; None where there is none."""
    ours, theirs = _numbers(a), _numbers(b)
    if ours is None or theirs is None or len(ours) != len(theirs):
        return None
    scale = max(map(abs, (*ours, *theirs)), default=0.0)
    return max(abs(x - y) for x, y in zip(ours, theirs, strict=True)) / scale if scale else 0.0


def _numbers(value: Any) -> list[float] | None:
    """The numbers in a nest of lists; None if it holds anything else."""
    if not isinstance(value, list):
        return [value] if is_number(value) else None
    parts = [_numbers(entry) for entry in value]
    return None if None in parts else [x for part in parts if part for x in part]


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _words(name: str, there: Any, here: Any) -> str:
    if GONE in (there, here):
        return f"{name} is missing {'there' if there is GONE else 'here'}"
    if is_number(there) and is_number(here):
        change = f" ({percent(here / there - 1)})" if there else ""
        return f"{name} is {number(there)} there and {number(here)} here{change}"
    return f"{name} differs"
