import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

from ell12 import DCA, L12, HuberLoss, LogisticLoss, NonmonotoneAPG, SquaredLoss, datasets, minimize, stationarity
from ell12.losses import QuadraticLoss, RowsLoss
from ell12.solvers import SAGA, ProxSVRG, SupportNewton

SOLVERS = [ProxSVRG(batch_size=16), SAGA(batch_size=16)]


def data(n=300, p=20, seed=0):
    problem = datasets.correlated_design(seed, n_samples=n, n_features=p, n_nonzero=4, correlation=0.5)
    return problem.A, problem.b


def make(kind, A, b, **options):
    target = np.where(b > 0, 1.0, -1.0) if kind is LogisticLoss else b
    return kind(A, target, scale=1 / len(b), **options)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss, HuberLoss])
@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_they_reach_a_stationary_point_as_low_as_nmapg(solver, kind, l2_weight):
    loss, penalty = make(kind, *data()), L12(0.05, l2_weight=l2_weight)
    result = minimize(loss, penalty, solver=solver, tol=1e-7, max_iter=500)
    reference = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-7)
    assert result.converged
    assert stationarity(loss, penalty, result.x) <= 1e-7
    assert result.objective <= reference.objective + 1e-9
    assert np.all(np.diff(result.history["objective"]) <= 1e-15)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
def test_a_step_that_is_too_long_is_shortened(solver):
    loss, penalty = make(SquaredLoss, *data()), L12(0.05)
    wild = type(solver)(batch_size=16, step=100 / loss.lipschitz())
    result = minimize(loss, penalty, solver=wild, tol=1e-6, max_iter=500)
    assert result.converged
    assert np.all(np.diff(result.history["objective"]) <= 1e-15)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
def test_rounding_does_not_stop_them(solver):
    A, b = data()
    result = minimize(SquaredLoss(A, b), L12(15.0), solver=solver, tol=1e-9, max_iter=1000)
    assert result.converged


@pytest.mark.parametrize("matrix", [np.asarray, np.asfortranarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("size", [1, 7, 64, 300, 1000])
def test_batches_sum_to_the_loss(matrix, size):
    A, b = data()
    loss = SquaredLoss(matrix(A), b, sample_weight=np.arange(1.0, 301.0), scale=0.1)
    x = np.random.default_rng(0).standard_normal(20)
    point = loss.point(x)
    batches = list(loss.batches(size, np.random.default_rng(0)))
    assert sorted(batch.index for batch in batches) == list(range(-(-300 // size)))
    total = sum(batch.loss.gradient(batch.point(point)) for batch in batches)
    np.testing.assert_allclose(total, loss.gradient(point), rtol=1e-12, atol=1e-12)
    assert sum(batch.loss.value(batch.loss.point(x)) for batch in batches) == pytest.approx(loss.value(point))


def test_a_memory_map_is_read_where_it_lies(tmp_path):
    A, b = data()
    stored = np.lib.format.open_memmap(tmp_path / "A.npy", mode="w+", dtype=A.dtype, shape=A.shape)
    stored[:] = A
    stored.flush()
    loss = SquaredLoss(np.load(tmp_path / "A.npy", mmap_mode="r"), b, scale=1 / 300)
    assert np.shares_memory(next(loss.batches(16)).loss.A, loss.A)
    result = minimize(loss, L12(0.05), solver=ProxSVRG(batch_size=16), tol=1e-6)
    assert result.converged
    assert stationarity(SquaredLoss(A, b, scale=1 / 300), L12(0.05), result.x) <= 1.01e-6


def test_in_passes_over_the_data_svrg_needs_fewer_than_nmapg():
    A, b = data(4000, 50, seed=1)
    loss, penalty = SquaredLoss(A, b, scale=1 / 4000), L12(0.02)
    best = minimize(loss, penalty, solver=SupportNewton(), tol=1e-9).objective

    def iterations(solver):
        history = minimize(loss, penalty, solver=solver, tol=1e-8, max_iter=2000).history["objective"]
        return int(np.argmax(np.array(history) <= best + 1e-9))

    assert 2 * iterations(ProxSVRG(batch_size=32)) < iterations(NonmonotoneAPG())


def test_losses_without_rows_or_a_proximal_step_say_so():
    A, b = data(n=30, p=5)
    with pytest.raises(TypeError, match=r"SAGA needs .* over rows; the loss QuadraticLoss lacks batches"):
        minimize(QuadraticLoss(A.T @ A, A.T @ b), L12(0.1), solver=SAGA())
    for options in ({"batch_size": 0}, {"batch_size": 1.5}, {"step": -1.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            ProxSVRG(**options)
    with pytest.raises(TypeError, match="A has no rows at hand"):
        minimize(SquaredLoss(aslinearoperator(A), b), L12(0.1), solver=ProxSVRG())
    with pytest.raises(TypeError, match=r"DCA needs .* proximal map; the loss RowsLoss lacks proximal"):
        minimize(RowsLoss([(A, b)]), L12(0.1), solver=DCA())


def test_batches_of_a_file_are_neighbours(tmp_path):
    A, b = np.random.default_rng(0).standard_normal((25, 3)), np.ones(25)
    np.save(tmp_path / "A.npy", A)
    for values, expected in ((np.load(tmp_path / "A.npy", mmap_mode="r"), A[10:20]), (A, A[1::3])):
        batches = list(SquaredLoss(values, b).batches(10))
        np.testing.assert_array_equal(batches[1].loss.A, expected)
        assert sum(batch.loss.b.size for batch in batches) == 25
