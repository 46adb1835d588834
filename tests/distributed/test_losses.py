"""Losses over dask arrays on the scheduler of threads, against the in-memory losses."""

import pickle
import sys

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from dask.callbacks import Callback
from dask.delayed import delayed
from dask.utils import key_split
from tests.distributed.problem import CENTRED, COLUMNS, LEVEL, ROWS, WEIGHT, A, B, chunked

from ell12 import FISTA, L12, HuberLoss, L12RegressorCV, LogisticLoss, NonmonotoneAPG, SquaredLoss, minimize
from ell12.distributed import columns, rows_loss
from ell12.distributed.executor import Blocks
from ell12.losses import QuadraticLoss, RowsLoss
from ell12.losses.block_of_rows import BlockKind, evaluate, make_block
from ell12.solvers import SAGA, ProxSVRG, SupportNewton

BLOCKS = 4


def pair(kind, weighted=False, form=None, **options):
    """The loss in memory and the same over chunks."""
    b = np.sign(LEVEL) if kind is LogisticLoss else LEVEL
    options = {"scale": 1 / ROWS, "sample_weight": WEIGHT if weighted else None} | options
    near = {key: value for key, value in options.items() if key not in ("gram", "persist", "intercept")}
    inside = np.column_stack([CENTRED, np.ones(ROWS)]) if options.get("intercept") else CENTRED
    X = chunked(CENTRED) if form is None else chunked(CENTRED).map_blocks(form)
    return kind(inside, b, **near), rows_loss(kind, X, chunked(b), **options)


def assert_agree(near, far, *points):
    for x in points:
        assert far.value(far.point(x)) == pytest.approx(near.value(near.point(x)), rel=1e-12)
        np.testing.assert_allclose(
            far.gradient(far.point(x)), near.gradient(near.point(x)), rtol=1e-11, atol=1e-13
        )


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
        (SquaredLoss, {"form": scipy.sparse.csr_matrix}),
        (LogisticLoss, {"form": scipy.sparse.csc_array}),
        (LogisticLoss, {"form": scipy.sparse.coo_array}),
    ],
)
def test_a_sum_over_blocks_is_the_loss_in_memory(kind, options, weighted, intercept):
    near, far = pair(kind, weighted, intercept=intercept, **options)
    assert isinstance(far, QuadraticLoss) == (kind is SquaredLoss and options.get("gram", True))
    random = np.random.default_rng(1)
    base, other = (random.standard_normal(COLUMNS + intercept) for _ in range(2))
    assert_agree(near, far, far.start(), base)
    divergences = [loss.divergence(loss.point(other), loss.point(base)) for loss in (near, far)]
    assert divergences[1] == pytest.approx(divergences[0], rel=1e-9)
    weight = 1 if near.sample_weight is None else near.sample_weight[:, None]
    exact = kind.second_bound * np.linalg.norm(near.A.T @ (weight * near.A), 2) / ROWS
    assert exact * (1 - 1e-12) <= far.lipschitz() <= 1.02 * exact


def first_block(X, **options):
    return dask.compute(rows_loss(HuberLoss, X, B, **options).blocks.blocks[0])[0]


class Foreign:
    """A chunk of the package sparse."""

    shape, dtype, ndim = (70, COLUMNS), np.dtype(float), 2

    def to_scipy_sparse(self):
        return scipy.sparse.coo_matrix(A[:70])


def test_sparse_chunks_stay_sparse():
    assert scipy.sparse.issparse(first_block(chunked(A).map_blocks(scipy.sparse.csr_array)).A)
    block = first_block(spoilt(0, lambda _: Foreign()))
    assert scipy.sparse.issparse(block.A)
    np.testing.assert_array_equal(block.A.toarray(), A[:70])


@pytest.mark.parametrize(("kind", "gram"), [(SquaredLoss, True), (SquaredLoss, False), (HuberLoss, False)])
def test_single_precision_is_that_of_x(kind, gram):
    loss = rows_loss(kind, chunked(A.astype(np.float32)), B, gram=gram)
    x = loss.start()
    assert x.dtype == loss.gradient(loss.point(x)).dtype == np.float32


def at_an_odd_address(data):
    buffer = np.empty(len(data) + 1, np.uint8)[1:]
    buffer[:] = np.frombuffer(data, np.uint8)
    return buffer


def test_what_arrives_at_odd_addresses_is_moved_once():
    odd = at_an_odd_address(A.tobytes()).view(float)
    assert not odd.flags.aligned
    seen = Blocks([delayed(0)]).results(
        "see", lambda _, own, x: own.flags.aligned and x.flags.aligned, odd, each=[odd]
    )
    assert seen == [True]
    part = dask.compute(columns(chunked(A, ROWS)).source.blocks.blocks[0])[0]
    for block, find in ((first_block(chunked(A)), lambda b: b.A), (part, lambda b: b.source.matrix)):
        sent = []
        data = pickle.dumps(block, protocol=5, buffer_callback=sent.append)
        arrived = pickle.loads(data, buffers=[at_an_odd_address(bytes(part.raw())) for part in sent])
        assert find(arrived).flags.aligned
        np.testing.assert_array_equal(find(arrived), find(block))


@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss, HuberLoss])
def test_an_iteration_of_nmapg_is_one_pass(kind):
    near, far = pair(kind, gram=False) if kind is SquaredLoss else pair(kind)
    penalty = L12(0.05, 0.5)
    with Tasks() as tasks:
        result = minimize(far, penalty, tol=1e-6)
    # One pass for the columns' products, one for the start, and one more for each plain step.
    assert result.converged
    plain_steps = far.passes - result.n_iter - 2
    assert 0 <= plain_steps <= 0.25 * result.n_iter
    assert tasks.counts["ell12-gradient"] == BLOCKS * (far.passes - 1)
    assert tasks.counts["ell12-moments"] == BLOCKS
    assert tasks.counts["ell12-sum"] == 3 * far.passes  # two of two blocks, and their own
    assert set(tasks.counts) == {"ell12-gradient", "ell12-moments", "ell12-sum"}  # no block is made again
    assert 0 < tasks.sizes["ell12-gradient"] <= 2 * (COLUMNS + 1)
    assert tasks.sizes["ell12-sum"] <= COLUMNS**2
    np.testing.assert_allclose(result.x, minimize(near, penalty, solver=NonmonotoneAPG(), tol=1e-8).x, atol=1e-5)


def test_no_pass_is_made_where_the_answer_is_known():
    far = pair(SquaredLoss, gram=False)[1].for_run()
    x, y = far.point(np.ones(COLUMNS)), far.point(np.arange(5.0))
    far.value(x), far.gradient(x), far.gradient(y)
    assert far.passes == 2
    far.value(far.point(np.ones(COLUMNS)))  # the same point again
    middle = far.gradient(x + 0.25 * (y - x))  # the gradient is affine
    assert far.passes == 2
    fresh = far.gradient(far.point(np.ones(5) + 0.25 * (np.arange(5) - 1)))
    assert far.passes == 3
    np.testing.assert_allclose(middle, fresh, rtol=1e-12)


def test_a_chunk_that_y_is_made_of_is_made_once():
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
    X, b = random.standard_normal((50_000, 8)), random.standard_normal(50_000)
    block = make_block(BlockKind(HuberLoss, {"delta": 0.5}, 8, intercept=False), 0, X, b, None)
    assert 0 <= sys.getsizeof(block) - X.nbytes - b.nbytes <= 1000  # by which Dask decides what to spill
    assert len(list(block.losses())) == 7  # of 2**16 entries at most
    x = random.standard_normal(8)
    found, whole = evaluate(block, x[None]), HuberLoss(X, b, delta=0.5)
    assert found[0, 0] == pytest.approx(whole.value(whole.point(x)), rel=1e-12)
    np.testing.assert_allclose(found[0, 1:], whole.gradient(whole.point(x)), rtol=1e-10)


SOLVERS = [FISTA(), NonmonotoneAPG("backtracking"), SupportNewton(), ProxSVRG(batch_size=16), SAGA(batch_size=16)]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_solvers_reach_the_solution_in_memory(solver):
    near, far = pair(SquaredLoss, gram=isinstance(solver, SupportNewton))
    penalty = L12(0.05, 0.5)
    result = minimize(far, penalty, solver=solver, tol=1e-9)
    assert result.converged
    np.testing.assert_allclose(result.x, minimize(near, penalty, tol=1e-10).x, atol=1e-7)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss, HuberLoss])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_batches_of_stochastic_solvers_sum_to_the_loss(form, kind, intercept):
    b = np.sign(LEVEL) if kind is LogisticLoss else LEVEL
    X = chunked(A, (100, 0, 90, 50)).map_blocks(form)
    loss = rows_loss(kind, X, b, sample_weight=WEIGHT, scale=0.1, intercept=intercept, gram=False)
    x = np.random.default_rng(1).standard_normal(COLUMNS + intercept)
    batches = list(loss.batches(16, np.random.default_rng(2)))
    assert sorted(batch.index for batch in batches) == list(range(batches[0].count))
    assert batches[0].count == 7 + 6 + 4
    points = [(batch.loss, batch.loss.point(x)) for batch in batches]
    value = sum(part.value(point) for part, point in points)
    gradient = sum(part.gradient(point) for part, point in points)
    assert value == pytest.approx(loss.value(loss.point(x)), rel=1e-12)
    np.testing.assert_allclose(gradient, loss.gradient(loss.point(x)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("kind", "gram"), [(SquaredLoss, True), (LogisticLoss, "auto")])
def test_chunks_of_another_library_give_numpy_arrays(each_library, kind, gram):
    if each_library.name == "jax":
        pytest.skip("JAX holds double precision in the thread alone that asked for it")
    near = pair(kind, weighted=True, intercept=True, gram=gram)[1]

    def sent(values):
        parts = [da.from_delayed(delayed(each_library.make_array)(values[:140]), (140, *values.shape[1:]), float)]
        parts += [da.from_delayed(delayed(each_library.make_array)(values[140:]), (100, *values.shape[1:]), float)]
        return da.concatenate(parts)

    b = np.sign(LEVEL) if kind is LogisticLoss else LEVEL
    options = {"sample_weight": WEIGHT, "intercept": True, "gram": gram, "scale": 1 / ROWS}
    far = rows_loss(kind, sent(CENTRED), sent(b), **options)
    x = np.linspace(-1, 1, COLUMNS + 1)
    assert_agree(near, far, x)
    assert isinstance(far.gradient(far.point(x)), np.ndarray)
    assert far.lipschitz() == pytest.approx(near.lipschitz(), rel=1e-9)
    if gram is True:
        found, expected = (minimize(loss, L12(0.01), tol=1e-8) for loss in (far, near))
        np.testing.assert_allclose(found.x, expected.x, atol=1e-7)


def test_many_columns_are_bounded_by_lanczos():
    X = np.random.default_rng(0).standard_normal((90, 1001))
    loss = rows_loss(SquaredLoss, chunked(X, 50), np.ones(90))
    assert isinstance(loss, RowsLoss)
    exact = np.linalg.norm(X, 2) ** 2
    assert exact <= loss.lipschitz() <= 1.1 * exact
    assert 2 < loss.passes < 20


def test_integers_columns_in_chunks_and_a_frame_of_unknown_length():
    x, whole = np.ones(COLUMNS), np.round(10 * A).astype(int)
    expected = 0.5 * np.sum((whole @ x - B) ** 2)
    frame = dd.from_pandas(pd.DataFrame(whole).assign(y=B), npartitions=3)
    for X, y in ((da.from_array(whole, chunks=(70, 4)), B), (frame.drop(columns="y"), frame["y"])):
        loss = rows_loss(SquaredLoss, X, y, gram=False)
        assert loss.value(loss.point(x)) == pytest.approx(expected)


def spoilt(block, make):
    """The chunks of A, one of them made otherwise."""

    def spoil(chunk, block_info=None):
        return make(chunk) if block_info[0]["chunk-location"][0] == block else chunk

    return chunked(A).map_blocks(spoil, dtype=A.dtype, meta=np.empty((0, 0)))


def value_of(X, y, weight=None, kind=SquaredLoss, **options):
    loss = rows_loss(kind, X, y, sample_weight=weight, **options)
    return loss.value(loss.point(loss.start()))


X, ROW = chunked(A), np.arange(ROWS)
SPOILT = {
    "block 2: X holds NaN": (spoilt(2, lambda chunk: np.where(chunk > 1, np.nan, chunk)), B),
    "block 1: it has 4 columns, where X has 5": (spoilt(1, lambda chunk: chunk[:, :4]), B),
    "block 3: it has 49 rows of X and 50 of y": (spoilt(3, lambda chunk: chunk[:-1]), B),
    "block 0: y holds NaN": (X, np.where(ROW == 3, np.nan, B)),
    "block 1: sample_weight must": (X, B, np.where(ROW == 80, -1, WEIGHT)),
}


@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("words", SPOILT)
def test_an_error_names_the_block(words, gram):
    with pytest.raises(ValueError, match=words):
        value_of(*SPOILT[words], gram=gram)


WRONG = {
    "y must have 240 rows": lambda: rows_loss(SquaredLoss, X, B[:-1]),
    "y must be a vector": lambda: rows_loss(SquaredLoss, X, A),
    "X must have two dimensions": lambda: rows_loss(SquaredLoss, X[:, 0], B),
    "gram must be": lambda: rows_loss(SquaredLoss, X, B, gram="yes"),
    "gram=True needs a squared loss": lambda: rows_loss(LogisticLoss, X, B, gram=True),
    "persist must be": lambda: rows_loss(LogisticLoss, X, B, persist="no"),
    "persist must be True": lambda: rows_loss(SquaredLoss, X, B, persist="no"),
    "delta must be": lambda: rows_loss(HuberLoss, X, B, delta=-1.0),
    "scale must be": lambda: rows_loss(SquaredLoss, X, B, scale=0.0),
    "block 1: b must hold two labels": lambda: value_of(
        X, np.where(ROW == 80, 7, np.sign(B - 4)), kind=LogisticLoss
    ),
    "X must be a dask array": lambda: rows_loss(SquaredLoss, A, B),
    "the loss must be a class such as SquaredLoss": lambda: rows_loss("squared", X, B),
    "X must hold real numbers": lambda: rows_loss(SquaredLoss, X * 1j, B, gram=False),
    "rows_loss": lambda: SquaredLoss(X, B),
    "L12RegressorCV needs arrays in memory": lambda: L12RegressorCV().fit(X, B),
}


@pytest.mark.parametrize("words", WRONG)
def test_arguments_are_checked_at_once(words):
    with pytest.raises((ValueError, TypeError), match=words):
        WRONG[words]()
