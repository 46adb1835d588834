"""Predictions of ratings as one product of factors, offsets and strangers included."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import is_number
from ell12.completion.low_rank import LowRank, gathered_sums_of_products
from ell12.completion.observed import Observed
from ell12.completion.offsets import Offsets
from ell12.completion.solve import Completion
from ell12.completion.sweeps import regressed_rows
from ell12.penalties import SpectralL12
from ell12.protocols import Array


@dataclass(frozen=True, eq=False)
class Scores:
    """``P Q'`` is the completed matrix; the last row of P and of Q stands for all strangers, place -1.

    A user or an item without any rating is a stranger: the mean and the bias of the other predict. Beside the
    low-rank factors there are four columns: offsets of the row, of the column, the column's biases for strange
    rows and the row's for strange columns.
    """

    P: Array
    Q: Array

    @classmethod
    def of(cls, completion: Completion, biases: Offsets, seen: tuple[Array, Array]) -> Scores:
        """The scores of a fit; ``seen`` says which rows and which columns have ratings."""
        x, offsets = completion.x, completion.offsets
        columns_seen = np.append(seen[1], False)[:, None]
        of_column = np.append(_sized(offsets.columns, x.shape[1]), 0.0)[:, None]
        bias = biases.mean + np.append(_sized(biases.columns, x.shape[1]), 0.0)[:, None]
        V = np.vstack([x.V, np.zeros((1, x.rank))])
        Q = np.hstack([V * columns_seen, columns_seen, of_column * columns_seen, bias, ~columns_seen])
        return cls(np.vstack([_rows(x.weighted, offsets, biases, seen[0]), _stranger(x.rank)]), Q)

    def pairs(self, rows: Array, columns: Array) -> Array:
        """The entries at pairs of places."""
        rows, columns = np.where(rows < 0, len(self.P) - 1, rows), np.where(columns < 0, len(self.Q) - 1, columns)
        return gathered_sums_of_products(self.P, self.Q, rows, columns)

    def with_rows(self, completion: Completion, biases: Offsets, observed: Observed) -> Scores:
        """The same for other rows, each from its own known entries, as `L12Imputer.transform` completes rows."""
        slopes = SpectralL12(completion.alpha, completion.l2_weight).slopes_of(completion.x.s)
        offsets, W, _ = regressed_rows(completion, observed, slopes)
        seen = np.diff(observed.row_starts) > 0
        P = _rows(W * np.sqrt(completion.x.s), offsets, biases.for_rows(observed), seen)
        return Scores(np.vstack([P, self.P[-1:]]), self.Q)


def _rows(W: Array, offsets: Offsets, biases: Offsets, seen: Array) -> Array:
    seen = seen[:, None]
    level, bias = (off.mean + _sized(off.rows, len(W))[:, None] for off in (offsets, biases))
    return np.hstack([W * seen, level * seen, seen, ~seen, bias * seen])


def _stranger(rank: int) -> Array:
    """The row of a stranger."""
    return np.concatenate([np.zeros(rank + 2), [1.0, 0.0]])[None, :]


def _sized(numbers: Any, size: int) -> Array:
    return np.zeros(size) if numbers is None else np.asarray(numbers)


def padded(x: LowRank, rows: Array, columns: Array, shape: tuple[int, int]) -> LowRank:
    """A low-rank matrix whose rows and columns stand at places of a larger one, zero elsewhere."""
    U, V = (np.zeros((size, x.rank), dtype=x.dtype) for size in shape)
    U[rows], V[columns] = x.U, x.V
    return LowRank(U, x.s, V)


def clip_range(clip: Any, values: Array) -> tuple[float, float]:
    """The range that predictions are cut to."""
    if clip is None:
        return -math.inf, math.inf
    if isinstance(clip, str) and clip == "observed":
        return float(values.min()), float(values.max())
    if np.shape(clip) != (2,) or not all(map(is_number, clip)) or not clip[0] < clip[1]:
        raise ValueError(f"clip must be a pair (low, high), 'observed' or None; got {clip!r}")
    return float(clip[0]), float(clip[1])
