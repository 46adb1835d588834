"""What estimators make of rows that stay where they are: predictions in chunks, and scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from dask.delayed import delayed

from ell12.distributed.blocks import check_beside, naming
from ell12.distributed.executor import Blocks
from ell12.distributed.source import aligned_rows, as_rows, chunks
from ell12.protocols import Array


def map_rows(method: Callable[[Any], Array], X: Any) -> Any:
    """What a method makes of each chunk of rows, as a dask array that is not computed yet."""
    X = as_rows(X)
    sample = method(np.zeros((1, X.shape[1]), dtype=X.dtype))
    apply = partial(_apply, method, sample[:0])
    shape: dict[str, Any] = {"drop_axis": 1} if sample.ndim == 1 else {"chunks": (X.chunks[0], sample.shape[1])}
    return X.map_blocks(apply, dtype=sample.dtype, meta=sample[:0], **shape)


def determination(predict: Callable[[Any], Array], X: Any, y: Any, sample_weight: Any = None) -> float:
    """``1 - (squared errors) / (squared deviations from the mean)``, the mean over several targets."""
    without, blocks = _rows(predict, X, y, sample_weight)
    sums = without.total("score", _weighted_sum)
    mean = sums[1:] / _positive(sums[0])
    errors, deviations = blocks.total("score", _squares, mean)
    ratio = np.divide(errors, deviations, out=(errors > 0).astype(float), where=deviations > 0)
    return float(np.mean(1 - ratio))


def accuracy(predict: Callable[[Any], Array], X: Any, y: Any, sample_weight: Any = None) -> float:
    """The weighted share of predictions that are right."""
    right, total = _rows(predict, X, y, sample_weight)[1].total("score", _hits)
    return float(right / _positive(total))


def _positive(total: float) -> float:
    if total == 0:
        raise ValueError("no row of positive weight is left to score")
    return total


def _rows(predict: Callable[[Any], Array], X: Any, y: Any, sample_weight: Any) -> list[Blocks]:
    """Blocks of what belongs to the same rows, without the predictions and with them."""
    X, y, weight = aligned_rows(X, y, sample_weight)
    join, count = delayed(_join, pure=False), X.numblocks[0]
    columns = [
        (chunks(y), chunks(weight, count), chunks(values, count)) for values in (None, map_rows(predict, X))
    ]
    return [Blocks([join(i, *parts) for i, parts in enumerate(zip(*own, strict=True))]) for own in columns]


def _apply(method: Callable[[Any], Array], nothing: Array, rows: Any) -> Array:
    """What a method makes of a chunk; of an empty one nothing, which scikit-learn's checks would refuse."""
    return method(rows) if rows.shape[0] else nothing


def _join(number: int, y: Any, weight: Any, prediction: Any) -> tuple[Array, Array, Any]:
    with naming(f"block {number}"):
        y, weight = check_beside(len(y), y, weight)
    return y, np.ones(len(y)) if weight is None else weight, prediction


def _columns(y: Array) -> Array:
    return np.asarray(y[:, None] if y.ndim == 1 else y, dtype=np.float64)


def _weighted_sum(rows: tuple[Array, Array, Any]) -> Array:
    y, weight, _ = rows
    return np.append(weight.sum(), weight @ _columns(y))


def _squares(rows: tuple[Array, Array, Any], mean: Array) -> Array:
    y, weight, prediction = rows
    y = _columns(y)
    return np.stack([weight @ (y - np.reshape(prediction, y.shape)) ** 2, weight @ (y - mean) ** 2])


def _hits(rows: tuple[Array, Array, Any]) -> Array:
    y, weight, prediction = rows
    return np.array([weight @ (y == prediction), weight.sum()])
