"""rows_loss: rows on workers, from dask collections to blocks and losses."""

from __future__ import annotations

import math
import operator
import uuid
import warnings
from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
import scipy.sparse
from dask.delayed import Delayed, delayed
from distributed import Future
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from ell12.distributed.executor import Blocks, active_client, compute, reaching
from ell12.losses import LinearLoss, SquaredLoss
from ell12.losses.block_of_rows import BlockKind, make_block
from ell12.losses.moments import Moments, moments
from ell12.losses.quadratic import QuadraticLoss
from ell12.losses.row_blocks import RowsLoss
from ell12.losses.sum_over_rows import check_kind
from ell12.operators.gram import GRAM_COLUMNS


def rows_loss(
    kind: type[LinearLoss],
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    scale: float = 1.0,
    intercept: bool = False,
    gram: bool | str = "auto",
    persist: bool | str = "auto",
    **options: Any,
) -> RowsLoss | QuadraticLoss:
    """``scale * sum_i w_i l((X x)_i, y_i)`` over the rows of a dask array, for `ell12.minimize`.

    Each chunk of rows becomes an ordinary in-memory loss that stays on its worker. An evaluation is one pass over
    them: x goes out, a number and a gradient come back for each.

    Parameters
    ----------
    kind : class
        `ell12.SquaredLoss`, `ell12.LogisticLoss` or `ell12.HuberLoss`.
    X : dask array or DataFrame of shape (n, p)
        Chunks of NumPy arrays or sparse matrices, of some 10 to 200 MB each.
    y : dask array, Series, or array of shape (n,)
        Observations.
    sample_weight : dask array, Series, or array of shape (n,), optional
        Weights w, at least 0.
    scale : float, default 1.0
        Factor of the whole loss: 1 for the sum, ``1 / n`` for the mean.
    intercept : bool, default False
        Whether x has one more entry, the last, that is added to every prediction.
    gram : bool or "auto", default "auto"
        Whether one pass is to add up ``X'X``, after which a squared loss needs no further one. "auto": for squared
        losses with up to 1000 columns and at least as many rows.
    persist : bool or "auto", default "auto"
        Whether workers keep the blocks, in memory or, where that is short, spilled to their disks. If not, every
        pass reads or generates them anew. "auto": if they take up to half the workers' memory, or their size is
        not known.
    **options
        Further arguments of the loss, such as ``delta``.

    Returns
    -------
    RowsLoss or QuadraticLoss
        A QuadraticLoss, in this process, where the columns' products were added up.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from ell12 import L12, SquaredLoss, minimize
    >>> from ell12.distributed import rows_loss
    >>> X = da.from_array(np.eye(4), chunks=(2, 4))
    >>> loss = rows_loss(SquaredLoss, X, da.from_array(np.array([3.0, -4.0, 0.5, 0.0]), chunks=2))
    >>> minimize(loss, L12(alpha=1.0)).x.round(4)
    array([ 2.5547, -3.8321,  0.    ,  0.    ])
    """
    check_kind(kind)
    if persist not in (True, False, "auto"):
        raise ValueError(f"persist must be True, False or 'auto', got {persist!r}")
    X, y, weight = aligned_rows(X, y, sample_weight)
    if y.ndim != 1:
        raise ValueError(f"y must be a vector, got shape {y.shape}; make one loss for each of its columns")
    scale = kind(np.ones((1, 1)), np.ones(1), scale=scale, **options).scale  # also checks the options
    shape = BlockKind(kind, options, X.shape[1], intercept)
    if not use_gram(gram, kind, X):
        return RowsLoss.over(make_blocks(shape, X, y, weight, persist), shape, floating(X.dtype), scale)
    found = make_blocks(shape, X, y, weight, persist=False).total("moments", moments, True, "target")
    check_rows(found)
    return quadratic_loss(found, X.shape[1], intercept=intercept, scale=scale, dtype=floating(X.dtype))


def check_rows(found: Moments) -> None:
    """Raise where no block holds any row."""
    if found.rows == 0:
        raise ValueError("X has no rows: all of its chunks are empty")


def quadratic_loss(
    found: Moments, width: int, k: int = 0, *, intercept: bool = False, scale: float, dtype: Any
) -> QuadraticLoss:
    """``scale/2 ||A x - b||^2`` from the moments of the columns of A and of the targets, b being the k-th."""
    G, c, square = found.normal_equations(width, k, intercept)
    return QuadraticLoss(scale * G, scale * c, scale * square / 2, dtype)


def floating(dtype: Any) -> Any:
    """The dtype that x has for data of this one."""
    if np.dtype(dtype).kind not in "biuf":
        raise TypeError(f"X must hold real numbers, got dtype {dtype}")
    return np.dtype(dtype if np.dtype(dtype) in (np.float32, np.float64) else np.float64)


def use_gram(gram: bool | str, kind: type[LinearLoss], X: Any) -> bool:
    """Whether the products of the columns are to stand for the rows."""
    if gram not in (True, False, "auto"):
        raise ValueError(f"gram must be True, False or 'auto', got {gram!r}")
    squared = issubclass(kind, SquaredLoss)
    if gram is True and not squared:
        raise ValueError(f"gram=True needs a squared loss, not {kind.__name__}")
    # A number of rows that is not known compares as false, and is taken to be large.
    return squared and (
        gram is True or (gram == "auto" and X.shape[1] <= GRAM_COLUMNS and not X.shape[0] < X.shape[1])
    )


KEPT_SHARE = 0.5  # of the workers' memory: the rest is theirs to work with


def as_rows(X: Any, name: str = "X") -> da.Array:
    """A dask array or DataFrame as a dask array of two dimensions whose chunks hold whole rows."""
    X = _joined_arrays([X])[0] if _is_frame(X) else X
    if not isinstance(X, da.Array):
        raise TypeError(f"{name} must be a dask array or DataFrame, got {type(X).__name__}")
    if X.ndim != 2 or math.isnan(X.shape[1]):
        raise ValueError(f"{name} must have two dimensions and a known number of columns, got shape {X.shape}")
    if 0 in X.shape:
        raise ValueError(f"{name} is empty: its shape is {X.shape}")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def aligned_rows(X: Any, y: Any, sample_weight: Any = None) -> tuple[da.Array, da.Array, da.Array | None]:
    """X, y and the weights as dask arrays whose chunks hold the same rows. What is in memory is cut to fit.

    Frames with as many partitions as X go through Dask's optimiser together with X. One by one they would be cut
    differently: where a file is read for few of its columns, Dask joins partitions.
    """
    values = {"y": y, "sample_weight": sample_weight}
    together = [name for name, value in values.items() if _is_frame(X) and _is_frame(value)]
    together = [name for name in together if values[name].npartitions == X.npartitions]
    if together:
        X, *arrays = _joined_arrays([X, *(values[name] for name in together)])
        values |= dict(zip(together, arrays, strict=True))
    _warn_of_columns(X)
    X = as_rows(X)
    weight = None if sample_weight is None else _beside_rows(values["sample_weight"], X, "sample_weight")
    return X, _beside_rows(values["y"], X, "y"), weight


def _warn_of_columns(X: Any) -> None:
    """Warn where chunks of columns would be put together into one."""
    if (
        isinstance(X, da.Array)
        and X.ndim == 2
        and X.numblocks[0] == 1 < X.numblocks[1]
        and X.shape[0] < X.shape[1]
    ):
        warnings.warn(
            f"X has {X.numblocks[1]} chunks of columns and one of rows: all is put together on one worker."
            " ell12.distributed.columns(X) leaves columns where they are",
            stacklevel=2,
        )


def _beside_rows(values: Any, X: da.Array, name: str) -> da.Array:
    """Values of the rows of X, chunked as X is. Unknown lengths are counted only where they are needed."""
    values = _joined_arrays([values])[0] if _is_frame(values) else values
    in_memory = not isinstance(values, da.Array)
    values = np.asarray(values) if in_memory else values
    _check_dimensions(values, name)
    known = not any(map(math.isnan, X.chunks[0]))
    if in_memory:
        if not known:
            raise TypeError(f"{name} must be a dask array, since the lengths of X's chunks are not known")
        _check_length(values.shape, X.shape[0], name)
        return da.from_array(values, chunks=(X.chunks[0], *values.shape[1:]))
    lengths = X.chunks[0]
    if not known or math.isnan(values.shape[0]):
        if values.numblocks[0] == X.numblocks[0]:
            return values
        lengths, values = _count_rows(X), values.copy()
        values._chunks = (_count_rows(values), *values.chunks[1:])
    _check_length(values.shape, sum(lengths), name)
    return values.rechunk((lengths, *values.shape[1:]))


def _count_rows(values: da.Array) -> tuple[int, ...]:
    """The lengths of the chunks: one pass."""
    first = values if values.ndim == 1 else values.rechunk({1: -1})
    return tuple(compute(active_client(), [delayed(len)(chunk) for chunk in chunks(first)]))


def make_blocks(kind: BlockKind, X: da.Array, y: da.Array, weight: da.Array | None, persist: bool | str) -> Blocks:
    """One block for each chunk of rows, kept by the workers or made anew in every pass."""
    token = uuid.uuid4().hex
    make, shared = delayed(make_block, pure=False), delayed(kind, name=f"ell12-kind-{token}", traverse=False)
    columns = zip(chunks(X), chunks(y), chunks(weight, X.numblocks[0]), strict=True)
    blocks = [
        make(shared, number, *parts, dask_key_name=f"ell12-block-{token}-{number}")
        for number, parts in enumerate(columns)
    ]
    keep = persist is True or (persist == "auto" and not is_held(X) and fits(X, active_client()))
    return Blocks(kept(blocks) if keep else blocks)


def kept(blocks: list[Delayed]) -> list[Delayed]:
    """The blocks, made now, which the workers keep."""
    with reaching(active_client()):
        return list(dask.persist(*blocks, optimize_graph=False))


def _is_frame(values: Any) -> bool:
    """Whether this is a DataFrame or a Series of Dask."""
    return hasattr(values, "to_dask_array")


def _joined_arrays(frames: list[Any]) -> list[da.Array]:
    """Frames with equal numbers of partitions as arrays, in whose chunks the same rows stand."""
    frames = [_as_plain(frame) for frame in frames]
    first, *others = frames
    joined = first.map_partitions(
        _as_arrays, *others, align_dataframes=False, enforce_metadata=False, meta=first._meta
    )
    parts, pick = joined.to_delayed(), delayed(operator.getitem, pure=True)
    arrays = []
    for number, frame in enumerate(frames):
        meta = np.asarray(frame._meta)  # labels that are strings become objects, as they should
        shape = (math.nan, *meta.shape[1:])
        pieces = [da.from_delayed(pick(part, number), shape=shape, meta=meta) for part in parts]
        arrays.append(da.concatenate(pieces))
    return arrays


def _as_arrays(*parts: Any) -> tuple[Any, ...]:
    return tuple(map(np.asarray, parts))


def _as_plain(values: Any) -> Any:
    """Numbers that NumPy would hold as objects, as it holds numbers: truth values and floats, nullable ones."""
    if values.ndim == 1:
        plain = getattr(values.dtype, "numpy_dtype", values.dtype)
        return values if plain == values.dtype or plain.kind not in "biuf" else values.astype(plain)
    numbers = all(is_numeric_dtype(dtype) or is_bool_dtype(dtype) for dtype in values.dtypes)
    return values.astype(np.float64) if numbers and np.asarray(values._meta).dtype == object else values


def _check_dimensions(values: Any, name: str) -> None:
    if name == "sample_weight" and values.ndim != 1:
        raise ValueError(f"sample_weight must have one dimension, got shape {values.shape}")
    if values.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got shape {values.shape}")


def _check_length(shape: tuple[int, ...], rows: int, name: str) -> None:
    if shape[0] != rows:
        raise ValueError(f"{name} must have {rows} rows to fit X, got shape {shape}")


def chunks(values: da.Array | None, count: int = 0) -> Iterator[Delayed | None]:
    """The chunks of rows, or None in place of each.

    Not optimised: a chunk of X that y is made of would be fused into both, and be made twice.
    """
    return iter([None] * count) if values is None else iter(values.to_delayed(optimize_graph=False).ravel())


def is_held(X: da.Array) -> bool:
    """Whether the workers keep the chunks of X already, as after ``X.persist()``."""
    graph = X.__dask_graph__()
    return all(isinstance(graph.get(key), Future) for key in dask.core.flatten(X.__dask_keys__()))


def fits(X: da.Array, client: Any) -> bool:
    """Whether the workers can keep X; what has no known size is left to Dask, which spills."""
    return scipy.sparse.issparse(X._meta) or not X.nbytes > KEPT_SHARE * memory(client)  # it may be NaN


def memory(client: Any) -> float:
    """The memory of all workers, or what is free here where threads do the work."""
    if client is None:
        return float(psutil.virtual_memory().available)
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:  # before Dask 2025 there was no such argument, and all workers were listed
        workers = client.scheduler_info()["workers"]
    return float(sum(worker["memory_limit"] or math.inf for worker in workers.values()))
