"""From Dask's collections to blocks of rows: chunks side by side, and whether workers keep them."""

from __future__ import annotations

import math
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

from ell12.distributed.blocks import Kind, make_block
from ell12.distributed.failures import active_client, reaching
from ell12.distributed.passes import Blocks

KEPT_SHARE = 0.5  # of the workers' memory: the rest is theirs to work with


def as_rows(X: Any, name: str = "X") -> da.Array:
    """A dask array or DataFrame as a dask array of two dimensions whose chunks hold whole rows."""
    X = _as_dask(X)
    if not isinstance(X, da.Array):
        raise TypeError(f"{name} must be a dask array or DataFrame, got {type(X).__name__}")
    if X.ndim != 2 or math.isnan(X.shape[1]):
        raise ValueError(f"{name} must have two dimensions and a known number of columns, got shape {X.shape}")
    if 0 in X.shape:
        raise ValueError(f"{name} is empty: its shape is {X.shape}")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def beside_rows(values: Any, X: da.Array, name: str) -> da.Array:
    """Values of the rows of X, chunked as X is. What is in memory is cut into such chunks."""
    values = _as_dask(values)
    known = not any(map(math.isnan, X.chunks[0]))
    in_memory = not isinstance(values, da.Array)
    values = np.asarray(values) if in_memory else values
    _check_dimensions(values, name)
    if in_memory:
        if not known:
            raise TypeError(f"{name} must be a dask array, since the lengths of X's chunks are not known")
        _check_length(values.shape, X, name)
        return da.from_array(values, chunks=(X.chunks[0], *values.shape[1:]))
    if known and not math.isnan(values.shape[0]):
        _check_length(values.shape, X, name)
        return values.rechunk((X.chunks[0], *values.shape[1:]))
    if values.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"{name} has {values.numblocks[0]} chunks of rows and X has {X.numblocks[0]}; chunk them alike"
        )
    return values


def make_blocks(kind: Kind, X: da.Array, y: da.Array, weight: da.Array | None, persist: bool | str) -> Blocks:
    """One block for each chunk of rows, kept by the workers or made anew in every pass."""
    token = uuid.uuid4().hex
    make, shared = delayed(make_block, pure=False), delayed(kind, name=f"ell12-kind-{token}", traverse=False)
    columns = zip(chunks(X), chunks(y), chunks(weight, X.numblocks[0]), strict=True)
    blocks = [
        make(shared, number, *parts, dask_key_name=f"ell12-block-{token}-{number}")
        for number, parts in enumerate(columns)
    ]
    client = active_client()
    if persist is True or (persist == "auto" and not _is_held(X) and _fits(X, client)):
        with reaching(client):
            blocks = dask.persist(*blocks, optimize_graph=False)
    return Blocks(blocks)


def _as_dask(values: Any) -> Any:
    """A DataFrame or Series of Dask as its array; anything else as it is."""
    if not hasattr(values, "to_dask_array"):
        return values
    values = _as_plain(values)
    with warnings.catch_warnings():  # labels that are strings become objects, as they should
        warnings.filterwarnings("ignore", "Dask currently has limited support", UserWarning)
        return values.to_dask_array()


def _as_plain(values: Any) -> Any:
    """Numbers that NumPy would hold as objects, as it holds numbers: truth values beside floats, nullable ones."""
    if values.ndim == 1:
        plain = getattr(values.dtype, "numpy_dtype", values.dtype)
        return values if plain == values.dtype or plain.kind not in "biuf" else values.astype(plain)
    numbers = all(is_numeric_dtype(dtype) or is_bool_dtype(dtype) for dtype in values.dtypes)
    return values.astype(np.float64) if numbers and values.to_dask_array().dtype == object else values


def _check_dimensions(values: Any, name: str) -> None:
    if name == "sample_weight" and values.ndim != 1:
        raise ValueError(f"sample_weight must have one dimension, got shape {values.shape}")
    if values.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got shape {values.shape}")


def _check_length(shape: tuple[int, ...], X: da.Array, name: str) -> None:
    if shape[:1] != X.shape[:1]:
        raise ValueError(f"{name} must have {X.shape[0]} rows to fit X, got shape {shape}")


def chunks(values: da.Array | None, count: int = 0) -> Iterator[Delayed | None]:
    """The chunks of rows, or so many times None.

    Not optimised: a chunk of X that y is made of would be fused into both, and be made twice.
    """
    return iter([None] * count) if values is None else iter(values.to_delayed(optimize_graph=False).ravel())


def _is_held(X: da.Array) -> bool:
    """Whether the workers keep the chunks of X already, as after ``X.persist()``."""
    graph = X.__dask_graph__()
    return all(isinstance(graph.get(key), Future) for key in dask.core.flatten(X.__dask_keys__()))


def _fits(X: da.Array, client: Any) -> bool:
    """Whether the workers can keep X; what has no known size is left to Dask, which spills."""
    if scipy.sparse.issparse(X._meta) or math.isnan(X.nbytes):
        return True
    return X.nbytes <= KEPT_SHARE * _memory(client)


def _memory(client: Any) -> float:
    """The memory of all workers, or what is free here where threads do the work."""
    if client is None:
        return float(psutil.virtual_memory().available)
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:  # before Dask 2025 there was no such argument, and all workers were listed
        workers = client.scheduler_info()["workers"]
    return float(sum(worker["memory_limit"] or math.inf for worker in workers.values()))
