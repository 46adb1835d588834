"""Losses over dask arrays on the scheduler of threads, against the in-memory losses."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from dask.callbacks import Callback
from dask.utils import key_split

from ell12 import FISTA, L12, HuberLoss, L12RegressorCV, LogisticLoss, NonmonotoneAPG, SquaredLoss, minimize
from ell12.distributed import rows_loss
from ell12.losses import QuadraticLoss, RowsLoss
from ell12.losses.block_of_rows import BlockKind, evaluate, make_block
from ell12.solvers import SupportNewton

ROWS, COLUMNS, CHUNKS = 240, 6, (70, 30, 90, 50)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    A = random.standard_normal((ROWS, COLUMNS))
    b = A @ [2.0, -1.0, 0.0, 0.0, 0.5, 0.0] + 0.1 * random.standard_normal(ROWS)
    return A, b, random.random(ROWS)


def chunked(A):
    return da.from_array(A, chunks=(CHUNKS, *A.shape[1:]))


def pair(kind, data, weighted=False, **options):
    """The loss in memory and the same over chunks."""
    A, b, weight = data
    b = np.sign(b) if kind is LogisticLoss else b
    options |= {"scale": 1 / ROWS, "sample_weight": weight if weighted else None}
    near = {key: value for key, value in options.items() if key not in ("gram", "persist", "intercept")}
    inside = np.column_stack([A, np.ones(ROWS)]) if options.get("intercept") else A
    return kind(inside, b, **near), rows_loss(kind, chunked(A), chunked(b), **options)


class Tasks(Callback):
    """Counts the tasks by name, and keeps the sizes of what they return."""

    def __init__(self):
        self.counts, self.sizes = {}, {}
        super().__init__(posttask=self.note)

    def note(self, key, result, *_):
        name = key_split(key)
        self.counts[name] = self.counts.get(name, 0) + 1
        numbers = [v for v in getattr(result, "__dict__", {"": result}).values() if v is not None]
        self.sizes[name] = max([self.sizes.get(name, 0), *(np.size(v) for v in numbers)])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (SquaredLoss, {"gram": False}),
        (SquaredLoss, {"gram": True}),
        (LogisticLoss, {}),
        (LogisticLoss, {"persist": False}),
        (HuberLoss, {"delta": 0.2}),
    ],
)
def test_a_sum_over_blocks_is_the_loss_in_memory(data, kind, options, weighted, intercept):
    near, far = pair(kind, data, weighted, intercept=intercept, **options)
    random = np.random.default_rng(1)
    base, other = (random.standard_normal(COLUMNS + intercept) for _ in range(2))
    for x in (far.start(), base):
        assert far.value(far.point(x)) == pytest.approx(near.value(near.point(x)), rel=1e-12)
        np.testing.assert_allclose(far.gradient(far.point(x)), near.gradient(near.point(x)), rtol=0, atol=1e-13)
    divergences = [loss.divergence(loss.point(other), loss.point(base)) for loss in (near, far)]
    assert divergences[1] == pytest.approx(divergences[0], rel=1e-9)
    inside = near.A
    weight = 1 if near.sample_weight is None else near.sample_weight[:, None]
    exact = kind.second_bound * np.linalg.norm(inside.T @ (weight * inside), 2) / ROWS
    assert exact * (1 - 1e-12) <= far.lipschitz() <= 1.02 * exact


@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss, HuberLoss])
def test_an_iteration_of_nmapg_is_one_pass(data, kind):
    near, far = pair(kind, data, gram=False) if kind is SquaredLoss else pair(kind, data)
    penalty = L12(0.05, 0.5)
    with Tasks() as tasks:
        result = minimize(far, penalty, tol=1e-6)
    # One pass for the columns' products, one for the start, and one more for each plain step.
    assert result.converged
    plain_steps = far.passes - result.n_iter - 2
    assert 0 <= plain_steps <= 0.25 * result.n_iter
    blocks = len(CHUNKS)
    assert tasks.counts["ell12-gradient"] == blocks * (far.passes - 1)
    assert tasks.counts["ell12-moments"] == blocks
    assert tasks.counts["ell12-sum"] == far.passes
    assert set(tasks.counts) == {"ell12-gradient", "ell12-moments", "ell12-sum"}  # no block is made again
    assert 0 < tasks.sizes["ell12-gradient"] <= 2 * (COLUMNS + 1)
    assert tasks.sizes["ell12-sum"] <= COLUMNS**2
    np.testing.assert_allclose(result.x, minimize(near, penalty, solver=NonmonotoneAPG(), tol=1e-8).x, atol=1e-5)


def test_no_pass_is_made_where_the_answer_is_known(data):
    far = pair(SquaredLoss, data, gram=False)[1].for_run()
    x, y = far.point(np.ones(COLUMNS)), far.point(np.arange(6.0))
    far.value(x), far.gradient(x), far.gradient(y)
    assert far.passes == 2
    far.value(far.point(np.ones(COLUMNS)))  # the same place again
    middle = far.gradient(x + 0.25 * (y - x))  # the gradient is affine
    assert far.passes == 2
    fresh = far.gradient(far.point(np.ones(6) + 0.25 * (np.arange(6) - 1)))
    assert far.passes == 3
    np.testing.assert_allclose(middle, fresh, rtol=1e-12)


def test_a_chunk_that_y_is_made_of_is_made_once(data):
    made = []

    def make(block_info=None):
        made.append(block_info[None]["chunk-location"][0])
        return np.ones((50, COLUMNS))

    X = da.map_blocks(make, chunks=((50, 50), COLUMNS), dtype=float, meta=np.empty((0, 0)))
    loss = rows_loss(SquaredLoss, X, X[:, 0] + 1, gram=False, persist=False)
    for passes in (1, 2):  # what is not kept is made in every pass
        assert loss.value(loss.point(np.full(COLUMNS, 0.0))) == pytest.approx(0.5 * 100 * 4)
        assert sorted(made) == sorted(passes * [0, 1])


def test_a_large_dense_block_is_cut_into_slices_of_the_same_sum():
    random = np.random.default_rng(0)
    A, b = random.standard_normal((50_000, 8)), random.standard_normal(50_000)
    block = make_block(BlockKind(HuberLoss, {"delta": 0.5}, 8, intercept=False), 0, A, b, None)
    assert len(list(block.losses())) == 7  # of 2**16 entries at most
    x = random.standard_normal(8)
    found, whole = evaluate(block, x[None]), HuberLoss(A, b, delta=0.5)
    assert found[0, 0] == pytest.approx(whole.value(whole.point(x)), rel=1e-12)
    np.testing.assert_allclose(found[0, 1:], whole.gradient(whole.point(x)), rtol=1e-10)


@pytest.mark.parametrize("solver", [FISTA(), NonmonotoneAPG("backtracking"), SupportNewton()])
def test_solvers_reach_the_solution_in_memory(data, solver):
    near, far = pair(SquaredLoss, data, gram=isinstance(solver, SupportNewton))
    penalty = L12(0.05, 0.5)
    result = minimize(far, penalty, solver=solver, tol=1e-9)
    np.testing.assert_allclose(result.x, minimize(near, penalty, tol=1e-10).x, atol=1e-9)


def test_restricting_holds_the_other_entries_at_zero(data):
    near, far = pair(SquaredLoss, data, gram=True)
    columns, x = np.array([0, 3, 4]), np.array([1.0, -2.0, 0.5])
    few, many = far.restrict(columns), near.restrict(columns)
    np.testing.assert_allclose(few.gradient(few.point(x)), many.gradient(many.point(x)), atol=1e-13)
    assert few.lipschitz() == pytest.approx(many.lipschitz(), rel=0.02)


def test_many_columns_are_bounded_by_lanczos():
    A = np.random.default_rng(0).standard_normal((90, 1001))
    loss = rows_loss(SquaredLoss, da.from_array(A, chunks=(50, 1001)), np.ones(90))
    assert isinstance(loss, RowsLoss)
    exact = np.linalg.norm(A, 2) ** 2
    assert exact <= loss.lipschitz() <= 1.1 * exact
    assert 2 < loss.passes < 20


@pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array])
@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss])
def test_sparse_chunks(data, form, kind):
    A, b, weight = data
    A = np.where(A > 0.5, A, 0)
    b = np.sign(b) if kind is LogisticLoss else b
    X = chunked(A).map_blocks(form)
    near = kind(scipy.sparse.csr_array(A), b, sample_weight=weight)
    far = rows_loss(kind, X, b, sample_weight=weight)
    x = np.linspace(-1, 1, COLUMNS)
    assert far.value(far.point(x)) == pytest.approx(near.value(near.point(x)), rel=1e-12)
    np.testing.assert_allclose(far.gradient(far.point(x)), near.gradient(near.point(x)), rtol=1e-11)


def test_integers_columns_in_chunks_and_a_frame_of_unknown_length(data):
    A, b, _ = data
    x = np.ones(COLUMNS)
    whole = np.round(10 * A).astype(int)
    expected = 0.5 * np.sum((whole @ x - b) ** 2)
    cut = rows_loss(SquaredLoss, da.from_array(whole, chunks=(70, 4)), b, gram=False)
    assert cut.value(cut.point(x)) == pytest.approx(expected)
    frame = dd.from_pandas(pd.DataFrame(whole).assign(y=b), npartitions=3)
    loss = rows_loss(SquaredLoss, frame.drop(columns="y"), frame["y"], gram=False)
    assert loss.value(loss.point(x)) == pytest.approx(expected)


def test_products_are_accurate_where_means_are_large(data):
    A, b, _ = data
    centred = A - A.mean(axis=0)
    loss = rows_loss(SquaredLoss, chunked(A), b, gram=True)
    assert isinstance(loss, QuadraticLoss)
    from ell12.distributed.estimation import regression_losses

    shifted, means, level = regression_losses(chunked(A + 1e6), chunked(b + 1e6))[0]
    np.testing.assert_allclose(shifted.G, centred.T @ centred / ROWS, rtol=0, atol=1e-9)
    np.testing.assert_allclose(means, A.mean(axis=0) + 1e6, rtol=1e-12)
    assert level == pytest.approx(b.mean() + 1e6, rel=1e-12)


def spoilt(A, block, make):
    """The chunks of A, one of them made otherwise."""

    def spoil(chunk, block_info=None):
        return make(chunk) if block_info[0]["chunk-location"][0] == block else chunk

    return chunked(A).map_blocks(spoil, dtype=A.dtype, meta=np.empty((0, 0)))


@pytest.mark.parametrize("gram", [True, False])
def test_an_error_names_the_block(data, gram):
    A, b, weight = data
    X, row = chunked(A), np.arange(ROWS)

    def value(X, y, weight=None):
        loss = rows_loss(SquaredLoss, X, y, sample_weight=weight, gram=gram)
        return loss.value(loss.point(loss.start()))

    for arguments, message in (
        ((spoilt(A, 2, lambda chunk: np.where(chunk > 1, np.nan, chunk)), b), "block 2: X holds NaN"),
        ((spoilt(A, 1, lambda chunk: chunk[:, :5]), b), "block 1: it has 5 columns, where X has 6"),
        ((spoilt(A, 3, lambda chunk: chunk[:-1]), b), "block 3: it has 49 rows of X and 50 of y"),
        ((X, np.where(row == 3, np.nan, b)), "block 0: y holds NaN"),
        ((X, b, np.where(row == 80, -1, weight)), "block 1: sample_weight must"),
    ):
        with pytest.raises(ValueError, match=message):
            value(*arguments)


def test_arguments_are_checked_at_once(data):
    A, b, _ = data
    X = chunked(A)
    for arguments, options, message in (
        ((SquaredLoss, X, b[:-1]), {}, "y must have 240 rows"),
        ((SquaredLoss, X, A), {}, "y must be a vector"),
        ((SquaredLoss, X[:, 0], b), {}, "X must have two dimensions"),
        ((SquaredLoss, X, b), {"gram": "yes"}, "gram must be"),
        ((LogisticLoss, X, b), {"gram": True}, "gram=True needs a squared loss"),
        ((LogisticLoss, X, b), {"persist": "no"}, "persist must be"),
        ((SquaredLoss, X, b), {"persist": "no"}, "persist must be"),
        ((HuberLoss, X, b), {"delta": -1.0}, "delta must be"),
        ((SquaredLoss, X, b), {"scale": 0.0}, "scale must be"),
    ):
        with pytest.raises(ValueError, match=message):
            rows_loss(*arguments, **options)
    loss = rows_loss(LogisticLoss, X, np.where(np.arange(ROWS) == 80, 7, np.sign(b)))
    with pytest.raises(ValueError, match="block 1: b must hold two labels"):
        loss.value(loss.point(loss.start()))
    with pytest.raises(TypeError, match="X must be a dask array"):
        rows_loss(SquaredLoss, A, b)
    with pytest.raises(TypeError, match="the loss must be a class such as SquaredLoss"):
        rows_loss("squared", X, b)
    with pytest.raises(TypeError, match="X must hold real numbers"):
        rows_loss(SquaredLoss, X * 1j, b, gram=False)
    with pytest.raises(TypeError, match="rows_loss"):
        SquaredLoss(X, b)
    with pytest.raises(TypeError, match="L12RegressorCV needs arrays in memory"):
        L12RegressorCV().fit(X, b)
