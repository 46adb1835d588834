"""Columns on Dask's workers: the same numbers as a matrix in memory, whatever they come from."""

from dataclasses import replace
from functools import partial

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from ell12 import L12, L12Classifier, L12Regressor, LogisticLoss, SquaredLoss, Status, l12_path, minimize
from ell12.distributed import columns, rows_loss
from ell12.minimization import DataUnavailable
from ell12.operators.centering import CenteredColumns

ROWS, COLUMNS = 30, 200
SMALL_BLOCKS = {"array.chunk-size": ROWS * 60}


@pytest.fixture(scope="module", autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def genotypes():
    return np.random.default_rng(0).integers(0, 3, (ROWS, COLUMNS)).astype(np.int8)


def chunked(values):
    return da.from_array(values, chunks=(13, 70))


class Table:
    """A format of one's own, opened where it is read."""

    dtype = np.int8

    def __init__(self, path):
        self.rows = np.load(path)
        self.shape = self.rows.shape

    def block(self, first, last):
        return self.rows[:, first:last]

    def take(self, some):
        return self.rows[:, some]


@pytest.fixture(scope="module")
def forms(genotypes, tmp_path_factory):
    """The same matrix, given in every way."""
    path = tmp_path_factory.mktemp("columns") / "X.npy"
    np.save(path, np.asfortranarray(genotypes))
    sparse = chunked(genotypes.astype(float)).rechunk({0: -1}).map_blocks(scipy.sparse.csr_array)
    read = dask.delayed(lambda first, last: np.load(path)[:, first:last])
    return {
        "int8": chunked(genotypes),
        "sparse": sparse,
        "delayed": [read(0, 150), read(150, 200)],
        "path": path,
        "function": partial(Table, path),
        "persisted": chunked(genotypes).rechunk((ROWS, 70)).persist(),
    }


@pytest.mark.parametrize("persist", [True, False])
@pytest.mark.parametrize("form", ["int8", "sparse", "delayed", "path", "function", "persisted"])
def test_products_and_columns_are_those_of_the_matrix(genotypes, forms, form, persist, monkeypatch):
    monkeypatch.setattr("ell12.operators.column_sources.PIECE", ROWS * 7)
    random, dense = np.random.default_rng(1), genotypes.astype(float)
    with dask.config.set(SMALL_BLOCKS):
        X = columns(forms[form], persist=persist)
    assert X.shape == (ROWS, COLUMNS)
    assert len(X.source.blocks.blocks) == {"delayed": 2}.get(form, 3)
    weight = random.integers(0, 3, ROWS).astype(float)
    means = weight @ dense / weight.sum()
    for found, expected in zip(X.moments(weight), (means, weight @ (dense - means) ** 2), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    means = dense[[2, 5, 5]].mean(axis=0)
    np.testing.assert_allclose(
        X[[2, 5, 5]].moments()[1], ((dense[[2, 5, 5]] - means) ** 2).sum(axis=0), atol=1e-12
    )
    few = np.zeros(COLUMNS)
    few[[3, 160]] = 1.5
    for x in (few, random.standard_normal(COLUMNS), random.standard_normal((COLUMNS, 4))):
        np.testing.assert_allclose(X @ x, dense @ x, rtol=1e-12, atol=1e-12)
    for y in (random.standard_normal(ROWS), random.standard_normal((ROWS, 4))):
        np.testing.assert_allclose(X.T @ y, dense.T @ y, rtol=1e-12, atol=1e-12)
    for some in ([2, 69, 70, 199], [75], []):
        taken = X.select_columns(np.array(some, dtype=int))
        np.testing.assert_array_equal(taken.toarray() if scipy.sparse.issparse(taken) else taken, dense[:, some])
    rows = [5, 1, 5]  # as a resampling takes them
    np.testing.assert_allclose(X[rows] @ few, dense[rows] @ few)
    np.testing.assert_allclose(X[rows] @ (few + 1), dense[rows] @ (few + 1))
    np.testing.assert_allclose(X[rows].T @ np.arange(3.0), dense[rows].T @ np.arange(3.0))


def test_only_steep_products_and_columns_asked_for_come_back(genotypes):
    X = columns(chunked(genotypes))
    vectors = np.random.default_rng(2).standard_normal((ROWS, 3))
    products = genotypes.T @ vectors
    least = np.sort(np.abs(products).max(axis=1))[-9]
    where, values = X.source.products(vectors, least)
    np.testing.assert_array_equal(where, np.flatnonzero(np.abs(products).max(axis=1) >= least))
    np.testing.assert_allclose(values, products[where], rtol=1e-12)
    each = np.where(np.arange(COLUMNS) < 80, 0.0, np.inf)
    np.testing.assert_array_equal(X.source.products(vectors, each)[0], np.arange(80))
    seen, found = X.products(vectors, least)
    np.testing.assert_array_equal(seen, where)
    np.testing.assert_allclose(found, values)
    found = X.source.blocks.results
    asked = []
    X.source.blocks.results = lambda *call, **more: asked.append(more["of"]) or found(*call, **more)
    X.select_columns(np.array([150, 160]))
    assert asked == [[2]]


@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss])
def test_a_fit_is_the_one_in_memory_after_few_passes(genotypes, kind):
    b = np.sign(genotypes[:, :5].sum(axis=1) - 5.1)
    here, X = kind(genotypes.astype(float), b), columns(chunked(genotypes))
    penalty = L12(0.2 * np.abs(here.gradient(here.point(here.start()))).max(), 0.0)
    found = minimize(kind(X, b), penalty, tol=1e-8)
    assert found.converged
    assert X.reads < 10
    np.testing.assert_allclose(found.x, minimize(here, penalty, tol=1e-8).x, atol=1e-9)


def test_what_cannot_be_columns_is_refused_by_name(genotypes):
    X = chunked(genotypes)
    for wrong, error, words in [
        (X[:, X[0] > 0], ValueError, "chunks have known sizes"),
        (X[:, :0], ValueError, "empty"),
        (X[0], ValueError, "matrix"),
        (genotypes, TypeError, "got ndarray"),
        ([], TypeError, "got nothing"),
        (X.astype(complex), TypeError, "real numbers"),
        ([lambda: genotypes, lambda: genotypes[1:]], ValueError, "number of rows, got 29 and 30"),
        ([lambda: 3], TypeError, "part 0 of X: a source of columns must be"),
    ]:
        with pytest.raises(error, match=words):
            columns(wrong)
    with pytest.raises(ValueError, match="persist must be"):
        columns(X, persist=1.5)
    holes = da.from_array(np.where(np.arange(COLUMNS) == 100, np.nan, genotypes), chunks=(ROWS, 70))
    with pytest.raises(ValueError, match="block 1 of the columns: column 30 of the block holds NaN"):
        columns(holes).T @ np.ones(ROWS)
    lying = da.map_blocks(lambda: genotypes, chunks=((ROWS,), (70, 130)), dtype=np.int8)
    with pytest.raises(ValueError, match=r"block . of the columns: it has the shape \(30, 200\), where X says"):
        columns(lying).T @ np.ones(ROWS)


def counting(X):
    """The names of all that the blocks are asked for, as a list that grows."""
    pass_on, calls = X.source.blocks.results, []

    def count(name, *call, **more):
        calls.append(name)
        return pass_on(name, *call, **more)

    X.source.blocks.results = count
    return calls


def test_a_path_takes_few_passes_and_is_the_one_in_memory(genotypes):
    dense, X = genotypes.astype(float), columns(chunked(genotypes))
    calls = counting(X)
    y = dense[:, :5].sum(axis=1)
    found = l12_path(X, y, tol=1e-6, alphas=30, eps=0.02, penalty=L12(l2_weight=0.0))
    assert all(result.converged for result in found.results)
    assert X.source.blocks.passes <= 25
    assert X.reads <= 30
    assert len(calls) <= 30  # each is a way to the workers and back
    near = l12_path(dense, y, alphas=found.alphas, tol=1e-6, penalty=L12(l2_weight=0.0))
    np.testing.assert_allclose(
        *(x.toarray() if scipy.sparse.issparse(x) else x for x in (found.x, near.x)), atol=1e-4
    )


def test_a_path_that_loses_its_data_keeps_what_it_solved():
    wide = np.random.default_rng(4).integers(0, 3, (ROWS, 20_000)).astype(np.int8)
    X = columns(da.from_array(wide, chunks=(ROWS, 5000)))
    pass_on, calls = X.source.products, counting(X)

    def lose(vectors, least):
        if calls.count("products") == 4:
            raise DataUnavailable("gone")
        return pass_on(vectors, least)

    object.__setattr__(X.source, "products", lose)
    with pytest.raises(DataUnavailable, match="gone") as caught:
        l12_path(X, np.random.default_rng(5).standard_normal(ROWS), eps=0.02, penalty=L12(l2_weight=0.0))
    assert 0 < len(caught.value.results) < 100
    assert caught.value.result.status is Status.DATA_LOST
    assert all(result.converged for result in caught.value.results)


def test_a_file_that_is_not_kept_is_opened_once_and_never_travels(genotypes):
    opened = []

    def open_file():
        opened.append(1)
        return genotypes

    with dask.config.set(SMALL_BLOCKS):
        X = columns(open_file, persist=False)
    for _ in range(2):
        X.source.products(np.ones((ROWS, 1)), 0.0)
    assert len(opened) == 2  # to see its shape, and to read it
    (block,) = dask.compute(X.source.blocks.blocks[1])
    assert len(cloudpickle.dumps(replace(block.source, open=int))) < 1000


@pytest.mark.parametrize("model", [L12Regressor(0.3), L12Classifier(0.1)])
def test_estimators_take_columns_on_workers(genotypes, model):
    dense = genotypes[:, :60].astype(float)
    y = dense[:, :4].sum(axis=1) > 4
    far = clone(model).set_params(tol=1e-9).fit(columns(da.from_array(genotypes[:, :60], chunks=(ROWS, 25))), y)
    near = clone(model).set_params(tol=1e-9).fit(dense, y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-7)
    np.testing.assert_allclose(far.intercept_, near.intercept_, atol=1e-6)


def test_columns_can_be_scaled(genotypes):
    X = columns(chunked(genotypes), scale=True)
    scaled = genotypes / genotypes.std(axis=0)
    np.testing.assert_allclose(X.T @ np.arange(ROWS), scaled.T @ np.arange(ROWS), rtol=1e-12)
    np.testing.assert_allclose(X.select_columns(np.array([3, 100])), scaled[:, [3, 100]], rtol=1e-12)
    means, vectors = X.moments()[0], np.random.default_rng(3).standard_normal((ROWS, 2))
    products = (scaled - means).T @ vectors
    least = np.median(np.abs(products).max(axis=1))
    where, found = CenteredColumns(X, means, constant=1.0).products(vectors, least)
    assert np.isin(np.flatnonzero(np.abs(products).max(axis=1) >= least), where).all()
    np.testing.assert_allclose(found[:-1], products[where[:-1]], rtol=1e-9)
    assert where[-1] == COLUMNS
    assert where.size <= COLUMNS


def test_chunks_of_columns_given_as_rows_are_warned_of(genotypes):
    X = da.from_array(genotypes[:, :80].astype(float), chunks=(ROWS, 40))
    with pytest.warns(UserWarning, match="2 chunks of columns and one of rows"):
        rows_loss(SquaredLoss, X, np.ones(ROWS), gram=False)
