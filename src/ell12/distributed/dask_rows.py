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

from ell12.distributed.executor import Blocks, active_client, compute
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
        pass reads or generates them anew. "auto": if workers hold them before they spill (Dask's setting
        ``distributed.worker.memory.target``), or their size is not known.
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
    check_persist(persist)
    X, y, weight = aligned_rows(X, y, sample_weight)
    if y.ndim != 1:
        raise ValueError(f"y must be a vector, got shape {y.shape}; make one loss for each of its columns")
    scale = kind(np.ones((1, 1)), np.ones(1), scale=scale, **options).scale  # also checks the options
    shape = BlockKind(kind, options, X.shape[1], intercept)
    use_moments = use_gram(gram, kind, X)
    blocks = make_blocks(shape, X, y, weight, persist and not use_moments)
    if not use_moments:
        return RowsLoss.over(blocks, shape, floating(X.dtype), scale)
    G, c, square = total_moments(blocks, True, "target").normal_equations(X.shape[1], 0, intercept)
    return QuadraticLoss(scale * G, scale * c, scale * square / 2, floating(X.dtype))


def check_persist(persist: Any) -> None:
    """Raise on anything but True, False and "auto"."""
    if persist not in (True, False, "auto"):
        raise ValueError(f"persist must be True, False or 'auto', got {persist!r}")


def total_moments(blocks: Blocks, products: bool, role: str) -> Moments:
    """The `moments` of all blocks, some of which must hold rows."""
    found = blocks.total("moments", moments, products, role)
    if found.rows == 0:
        raise ValueError("X has no rows: all of its chunks are empty")
    return found


def floating(dtype: Any) -> Any:
    """The dtype that x has for data of this one."""
    if np.dtype(dtype).kind not in "biuf":
        raise TypeError(f"X must hold real numbers, got dtype {dtype}")
    return np.dtype(dtype if np.dtype(dtype) in (np.float32, np.float64) else np.float64)


def use_gram(gram: bool | str, kind: type[LinearLoss], X: Any) -> bool:
    """Whether the products of the columns are to stand for the rows."""
    if gram not in (True, False, "auto"):
        raise ValueError(f"gram must be True, False or 'auto', got {gram!r}")
    if gram is True and not issubclass(kind, SquaredLoss):
        raise ValueError(f"gram=True needs a squared loss, not {kind.__name__}")
    # A number of rows that is not known compares as false, and is taken to be large.
    is_small = X.shape[1] <= GRAM_COLUMNS and not X.shape[0] < X.shape[1]
    return gram is True or (gram == "auto" and issubclass(kind, SquaredLoss) and is_small)


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
    weight = None if sample_weight is None else _aligned_with(values["sample_weight"], X, "sample_weight")
    return X, _aligned_with(values["y"], X, "y"), weight


def _warn_of_columns(X: Any) -> None:
    """Warn where chunks of columns would be put together into one."""
    is_wide = isinstance(X, da.Array) and X.ndim == 2 and X.shape[0] < X.shape[1]
    if is_wide and X.numblocks[0] == 1 < X.numblocks[1]:
        warnings.warn(
            f"X has {X.numblocks[1]} chunks of columns and one of rows: all is put together on one worker."
            " ell12.distributed.columns(X) leaves columns where they are",
            stacklevel=2,
        )


def _aligned_with(values: Any, X: da.Array, name: str) -> da.Array:
    """Values of the rows of X, chunked as X is. Unknown lengths are counted only where they are needed."""
    values = _joined_arrays([values])[0] if _is_frame(values) else values
    known = not any(map(math.isnan, X.chunks[0]))
    if not isinstance(values, da.Array):
        values = da.from_array(np.asarray(values), chunks=-1)
        if not known:
            raise TypeError(f"{name} must be a dask array, since the lengths of X's chunks are not known")
    if values.ndim != 1 and (values.ndim != 2 or name == "sample_weight"):
        allowed = "one dimension" if name == "sample_weight" else "one or two dimensions"
        raise ValueError(f"{name} must have {allowed}, got shape {values.shape}")
    lengths = X.chunks[0]
    if not known or math.isnan(values.shape[0]):
        if values.numblocks[0] == X.numblocks[0]:
            return values
        lengths, values = _count_rows(X), values.copy()
        values._chunks = (_count_rows(values), *values.chunks[1:])
    if values.shape[0] != sum(lengths):
        raise ValueError(f"{name} must have {sum(lengths)} rows to fit X, got shape {values.shape}")
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
    return Blocks(blocks, keeps(X, persist))


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


def chunks(values: da.Array | None, count: int = 0) -> Iterator[Delayed | None]:
    """The chunks of rows, or None for each.

    Not optimised: a chunk of X that y is made of would be fused into both, and be made twice.
    """
    return iter([None] * count) if values is None else iter(values.to_delayed(optimize_graph=False).ravel())


def keeps(X: da.Array, persist: bool | str) -> bool:
    """Whether workers are to keep blocks of X. "auto": if they do not keep X, as after ``X.persist()``, but can.

    What has no known size is left to Dask, which spills.
    """
    if persist != "auto":
        return bool(persist)
    graph = X.__dask_graph__()
    if all(isinstance(graph.get(key), Future) for key in dask.core.flatten(X.__dask_keys__())):
        return False
    return scipy.sparse.issparse(X._meta) or not X.nbytes > memory(active_client())  # it may be NaN


def memory(client: Any) -> float:
    """What all workers hold before they spill, by Dask's own setting; of threads that share of what is free."""
    share = dask.config.get("distributed.worker.memory.target") or 1.0
    if client is None:
        return float(share * psutil.virtual_memory().available)
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:  # before Dask 2025.4 there was no such argument, and all workers were listed
        workers = client.scheduler_info()["workers"]
    return float(share * sum(worker["memory_limit"] or math.inf for worker in workers.values()))
