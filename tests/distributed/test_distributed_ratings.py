"""Completion of ratings in blocks, against the same in memory."""

from dataclasses import replace
from itertools import pairwise

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.callbacks import Callback
from dask.utils import key_split

import ell12
from ell12 import LowRank, Observed, SpectralL12, minimize
from ell12.completion import AlternatingLeastSquares, CompletionLoss, FactoredAPG
from ell12.distributed import complete_matrix, distributed_ratings
from ell12.distributed.distributed_ratings import RatingsLoss

PLAIN = {"penalty": SpectralL12(l2_weight=1.0), "center": None, "scale": None}
THERE = {"penalty": SpectralL12(1.0), "center": None}


def ratings_loss(ratings, shape=(None, None)):
    return RatingsLoss(ratings, ("user", "item", "value"), shape, True)


SHAPE, CUTS = (70, 40), (0, 20, 21, 50, 70)


@pytest.fixture(scope="module")
def observed():
    """Half of a matrix of rank 3, with noise; row 5 and column 7 are not known at all."""
    random = np.random.default_rng(0)
    X = random.standard_normal((SHAPE[0], 3)) @ random.standard_normal((3, SHAPE[1]))
    known = random.random(SHAPE) < 0.5
    known[5] = known[:, 7] = False
    rows, columns = np.nonzero(known)
    return Observed(rows, columns, X[known] + 0.1 * random.standard_normal(rows.size), SHAPE)


def table_of(observed):
    return pd.DataFrame({"user": observed.rows, "item": observed.columns, "value": observed.values})


def parts_of(table):
    """Ranges of rows, each in an order of its own."""
    return [table[table["user"].between(a, b - 1)].sample(frac=1, random_state=a) for a, b in pairwise(CUTS)]


def partitions(table):
    """A dask DataFrame with such parts."""
    return dd.concat([dd.from_pandas(part, npartitions=1, sort=False) for part in parts_of(table)])


@pytest.mark.parametrize("form", ["table", "parquet"])
@pytest.mark.parametrize(("alpha", "max_rank"), [(1.0, 2), (1.0, 5), (4.0, 5)])
def test_the_factors_are_those_in_memory(observed, tmp_path, form, alpha, max_rank):
    ratings = partitions(table_of(observed))
    if form == "parquet":
        ratings = [tmp_path / f"{i}.parquet" for i in range(len(CUTS) - 1)]
        for path, part in zip(ratings, parts_of(table_of(observed)), strict=True):
            part.to_parquet(path)
    near = ell12.complete_matrix(
        observed, alpha, solver=AlternatingLeastSquares(max_rank), **PLAIN, max_rank=max_rank, tol=1e-6
    )
    far = complete_matrix(ratings, alpha, max_rank=max_rank, **THERE, shape=SHAPE, tol=1e-6)
    assert far.status is near.status
    assert far.n_iter == near.n_iter
    assert far.stationarity == pytest.approx(near.stationarity, rel=1e-3)
    for part in ("U", "s", "V"):
        ours, theirs = getattr(far.x, part), getattr(near.x, part)
        np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=0, atol=1e-6)
    np.testing.assert_allclose(far.x.to_array(), near.x.to_array(), rtol=0, atol=1e-6)
    np.testing.assert_allclose(far.predict([0, 6], [3, 2]), near.predict([0, 6], [3, 2]), atol=1e-6)


@pytest.mark.parametrize(("center", "persist"), [("biases", True), ("biases", False), ("mean", True)])
def test_offsets_are_those_in_memory(observed, center, persist):
    table = table_of(replace(observed, values=observed.values + 3.0 + 0.5 * (observed.columns % 3)))
    shifted = Observed(table["user"], table["item"], table["value"], SHAPE)
    options = {"max_rank": 3, "center": center, "tol": 1e-6}
    near = ell12.complete_matrix(
        shifted, 1.0, solver=AlternatingLeastSquares(3), scale=None, penalty=SpectralL12(l2_weight=0.5), **options
    )
    far = complete_matrix(partitions(table), 1.0, shape=SHAPE, persist=persist, **options)
    assert far.offsets.mean == pytest.approx(near.offsets.mean, rel=1e-12)
    if center == "biases":
        np.testing.assert_allclose(far.offsets.rows, near.offsets.rows, atol=1e-12)
        np.testing.assert_allclose(far.offsets.columns, near.offsets.columns, atol=1e-12)
    np.testing.assert_allclose(far.to_array(), near.to_array(), atol=1e-6)
    assert (far.center, far.penalty.l2_weight, far.max_rank, far.n_iter) == (center, 0.5, 3, near.n_iter)
    with pytest.raises(ValueError, match="center must be 'mean' or 'biases', got 'columns'"):
        complete_matrix(partitions(table), 1.0, center="columns")


def test_the_strength_of_noise_is_its_norm():
    random, shape = np.random.default_rng(0), (400, 200)
    rows, columns = np.divmod(random.choice(400 * 200, 20_000, replace=False), 200)
    table = pd.DataFrame({"user": rows, "item": columns, "value": random.standard_normal(rows.size)})
    far = complete_matrix(dd.from_pandas(table, npartitions=1), center=None, shape=shape, max_rank=1, max_iter=1)
    noise = Observed(rows, columns, table["value"].to_numpy(), shape).sparse()
    assert far.alpha == pytest.approx(np.linalg.norm(noise.toarray(), 2), rel=0.05)


def test_a_sweep_is_two_passes_that_move_nothing_as_long_as_the_ratings(observed, monkeypatch):
    monkeypatch.setattr(distributed_ratings, "lanczos_norm", lambda *_: 0.0)  # the exact certificate
    sizes = {}

    def note(key, result, *_):
        if isinstance(result, distributed_ratings.PassSums):
            moved = sum(np.size(part) for part in (*result[0], *result[1:]))
            sizes.setdefault(key_split(key), []).append(moved)

    rank, blocks = 2, len(CUTS) - 1
    with Callback(posttask=note):
        loss = ratings_loss(partitions(table_of(observed)))
        start = LowRank.from_factors(np.ones((70, rank)), np.ones((40, rank)))
        start = LowRank.from_factors(np.eye(70, rank), np.eye(40, rank) + 0.1)
        minimize(loss, SpectralL12(1.0), start, AlternatingLeastSquares(rank), max_iter=3, tol=0)
    assert len(sizes["ell12-half-sweep"]) == 3 * blocks
    assert len(sizes["ell12-products"]) == 5 * blocks  # of the start and a lengthened sweep too
    per_row, per_column = rank, rank * (rank + 1) // 2 + rank
    assert max(sizes["ell12-half-sweep"]) <= per_row * 30 + per_column * SHAPE[1]
    assert max(sizes["ell12-products"]) <= per_row * 30 + rank * SHAPE[1] + 1


def test_the_loss_and_its_gradient(observed):
    random = np.random.default_rng(1)
    near, far = CompletionLoss(observed), ratings_loss(partitions(table_of(observed)), shape=SHAPE)
    x = LowRank.from_factors(random.standard_normal((70, 2)), random.standard_normal((40, 2)))
    at, there = near.point(x), far.point(x)
    assert far.value(there) == pytest.approx(near.value(at), rel=1e-12)
    G, remote = near.gradient(at), far.gradient(there)
    B, C = random.standard_normal((40, 3)), random.standard_normal((70, 3))
    np.testing.assert_allclose(remote @ B, G @ B, atol=1e-11)
    np.testing.assert_allclose(remote.T @ C, G.T @ C, atol=1e-11)
    np.testing.assert_allclose(remote @ x.V, G @ x.V, atol=1e-11)
    np.testing.assert_allclose(remote.T @ x.U, G.T @ x.U, atol=1e-11)
    dense = G.toarray()
    assert remote.norm_beyond(None, None) == pytest.approx(np.linalg.norm(dense, 2), rel=1e-3)
    beyond = (np.eye(70) - x.U @ x.U.T) @ dense @ (np.eye(40) - x.V @ x.V.T)
    assert remote.norm_beyond(x.U, x.V) == pytest.approx(np.linalg.norm(beyond, 2), rel=1e-3)


def test_errors_name_the_block_and_the_argument(observed):
    table = table_of(observed)
    item, user = table["item"], table["user"]
    split = dd.concat([partitions(table[item < 20]), partitions(table[item >= 20])])

    def one(table):
        return dd.from_pandas(table, npartitions=1)

    cases = [
        (ValueError, "block 0: values must be finite", one(table.assign(value=np.nan)), {}),
        (ValueError, "block 0: .*more than once", one(pd.concat([table[:1], table[:1]])), {}),
        (ValueError, "block 3: rows must lie in 0 .. 59", partitions(table), {"shape": (60, 40)}),
        (ValueError, "all entries of a row must be in one block: use ratings.shuffle", split, {}),
        (ValueError, "no column 'rating'", one(table), {"names": ("user", "item", "rating")}),
        (TypeError, "block 0: rows must be a vector of integers", one(table.astype({"user": float})), {}),
        (ValueError, "no known entry", one(table[:0]), {"shape": SHAPE}),
        (ValueError, "pandas.factorize", one(table.assign(user=user.astype(np.int64) + 10**12)), {}),
    ]
    for error, words, ratings, options in cases:
        with pytest.raises(error, match=words):
            complete_matrix(ratings, 1.0, **options)
    with pytest.raises(TypeError, match="ratings must be a dask DataFrame"):
        complete_matrix(table)
    with pytest.raises(TypeError, match=r"ell12\.distributed\.complete_matrix"):
        ell12.complete_matrix(dask.array.ones((4, 3)), 1.0)
    with pytest.raises(TypeError, match=r"FactoredAPG .*RatingsLoss.* lacks residual"):
        minimize(ratings_loss(partitions(table)), SpectralL12(1.0), solver=FactoredAPG())


def test_rows_in_several_partitions_are_brought_together_by_a_shuffle(observed):
    mixed = dd.from_pandas(table_of(observed).sample(frac=1, random_state=0), npartitions=3, sort=False)
    far = complete_matrix(mixed.shuffle("user"), 1.0, max_rank=3, **THERE, shape=SHAPE, tol=1e-6)
    near = ell12.complete_matrix(observed, 1.0, solver=AlternatingLeastSquares(3), **PLAIN, max_rank=3, tol=1e-6)
    np.testing.assert_allclose(far.x.to_array(), near.x.to_array(), atol=1e-6)
