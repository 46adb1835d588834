"""Lower bounds of the global minimum, against brute force over all supports and signs."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from ell12 import FISTA, L1, L12, LogisticLoss, SquaredLoss, minimize
from ell12.certificate import Certificate, certify
from ell12.certificate.standard_form import standard_form


def objective(A, b, penalty, x):
    return 0.5 * np.sum((A @ x - b) ** 2) + penalty.value(x)


def stationary_points(A, b, alpha, l2_weight, weights):
    """All points at which the first-order condition holds for a support and signs, by bisection on the norm."""
    G, q = A.T @ A, A.T @ b
    norms = np.geomspace(1e-4, 1e3, 600)
    for size in range(1, A.shape[1] + 1):
        for support in map(list, itertools.combinations(range(A.shape[1]), size)):
            values, vectors = np.linalg.eigh(G[np.ix_(support, support)])
            for signs in itertools.product([1.0, -1.0], repeat=size):
                h = vectors.T @ (q[support] - alpha * np.array(signs) * weights[support])

                def excess(norm, h=h, values=values):
                    return np.linalg.norm(h / (values - alpha * l2_weight / norm)) - norm

                found = np.array([excess(norm) for norm in norms])
                for k in np.flatnonzero(np.sign(found[1:]) != np.sign(found[:-1])):
                    low, high = norms[k], norms[k + 1]
                    for _ in range(50):
                        middle = np.sqrt(low * high)
                        low, high = (
                            (middle, high) if np.sign(excess(middle)) == np.sign(found[k]) else (low, middle)
                        )
                    x = np.zeros(A.shape[1])
                    x[support] = vectors @ (h / (values - alpha * l2_weight / low))
                    yield x


@pytest.mark.parametrize("seed", range(12))
def test_no_bound_lies_above_the_minimum_and_small_problems_are_proved(seed):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(1, 4)), int(random.integers(1, 6))
    A, b = random.standard_normal((m, n)), 3 * random.standard_normal(m)
    if n > 1 and seed % 2:
        A[:, 1] = A[:, 0] + 0.1 * random.standard_normal(m)
    l2_weight = (0.3, 0.7, 1.0)[seed % 3]
    weights, positive = random.uniform(1, 2, n) if seed % 4 == 1 else np.ones(n), seed % 5 == 2
    penalty = L12(random.uniform(0.05, 0.9) * np.abs(A.T @ b).max(), l2_weight, weights=weights, positive=positive)
    points = stationary_points(A, b, penalty.alpha, l2_weight, weights)
    least = min([0.5 * b @ b, *(objective(A, b, penalty, x) for x in points)])
    certificate = certify(SquaredLoss(A, b), penalty, np.zeros(n))
    assert certificate.lower_bound <= least * (1 + 1e-9)
    assert certificate.proved
    assert certificate.objective == pytest.approx(least, rel=2e-6)
    assert objective(A, b, penalty, certificate.x) == pytest.approx(certificate.objective, rel=1e-9)


def coherent(seed=0, m=24, n=60, k=4):
    random = np.random.default_rng(seed)
    A = np.cos(2 * np.pi * random.random((m, 1)) * np.arange(1, n + 1) / 5)
    A /= np.linalg.norm(A, axis=0)
    x = np.zeros(n)
    x[random.permutation(n)[:k]] = random.standard_normal(k)
    return A, A @ x + 0.01 * random.standard_normal(m)


def test_a_local_minimum_is_replaced_by_the_global_one():
    A, b = coherent()
    penalty = L12(0.03 * np.abs(A.T @ b).max())
    worse = minimize(SquaredLoss(A, b), penalty, 5 * np.eye(60)[7], FISTA(), tol=1e-8).x
    certificate = certify(SquaredLoss(A, b), penalty, worse)
    assert certificate.proved
    assert certificate.objective <= objective(A, b, penalty, worse)
    assert certificate.lower_bound <= certificate.objective


@pytest.mark.parametrize("kind", ["sparse", "weighted", "scaled", "ridge", "copies", "turned"])
def test_the_same_problem_in_another_form_has_the_same_minimum(kind):
    A, b = coherent(1)
    alpha = 0.05 * np.abs(A.T @ b).max()
    least = certify(SquaredLoss(A, b), L12(alpha, ridge=0.1 if kind == "ridge" else 0.0)).objective
    if kind == "sparse":
        problem = SquaredLoss(scipy.sparse.csr_array(A), b), L12(alpha)
    elif kind == "weighted":  # each row twice, with half its weight
        problem = (
            SquaredLoss(np.tile(A, (2, 1)), np.tile(b, 2), sample_weight=np.full(2 * b.size, 0.5)),
            L12(alpha),
        )
    elif kind == "scaled":
        problem, least = (SquaredLoss(A, b, scale=0.25), L12(alpha / 4)), least / 4
    elif kind == "ridge":
        rows = np.vstack([A, np.sqrt(0.1 * alpha) * np.eye(60)])
        problem = SquaredLoss(rows, np.append(b, np.zeros(60))), L12(alpha)
    elif kind == "copies":
        problem = SquaredLoss(np.hstack([A, -A[:, ::3]]), b), L12(alpha)
    else:
        problem = SquaredLoss(-A[:, ::-1], b), L12(alpha)
    certificate = certify(*problem)
    assert certificate.proved
    assert certificate.objective == pytest.approx(least, rel=3e-6)


def test_an_entry_without_penalty_is_minimised_over():
    A, b = coherent(2)
    penalty = L12(0.05, weights=np.append(np.ones(60), 0.0))
    certificate = certify(SquaredLoss(np.hstack([A, np.ones((24, 1))]), b + 7), penalty)
    centred = certify(SquaredLoss(A - A.mean(axis=0), b - b.mean()), L12(0.05))
    assert certificate.proved
    assert certificate.objective == pytest.approx(centred.objective, rel=3e-6)
    free, rest = certify(SquaredLoss(A[:, :5], b), L12(0.0)), np.linalg.lstsq(A[:, :5], b)[1]
    assert free.objective == pytest.approx(float(rest[0]) / 2, rel=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_lasso_has_its_duality_gap_as_certificate(ridge):
    A, b = coherent(3)
    for start in (None, np.zeros(60)):
        certificate = certify(SquaredLoss(A, b), L1(0.05, ridge=ridge), start)
        assert certificate.proved
        assert certificate.nodes == 0


def test_tall_data_are_proved_without_branching():
    random = np.random.default_rng(4)
    A = random.standard_normal((200, 10))
    certificate = certify(SquaredLoss(A, (A @ np.arange(10.0)).astype(np.longdouble)), L12(1.0))
    assert certificate.proved
    assert certificate.nodes == 0


def test_what_was_reached_is_returned_when_the_time_or_the_nodes_are_over():
    A, b = coherent(5, m=40, n=160, k=12)
    loss, penalty = SquaredLoss(A, b), L12(0.02 * np.abs(A.T @ b).max())
    for limit in ({"max_seconds": 0.0}, {"max_nodes": 3}):
        certificate = certify(loss, penalty, **limit)
        assert not certificate.proved
        assert 0 <= certificate.lower_bound < certificate.objective
        assert next(iter(limit)) in certificate.reason
        assert "not proved: the minimum lies between" in repr(certificate)


def test_an_interrupt_returns_what_was_reached():
    A, b = coherent(5, m=40, n=160, k=12)
    calls = itertools.count()

    class Interrupting(L12):
        def value(self, x):
            if next(calls) == 5:
                raise KeyboardInterrupt
            return super().value(x)

    certificate = certify(SquaredLoss(A, b), Interrupting(0.02 * np.abs(A.T @ b).max()))
    assert certificate.reason == "interrupted"
    assert 0 <= certificate.lower_bound < certificate.objective
    assert not certificate.proved


def test_a_certificate_is_one_line():
    certificate = Certificate(0.7, 0.70804421, 1e-6, True, None, 1, 0.412, "no box is left")
    assert repr(certificate) == "Certificate(proved: 0.708044 is the minimum to 1e-06, 1 node, 0.41 s)"


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [(LogisticLoss(np.eye(2), [0, 1]), L12(1.0)), (SquaredLoss(np.eye(2), np.eye(2)), L12(1.0))],
)
def test_other_problems_are_refused(loss, penalty):
    with pytest.raises(TypeError, match="certify needs as loss a SquaredLoss"):
        certify(loss, penalty)


def test_descent_in_a_box_ends_where_the_first_order_condition_holds():
    random = np.random.default_rng(6)
    A, lower, upper = random.standard_normal((8, 12)), -random.random(12), random.random(12)
    form = standard_form(SquaredLoss(A, random.standard_normal(8)), L12(0.1))[0]
    x = np.zeros(12)
    form.descend(x, lower, upper, np.full(12, -0.5), np.full(12, 0.7), 10**4, 0.0)
    slope = -form.pull(x) + np.where(x > 0, 0.7, -0.5)
    inside = (x > lower) & (x < upper)
    assert np.abs(slope[inside & (x != 0)]).max(initial=0) < 1e-9
    assert np.all(slope[x == upper] <= 1e-9)
    assert np.all(slope[x == lower] >= -1e-9)
