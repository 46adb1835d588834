"""A loss on a device, seen from the host, against the same loss of NumPy arrays."""

import numpy as np
import pytest

import ell12.losses.of_prediction
import ell12.losses.sum_over_rows
import ell12.path.paths
import ell12.solvers.working_set
from ell12 import (
    L12,
    HuberLoss,
    LogisticLoss,
    NonmonotoneAPG,
    PoissonLoss,
    SquaredLoss,
    Status,
    WorkingSet,
    l12_path,
    minimize,
    solution_path,
)
from ell12.losses.sum_over_rows import HostView
from ell12.minimization.solver_choice import unmet
from ell12.protocols import ColumnLoss, PointwiseLoss, SessionLoss, offers

LOSSES = {
    "squared": lambda A, b, send: SquaredLoss(send(A), send(b), sample_weight=send(np.linspace(0.5, 2, b.size))),
    "logistic": lambda A, b, send: LogisticLoss(send(A), send(np.sign(b)), scale=0.5),
    "Huber": lambda A, b, send: HuberLoss(send(A), send(b), delta=0.5),
    "Poisson": lambda A, b, send: PoissonLoss(send(A), send(b * b), offset=send(0.1 * b)),
}
# JAX, which takes seconds to compile for each shape, sees the same code.
ON_GPU = [pytest.param(name, marks=pytest.mark.gpu) for name in ("torch-cuda", "cupy")]
LIBRARIES = ["array-api-strict", "torch", *ON_GPU]


def data(seed=0, m=60, n=200, noise=0.1, dtype=np.float64):
    random = np.random.default_rng(seed)
    A = random.standard_normal((m, n)) / np.sqrt(m)
    b = A[:, :8] @ np.linspace(1, 2, 8) + noise * random.standard_normal(m)
    return A.astype(dtype), b.astype(dtype)


@pytest.fixture
def far(monkeypatch):
    """All arrays but NumPy's count as those of a device, however small."""
    monkeypatch.setattr(ell12.losses.sum_over_rows, "FETCHED_WHOLE", 0)
    monkeypatch.setattr(ell12.losses.sum_over_rows, "on_accelerator", lambda A: not isinstance(A, np.ndarray))


@pytest.fixture
def products(monkeypatch):
    """The shapes of the matrices that losses multiply with."""
    made, product = [], ell12.losses.of_prediction.product

    def counting(A, x):
        made.append(tuple(A.shape))
        return product(A, x)

    monkeypatch.setattr(ell12.losses.of_prediction, "product", counting)
    return made


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("each_library", LIBRARIES, indirect=True)
def test_a_view_tells_what_the_loss_of_numpy_arrays_tells(each_library, kind):
    A, b = data(m=12, n=9)
    random = np.random.default_rng(1)
    here, view = LOSSES[kind](A, b, np.asarray), HostView(LOSSES[kind](A, b, each_library.make_array))
    assert all(offers(view, protocol) for protocol in (ColumnLoss, PointwiseLoss, SessionLoss))
    x, columns, others = np.zeros(9), np.array([1, 4, 5]), np.array([0, 7])
    x[columns] = random.standard_normal(3)
    for point in (here.point(x), here.point(np.zeros(9)), here.point(random.standard_normal(9))):
        seen = view.point(point.x)
        assert view.value(seen) == pytest.approx(here.value(point), rel=1e-12)
        assert view.divergence(seen, view.point(x)) == pytest.approx(
            here.divergence(point, here.point(x)), abs=1e-12
        )
        pairs = [
            (view.start(), here.start()),
            (view.gradient(seen), here.gradient(point)),
            (view.curvature(seen), here.curvature(point)),
            (view.hessian(seen, columns), here.hessian(point, columns)),
            (view.hessian(seen, columns, others), here.hessian(point, columns, others)),
            (view.hessian_product(seen, columns)(x[columns]), here.hessian(point, columns) @ x[columns]),
            (each_library.to_numpy(view.point_within(x, columns).prediction), A @ x),
        ]
        part = view.restrict(columns)
        pairs.append((part.gradient(part.point(x[columns])), here.gradient(here.point(x))[columns]))
        for found, expected in pairs:
            assert type(found) is np.ndarray
            np.testing.assert_allclose(found, expected, atol=1e-12)
    values, _, gradients = view.look(view.point(np.stack([x, 2 * x], axis=1)).prediction)
    np.testing.assert_allclose(values, [here.value(here.point(x)), here.value(here.point(2 * x))], rtol=1e-12)
    np.testing.assert_allclose(gradients[:, 1], here.gradient(here.point(2 * x)), atol=1e-12)


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
@pytest.mark.parametrize(("kind", "most"), [("squared", 8), ("logistic", 20)])
def test_working_sets_read_the_whole_of_a_tensor_a_few_times(far, products, kind, most, l2_weight):
    torch = pytest.importorskip("torch")
    A, b = data(m=500, n=4400)
    here = LOSSES[kind](A, b, np.asarray)
    penalty = L12(0.2 * float(np.abs(here.gradient(here.point(here.start()))).max()), l2_weight)
    expected = minimize(here, penalty, tol=1e-6)
    products.clear()
    result = minimize(LOSSES[kind](A, b, torch.as_tensor), penalty, tol=1e-6)
    assert 0 < sum(sorted(shape) == [500, 4400] for shape in products) <= most
    assert isinstance(result.x, torch.Tensor)
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=1e-9)
    np.testing.assert_allclose(result.x.numpy(), expected.x, atol=1e-5)


@pytest.mark.parametrize("each_library", LIBRARIES, indirect=True)
def test_little_data_are_solved_as_numpy_arrays_would_be(each_library):
    A, b = data()
    send, penalty = each_library.make_array, L12(0.05, weights=np.linspace(0.5, 1.5, 200))
    expected = minimize(SquaredLoss(A, b), penalty, tol=1e-9)
    elsewhere = L12(0.05, weights=send(np.linspace(0.5, 1.5, 200)))
    result = minimize(SquaredLoss(send(A), send(b)), elsewhere, tol=1e-9)
    np.testing.assert_array_equal(each_library.to_numpy(result.x), expected.x)
    assert type(result.x) is type(send(A))


def test_weights_and_signs_may_be_where_the_data_are(far):
    torch = pytest.importorskip("torch")
    A, b = data()
    numbers = {"weights": np.linspace(0.0, 2.0, 200), "positive": np.arange(200) % 2 == 0}
    expected = minimize(SquaredLoss(A, b), L12(0.1, 0.5, **numbers), tol=1e-8)
    there = {name: torch.as_tensor(values) for name, values in numbers.items()}
    result = minimize(SquaredLoss(torch.as_tensor(A), torch.as_tensor(b)), L12(0.1, 0.5, **there), tol=1e-8)
    assert result.objective == pytest.approx(expected.objective, rel=1e-8)
    np.testing.assert_allclose(result.x.numpy(), expected.x, atol=1e-6)


def test_single_precision_ends_in_good_time(far):
    torch = pytest.importorskip("torch")
    A, b = (torch.as_tensor(part) for part in data(m=200, n=1000, noise=0.01, dtype=np.float32))
    result = minimize(SquaredLoss(A, b), L12(0.01 * float((A.T @ b).abs().max())), tol=1e-9)
    assert result.status is Status.ROUNDING
    assert result.n_iter < 20  # it took 50 to see that nothing gets better
    assert result.stationarity < 1e-4


def test_a_dense_solution_is_left_to_steps_on_the_device(far, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(ell12.solvers.working_set, "MOST_ENTRIES", 5)
    A, b = data()
    expected = minimize(SquaredLoss(A, b), L12(0.05, 0.0), tol=1e-6)
    result = minimize(SquaredLoss(torch.as_tensor(A), torch.as_tensor(b)), L12(0.05, 0.0), tol=1e-6)
    assert result.converged
    assert result.n_iter > expected.n_iter + 5
    assert result.objective == pytest.approx(expected.objective, rel=1e-9)


def test_what_no_working_set_takes_is_left_to_nmapg():
    torch = pytest.importorskip("torch")
    A, b = map(torch.as_tensor, data(m=20, n=30))
    assert not unmet(WorkingSet(), SquaredLoss(A, b), L12(1.0), A[0])
    for other, targets in ((A + 0j, b), (A, torch.stack([b, b], dim=1)), (A.to_sparse(), b)):
        loss = SquaredLoss(other, targets)
        assert unmet(WorkingSet(), loss, L12(1.0), loss.start())
        result = minimize(loss, L12(0.3), tol=0, max_iter=5)
        assert result.objective == minimize(loss, L12(0.3), solver=NonmonotoneAPG(), tol=0, max_iter=5).objective


def test_a_path_over_a_tensor_reads_it_a_few_times(far, products, monkeypatch):
    torch = pytest.importorskip("torch")
    A, b = data(m=100, n=800)
    options = {"alphas": 30, "eps": 0.03, "penalty": L12(l2_weight=0.5), "tol": 1e-6}
    alphas, coefs, _ = l12_path(A, b, **options)
    products.clear()
    monkeypatch.setattr(ell12.path.paths, "on_accelerator", lambda A: True)
    found, there, results = l12_path(torch.as_tensor(A), torch.as_tensor(b), **options)
    assert sum(sorted(shape) == [100, 800] for shape in products) <= 60
    assert all(result.converged for result in results)
    np.testing.assert_allclose(found, alphas, rtol=1e-6)
    np.testing.assert_allclose(there.numpy(), coefs, atol=1e-4)


def test_the_dense_end_of_a_path_is_solved_side_by_side(far, monkeypatch):
    torch = pytest.importorskip("torch")
    A, b = data(m=80, n=40)
    options = {"alphas": 8, "eps": 0.02, "penalty": L12(l2_weight=0.0), "tol": 1e-4}
    alphas, coefs, _ = l12_path(A, b, **options)
    monkeypatch.setattr(ell12.path.paths, "on_accelerator", lambda A: True)
    monkeypatch.setattr(ell12.path.paths, "MOST_ENTRIES", 10)
    _, there, results = l12_path(torch.as_tensor(A), torch.as_tensor(b), **options)
    together = [result.n_iter > 8 for result in results]
    assert 0 < sum(together) < 8
    assert together == [int(np.count_nonzero(x)) > 10 for x in (coefs[:, 0], *coefs.T[:-1])]
    np.testing.assert_allclose(there.numpy(), coefs, atol=1e-3)
    loss = SquaredLoss(torch.as_tensor(A), torch.as_tensor(b), scale=1 / 80)
    _, there, results = solution_path(loss, L12(1.0, 0.0), alphas)
    assert [result.n_iter > 8 for result in results] == together
    np.testing.assert_allclose(there.numpy(), coefs, atol=1e-3)
