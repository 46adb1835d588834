"""The moments of the columns of a block."""

from __future__ import annotations

import numpy as np

from ell12.distributed.blocks import Block
from ell12.moments import Moments, of_rows
from ell12.protocols import Array

MOST_LABELS = 10_000  # in one slice; more would be as many as rows


def moments(block: Block, products: bool, role: str) -> Moments:
    """The moments of a block; y is among the columns as a "target", or its "labels" are gathered, or "none" is."""
    total: Moments | None = None
    for A, y, given in block.slices():
        weight = np.ones(len(y)) if given is None else given
        targets = (
            np.asarray(y, dtype=np.float64).reshape(len(y), -1) if role == "target" else np.empty((len(y), 0))
        )
        mean, square = of_rows(A, targets, weight, products)
        found = _labels(block, y, weight) if role == "labels" else (None, None)
        low, high = targets.min(axis=0), targets.max(axis=0)
        part = Moments(len(y), float(weight.sum()), mean, square, low, high, *found)
        total = part if total is None else total + part
    assert total is not None  # an empty chunk makes no block
    return total


def _labels(block: Block, y: Array, weight: Array) -> tuple[Array, Array]:
    labels, codes = np.unique(y, return_inverse=True)
    if labels.size > MOST_LABELS:
        raise ValueError(f"{block.name}: y holds over {MOST_LABELS} different labels; is it meant for regression?")
    return labels, np.bincount(codes, weight, labels.size)
