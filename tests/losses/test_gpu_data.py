"""A loss on a device, seen from the host, against the same loss of NumPy arrays."""

import numpy as np
import pytest

from ell12 import L12, HuberLoss, LogisticLoss, PoissonLoss, SquaredLoss, l12_path, solution_path
from ell12.operators import product

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
    monkeypatch.setattr("ell12.losses.sum_over_rows.SMALL", 0)
    monkeypatch.setattr("ell12.losses.sum_over_rows.on_accelerator", lambda A: not isinstance(A, np.ndarray))


@pytest.fixture
def products(monkeypatch):
    """The shapes of the matrices that losses multiply with."""
    made = []

    def counting(A, x):
        made.append(tuple(A.shape))
        return product(A, x)

    monkeypatch.setattr("ell12.losses.of_prediction.product", counting)
    return made


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("each_library", LIBRARIES, indirect=True)
def test_a_path_of_every_loss_seen_from_the_host_is_that_of_numpy(far, each_library, kind, monkeypatch):
    monkeypatch.setattr("ell12.path.paths.on_accelerator", lambda A: not isinstance(A, np.ndarray))
    A, b = data(m=40, n=60)
    here, there = LOSSES[kind](A, b, np.asarray), LOSSES[kind](A, b, each_library.make_array)
    options = {"alphas": 5, "eps": 0.1, "tol": 1e-7}
    alphas, coefs, _ = solution_path(here, L12(l2_weight=0.5), **options)
    found, seen, results = solution_path(there, L12(l2_weight=0.5), **options)
    assert all(result.converged for result in results)
    assert type(seen) is type(there.A)
    np.testing.assert_allclose(found, alphas, rtol=1e-9)
    np.testing.assert_allclose(each_library.to_numpy(seen), coefs, atol=1e-5)


@pytest.mark.parametrize("kind", LOSSES)
def test_a_view_from_the_host_has_the_numbers_of_the_loss(far, kind):
    torch = pytest.importorskip("torch")
    A, b = data(m=30, n=12)
    here, view = LOSSES[kind](A, b, np.asarray), LOSSES[kind](A, b, torch.as_tensor).on_host()
    x, some, v = np.linspace(-0.2, 0.2, 12), np.array([7, 1, 4]), np.array([1.0, -2.0, 0.5])

    def numbers(loss):
        point, base = loss.point(x), loss.point(0 * x)
        parts = loss.gradient(point), loss.curvature(point), loss.hessian(point, some)
        yield from (*parts, loss.hessian_product(point, some)(v), loss.hessian(point, some, some[:1]))
        yield from (loss.value(point), loss.divergence(point, base), loss.lipschitz())

    for found, expected in zip(numbers(view), numbers(here), strict=True):
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_path_over_a_tensor_reads_it_a_few_times(far, products, monkeypatch):
    torch = pytest.importorskip("torch")
    A, b = data(m=100, n=800)
    options = {"alphas": 30, "eps": 0.03, "penalty": L12(l2_weight=0.5), "tol": 1e-6}
    alphas, coefs, _ = l12_path(A, b, **options)
    products.clear()
    monkeypatch.setattr("ell12.path.paths.on_accelerator", lambda A: True)
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
    monkeypatch.setattr("ell12.path.paths.on_accelerator", lambda A: True)
    monkeypatch.setattr("ell12.path.paths.MOST_ENTRIES", 10)
    _, there, results = l12_path(torch.as_tensor(A), torch.as_tensor(b), **options)
    on_device = [result.solver == "NonmonotoneAPG" for result in results]
    assert 0 < sum(on_device) < 8
    assert on_device == [int(np.count_nonzero(x)) > 10 for x in (coefs[:, 0], *coefs.T[:-1])]
    np.testing.assert_allclose(there.numpy(), coefs, atol=1e-3)
    loss = SquaredLoss(torch.as_tensor(A), torch.as_tensor(b), scale=1 / 80)
    _, there, results = solution_path(loss, L12(1.0, 0.0), alphas)
    assert [result.solver == "NonmonotoneAPG" for result in results] == on_device
    np.testing.assert_allclose(there.numpy(), coefs, atol=1e-3)
