"""Means, deviations and the paired t-test by which the tables mark what is best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

Values = Mapping[int, float]  # one number per repeat

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation over repeats; a single repeat has no deviation."""

    mean: float
    deviation: float | None
    count: int


def summarize(values: Iterable[float]) -> Summary:
    """The mean and the standard deviation (n - 1) of some numbers.

    Examples
    --------
    >>> from ell12_paper.statistics import summarize
    >>> summarize([1.0, 2.0, 3.0])
    Summary(mean=2.0, deviation=1.0, count=3)
    """
    numbers = np.asarray(list(values), dtype=float)
    if numbers.size == 0:
        raise ValueError("there is nothing to summarize")
    deviation = float(numbers.std(ddof=1)) if numbers.size > 1 else None
    return Summary(float(numbers.mean()), deviation, numbers.size)


def paired_p_value(first: Values, second: Values) -> float | None:
    """The two-sided p-value of the paired t-test over the repeats that both have; None with fewer than two.

    Differences that do not vary at all leave no doubt: 1 where they are zero, else 0.

    Examples
    --------
    >>> from ell12_paper.statistics import paired_p_value
    >>> round(paired_p_value({0: 1.0, 1: 2.0, 2: 4.0}, {0: 2.0, 1: 4.0, 2: 5.0}), 4)
    0.0572
    """
    shared = sorted(first.keys() & second.keys())
    if len(shared) < 2:
        return None
    differences = np.array([first[repeat] - second[repeat] for repeat in shared])
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    largest = max(max(abs(first[r]), abs(second[r])) for r in shared)
    if deviation <= 4 * np.finfo(float).eps * largest:  # rounding alone
        return 1.0 if abs(mean) <= 4 * np.finfo(float).eps * largest else 0.0
    t = abs(mean) / (deviation / math.sqrt(len(shared)))
    return float(2 * stdtr(len(shared) - 1, -t))


def logarithms(values: Values) -> Values:
    """The logarithm of each value: by it two methods are compared by their ratio in each repeat.

    A hard problem slows every method by a factor, so that times differ from repeat to repeat by factors too.

    Examples
    --------
    >>> from ell12_paper.statistics import logarithms
    >>> logarithms({0: 1.0})
    {0: 0.0}
    """
    return {repeat: math.log(value) for repeat, value in values.items() if value > 0}


def differs(first: Values, second: Values) -> bool | None:
    """Whether the paired t-test tells two methods apart at 95 %; None where it cannot be made."""
    p_value = paired_p_value(first, second)
    return None if p_value is None else p_value < 1 - CONFIDENCE


def comparable(values_by_method: Mapping[str, Values], lowest: bool = True) -> set[str]:
    """The best method by its mean, and those that the paired t-test at 95 % does not tell apart from it.

    Pairs are values of the same repeat, and means are taken over the repeats that all methods have. With fewer
    than two of these there is no test, and nothing is best.

    Examples
    --------
    >>> from ell12_paper.statistics import comparable
    >>> sorted(comparable({"a": {0: 1.0, 1: 2.0}, "b": {0: 1.1, 1: 1.8}, "c": {0: 9.0, 1: 9.9}}))
    ['a', 'b']
    """
    present = {name: values for name, values in values_by_method.items() if values}
    if not present:
        return set()
    shared = set.intersection(*(set(values) for values in present.values()))
    if len(shared) < 2:
        return set()
    sign = 1 if lowest else -1
    means = {name: sign * summarize(values[r] for r in shared).mean for name, values in present.items()}
    best = min(means, key=lambda name: means[name])
    return {
        name
        for name, values in present.items()
        if means[name] == means[best] or differs(values, present[best]) is False
    }
