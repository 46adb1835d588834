"""The moments of the columns of a block."""

from __future__ import annotations

import numpy as np

from ell12.distributed.blocks import Block, naming
from ell12.losses.moments import Moments, of_rows
from ell12.protocols import Array

# More different labels than this in one slice are taken for numbers, which differ from row to row.
MOST_LABELS = 10_000


def moments(block: Block, products: bool, role: str) -> Moments:
    """The moments of a block; y is among the columns as a "target", or its "labels" are gathered, or "none" is."""
    with naming(block.name):
        total: Moments | None = None
        for A, y, given in block.slices():
            weight = np.ones(len(y)) if given is None else given
            targets = _targets(y, role)
            mean, square = of_rows(A, targets, weight, products)
            found = _labels(y, weight) if role == "labels" else (None, None)
            low, high = targets.min(axis=0), targets.max(axis=0)
            part = Moments(len(y), float(weight.sum()), mean, square, low, high, *found)
            total = part if total is None else total + part
        return _of_nothing(block, products, role) if total is None else total


def _of_nothing(block: Block, products: bool, role: str) -> Moments:
    """The moments of a block without rows."""
    n_targets = _targets(block.y[:0], role).shape[1]
    size = block.kind.width + n_targets
    found = (block.y[:0], np.zeros(0)) if role == "labels" else (None, None)
    square = np.zeros((size, size)) if products else None
    limit = np.full(n_targets, np.inf)
    return Moments(0, 0.0, np.zeros(size), square, limit, -limit, *found)


def _targets(y: Array, role: str) -> Array:
    """The columns of y that are measured."""
    if role != "target":
        return np.empty((len(y), 0))
    try:
        return np.asarray(y[:, None] if y.ndim == 1 else y, dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"y must hold numbers: {error}") from error


def _labels(y: Array, weight: Array) -> tuple[Array, Array]:
    try:
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"y must hold labels of one kind, none of them missing: {error}") from error
    if labels.size > MOST_LABELS:
        raise ValueError(f"y holds over {MOST_LABELS} different labels; is it meant for regression?")
    return labels, np.bincount(codes, weight, labels.size)
