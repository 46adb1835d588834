"""Alternating least squares with ratings on workers: a half-sweep is one map over blocks of rows."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from typing import Any

import dask.dataframe as dd
import numpy as np
from dask.delayed import delayed
from scipy.sparse.linalg import LinearOperator

from ell12.checks import check_word, naming
from ell12.completion import AlternatingLeastSquares, Completion, LowRank, Observed, Offsets
from ell12.completion.gpu_entries import Segments
from ell12.completion.hidden_entries import alpha_of_noise
from ell12.completion.low_rank import sums_of_products
from ell12.completion.offsets import SHRINKAGE, SWEEPS, Sides
from ell12.completion.squared_error import MatrixLoss, row_terms, solve_rows
from ell12.distributed.executor import Blocks, active_client, compute
from ell12.minimization import Run, minimize
from ell12.penalties.spectral import SpectralL12, lanczos_norm
from ell12.protocols import Array, Point


def complete_matrix(
    ratings: Any,
    alpha: float | None = None,
    *,
    penalty: SpectralL12 | None = None,
    max_rank: int = 8,
    center: str | None = "biases",
    names: tuple[str, str, str] = ("user", "item", "value"),
    shape: tuple[int | None, int | None] = (None, None),
    persist: bool = True,
    tol: float = 1e-3,
    max_iter: int = 1000,
    random_state: Any = 0,
    run: Run | None = None,
) -> Completion:
    """`ell12.complete_matrix` of ratings on workers, by alternating least squares.

    A sweep takes two passes. In the first each block solves for its rows, given the factor of the columns, and the
    equations of the columns are summed; in the second the loss and the products of its gradient with the factors.
    The factors stay in this process; nothing as long as the ratings moves.

    Parameters
    ----------
    ratings : dask DataFrame, or path or paths of Parquet files
        With a column each for rows (users), columns (items) and values; users and items are numbers counted from
        0. All ratings of a user must be in one partition: ``ratings.shuffle("user")`` sees to that.
    alpha : float, optional
        Strength, above 0. None takes the norm that noise of the size of the centred entries has.
    penalty : SpectralL12, optional
        Its shape; by default ``l2_weight`` is 0.5.
    max_rank : int, default 8
        The largest rank allowed. Where it binds the status is ``RANK_CAPPED``.
    center : {"biases", "mean", None}, default "biases"
        What is subtracted before, and comes back in ``offsets``: the mean with biases of rows and columns, found
        in 11 passes; the mean; or nothing.
    names : three str, default ("user", "item", "value")
        What the columns of the table are called.
    shape : pair of int, default (None, None)
        Of the whole matrix; found in one more pass where None.
    persist : bool, default True
        Whether workers keep the blocks, in memory or spilled; if not, every pass reads them again.
    tol, max_iter, random_state
        As in `ell12.complete_matrix`.
    run : Run, optional
        What else is said of the run.

    Returns
    -------
    Completion
        The same as in memory: ``x`` is a `ell12.LowRank`, with ``offsets`` and ``predict(rows, columns)``.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> import numpy as np
    >>> from ell12 import SpectralL12
    >>> from ell12.distributed import complete_matrix
    >>> rows, columns = np.divmod(np.arange(11), 4)
    >>> table = pd.DataFrame({"user": rows, "item": columns, "value": (rows + 1.0) * (columns + 1.0)})
    >>> fit = complete_matrix(
    ...     dd.from_pandas(table, npartitions=1), 0.1, penalty=SpectralL12(1.0), max_rank=1, center=None
    ... )
    >>> fit.predict([2], [3]).round(2)
    array([12.])
    """
    if center is not None:
        check_word(center, "center", "mean", "biases")
    solver = AlternatingLeastSquares(max_rank, random_state=random_state)
    loss = RatingsLoss(ratings, names, shape, persist)
    offsets = loss.subtract_offsets(center, persist)
    if alpha is None:
        alpha = alpha_of_noise(2 * loss.value(loss.point(loss.start())), loss)
    penalty = replace(SpectralL12(1.0, 0.5) if penalty is None else penalty, alpha=alpha)
    result = minimize(loss, penalty, None, solver, tol=tol, max_iter=max_iter, run=run)
    return Completion(**vars(result), penalty=penalty, offsets=offsets, center=center, max_rank=max_rank)


class PassSums(tuple[Any, ...]):
    """What one pass finds: tuples of it are added entry by entry, lists being joined."""

    def __add__(self, other: Any) -> PassSums:
        return PassSums(mine + theirs for mine, theirs in zip(self, other, strict=True))


class RatingsLoss(MatrixLoss):
    """``1/2 ||S(X - O)||_F^2`` of known entries O on workers, a block of rows each.

    A block is a pair: the numbers of its rows, and its entries, whose rows are counted within the block.
    """

    def __init__(self, ratings: Any, names: tuple[str, str, str], shape: Any, persist: bool) -> None:
        if isinstance(ratings, str | os.PathLike | list | tuple):
            ratings = dd.read_parquet(ratings)
        if not isinstance(ratings, dd.DataFrame):
            raise TypeError(f"ratings must be a dask DataFrame or Parquet files, got {type(ratings).__name__}")
        if not set(names) <= set(ratings.columns):
            raise ValueError(f"ratings has no column {min(set(names) - set(ratings.columns))!r}: say so in names")
        if None in shape:
            (last,) = compute(active_client(), ratings[list(names[:2])].max().to_delayed())
            shape = tuple(int(k) + 1 if size is None else size for k, size in zip(last, shape, strict=True))
        parts, make = ratings[list(names)].to_delayed(), delayed(_block, pure=False)
        tasks = [make(number, part, *names, shape) for number, part in enumerate(parts)]
        self.blocks = Blocks(tasks, persist)
        self.rows, dtypes, counts, totals = zip(*self.blocks.results("describe", _describe), strict=True)
        count, every = sum(counts), np.concatenate(self.rows)
        if count == 0:
            raise ValueError("ratings has no known entry: there is nothing to complete from")
        if max(shape) > 2**20 + 1000 * count:  # such numbers of rows are other keys
            raise ValueError(f"shape {shape} for {count} ratings: count from 0, as pandas.factorize does")
        if np.unique(every).size < every.size:
            raise ValueError("all entries of a row must be in one block: use ratings.shuffle on its column")
        self.shape, self.fraction, self.mean = tuple(shape), count / shape[0] / shape[1], sum(totals) / count
        self.values = np.zeros(0, np.result_type(*dtypes))

    def __repr__(self) -> str:
        return f"RatingsLoss({self.shape[0]} x {self.shape[1]} in {self.blocks!r})"

    observed = property(lambda self: self)  # what a solver asks of the known entries, this loss answers

    def sparse(self) -> Any:
        """The known entries as a matrix: what the zero matrix leaves, with the other sign."""
        return -Residual(self, self.point(self.start()))

    def point(self, x: LowRank) -> Point:
        """X, and a function that finds the value and the products of the gradient with V and U, in one pass."""
        return Point(x, cache(lambda: self.products(x, x.V, x.U)))

    def value(self, point: Point) -> float:
        """Half the sum of the squared errors."""
        return point.prediction()[0]

    def gradient(self, point: Point) -> Residual:
        """``S(X - O)``, known by its products."""
        return Residual(self, point)

    def make_sweep(self, penalty: Any) -> Any:
        """The sweep of `ell12.AlternatingLeastSquares`: rows on their workers, then columns here."""

        def sweep(x: LowRank) -> LowRank:
            W, H = x.balanced
            ridge, prior = row_terms(W, H, penalty)
            W, upper, rights = self._pass("half-sweep", _half_sweep, prior, prior / ridge, H, ridge)
            ridge, prior = row_terms(H, W, penalty)
            i, j = np.triu_indices(x.rank)
            grams = np.zeros((len(H), x.rank, x.rank), H.dtype)
            grams[:, i, j] = grams[:, j, i] = upper
            grams += ridge * np.eye(x.rank, dtype=H.dtype)
            return LowRank.from_factors(W, np.linalg.solve(grams, (rights + prior)[:, :, None])[:, :, 0])

        return sweep

    def products(self, x: LowRank, B: Array, C: Array) -> tuple[float, Array, Array]:
        """``||R||^2 / 2``, ``R B`` and ``R'C`` of the residual ``R = S(X - O)``: one pass."""
        both, out = np.column_stack([x.weighted, C]), np.zeros((self.shape[0], *B.shape[1:]), x.dtype)
        left, value, right = self._pass("products", _products, both, out, x.V, B)
        return value, left, right.reshape(self.shape[1], *C.shape[1:])

    def subtract_offsets(self, center: str | None, persist: bool) -> Offsets:
        """Those of `ell12.completion.offsets.fit_offsets`, taken from the blocks: biases in 11 passes."""
        if center is None:
            return Offsets()
        rows, columns, sums, counts = (np.zeros(n, self.values.dtype) for n in self.shape + 2 * self.shape[1:])
        for _ in range(SWEEPS + 1 if center == "biases" else 0):
            columns = (sums / (counts + SHRINKAGE)).astype(columns.dtype)
            rows, sums, counts = self._pass("biases", _biases, rows, rows, self.mean, columns)
        shared, less = delayed(Offsets(self.mean, None, columns)), delayed(_less, pure=False)
        tasks = [less(block, rows[own], shared) for block, own in zip(self.blocks.blocks, self.rows, strict=True)]
        self.blocks = Blocks(tasks, persist)
        return Offsets(self.mean, rows, columns) if center == "biases" else Offsets(self.mean)

    def _pass(self, name: str, function: Any, W: Array, out: Array, *arguments: Any) -> tuple[Any, ...]:
        """One pass: each block gets its rows of W; its rows of the answer go to ``out``, the rest is summed."""
        found, *sums = self.blocks.total(name, function, *arguments, each=[W[own] for own in self.rows])
        out[np.concatenate(self.rows)] = np.concatenate(found)
        return out, *sums


class Residual(LinearOperator):
    """``S(X - O)`` as an operator: a pass for each product that is not known."""

    def __init__(self, loss: RatingsLoss, point: Point) -> None:
        super().__init__(loss.values.dtype, loss.shape)
        self.loss, self.x, self.known = loss, point.x, point.prediction

    def _matmat(self, B: Array) -> Array:
        return self.known()[1] if B is self.x.V else self.loss.products(self.x, B, self.x.U)[1]

    def _rmatmat(self, C: Array) -> Array:
        return self.known()[2] if C is self.x.U else self.loss.products(self.x, self.x.V, C)[2]

    _matvec, _rmatvec, _transpose = _matmat, _rmatmat, LinearOperator._adjoint

    def norm_beyond(self, U: Array | None, V: Array | None, enough: float = 0.0) -> float:
        """The spectral norm of ``(I - U U') G (I - V V')`` by Lanczos: two passes for each product."""
        return lanczos_norm(self, U, V, enough, self.x.s)


def _half_sweep(block: Any, prior: Array, H: Array, ridge: float) -> PassSums:
    """W solved for, given H; and for each column j the sums of ``w_i w_i'``, the upper half, and ``o_ij w_i``."""
    (_, entries), (i, j) = block, np.triu_indices(H.shape[1])
    W = solve_rows(Segments(entries.row_starts, entries.columns, len(H)), entries.values, H, ridge, prior)
    known = entries.sparse(np.ones_like(entries.values))
    return PassSums(([W], known.T @ (W[:, i] * W[:, j]), entries.sparse().T @ W))


def _products(block: Any, both: Array, V: Array, B: Array) -> PassSums:
    """``R B``, ``||R||^2 / 2`` and ``R'C`` of the residual R of the block."""
    (W, C), (_, entries) = np.split(both, [V.shape[1]], axis=1), block
    left = sums_of_products(W, V, entries.rows, entries.columns) - entries.values
    R = entries.sparse(left)
    return PassSums(([R @ B], 0.5 * float(left @ left), R.T @ C))


def _biases(block: Any, _: Array, mean: float, columns: Array) -> PassSums:
    """The biases of the rows, given those of the columns; what they leave, summed by column, and the counts."""
    (_, entries), sides = block, Sides(block[1])
    level = entries.values - entries.values.dtype.type(mean)
    rows = sides.row_biases(level - columns[entries.columns])
    return PassSums(([rows], entries.sparse(level - rows[entries.rows]).T @ sides.ones[0], sides.counts[1]))


def _less(block: Any, rows: Array, shared: Offsets) -> Any:
    """The block less the biases of its rows and what all blocks share."""
    return block[0], replace(shared, rows=rows).subtracted_from(block[1])


def _describe(block: Any) -> tuple[Array, Any, int, float]:
    return block[0], block[1].values.dtype, block[1].n_observed, float(block[1].values.sum(dtype=np.float64))


def _block(number: int, part: Any, user: str, item: str, value: str, shape: Any) -> tuple[Array, Observed]:
    with naming(f"block {number}"):
        entries = Observed(part[user].to_numpy(), part[item].to_numpy(), part[value].to_numpy(), shape)
    rows, own = np.unique(entries.rows, return_inverse=True)
    return rows, replace(entries, rows=own, shape=(rows.size, shape[1]))
