"""What estimators make of rows on workers: their losses, predictions in chunks, and scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from dask.delayed import delayed

from ell12.checks import naming
from ell12.distributed import dask_rows
from ell12.distributed.dask_rows import aligned_rows, chunks, make_blocks
from ell12.distributed.executor import Blocks
from ell12.losses import LinearLoss, LogisticLoss, SquaredLoss
from ell12.losses.block_of_rows import BlockKind, centring, check_rows
from ell12.losses.moments import Moments, mean_squared_losses
from ell12.losses.row_blocks import RowsLoss
from ell12.operators.gram import GRAM_COLUMNS
from ell12.protocols import Array


def regression_losses(
    X: Any, y: Any, *, sample_weight: Any = None, intercept: bool = True, shared: bool = False
) -> list[tuple[Any, Array, Any]]:
    """The mean squared loss of each column of y, with the columns' means and the intercept for centred columns.

    Up to 1000 columns all is found in one pass; beyond, one pass for the means, and one for each evaluation. With
    ``shared`` one loss for all columns of y, whose unknown is a matrix.
    """
    data = _Data(SquaredLoss, X, y, sample_weight, intercept, role="target")
    shared = shared and data.several
    if data.found.products is not None:
        return mean_squared_losses(data.found, data.width, intercept, data.dtype, shared)
    if shared:
        raise ValueError(f"shared_support=True takes chunked data of up to {GRAM_COLUMNS} columns, and more rows")
    levels = enumerate(data.found.mean[data.width :].tolist())
    losses = [(data.loss(("column", k) if data.several else None, level), level) for k, level in levels]
    return [(loss, data.means, level if intercept else 0.0) for loss, level in losses]


def classification_losses(
    X: Any, y: Any, *, sample_weight: Any = None, intercept: bool = True
) -> tuple[Array, list[RowsLoss], Array]:
    """The labels, the mean logistic loss of each against the rest (of two: the second), and the columns' means."""
    data = _Data(LogisticLoss, X, y, sample_weight, intercept, role="labels")
    labels, weights = data.found.labels, data.found.label_weights
    assert labels is not None
    assert weights is not None
    if np.count_nonzero(weights) < 2:
        raise ValueError(f"y must hold at least 2 classes of positive weight, it holds one class: {labels[0]!r}")
    chosen = labels if labels.size > 2 else labels[1:]
    return labels, [data.loss(("label", label)) for label in chosen], data.means


class _Data:
    """Blocks with their moments."""

    def __init__(
        self, kind: type[LinearLoss], X: Any, y: Any, sample_weight: Any, intercept: bool, role: str
    ) -> None:
        X, y, weight = aligned_rows(X, y, sample_weight)
        self.width, self.dtype, self.several = X.shape[1], dask_rows.floating(X.dtype), y.ndim == 2
        self.kind = BlockKind(kind, {}, self.width, intercept)
        final = dask_rows.use_gram("auto", kind, X)  # what one pass settles need not be kept
        self.blocks = make_blocks(self.kind, X, y, weight, persist=False if final else "auto")
        products = final or (role == "labels" and self.width <= GRAM_COLUMNS)
        self.found = dask_rows.total_moments(self.blocks, products, role)
        if self.found.total == 0:
            raise ValueError("sample_weight sums to zero: no sample is left to fit")
        means = self.found.mean[: self.width].astype(self.dtype)
        self.means = means if intercept else np.zeros_like(means)

    def loss(self, target: Any, level: float | None = None) -> RowsLoss:
        """The mean loss over all blocks, of centred columns where there is an intercept."""
        products, intercept = self.found.products, self.kind.intercept
        gram = None if products is None else self.found.gram(self.width, intercept)
        center = centring(self.means, level) if intercept else (None, 0.0)
        options = {"target": target, "centre": center, "gram": gram, "scale": 1 / self.found.total}
        return RowsLoss.over(self.blocks, self.kind, self.dtype, **options)


def map_rows(method: Callable[[Any], Array], X: Any) -> Any:
    """What a method makes of each chunk of rows, as a dask array that is not computed yet."""
    X = dask_rows.as_rows(X)
    sample = method(np.zeros((1, X.shape[1]), dtype=X.dtype))
    apply = partial(_apply, method, sample[:0])
    shape: dict[str, Any] = {"drop_axis": 1} if sample.ndim == 1 else {"chunks": (X.chunks[0], sample.shape[1])}
    return X.map_blocks(apply, dtype=sample.dtype, meta=sample[:0], **shape)


def determination(predict: Callable[[Any], Array], X: Any, y: Any, sample_weight: Any = None) -> float:
    """``1 - (squared errors) / (squared deviations from the mean)``, the mean over several targets."""
    found = _rows(predict, X, y, sample_weight).total("score", _target_moments)
    deviations, errors = np.split(np.diagonal(found.products), 2)
    errors = errors + _positive(found.total) * np.split(found.mean, 2)[1] ** 2
    ratio = np.divide(errors, deviations, out=(errors > 0).astype(float), where=deviations > 0)
    return float(np.mean(1 - ratio))


def accuracy(predict: Callable[[Any], Array], X: Any, y: Any, sample_weight: Any = None) -> float:
    """The weighted share of predictions that are right."""
    right, total = _rows(predict, X, y, sample_weight).total("score", _hits)
    return float(right / _positive(total))


def _positive(total: float) -> float:
    if total == 0:
        raise ValueError("no row of positive weight is left to score")
    return total


def _rows(predict: Callable[[Any], Array], X: Any, y: Any, sample_weight: Any) -> Blocks:
    """Blocks of observations, weights and predictions of the same rows."""
    X, y, weight = aligned_rows(X, y, sample_weight)
    join = delayed(_join, pure=False)
    parts = zip(chunks(y), chunks(weight, X.numblocks[0]), chunks(map_rows(predict, X)), strict=True)
    return Blocks([join(number, *own) for number, own in enumerate(parts)])


def _apply(method: Callable[[Any], Array], nothing: Array, rows: Any) -> Array:
    """What a method makes of a chunk; of an empty one nothing, which scikit-learn's checks would refuse."""
    return method(rows) if rows.shape[0] else nothing


def _join(number: int, y: Any, weight: Any, prediction: Any) -> tuple[Array, Array, Any]:
    with naming(f"block {number}"):
        y, weight = check_rows(len(y), y, weight)
    return y, np.ones(len(y)) if weight is None else weight, prediction


def _target_moments(rows: tuple[Array, Array, Any]) -> Moments:
    """The moments of the targets and of the errors of their predictions."""
    y, weight, prediction = rows
    y = np.asarray(y[:, None] if y.ndim == 1 else y, dtype=np.float64)
    return Moments.of(np.empty((len(y), 0)), np.hstack([y, y - np.reshape(prediction, y.shape)]), weight)


def _hits(rows: tuple[Array, Array, Any]) -> Array:
    y, weight, prediction = rows
    return np.array([weight @ (y == prediction), weight.sum()])
