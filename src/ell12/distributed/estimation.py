"""The losses of the estimators: columns centred, the mean over rows, an intercept. One pass finds the means."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.distributed.blocks import Column, Kind, OneAgainstRest
from ell12.distributed.executor import Blocks
from ell12.distributed.loss import GRAM_COLUMNS, SumLoss
from ell12.distributed.moments import moments
from ell12.distributed.problems import check_rows, floating, use_gram
from ell12.distributed.source import aligned_rows, make_blocks
from ell12.distributed.substitution import Centering
from ell12.losses import LinearLoss, LogisticLoss, SquaredLoss
from ell12.losses.moments import Moments, mean_squared_loss
from ell12.losses.quadratic import QuadraticLoss
from ell12.protocols import Array

Loss = SumLoss | QuadraticLoss


def regression_losses(
    X: Any, y: Any, *, sample_weight: Any = None, intercept: bool = True, shared: bool = False
) -> list[tuple[Loss, Array, Any]]:
    """The mean squared loss of each column of y, with the columns' means and the intercept for centred columns.

    Up to 1000 columns all is found in one pass; beyond, one pass for the means, and one for each evaluation. With
    ``shared`` one loss for all columns of y, whose unknown is a matrix.
    """
    data = _Data(SquaredLoss, X, y, sample_weight, intercept, role="target")
    dtype = data.dtype
    loss: Loss
    if shared and data.several:
        if data.found.products is None:
            raise ValueError(
                f"shared_support=True takes chunked data of up to {GRAM_COLUMNS} columns, and more rows"
            )
        levels = data.found.mean[data.width :].astype(dtype) * intercept
        loss = mean_squared_loss(data.found, data.width, np.arange(levels.size), intercept, dtype)
        return [(loss, data.means, levels)]
    parts: list[tuple[Loss, Array, Any]] = []
    for k, level in enumerate(data.found.mean[data.width :]):
        if data.found.products is not None:
            loss = mean_squared_loss(data.found, data.width, k, intercept, dtype)
        else:
            target = Column(k) if data.several else None
            center = Centering(data.means, float(level)) if intercept else None
            loss = data.loss(target, center)
        parts.append((loss, data.means, float(level) if intercept else 0.0))
    return parts


def classification_losses(
    X: Any, y: Any, *, sample_weight: Any = None, intercept: bool = True
) -> tuple[Array, list[SumLoss], Array]:
    """The labels, the mean logistic loss of each against the rest (of two: the second), and the columns' means."""
    data = _Data(LogisticLoss, X, y, sample_weight, intercept, role="labels")
    labels, weights = data.found.labels, data.found.label_weights
    assert labels is not None
    assert weights is not None
    if np.count_nonzero(weights) < 2:
        raise ValueError(f"y must hold at least 2 classes of positive weight, it holds one class: {labels[0]!r}")
    center = Centering(data.means) if intercept else None
    chosen = labels if labels.size > 2 else labels[1:]
    return labels, [data.loss(OneAgainstRest(label), center) for label in chosen], data.means


class _Data:
    """Blocks with their moments."""

    blocks: Blocks

    def __init__(
        self, kind: type[LinearLoss], X: Any, y: Any, sample_weight: Any, intercept: bool, role: str
    ) -> None:
        X, y, weight = aligned_rows(X, y, sample_weight)
        self.width, self.dtype, self.several = X.shape[1], floating(X.dtype), y.ndim == 2
        self.kind = Kind(kind, {}, self.width, intercept)
        final = use_gram("auto", kind, X)
        # What one pass settles need not be kept.
        self.blocks = make_blocks(self.kind, X, y, weight, persist=False if final else "auto")
        products = final or (role == "labels" and self.width <= GRAM_COLUMNS)
        self.found: Moments = self.blocks.total("moments", moments, products, role)
        check_rows(self.found)
        if self.found.total == 0:
            raise ValueError("sample_weight sums to zero: no sample is left to fit")
        means = self.found.mean[: self.width].astype(self.dtype)
        self.means = means if intercept else np.zeros_like(means)

    def loss(self, target: Any, center: Centering | None) -> SumLoss:
        """The mean loss over all blocks."""
        gram = None
        if self.found.products is not None:
            gram = self.found.gram(self.width, self.kind.intercept)
        return SumLoss(
            self.blocks,
            self.kind,
            dtype=self.dtype,
            scale=1 / self.found.total,
            target=target,
            substitution=center,
            gram=gram,
        )
