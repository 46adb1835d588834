"""From dask arrays to losses: `sum_loss`, and the problems of the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.distributed.blocks import Kind
from ell12.distributed.loss import GRAM_COLUMNS, SumLoss
from ell12.distributed.moments import moments
from ell12.distributed.source import aligned_rows, make_blocks
from ell12.losses import LinearLoss, SquaredLoss
from ell12.losses.moments import Moments
from ell12.losses.quadratic import QuadraticLoss
from ell12.losses.sum_over_rows import check_kind


def sum_loss(
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
) -> SumLoss | QuadraticLoss:
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
    SumLoss or QuadraticLoss
        A QuadraticLoss, in this process, where the columns' products were added up.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from ell12 import L12, SquaredLoss, minimize
    >>> from ell12.distributed import sum_loss
    >>> X = da.from_array(np.eye(4), chunks=(2, 4))
    >>> loss = sum_loss(SquaredLoss, X, da.from_array(np.array([3.0, -4.0, 0.5, 0.0]), chunks=2))
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
    shape = Kind(kind, options, X.shape[1], intercept)
    if not use_gram(gram, kind, X):
        return SumLoss(make_blocks(shape, X, y, weight, persist), shape, dtype=floating(X.dtype), scale=scale)
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
