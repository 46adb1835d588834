"""Sessions of a loss: what one run caches. Threads that share a loss are a law (`tests/laws/test_cases.py`)."""

import numpy as np

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
