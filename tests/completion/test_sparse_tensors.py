"""Ratings in sparse tensors, where they are: read, multiplied and completed as SciPy's are on the processors."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from tests.conftest import BACKENDS, ON_GPU

from ell12 import L12Imputer, Observed, SpectralL12, complete_matrix
from ell12.completion import gpu_entries as segments_module
from ell12.completion import low_rank
from ell12.completion.gpu_entries import Segments
from ell12.completion.hidden_entries import noise_alpha
from ell12.penalties.spectral import spectral_norm

# PyTorch calls them a beta, and says what it does not check.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
HALF = SpectralL12(l2_weight=0.5)


@pytest.fixture(params=[pytest.param(n, marks=[pytest.mark.gpu] * (n in ON_GPU)) for n in ("torch", *ON_GPU)])
def library(request, monkeypatch):
    """A library with sparse matrices; without a GPU, what would run there runs on the processors."""
    if request.param == "torch":
        for module in (segments_module, low_rank):
            monkeypatch.setattr(module, "in_memory", lambda x: False)
    yield from BACKENDS[request.param]()


def ratings(shape=(40, 25), share=0.15, seed=0):
    """Entries of a matrix of rank 2 with noise, the first an explicit zero; a row and a column without any."""
    random = np.random.default_rng(seed)
    known = random.random(shape) < share
    known[3] = known[:, 5] = False
    known[0, 0] = True
    rows, columns = np.nonzero(known)
    X = random.standard_normal((shape[0], 2)) @ random.standard_normal((2, shape[1]))
    values = X[known] + 0.1 * random.standard_normal(rows.size)
    values[0] = 0.0
    return Observed(rows, columns, values, shape)


def sparse_on(library, observed, kind="coo", order=None):
    """A sparse matrix of a library with these entries, in this order."""
    order = slice(None) if order is None else order
    rows, columns, values = (
        library.make_array(part[order]) for part in (observed.rows, observed.columns, observed.values)
    )
    if library.name == "cupy":
        import cupyx.scipy.sparse

        X = cupyx.scipy.sparse.coo_matrix((values, (rows, columns)), shape=observed.shape)
        return X.asformat(kind)
    import torch

    X = torch.sparse_coo_tensor(torch.stack([rows, columns]), values, observed.shape)
    return X if kind == "coo" else X.to_sparse(layout=getattr(torch, f"sparse_{kind}"))


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_every_stored_entry_is_known_in_the_order_of_numpy(library, kind):
    expected = ratings()
    order = np.random.default_rng(1).permutation(expected.n_observed) if kind == "coo" else None
    found = Observed.of(sparse_on(library, expected, kind, order))
    assert type(found.values) is type(library.make_array(expected.values))
    for part in ("rows", "columns", "values", "row_starts", "flat"):
        np.testing.assert_array_equal(library.to_numpy(getattr(found, part)), getattr(expected, part))
    for ours, theirs in zip(found.by_column, expected.by_column, strict=True):
        np.testing.assert_array_equal(library.to_numpy(ours), theirs)
    direct = Observed(found.rows, found.columns, found.values, found.shape)
    np.testing.assert_array_equal(library.to_numpy(direct.rows), expected.rows)
    kept = np.arange(expected.n_observed) % 2 == 0
    np.testing.assert_array_equal(library.to_numpy(found.select(kept).values), expected.values[kept])


def test_tensors_that_are_no_matrices_of_numbers_are_refused(library):
    once = Observed([0, 1], [1, 0], [1.0, 2.0], (2, 2))
    with pytest.raises(ValueError, match="row 0, column 1 is given more than once"):
        Observed.of(sparse_on(library, once, order=np.array([0, 1, 0])))
    with pytest.raises(ValueError, match="stores NaN"):
        Observed.of(sparse_on(library, replace(once, values=np.array([1.0, np.nan]))))
    torch = pytest.importorskip("torch")
    X = torch.eye(4).to_sparse()
    with pytest.raises(TypeError, match="requires gradients"):
        Observed.of(X.requires_grad_())
    with pytest.raises(TypeError, match=r"X is a sparse tensor with 1 dense dimensions: give a matrix"):
        Observed.of(torch.eye(4).to_sparse(1))
    with pytest.raises(TypeError, match=r"layout torch\.sparse_bsr"):
        Observed.of(torch.eye(4).to_sparse_bsr((2, 2)))
    with pytest.raises(ValueError, match="must be a matrix"):
        Observed.of(torch.ones(3).to_sparse())


@pytest.mark.parametrize("chunk", [2**25, 7])
def test_products_and_equations_of_rows_of_all_lengths_are_those_of_scipy(library, monkeypatch, chunk):
    monkeypatch.setattr(segments_module, "AT_ONCE", chunk)
    random = np.random.default_rng(0)
    lengths = np.array([0, 1, 2, 9, 40, 0, 13, 100, 3])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    columns = np.concatenate([np.sort(random.permutation(120)[:length]) for length in lengths])
    values, H, prior = (random.standard_normal(size) for size in (columns.size, (120, 3), (lengths.size, 3)))
    here = Segments(*map(library.make_array, (starts, columns)), 120)
    plain = scipy.sparse.csr_array((values, columns, starts), shape=(lengths.size, 120))
    for B in (H, H[:, 0]):
        found = here.times(library.make_array(values), library.make_array(B))
        np.testing.assert_allclose(library.to_numpy(found), plain @ B, rtol=1e-12, atol=1e-12)
    ridge = np.array([0.7, 1.0, 2.0])
    rows = [(H[columns[a:b]], values[a:b]) for a, b in pairwise(starts)]
    expected = [
        np.linalg.solve(B.T @ B + np.diag(ridge), B.T @ o + p) for (B, o), p in zip(rows, prior, strict=True)
    ]
    solved = here.solve(*map(library.make_array, (values, H, ridge, prior)))
    np.testing.assert_allclose(library.to_numpy(solved), expected, rtol=1e-9, atol=1e-12)


def test_a_matrix_of_segments_has_the_norm_of_the_dense_one(library):
    expected = ratings((300, 200), 0.05)
    found = Observed.of(sparse_on(library, expected))
    dense = expected.sparse().toarray()
    assert spectral_norm(found.sparse()) == pytest.approx(np.linalg.norm(dense, 2), rel=1e-4)
    few = ratings()
    small = Observed.of(sparse_on(library, few)).sparse()
    assert spectral_norm(small) == pytest.approx(np.linalg.norm(few.sparse().toarray(), 2), rel=1e-12)
    np.testing.assert_array_equal(library.to_numpy(small.T.T.values[0]), library.to_numpy(small.values[0]))


@pytest.mark.parametrize(
    "options",
    [
        {"max_rank": 3, "center": None, "penalty": SpectralL12(l2_weight=1.0)},
        {"max_rank": 1, "center": "biases", "penalty": HALF},
        {"max_rank": None, "center": None, "penalty": SpectralL12(l2_weight=1.0)},
    ],
)
def test_completion_is_that_of_numpy_to_rounding(library, options):
    expected = ratings()
    options |= {"tol": 1e-4, "max_iter": 100, "scale": None}
    near = complete_matrix(expected, 2.0, **options)
    far = complete_matrix(sparse_on(library, expected), 2.0, **options)
    assert type(far.x.U) is type(library.make_array(expected.values))
    assert far.status is near.status
    assert far.x.rank == near.x.rank
    assert far.objective == pytest.approx(near.objective, rel=1e-10)
    assert far.stationarity == pytest.approx(near.stationarity, rel=1e-3, abs=1e-6)
    np.testing.assert_allclose(library.to_numpy(far.to_array()), near.to_array(), atol=1e-5)


def test_tensors_in_memory_are_read_by_the_compiled_loops(monkeypatch):
    """So that they take no longer than NumPy arrays."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(low_rank, "COMPILED_FROM", 1)
    monkeypatch.setattr(Segments, "_sums", None)
    expected = ratings()
    rows, columns, values = (torch.as_tensor(getattr(expected, part)) for part in ("rows", "columns", "values"))
    options = {"max_rank": 2, "center": "biases", "penalty": HALF, "scale": None, "max_iter": 10}
    near, far = (
        complete_matrix(X, 2.0, **options) for X in (expected, Observed(rows, columns, values, expected.shape))
    )
    assert type(far.x.U) is torch.Tensor
    np.testing.assert_allclose(far.to_array(), near.to_array(), rtol=1e-9, atol=1e-9)


def test_the_choices_on_hidden_entries_are_those_of_numpy(library):
    expected = ratings()
    found = Observed.of(sparse_on(library, expected))
    assert noise_alpha(found) == pytest.approx(noise_alpha(expected), rel=1e-8)
    for weight in (0.5, 1.0):
        options = {"max_rank": 2, "penalty": SpectralL12(l2_weight=weight), "center": "biases", "max_iter": 10}
        near, far = (complete_matrix(X, **options) for X in (expected, found))
        assert far.alpha == pytest.approx(near.alpha)
        ours, theirs = (completion.predict([3, 0], [1, 5]) for completion in (far, near))
        np.testing.assert_allclose(library.to_numpy(ours), theirs, rtol=1e-6)


def test_the_imputer_completes_sparse_tensors_on_the_processors(library):
    observed = ratings()
    X = sparse_on(library, observed, "csr")
    model = L12Imputer(1.0, random_state=0).fit(X)
    expected = L12Imputer(1.0, random_state=0).fit(observed.sparse()).transform(observed.sparse())
    np.testing.assert_array_equal(model.transform(X), expected)
    with pytest.raises(TypeError, match="say which"):
        model.predict(X)
