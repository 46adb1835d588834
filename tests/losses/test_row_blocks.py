"""Losses over chunks, against the same loss in memory and against its formula."""

import numpy as np
import pytest

from ell12 import L12, HuberLoss, LogisticLoss, NonmonotoneAPG, SquaredLoss, datasets, minimize, stationarity
from ell12.losses import RowsLoss
from ell12.solvers import SAGA, ProximalGradient, ProxSVRG, SupportNewton


def data(n=300, p=20, seed=0):
    problem = datasets.correlated_design(seed, n_samples=n, n_features=p, n_nonzero=4, correlation=0.5)
    return problem.A, problem.b


def chunks_of(A, b, size, weight=None):
    parts = [slice(i, i + size) for i in range(0, len(b), size)]
    return [(A[p], b[p]) if weight is None else (A[p], b[p], weight[p]) for p in parts]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "second_bound"), [(SquaredLoss, 1.0), (LogisticLoss, 0.25), (HuberLoss, 1.0)])
def test_a_streamed_loss_is_the_loss_in_memory(kind, second_bound, weighted):
    A, b = data()
    b = np.sign(b) if kind is LogisticLoss else b
    weight = np.arange(1.0, 301.0) if weighted else None
    options = {"delta": 0.7} if kind is HuberLoss else {}
    scale = 1 / (300 if weight is None else weight.sum())
    whole = kind(A, b, sample_weight=weight, scale=scale, **options)
    streamed = RowsLoss(chunks_of(A, b, 70, weight), kind, **options)
    assert streamed.scale == pytest.approx(scale, rel=1e-14)
    random = np.random.default_rng(0)
    x, y = streamed.point(random.standard_normal(20)), streamed.point(random.standard_normal(20))
    assert streamed.value(x) == pytest.approx(whole.value(whole.point(x.x)), rel=1e-12)
    np.testing.assert_allclose(streamed.gradient(x), whole.gradient(whole.point(x.x)), rtol=1e-10, atol=1e-12)
    expected = whole.divergence(whole.point(y.x), whole.point(x.x))
    assert streamed.divergence(y, x) == pytest.approx(expected, rel=1e-9)
    gram = A.T @ (A if weight is None else weight[:, None] * A)
    largest = second_bound * scale * np.linalg.eigvalsh(gram)[-1]
    assert largest <= streamed.lipschitz() <= 1.1 * largest


def test_a_point_shares_one_pass_between_value_and_gradient():
    loss = RowsLoss([(data()[0], np.sign(data()[1]))], LogisticLoss)
    for shared in (loss.for_run(), loss):
        point, before = shared.point(np.ones(20)), loss.passes
        shared.value(point), shared.gradient(point)
        assert loss.passes == before + 1


@pytest.mark.parametrize("size", [1, 16, 1000])
def test_batches_of_a_stream_sum_to_the_loss(size):
    A, b = data()
    loss, x = RowsLoss(chunks_of(A, b, 70)), np.random.default_rng(0).standard_normal(20)
    batches = list(loss.batches(size, np.random.default_rng(1)))
    assert sorted(batch.index for batch in batches) == list(range(batches[0].count))
    assert sum(batch.loss.b.size for batch in batches) == 300
    total = sum(batch.loss.gradient(batch.loss.point(x)) for batch in batches)
    np.testing.assert_allclose(total, A.T @ (A @ x - b) / 300, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (lambda chunks: chunks[:-1], "blocks ended after 2 of 3"),
        (lambda chunks: [*chunks, chunks[0]], "block 3 has not the rows that it had at first"),
        (lambda chunks: chunks[::-1], "block 0 has not the rows that it had at first"),
    ],
)
def test_chunks_that_change_are_errors(later, words):
    A, b = data()
    chunks, passes = chunks_of(A, b, 120), []

    def read():
        passes.append(1)
        return iter(chunks if len(passes) == 1 else later(chunks))

    loss = RowsLoss(read)
    point = loss.point(loss.start())
    with pytest.raises(ValueError, match=words):
        loss.value(point)
    with pytest.raises(ValueError, match=words):
        loss.lipschitz()


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("solver", [ProxSVRG(batch_size=16), SAGA(batch_size=16), NonmonotoneAPG()])
def test_streamed_data_give_the_solution_in_memory(solver, tensors):
    A, b = data()
    to = pytest.importorskip("torch").as_tensor if tensors else np.asarray
    chunks = [(to(A), to(b)) for A, b in [(A[:0], b[:0]), *chunks_of(A, b, 70)]]  # an empty one adds nothing
    penalty, whole = L12(0.05), SquaredLoss(A, b, scale=1 / 300)
    result = minimize(RowsLoss(lambda: iter(chunks)), penalty, solver=solver, tol=1e-7, max_iter=2000)
    assert result.converged
    assert type(result.x) is type(to(b))
    assert stationarity(whole, penalty, np.asarray(result.x)) <= 1.01e-7
    reference = minimize(whole, penalty, solver=SupportNewton(), tol=1e-8)
    assert result.objective == pytest.approx(reference.objective, rel=1e-7)


PAIR = "blocks must be an iterable|block 0: blocks must be pairs"


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ([], "no rows"),
        ([(np.ones((2, 3)), [1.0, 2.0]), (np.ones((2, 2)), [1.0, 2.0])], "block 1: it has 2 columns"),
        ([(np.ones((2, 3)), [1.0, 2.0]), (np.full((2, 3), np.nan), [1.0, 2.0])], "block 1: A holds NaN"),
        ([(np.ones((2, 3)), [1.0])], "block 0: b must have shape"),
        (iter([(np.ones((2, 3)), [1.0, 2.0])]), "blocks can be read once only"),
        *(
            (chunks, PAIR)
            for chunks in (None, 3, [(np.eye(2),)], (np.eye(2), [1, 2]), [(np.eye(2), [1, 2], None, 0)])
        ),
    ],
)
def test_a_bad_chunk_is_named(chunks, words):
    with pytest.raises((TypeError, ValueError), match=words):
        RowsLoss(chunks)


@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss, HuberLoss])
@pytest.mark.parametrize("solver", [ProximalGradient, NonmonotoneAPG])
def test_backtracking_in_single_precision_takes_about_the_steps_that_it_takes_in_memory(kind, solver):
    random = np.random.default_rng(0)
    A = random.standard_normal((200, 50)).astype(np.float32)
    b = A[:, :5].sum(axis=1) + 0.1 * random.standard_normal(200).astype(np.float32)
    b = np.sign(b) if kind is LogisticLoss else b
    streamed = RowsLoss([(A[k : k + 50], b[k : k + 50]) for k in range(0, 200, 50)], kind)
    options = {"solver": solver(step="backtracking"), "max_iter": 2000}
    near = minimize(kind(A, b, scale=1 / 200), L12(0.02, 0.5), **options)
    far = minimize(streamed, L12(0.02, 0.5), **options)
    assert near.converged
    assert far.converged
    assert far.n_iter <= 2 * near.n_iter + 10
