"""From tables, Parquet files and sparse chunks to blocks of ratings."""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Iterator
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask.delayed import Delayed, delayed

from ell12.distributed.blocks import naming
from ell12.distributed.executor import Blocks
from ell12.distributed.ratings import block_of_matrix, block_of_table
from ell12.distributed.source import kept


def ratings_blocks(
    ratings: Any, names: tuple[str, str, str], shape: Any, persist: bool
) -> tuple[Blocks, tuple[int | None, int | None]]:
    """A block for each partition or chunk of rows, kept by the workers or made in every pass; and the shape."""
    _check_shape(shape)
    if persist not in (True, False):
        raise ValueError(f"persist must be True or False, got {persist!r}")
    if isinstance(ratings, da.Array):
        blocks = list(_of_array(ratings, shape))
        shape = ratings.shape
    else:
        blocks = list(_of_table(_as_table(ratings, names), names, shape))
    return Blocks(kept(blocks) if persist else blocks), shape


def _as_table(ratings: Any, names: tuple[str, str, str]) -> Any:
    if isinstance(names, str) or len(names) != 3 or len(set(names)) != 3:
        raise ValueError(f"names must be three different names of columns, got {names!r}")
    paths = [ratings] if isinstance(ratings, str | os.PathLike) else ratings
    if isinstance(paths, list | tuple):
        ratings = _read_parquet(paths)
    if not hasattr(ratings, "__dask_graph__") or not hasattr(ratings, "columns"):
        raise TypeError(f"ratings must be a dask DataFrame, paths or a dask array, got {type(ratings).__name__}")
    missing = [name for name in names if name not in ratings.columns]
    if missing:
        raise ValueError(f"ratings has no column {missing[0]!r}: say in names what its columns are called")
    return ratings[list(names)]


def _read_parquet(paths: Any) -> Any:
    """The files as one table, of which Dask reads the columns that are used."""
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        kinds = ", ".join(sorted({type(path).__name__ for path in paths})) or "none"
        raise TypeError(f"ratings must be paths of Parquet files, got a list of {kinds}")
    with naming(f"ratings in {os.fspath(paths[0]) if len(paths) == 1 else 'the Parquet files'}"):
        return dd.read_parquet([os.fspath(path) for path in paths])


def _check_shape(shape: Any) -> None:
    pair = isinstance(shape, tuple | list) and len(shape) == 2
    if not pair or not all(size is None or (isinstance(size, int | np.integer) and size >= 1) for size in shape):
        raise ValueError(f"shape must be a pair of whole numbers >= 1, or None where not known; got {shape!r}")


def _of_table(table: Any, names: tuple[str, str, str], shape: Any) -> Iterator[Delayed]:
    make, token = delayed(block_of_table, pure=False), uuid.uuid4().hex
    for number, part in enumerate(table.to_delayed()):
        yield make(number, part, tuple(names), shape, dask_key_name=f"ell12-block-{token}-{number}")


def _of_array(X: da.Array, shape: Any) -> Iterator[Delayed]:
    if X.ndim != 2 or any(map(math.isnan, X.shape)):
        raise ValueError(f"ratings must be a matrix whose chunks have known sizes, got shape {X.shape}")
    for given, own in zip(shape, X.shape, strict=True):
        if given not in (None, own):
            raise ValueError(f"shape is given as {shape}, but ratings has the shape {X.shape}")
    X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    make, token, first = delayed(block_of_matrix, pure=False), uuid.uuid4().hex, 0
    for number, (part, count) in enumerate(zip(X.to_delayed().ravel(), X.chunks[0], strict=True)):
        yield make(number, part, (first, count), X.shape, dask_key_name=f"ell12-block-{token}-{number}")
        first += count
