"""What "auto" stands for: what suits ratings, and what suits a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import as_numpy
from ell12.completion.observed import Observed
from ell12.completion.offsets import column_deviations

RATINGS_BELOW = 0.25  # A matrix with a smaller share of known entries is taken for ratings, not for a table.
# Columns of a table whose standard deviations differ by more than this factor, beyond CHANCE standard errors, are
# brought to one scale. Of the tables that chose it (benchmarks/tables.py), a photograph just below it is predicted
# 4 to 5 % better unscaled; above it scaling costs 5 % at most and gains up to 56 %.
ONE_UNIT_UP_TO, CHANCE = 3.0, 2.0


@dataclass(frozen=True)
class Choice:
    """All that is fixed of a completion but its strength."""

    center: str | None
    scale: str | None
    l2_weight: float
    max_rank: int | None


@dataclass(frozen=True)
class SearchSpace:
    """What a search may choose from, the first of each being where it begins."""

    centers: Sequence[str | None]
    l2_weights: Sequence[float]
    ranks: Sequence[Any]  # int, or a single None: no bound
    scale: str | None = None
    of_ratings: bool = False

    @classmethod
    def suited_to(
        cls, observed: Observed, *, center: Any, l2_weight: Any, max_rank: Any, scale: Any = None
    ) -> SearchSpace:
        """What was asked for; for each that is "auto" what suits ratings, or a table.

        Of ratings, biases say most as a rule, and how much of the rest is signal differs widely from set to set:
        unpenalised (an l2_weight of 1) a matrix of rank one alone can cost more in noise than it gains. No bound
        on the rank is needed for tables, in which much is known. A matrix that is of low rank as it is, and no
        table of measurements, is best left with nothing taken off.
        """
        are_ratings = is_ratings(observed)
        ranks = (8, 4, 2, 16) if are_ratings else (None,)
        weights = (0.5, 1.0, 0.0) if are_ratings else (1.0, 0.5, 0.0)  # 0.5 is the safest for ratings
        centers = ("biases", None) if are_ratings else ("columns", "biases", None)
        own_units = _is_auto(scale) and not are_ratings and has_own_units(observed)
        return cls(
            centers if _is_auto(center) else (center,),
            weights if _is_auto(l2_weight) else (l2_weight,),
            ranks if _is_auto(max_rank) else (max_rank,),
            ("columns" if own_units else None) if _is_auto(scale) else scale,
            are_ratings,
        )

    def without_search(self) -> Choice:
        """What is taken where nothing is hidden: the first of each."""
        return Choice(self.centers[0], self.scale, self.l2_weights[0], self.ranks[0])


def is_ratings(observed: Observed) -> bool:
    """Whether so little is known that the entries are taken for ratings, all in one unit."""
    return observed.fraction < RATINGS_BELOW


def has_own_units(observed: Observed) -> bool:
    """Whether the columns of a table differ so much in scale that they are taken for different units."""
    deviations, counts = (as_numpy(numbers) for numbers in column_deviations(observed))
    counts, deviations = counts[deviations > 0], deviations[deviations > 0]
    if deviations.size < 2:
        return False
    errors = CHANCE / np.sqrt(2 * counts)  # of the logarithm of a deviation
    logs = np.log(deviations)
    return bool(np.max(logs - errors) - np.min(logs + errors) > math.log(ONE_UNIT_UP_TO))


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
