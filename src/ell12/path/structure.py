"""What a penalty asks of single entries of x beside its strength: weights, signs, bounds, groups, an intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import as_floating, as_numpy
from ell12.checks import check_numbers, check_weights
from ell12.penalties import L12, GroupL12, RowsL12, WithIntercept
from ell12.protocols import Array, Penalty


def l12_penalty(
    alpha: float,
    l2_weight: float = 1.0,
    *,
    weights: Any = None,
    positive: Any = False,
    groups: Any = None,
    ridge: float = 0.0,
    intercept: int = False,
    rows: bool = False,
) -> Penalty:
    """The penalty of the l1-2 family with this structure, leaving out as many last entries of x as are intercepts.

    `ell12.L12`; `ell12.GroupL12` with ``groups``, `ell12.RowsL12` with ``rows``.
    """
    penalty: Any
    if groups is not None:
        penalty = GroupL12(groups, alpha, l2_weight, weights=weights, ridge=ridge)
    elif rows:
        penalty = RowsL12(alpha, l2_weight, weights=weights, positive=positive, ridge=ridge)
    else:
        penalty = L12(alpha, l2_weight, weights=weights, positive=positive, ridge=ridge)
    return WithIntercept(penalty, int(intercept)) if intercept else penalty


@dataclass(frozen=True, eq=False)
class Structure:
    """The structure of a penalty, in NumPy arrays.

    Parameters
    ----------
    weight : array
        The weight of each modulus: of an entry, a row or a group. Those of intercepts are the last, and 0.
    number : array of int
        For each entry of x, or row, the number of its modulus.
    positive : bool or array
        Whether only ``x >= 0`` is allowed, for all entries or for each.
    intercept : int
        How many intercepts stand last in x.
    grouped : bool
        Whether moduli are norms of groups.
    """

    weight: Array
    number: Array
    positive: Any
    intercept: int
    grouped: bool

    def columns(self, moduli: Array) -> Array:
        """The entries that belong to the moduli for which a mask is true."""
        return np.flatnonzero(moduli[self.number])

    def pull(self, gradient: Array) -> Array:
        """How hard a gradient pulls each modulus away from zero, in the directions that are allowed."""
        gradient = as_numpy(gradient)
        positive = self.positive
        if not isinstance(positive, bool):
            positive = np.append(positive, np.zeros(self.intercept, dtype=bool))
        pull = np.where(positive, np.maximum(-gradient, 0), np.abs(gradient))
        pull = pull if pull.ndim == 1 else np.linalg.norm(pull, axis=1)
        if not self.grouped:
            return pull
        top = pull.max(initial=0.0) or 1.0  # so that no square overflows or underflows
        return top * np.sqrt(np.bincount(self.number, (pull / top) ** 2))

    def within(self, columns: Array) -> dict[str, Any]:
        """The signs of some entries, for `l12_penalty`."""
        return {"positive": self.positive if isinstance(self.positive, bool) else self.positive[columns]}


def structure(
    size: int,
    *,
    weights: Any = None,
    positive: Any = False,
    groups: Any = None,
    intercept: int = False,
) -> Structure:
    """The structure of a penalty on this number of entries, intercepts among them, checked."""
    intercept = int(intercept)
    entries = size - intercept
    number, count = np.arange(entries), entries
    if groups is not None:
        layout = GroupL12(groups).groups
        layout.check_shape((entries,), "x")
        number, count = layout.labels, layout.count
    weight = np.ones(count)
    if weights is not None:
        weights = as_floating(weights, "weights")
        check_numbers(infinite=True, weights=weights)
        check_weights(weights, (count,))
        weight[:] = as_numpy(weights)
    if intercept:
        weight, number = np.append(weight, np.zeros(intercept)), np.append(number, count + np.arange(intercept))
    positive = positive if isinstance(positive, bool) else as_numpy(positive)
    return Structure(weight, number, positive, intercept, groups is not None)
