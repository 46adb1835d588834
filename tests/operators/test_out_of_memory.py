"""Columns read a few at a time: the same numbers as a matrix in memory."""

import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from ell12 import L12, Columns, LogisticLoss, SquaredLoss, minimize
from ell12.operators.centering import CenteredColumns


@pytest.fixture
def genotypes():
    return np.asfortranarray(np.random.default_rng(0).integers(0, 3, (40, 300)).astype(np.int8))


@pytest.fixture
def small_pieces(monkeypatch):
    """Blocks of 21 columns and pieces of 7, so that small data come in many."""
    monkeypatch.setattr("ell12.operators.column_sources.BLOCK", 40 * 21)
    monkeypatch.setattr("ell12.operators.column_sources.PIECE", 40 * 7)


class Own:
    """A source as a user may write it: a NumPy array, every call noted."""

    dtype = np.float64

    def __init__(self, matrix):
        self.matrix, self.shape, self.calls = matrix, matrix.shape, []

    def block(self, first, last):
        self.calls.append((first, last, threading.get_ident()))
        return self.matrix[:, first:last]

    def take(self, columns):
        self.calls.append((columns, threading.get_ident()))
        return self.matrix[:, columns]


def sources(genotypes, folder):
    """The same matrix in all its forms."""
    np.save(folder / "fortran.npy", genotypes)
    np.save(folder / "rows.npy", np.ascontiguousarray(genotypes))
    sparse, columns = scipy.sparse.csr_array(genotypes), scipy.sparse.csc_array(genotypes)
    halves = (np.repeat(columns.data / 2, 2), np.repeat(columns.indices, 2), 2 * columns.indptr)
    Columns.save(sparse, folder / "sparse")
    return [
        genotypes,
        folder / "fortran.npy",
        str(folder / "rows.npy"),
        sparse,
        scipy.sparse.csc_array(halves, shape=genotypes.shape),
        folder / "sparse",
        Own(genotypes.astype(float)),
        genotypes.astype(float),
    ]


@pytest.mark.usefixtures("small_pieces")
def test_products_and_moments_are_those_of_the_matrix_whatever_the_source(genotypes, tmp_path):
    random = np.random.default_rng(1)
    dense, few = genotypes.astype(float), np.zeros(300)
    few[[3, 200]] = 1.5
    scales, weight = random.uniform(1, 2, 300), random.integers(0, 3, 40).astype(float)
    means = weight @ dense / weight.sum()
    for source in sources(genotypes, tmp_path):
        for X, matrix in (Columns(source), dense), (Columns(source, scale=scales), dense / scales):
            for x in (few, random.standard_normal(300), random.standard_normal((300, 4))):
                np.testing.assert_allclose(X @ x, matrix @ x, rtol=1e-12, atol=1e-12)
            for y in (random.standard_normal(40), random.standard_normal((40, 4))):
                np.testing.assert_allclose(X.T @ y, matrix.T @ y, rtol=1e-12, atol=1e-12)
            for columns in ([2, 7], [2, 7, 250], [7, 2]):
                found = X.select_columns(columns)
                found = found.toarray() if scipy.sparse.issparse(found) else found
                np.testing.assert_allclose(found, matrix[:, columns], rtol=1e-14)
            np.testing.assert_allclose(X[[5, 1]] @ few, matrix[[5, 1]] @ few)
        found, squares = Columns(source).moments(weight)
        np.testing.assert_allclose(found, means, rtol=1e-12)
        np.testing.assert_allclose(squares, weight @ (dense - means) ** 2, rtol=1e-12)
        np.testing.assert_allclose(Columns(source, scale=True).scales, dense.std(axis=0), rtol=1e-12)


def test_rows_of_scaled_columns_keep_their_scales_and_new_rows_can_have_them(genotypes):
    X = Columns(genotypes[:30], scale=True)
    deviations = genotypes[:30].std(axis=0)
    x = np.ones(300)
    np.testing.assert_allclose(X[:10] @ x, genotypes[:10] @ (x / deviations))
    np.testing.assert_allclose(Columns(genotypes[30:], scale=X.scales) @ x, genotypes[30:] @ (x / deviations))


def test_a_constant_column_has_its_mean_without_rounding_and_the_scale_1(small_pieces):
    matrix = np.random.default_rng(0).standard_normal((40, 30))
    matrix[:, 4] = 0.1
    matrix[:, 5] = np.where(np.arange(40) < 20, 0.1, 7.0)  # constant where there is weight
    weight = np.where(np.arange(40) < 20, 0.3, 0.0)
    for source in (matrix, scipy.sparse.csc_array(matrix)):
        means, squares = Columns(source).moments()
        assert (means[4], squares[4]) == (0.1, 0.0)
        assert Columns(source, scale=True).scales[4] == 1.0
    means, squares = Columns(matrix).moments(weight)
    assert (means[5], squares[5]) == (0.1, 0.0)


@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss])
@pytest.mark.parametrize(("l2_weight", "share"), [(0.0, 0.2), (0.5, 0.2), (1.0, 0.05)])
def test_a_fit_reads_the_columns_few_times_and_finds_what_it_finds_in_memory(genotypes, kind, l2_weight, share):
    b = np.sign(genotypes[:, :5].sum(axis=1) - 4.9)
    means = genotypes.mean(axis=0)
    X = Columns(genotypes)
    there, here = kind(CenteredColumns(X, means), b), kind(genotypes - means, b)
    strength = share * np.abs(here.gradient(here.point(np.zeros(300)))).max()
    penalty = L12(strength, l2_weight=l2_weight)
    found = minimize(there, penalty, tol=1e-8)
    assert found.converged
    assert X.reads <= 12
    best = minimize(here, penalty, tol=1e-8)
    assert found.objective <= best.objective + 1e-2 * abs(best.objective)
    if l2_weight == 0:
        np.testing.assert_allclose(found.x, best.x, atol=1e-9)


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_never_are_all_columns_gathered_however_many_violate(l2_weight, monkeypatch):
    """At a hundredth of the largest strength nearly all do; here sets of more than 50 go to Newton's method."""
    monkeypatch.setattr("ell12.solvers.working_set.LARGEST", 50)
    random = np.random.default_rng(0)
    matrix = random.standard_normal((50, 3000))
    b = matrix[:, :5].sum(axis=1) + random.standard_normal(50)
    source = Own(matrix)
    penalty = L12(0.01 * np.abs(matrix.T @ b).max(), l2_weight)
    found = minimize(SquaredLoss(Columns(source), b), penalty, tol=1e-6)
    assert found.converged
    assert max(call[0].size for call in source.calls if len(call) == 2) <= 500
    assert sum(len(call) == 3 for call in source.calls) <= 25  # full gradients, a block each


@pytest.mark.usefixtures("small_pieces")
def test_only_large_products_are_returned(genotypes):
    X = Columns(genotypes, scale=True)
    vectors = np.random.default_rng(4).standard_normal((genotypes.shape[0], 3))
    products = (genotypes / X.scales).T @ vectors
    size, n = np.abs(products).max(axis=1), genotypes.shape[1]
    for least in (np.median(size), np.where(np.arange(n) % 2, 0.0, np.inf), 0.0):
        where, found = X.products(vectors, least)
        np.testing.assert_array_equal(where, np.flatnonzero(size >= least))
        np.testing.assert_allclose(found, products[where], rtol=1e-12, atol=1e-12)


def test_the_source_is_asked_by_one_thread_and_only_for_the_columns_that_are_needed(small_pieces):
    source = Own(np.random.default_rng(0).standard_normal((40, 300)))
    X = Columns(source)
    X.T @ np.ones(40)
    assert {call[-1] for call in source.calls} == {threading.get_ident()}
    source.calls.clear()
    x = np.zeros(300)
    x[[7, 90]] = 1.0
    X @ x
    assert [call[0].tolist() for call in source.calls] == [[7, 90]]


def test_the_same_bits_whatever_the_number_of_processors(monkeypatch):
    matrix = np.random.default_rng(0).standard_normal((301, 997))
    found = []
    for count in (1, 7):
        monkeypatch.setattr("ell12.operators.column_sources.processors", lambda count=count: count)
        found.append(Columns(matrix).T @ np.linspace(0, 1, 301))
    np.testing.assert_array_equal(*found)


def test_a_fit_takes_no_more_memory_than_a_few_columns(tmp_path):
    file = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.int8, (200, 20_000), fortran_order=True)
    file[:] = np.random.default_rng(0).integers(0, 3, (200, 20_000))
    b = file[:, :5].sum(axis=1) - 5.0
    X = Columns(tmp_path / "X.npy")
    loss = SquaredLoss(CenteredColumns(X, X.moments()[0]), b)
    minimize(loss, L12(20.0, 0.5))
    tracemalloc.start()
    result = minimize(loss, L12(20.0, 0.5))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.converged
    assert peak < 0.2 * 8 * 200 * 20_000  # a fifth of the matrix in double precision


@pytest.mark.usefixtures("small_pieces")
def test_what_is_no_number_is_named_by_its_column(genotypes):
    matrix = genotypes.astype(float)
    matrix[3, 123] = np.nan
    for source in (matrix, scipy.sparse.csc_array(matrix)):
        for ask in (
            lambda X: X.T @ np.ones(40),
            lambda X: X @ np.ones(300),
            lambda X: X.moments(),
            lambda X: X.select_columns([5, 123]),
        ):
            with pytest.raises(ValueError, match="column 123 of X holds NaN"):
                ask(Columns(source))


class Lying(Own):
    shape = property(lambda self: (40, 301), lambda self, _: None)


class Failing(Own):
    def block(self, first, last):
        if last > 150:
            raise OSError("the disk is gone")
        return super().block(first, last)


WRONG = {
    r"block\(first, last\)": lambda X, _: Columns(3),
    r"ell12\.distributed\.columns": lambda X, _: Columns(type("Graph", (), {"__dask_graph__": None})()),
    "source of columns is empty": lambda X, _: Columns(X[:, :0]),
    "real numbers": lambda X, _: Columns(X.astype(complex)),
    r"scale must be True, False or an array of shape \(300,\)": lambda X, _: Columns(X, scale=np.ones(3)),
    "finite numbers > 0": lambda X, _: Columns(X, scale=np.zeros(300)),
    r"lacks data\.npy": lambda _, folder: Columns(folder),
    r"a block of shape \(40, \d+\), not \(40, \d+\)": lambda X, _: Columns(Lying(X * 1.0)).T @ np.ones(40),
    r"columns 1\d\d to 1\d\d of X could not be read": lambda X, _: Columns(Failing(X * 1.0)).T @ np.ones(40),
}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("words", WRONG)
def test_wrong_sources_and_scales_are_refused(words, genotypes, tmp_path):
    with pytest.raises((ValueError, TypeError, OSError), match=words):
        WRONG[words](genotypes, tmp_path)


def test_a_file_in_any_order_is_saved_in_fortran_order_and_never_overwritten(genotypes, tmp_path):
    np.save(tmp_path / "rows.npy", np.ascontiguousarray(genotypes))
    Columns.save(tmp_path / "rows.npy", tmp_path / "columns.npy")
    file = np.load(tmp_path / "columns.npy", mmap_mode="r")
    assert file.flags.f_contiguous
    np.testing.assert_array_equal(file, genotypes)
    with pytest.raises(FileExistsError, match=r"columns\.npy exists"):
        Columns.save(genotypes, tmp_path / "columns.npy")
    with pytest.raises(OSError, match="No such file"):
        Columns.save(genotypes, tmp_path / "nowhere" / "columns.npy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["columns.npy", "rows.npy"]


def test_the_source_of_the_gallery_reads_two_bits_an_entry_and_fills_what_is_missing(tmp_path):
    """By the definition: 00, 10, 11 are two, one and no copies, 01 is missing; the first in the low bits."""
    script = Path(__file__).parents[2] / "examples" / "plot_16_genotypes.py"
    names = {"np": np}
    exec(script.read_text().split("# %%")[1], names)
    (tmp_path / "a.bed").write_bytes(bytes([0x6C, 0x1B, 1, 0b10_01_00_11, 0b11, 0b00_00_00_00, 0b01]))
    X = Columns(names["Bed"](tmp_path / "a.bed", 5))
    expected = np.array([[0, 2, 0.75, 1, 0], [2, 2, 2, 2, 2]]).T
    np.testing.assert_array_equal(X.select_columns([0, 1]), expected)
    np.testing.assert_allclose(X.moments()[1], [5 * 0.55, 0])
    (tmp_path / "b.bed").write_bytes(bytes(10))
    with pytest.raises(ValueError, match=r"no \.bed file"):
        names["Bed"](tmp_path / "b.bed", 5)
