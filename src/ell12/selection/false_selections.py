"""Bounds on the expected number of false selections, and the settings that keep to one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ell12.checks import check_counts, check_positive, check_word, is_finite_number

# A plain call asks for this threshold and this number. At the same promise, of 10 true features among 500 the
# thresholds 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9 and 0.95 found 4.1, 5.3, 5.7, 5.8, 5.5, 5.3, 4.8, 4.5 and
# 3.2 (48 draws of six kinds, l2_weight 1; 0.5 and the Lasso have their best there too). What shows this is
# benchmarks/stability.py --tune.
THRESHOLD, EXPECTED_FALSE = 0.7, 1.0
# Settings that keep to a bound exactly must not fail by rounding.
ROUNDING = 1e-9
# Bounds have so many decimals, so that what keeps to 1 exactly does not say 1.0000000000000002.
DIGITS = 12


@dataclass(frozen=True)
class Settings:
    """How many features a half selects at most, how often a feature must be selected, and what that promises."""

    most_selected: int
    threshold: float
    bound: float


def expected_false_bound(
    most_selected: int, n_features: int, threshold: float, n_subsamples: int, assumption: str | None = None
) -> float:
    """The bound on the expected number of features that are selected though a half selects them as by chance.

    Parameters
    ----------
    most_selected : int
        How many features a half selects at most, q.
    n_features : int
        How many there are to select from, p.
    threshold : float
        The share t of the subsamples in which a feature must be selected, above 0.5.
    n_subsamples : int
        How many halves there are, 2 B: every second one is the complement of the one before.
    assumption : {"unimodal"}, optional
        What is assumed of the share of pairs of which both halves select a feature: that its distribution has one
        mode. The bound is then about half as large.

    Returns
    -------
    float
        ``q^2 / ((2 t - 1) p)`` (Shah & Samworth, doi:10.1111/j.1467-9868.2011.01034.x, theorem 1), or with the
        assumption theorem 2 where it holds; p at the most.

    Examples
    --------
    >>> from ell12.selection.false_selections import expected_false_bound
    >>> expected_false_bound(10, 200, 0.75, 100), round(expected_false_bound(10, 200, 0.75, 100, "unimodal"), 4)
    (1.0, 0.5102)
    """
    chance = most_selected / n_features
    bound = most_selected * chance / (2 * threshold - 1)
    if assumption == "unimodal":
        bound = min(bound, most_selected * chance * _unimodal_factor(chance, threshold, n_subsamples // 2))
    return round(min(bound, float(n_features)), DIGITS)


def settle(
    n_features: int,
    n_subsamples: int,
    *,
    threshold: Any = None,
    expected_false: Any = None,
    most_selected: Any = None,
    assumption: Any = None,
) -> Settings:
    """The third of three settings from two of them; where one is given or none, defaults stand in for the others.

    Examples
    --------
    >>> from ell12.selection.false_selections import settle
    >>> settle(200, 100, threshold=0.75, expected_false=1.0)
    Settings(most_selected=10, threshold=0.75, bound=1.0)
    >>> settle(200, 100, most_selected=10, expected_false=0.5)
    Settings(most_selected=10, threshold=1.0, bound=0.5)
    """
    _check(threshold, expected_false, most_selected, assumption)

    def bound(q: int, share: float) -> float:
        return expected_false_bound(q, n_features, share, n_subsamples, assumption)

    if most_selected is not None:
        q = int(min(most_selected, n_features))
        if threshold is None and expected_false is not None:
            threshold = _least_threshold(bound, q, float(expected_false), n_subsamples)
        threshold = THRESHOLD if threshold is None else float(threshold)
        return Settings(q, threshold, bound(q, threshold))
    threshold = THRESHOLD if threshold is None else float(threshold)
    wanted = EXPECTED_FALSE if expected_false is None else float(expected_false)
    q = _largest(lambda count: bound(count, threshold) <= (1 + ROUNDING) * wanted, n_features)
    if q < 1 and expected_false is not None:
        raise ValueError(
            f"expected_false={expected_false} is too small for {n_features} features and threshold={threshold:g}:"
            f" a half could not select one. Give {bound(1, threshold):.3g} at least, or a higher threshold"
        )
    q = max(q, 1)
    return Settings(q, threshold, bound(q, threshold))


def _check(threshold: Any, expected_false: Any, most_selected: Any, assumption: Any) -> None:
    if threshold is not None and not (is_finite_number(threshold) and 0.5 < threshold <= 1):
        raise ValueError(f"threshold must be a number above 0.5 and up to 1, got {threshold!r}")
    if expected_false is not None:
        check_positive(expected_false, "expected_false")
    check_counts(least=1, most_selected=most_selected)
    if assumption is not None:
        check_word(assumption, "assumption", "unimodal")
    if threshold is not None and expected_false is not None and most_selected is not None:
        raise ValueError("most_selected follows from threshold and expected_false: give two of the three")


def _least_threshold(bound: Any, q: int, wanted: float, n_subsamples: int) -> float:
    """The least share of the subsamples that keeps to a bound: a multiple of ``1/n_subsamples``."""
    for count in range(n_subsamples // 2 + 1, n_subsamples + 1):
        if bound(q, count / n_subsamples) <= (1 + ROUNDING) * wanted:
            return count / n_subsamples
    raise ValueError(
        f"expected_false={wanted:g} is too small for most_selected={q}: even features that all subsamples select"
        f" may be {bound(q, 1.0):.3g} false ones"
    )


def _largest(holds: Any, most: int) -> int:
    """The largest whole number up to ``most`` for which something holds that holds for all smaller ones; or 0."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _unimodal_factor(chance: float, threshold: float, n_pairs: int) -> float:
    """What takes the place of ``1/(2 t - 1)`` in theorem 2; infinite where that does not hold.

    Frequencies are multiples of ``1/(2 B)``, so that t stands for the next of these.
    """
    step = 1 / (2 * n_pairs)
    share = math.ceil(threshold / step - ROUNDING) * step
    least = min(0.5 + chance**2, 0.5 + step + 0.75 * chance**2)
    if chance > 1 / math.sqrt(3) or share <= least:
        return math.inf
    if share <= 0.75:
        return 1 / (2 * (2 * share - 1 - step))
    return 4 * (1 - share + step) / (1 + 2 * step)
