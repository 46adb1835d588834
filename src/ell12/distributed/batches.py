"""Batches of rows for stochastic solvers: blocks come to this process one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.distributed.blocks import Block
from ell12.distributed.executor import Blocks
from ell12.distributed.substitution import NoSubstitution, Substitution
from ell12.operators import ArrayOperator, adjoint, dtype_of, output_shape
from ell12.protocols import Array, Batch


def batches(
    blocks: Blocks, rows: list[int], size: int, random: Any, substitution: Substitution, target: Any, scale: float
) -> Iterator[Batch]:
    """Losses of about ``size`` rows each that sum to that of all blocks: one pass, one block in memory at a time.

    ``rows`` are the numbers of rows of the blocks. With ``random`` blocks and batches come in a random order.
    """
    counts = [-(-count // size) for count in rows]
    firsts = np.cumsum([0, *counts]).tolist()
    blocks.passes += 1
    for number in range(len(rows)) if random is None else random.permutation(len(rows)).tolist():
        if counts[number] > 0:
            loss = block_loss(blocks.fetch(number), substitution, target, scale)
            for batch in loss.batches(size, random):
                yield Batch(batch.loss, firsts[number] + batch.index, firsts[-1])


def block_loss(block: Block, substitution: Substitution, target: Any, scale: float) -> Any:
    """The loss of a block as a function of the solver's unknown."""
    kind, A, b = block.kind, block.A, block.y if target is None else target(block.y)
    if kind.intercept or not isinstance(substitution, NoSubstitution):
        A = SubstitutedRows(block.A, substitution, kind.intercept)
        b = b - A.predict(substitution.offset() + np.zeros(kind.size))  # it is not 0 for squared losses alone
    return kind.loss(A, b, sample_weight=block.weight, scale=scale, **kind.options)


def row_counts(block: Block) -> list[int]:
    """How many rows a block has; lists add as they should."""
    return [int(block.A.shape[0])]


@dataclass(frozen=True, eq=False)
class SubstitutedRows(ArrayOperator):
    """``x -> [A, 1] linear(x)``, the ones standing for an intercept, if there is one."""

    A: Any
    substitution: Substitution
    intercept: bool

    def __post_init__(self) -> None:
        size = self.substitution.adjoint(np.zeros(self.A.shape[1] + self.intercept)).size
        self._set(input_shape=(size,), output_shape=output_shape(self.A), dtype=dtype_of(self.A))

    def predict(self, x: Array) -> Array:
        """``[A, 1] x``."""
        return self.A @ x[: self.A.shape[1]] + (x[-1] if self.intercept else 0)

    def _apply(self, x: Array) -> Array:
        return self.predict(self.substitution.linear(x))

    def _apply_adjoint(self, y: Array) -> Array:
        total = [y.sum(dtype=np.float64)] if self.intercept else []
        return self.substitution.adjoint(np.append(adjoint(self.A) @ y, total)).astype(y.dtype)

    def __getitem__(self, rows: Any) -> SubstitutedRows:
        """Some rows."""
        return SubstitutedRows(self.A[rows], self.substitution, self.intercept)
