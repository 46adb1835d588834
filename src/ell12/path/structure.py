"""What a penalty asks of single entries of x beside its strength: weights, signs, bounds, groups, an intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import as_floating, as_numpy
from ell12.checks import check_numbers, check_weights
from ell12.penalties import L12, BoundedL12, GroupL12, RowsL12, WithIntercept
from ell12.penalties.bounds import Bounds, as_bounds
from ell12.protocols import Array, Penalty


def l12_penalty(
    alpha: float,
    l2_weight: float = 1.0,
    *,
    weights: Any = None,
    nonnegative: bool = False,
    bounds: Any = None,
    groups: Any = None,
    ridge: float = 0.0,
    intercept: int = False,
    rows: bool = False,
) -> Penalty:
    """The penalty of the l1-2 family with this structure, leaving out as many last entries of x as are intercepts.

    `ell12.L12`, or `ell12.BoundedL12` where bounds are more than signs; `ell12.GroupL12` with ``groups``,
    `ell12.RowsL12` with ``rows``.
    """
    penalty: Any
    if groups is not None:
        penalty = GroupL12(alpha, groups, l2_weight, weights, ridge)
    elif bounds is not None and not as_bounds(bounds).are_signs:
        penalty = BoundedL12(alpha, bounds, l2_weight, weights, ridge)
    elif rows:
        penalty = RowsL12(alpha, l2_weight, weights, nonnegative, ridge)
    else:
        penalty = L12(alpha, l2_weight, weights, nonnegative, bounds, ridge)
    return WithIntercept(penalty, int(intercept)) if intercept else penalty


def limits(bounds: Any, nonnegative: bool, entries: int) -> dict[str, Any]:
    """``nonnegative`` and, only where that does not say it all, ``bounds`` for `l12_penalty`; checked.

    With both, lower bounds rise to 0.
    """
    if bounds is None:
        return {"nonnegative": nonnegative}
    pair = as_bounds(bounds)
    lower, upper = as_numpy(pair.lower), as_numpy(pair.upper)
    for bound in (lower, upper):
        if bound.shape not in ((), (entries,)):
            raise ValueError(f"bounds must be numbers, or arrays of shape ({entries},); got shape {bound.shape}")
    lower = np.zeros_like(lower) if nonnegative else lower
    if np.all(upper == np.inf) and (np.all(lower == 0) or np.all(lower == -np.inf)):
        return {"nonnegative": bool(np.all(lower == 0))}
    return {"nonnegative": False, "bounds": Bounds(lower, upper)}


@dataclass(frozen=True, eq=False)
class Structure:
    """The structure of a penalty, in NumPy arrays.

    Parameters
    ----------
    weight : array
        The weight of each modulus: of an entry, a row or a group. Those of intercepts are the last, and 0.
    number : array of int
        For each entry of x, or row, the number of its modulus.
    nonnegative : bool
        Whether only ``x >= 0`` is allowed.
    bounds : Bounds, optional
        Those of the entries.
    intercept : int
        How many intercepts stand last in x.
    grouped : bool
        Whether moduli are norms of groups.
    """

    weight: Array
    number: Array
    nonnegative: bool
    bounds: Bounds | None
    intercept: int
    grouped: bool

    def columns(self, moduli: Array) -> Array:
        """The entries that belong to the moduli for which a mask is true."""
        return np.flatnonzero(moduli[self.number])

    def pull(self, gradient: Array) -> Array:
        """How hard a gradient pulls each modulus away from zero, in the directions that are allowed."""
        gradient = as_numpy(gradient)
        pull = np.maximum(-gradient, 0) if self.nonnegative else np.abs(gradient)
        if self.bounds is not None:
            pull = np.where(self.room(gradient) > 0, pull, 0)
        pull = pull if pull.ndim == 1 else np.linalg.norm(pull, axis=1)
        if not self.grouped:
            return pull
        top = pull.max(initial=0.0) or 1.0  # so that no square overflows or underflows
        return top * np.sqrt(np.bincount(self.number, (pull / top) ** 2))

    def room(self, gradient: Array) -> Array:
        """How far each entry may go from zero against a gradient."""
        room = np.full(gradient.shape[0], np.inf)
        if self.bounds is not None:
            before = room[: room.size - self.intercept]
            lower, upper = (as_numpy(bound) for bound in (self.bounds.lower, self.bounds.upper))
            before[:] = np.where(gradient[: before.size] > 0, -lower, upper)
        return room

    def within(self, columns: Array) -> dict[str, Any]:
        """The signs and bounds of some entries, for `l12_penalty`."""
        bounds = None if self.bounds is None else self.bounds.restrict(columns)
        return {"nonnegative": self.nonnegative, "bounds": bounds}


def structure(
    size: int,
    *,
    weights: Any = None,
    nonnegative: bool = False,
    bounds: Any = None,
    groups: Any = None,
    intercept: int = False,
) -> Structure:
    """The structure of a penalty on this number of entries, intercepts among them, checked."""
    intercept = int(intercept)
    entries = size - intercept
    number, count = np.arange(entries), entries
    if groups is not None:
        layout = GroupL12(1.0, groups).groups
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
    limits = None if bounds is None else as_bounds(bounds)
    return Structure(weight, number, nonnegative, limits, intercept, groups is not None)
