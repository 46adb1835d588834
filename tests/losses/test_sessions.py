"""Sessions of a loss: what one run caches. Threads that share a loss are a law (`tests/laws/test_cases.py`)."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ell12.losses.of_prediction
from ell12 import L12, NonmonotoneAPG, SquaredLoss, minimize
from ell12.losses import RowsLoss
from ell12.operators.krylov import largest_eigenvalue


def data(m=120, n=600, seed=0):
    random = np.random.default_rng(seed)
    A = random.standard_normal((m, n))
    x = np.zeros(n)
    x[random.permutation(n)[:10]] = random.standard_normal(10)
    return A, A @ x + 0.1 * random.standard_normal(m)


@pytest.fixture
def quick_switches():
    """Threads take turns a thousand times as often as usual, so that a race is met."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(usual)


def test_what_a_session_finds_out_about_the_data_serves_the_next(monkeypatch):
    measured = []

    def counting(*arguments, **options):
        measured.append(1)
        return largest_eigenvalue(*arguments, **options)

    monkeypatch.setattr(ell12.losses.of_prediction, "largest_eigenvalue", counting)
    loss = SquaredLoss(*data())
    for alpha in (40.0, 20.0, 10.0):
        minimize(loss, L12(alpha), solver=NonmonotoneAPG(), max_iter=3)
    assert len(measured) == 1


@pytest.mark.usefixtures("quick_switches")
def test_threads_that_share_a_streamed_loss_get_the_values_of_their_own_points():
    A, b = data(60, 20)
    loss = RowsLoss([(A[k : k + 5], b[k : k + 5]) for k in range(0, 60, 5)])
    random = np.random.default_rng(1)
    points = [loss.point(random.standard_normal(20)) for _ in range(200)]
    plain = SquaredLoss(A, b, scale=1 / 60)
    expected = [plain.value(plain.point(point.x)) for point in points]
    with ThreadPoolExecutor(4) as pool:
        for shared in (loss, loss.for_run()):
            np.testing.assert_allclose(list(pool.map(shared.value, points)), expected, rtol=1e-12)


def test_a_point_of_a_stream_shares_one_pass_between_value_and_gradient():
    A, b = data(60, 20)
    passes = []

    def chunks():
        passes.append(1)
        yield A, b

    loss = RowsLoss(chunks)
    loss.start()
    session = loss.for_run()
    point = session.point(np.ones(20))
    passes.clear()
    session.value(point), session.gradient(point)
    assert len(passes) == 1
    other = loss.point(np.zeros(20))
    loss.value(other), loss.gradient(other)
    assert len(passes) == 2
