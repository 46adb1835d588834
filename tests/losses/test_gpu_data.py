"""A loss on a device, seen from the host, against the same loss of NumPy arrays."""

import numpy as np
import pytest

import ell12.losses.of_prediction
import ell12.losses.sum_over_rows
import ell12.path.paths
import ell12.solvers.working_set
from ell12 import L12, HuberLoss, LogisticLoss, PoissonLoss, SquaredLoss, l12_path, solution_path
from ell12.losses.sum_over_rows import HostView
from ell12.protocols import ColumnLoss, offers

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
    assert offers(view, ColumnLoss)
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
    values, _, gradients = view.gradients(view.point(np.stack([x, 2 * x], axis=1)).prediction)
    np.testing.assert_allclose(values, [here.value(here.point(x)), here.value(here.point(2 * x))], rtol=1e-12)
    np.testing.assert_allclose(gradients[:, 1], here.gradient(here.point(2 * x)), atol=1e-12)


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


def test_the_dense_end_of_a_path_is_solved_on_the_device(far, monkeypatch):
    torch = pytest.importorskip("torch")
    A, b = data(m=80, n=40)
    options = {"alphas": 8, "eps": 0.02, "penalty": L12(l2_weight=0.0), "tol": 1e-4}
    alphas, coefs, _ = l12_path(A, b, **options)
    monkeypatch.setattr(ell12.path.paths, "on_accelerator", lambda A: True)
    monkeypatch.setattr(ell12.path.paths, "MOST_ENTRIES", 10)
    _, there, results = l12_path(torch.as_tensor(A), torch.as_tensor(b), **options)
    on_device = [result.solver == "NonmonotoneAPG" for result in results]
    assert 0 < sum(on_device) < 8
    assert on_device == [int(np.count_nonzero(x)) > 10 for x in (coefs[:, 0], *coefs.T[:-1])]
    np.testing.assert_allclose(there.numpy(), coefs, atol=1e-3)
    loss = SquaredLoss(torch.as_tensor(A), torch.as_tensor(b), scale=1 / 80)
    _, there, results = solution_path(loss, L12(1.0, 0.0), alphas)
    assert [result.solver == "NonmonotoneAPG" for result in results] == on_device
    np.testing.assert_allclose(there.numpy(), coefs, atol=1e-3)
