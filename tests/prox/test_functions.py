"""The proximal operators against a brute-force search, a numerical method and each other."""

from __future__ import annotations

import itertools
from functools import lru_cache, partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import ell12.prox
from ell12.prox import moreau_l12, prox_l12, prox_l12_groups, prox_l12_iterative, prox_l12_spectral, soft_threshold


def cases(count):
    return settings(max_examples=count, deadline=None, derandomize=True)


# Quarters make ties, zeros and ||z||_inf = t likely; floats make everything else.
entries = st.one_of(st.integers(-12, 12).map(lambda k: k / 4), st.floats(-3, 3, allow_subnormal=False))
positive = entries.map(abs)
l2_weights = st.one_of(st.just(1.0), st.integers(0, 8).map(lambda k: k / 4), st.floats(0, 2))


def vectors(sizes, elements=entries):
    return sizes.flatmap(lambda n: st.lists(elements, min_size=n, max_size=n)).map(np.array)


# The search. It knows only that the penalty P is homogeneous: along a unit vector d the objective is
# 1/2 r^2 - r g(d) + 1/2 ||z||^2 with g(d) = <d, z> - t (P(d) - l2_weight), so that the best r is max(g(d), 0)
# and the best d has the largest g. It searches for that d on every face (set of groups that may be nonzero) by
# random moves: of a size that shrinks, of every size for each group, and of every size relative to the group's;
# and by turning groups towards z, without which the phase of a group that is nearly zero is found too slowly.


def objective(x, z, t, l2_weight, penalty):
    return 0.5 * np.sum(np.abs(x - z) ** 2) + t * (penalty(x) - l2_weight * np.linalg.norm(x))


@lru_cache
def faces_and_moves(labels):
    """A mask for each set of groups, and random vectors to search with."""
    labels, rng = np.array(labels), np.random.default_rng(0)
    kinds = range(labels.max() + 1)
    chosen = [c for k in kinds for c in itertools.combinations(kinds, k + 1)]
    moves = rng.standard_normal((36, 3, len(chosen), 24, labels.size))
    moves[:, 1:] *= 10.0 ** rng.uniform(-5, 0.5, (36, 2, len(chosen), 24, len(kinds)))[..., labels]
    return np.array([np.isin(labels, c) for c in chosen], dtype=float)[:, None], moves


def brute_force(z, t, l2_weight, penalty, *, labels=None, positive=False):
    """The smallest objective found over all directions and lengths."""
    grouped, labels = labels is not None, labels or tuple(range(z.size))
    faces, moves = faces_and_moves(labels)
    same_group = np.equal.outer(labels, labels).astype(float)

    def unit(d):
        d = faces * (np.abs(d) if positive else d)
        return d / np.maximum(np.linalg.norm(d, axis=-1, keepdims=True), 1e-300)

    z_size = np.sqrt(z**2 @ same_group)
    towards_z = z / np.where(z_size > 0, z_size, 1)
    best, radius = unit(moves[0, 0, :, :1]), 1e6  # the first round is everywhere
    for shrinking, free, relative in moves:
        group_size = np.sqrt(best**2 @ same_group)
        around = [best + radius * shrinking, best + free, best + group_size * relative]
        tried = unit(np.concatenate([best, *around], axis=1))
        if grouped:
            turned = np.where(z_size > 0, np.sqrt(tried**2 @ same_group) * towards_z, tried)
            tried = np.concatenate([tried, unit(turned)], axis=1)
        gain = tried @ z - t * (penalty(tried) - l2_weight)
        best = np.take_along_axis(tried, np.argmax(gain, axis=1)[:, None, None], axis=1)
        radius = min(radius, 1.0) * 0.66
    length = np.maximum(best @ z - t * (penalty(best) - l2_weight), 0)
    return min(objective(x, z, t, l2_weight, penalty) for x in (length[..., None] * best)[:, 0])


def assert_minimal(found, best, scale):
    """``found`` is no higher than what the search found, and the search found nothing else."""
    assert found <= best + 1e-12 * scale
    assert found == pytest.approx(best, rel=0, abs=1e-9 * scale)


def scale_of(z, t, l2_weight, weights=1.0):
    return 1e-300 + np.sum(np.abs(z) ** 2) + (t * max(l2_weight, np.max(weights))) ** 2


def l1(weights, x):
    return np.abs(x) @ weights


@cases(2400)
@given(
    vectors(st.integers(1, 4), st.tuples(entries, positive)), positive, l2_weights, st.booleans(), st.booleans()
)
def test_vectors_reach_the_brute_force_value(pairs, t, l2_weight, positive, weighted):
    z, weights = pairs.T.copy()
    options = {"l2_weight": l2_weight, "positive": positive} | ({"weights": weights} if weighted else {})
    weights = weights if weighted else np.ones(z.size)
    penalty = partial(l1, weights)
    x = prox_l12(z, t, **options)
    best = brute_force(z, t, l2_weight, penalty, positive=positive)
    assert not (positive and np.any(x < 0))
    assert_minimal(objective(x, z, t, l2_weight, penalty), best, scale_of(z, t, l2_weight, weights))
    assert_minimal(float(moreau_l12(z, t, **options)), best, scale_of(z, t, l2_weight, weights))


@cases(400)
@given(vectors(st.integers(1, 2), st.tuples(entries, entries, positive)), positive, l2_weights)
def test_complex_vectors_reach_the_brute_force_value(parts, t, l2_weight):
    z, weights = parts[:, 0] + 1j * parts[:, 1], parts[:, 2].copy()

    def penalty(flat):
        return np.hypot(flat[..., ::2], flat[..., 1::2]) @ weights

    labels = tuple(np.repeat(np.arange(z.size), 2).tolist())
    best = brute_force(z.view(float), t, l2_weight, penalty, labels=labels)
    x = prox_l12(z, t, l2_weight=l2_weight, weights=weights)
    scale = scale_of(z, t, l2_weight, weights)
    assert_minimal(objective(x.view(float), z.view(float), t, l2_weight, penalty), best, scale)
    assert_minimal(float(moreau_l12(z, t, l2_weight=l2_weight, weights=weights)), best, scale)


partitions = st.sampled_from([(0,), (0, 0), (0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 2), (0, 1, 1, 0), (1, 0, 1, 1)])


@cases(700)
@given(partitions, vectors(st.just(4)), vectors(st.just(3), positive), positive, l2_weights)
def test_groups_reach_the_brute_force_value(labels, z, weights, t, l2_weight):
    z, weights, member = z[: len(labels)], weights[: max(labels) + 1], np.array(labels)

    def penalty(x):
        return sum(w * np.linalg.norm(x[..., member == g], axis=-1) for g, w in enumerate(weights))

    x = prox_l12_groups(z, t, labels, l2_weight=l2_weight, weights=weights)
    best = brute_force(z, t, l2_weight, penalty, labels=labels)
    assert_minimal(objective(x, z, t, l2_weight, penalty), best, scale_of(z, t, l2_weight, weights))


def spectral_objective(X, Z, t, l2_weight):
    return objective(X, Z, t, l2_weight, lambda Y: np.linalg.norm(Y, "nuc"))


def factored_search(Z, t, l2_weight, rng):
    """The smallest value over X = A B', where the nuclear norm is the least (||A||^2 + ||B||^2) / 2."""
    m, n = Z.shape
    best = 0.5 * np.sum(Z**2)

    def value_and_gradient(packed, rank):
        A, B = packed[: m * rank].reshape(m, rank), packed[m * rank :].reshape(n, rank)
        X = A @ B.T
        length = np.linalg.norm(X)
        residual = X - Z - t * l2_weight * X / max(length, 1e-300)
        value = 0.5 * np.sum((X - Z) ** 2) + t * (0.5 * np.sum(packed**2) - l2_weight * length)
        return value, np.concatenate([(residual @ B + t * A).ravel(), (residual.T @ A + t * B).ravel()])

    for rank, _ in itertools.product(range(1, min(m, n) + 1), range(2)):
        start = rng.standard_normal((m + n) * rank)
        tight = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
        found = minimize(value_and_gradient, start, (rank,), "L-BFGS-B", jac=True, options=tight)
        best = min(best, found.fun)
    return best


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 3), (1, 3)])
@cases(12)
@given(seed=st.integers(0, 2**31), t=st.floats(0.05, 3), l2_weight=l2_weights, rank_one=st.booleans())
def test_matrices_reach_the_value_of_a_factored_search(shape, seed, t, l2_weight, rank_one):
    rng = np.random.default_rng(seed)
    Z = np.outer(*map(rng.standard_normal, shape)) if rank_one else rng.standard_normal(shape)
    best = factored_search(Z, t, l2_weight, rng)
    X = prox_l12_spectral(Z, t, l2_weight=l2_weight)
    assert_minimal(spectral_objective(X, Z, t, l2_weight), best, scale_of(Z, t, l2_weight))
    turn = [np.linalg.qr(rng.standard_normal((k, k)))[0] for k in shape]
    turned = prox_l12_spectral(turn[0] @ Z @ turn[1], t, l2_weight=l2_weight)
    assert spectral_objective(turned, turn[0] @ Z @ turn[1], t, l2_weight) == pytest.approx(
        spectral_objective(X, Z, t, l2_weight), abs=1e-12 * scale_of(Z, t, l2_weight)
    )


def test_matrices_keep_the_largest_singular_value_when_none_exceeds_the_threshold():
    Z = np.array([[[0.6, 0.0], [0.0, -0.9]], [[3.0, 0.0], [0.0, 0.1]]])
    X = prox_l12_spectral(Z, np.array([1.0, 0.5]))
    np.testing.assert_allclose(X, [[[0, 0], [0, -0.9]], [[3, 0], [0, 0]]], atol=1e-15)
    complex_X = prox_l12_spectral(1j * Z[0], 1.0)
    np.testing.assert_allclose(complex_X, [[0, 0], [0, -0.9j]], atol=1e-15)


@cases(200)
@given(
    st.integers(1, 50), st.integers(0, 2**31), st.floats(0, 3), l2_weights,
    st.sampled_from(["real", "complex", "positive"]), st.booleans(),
)  # fmt: skip
def test_no_random_point_near_or_far_is_lower(n, seed, t, l2_weight, kind, weighted):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n) + (1j * rng.standard_normal(n) if kind == "complex" else 0)
    weights = rng.uniform(0, 2, n) * (rng.random(n) < 0.8) if weighted else np.ones(n)
    x = prox_l12(z, t, l2_weight=l2_weight, weights=weights, positive=kind == "positive")
    found = objective(x, z, t, l2_weight, partial(l1, weights))
    for size, sparsity in itertools.product(10.0 ** np.arange(-7, 2), (0.1, 0.5, 1.0)):
        move = size * rng.standard_normal(n) * (rng.random(n) < sparsity)
        other = x + (move * np.exp(2j * np.pi * rng.random(n)) if kind == "complex" else move)
        other = np.maximum(other, 0) if kind == "positive" else other
        assert found <= objective(other, z, t, l2_weight, partial(l1, weights)) + 1e-12 * n
    for point in (np.zeros(n), z if kind != "positive" else np.maximum(z, 0)):
        assert found <= objective(point, z, t, l2_weight, partial(l1, weights)) + 1e-12 * n


def test_soft_threshold_and_group_lasso_are_the_case_without_subtracted_norm():
    z = np.array([3.0, -0.5, 0.0, -2.0, 1.0])
    np.testing.assert_array_equal(soft_threshold(z, 1.0), [2, 0, 0, -1, 0])
    group_lasso = prox_l12_groups([3.0, 4.0, 0.3, 0.4], 1.0, [0, 0, 1, 1], l2_weight=0.0)
    np.testing.assert_allclose(group_lasso, [2.4, 3.2, 0, 0], rtol=1e-15)


def test_an_infinite_weight_removes_the_entry():
    z, weights = np.array([2.0, 5.0, -1.5, 0.3]), np.array([1.0, np.inf, 0.5, 0.0])
    keep = np.isfinite(weights)
    for t, l2_weight in itertools.product([0.0, 0.5, 10.0], [0.0, 1.0, 1.5]):
        options = {"l2_weight": l2_weight, "weights": weights}
        x = prox_l12(z, t, **options)
        shorter = prox_l12(z[keep], t, l2_weight=l2_weight, weights=weights[keep])
        assert x[1] == 0
        np.testing.assert_allclose(x[keep], shorter, rtol=1e-15)
        rest = moreau_l12(z[keep], t, l2_weight=l2_weight, weights=weights[keep])
        assert float(moreau_l12(z, t, **options)) == pytest.approx(float(rest) + 12.5, rel=1e-14)
    np.testing.assert_array_equal(prox_l12(z, 1.0, weights=np.inf, l2_weight=2.0), np.zeros(4))


@cases(150)
@given(st.integers(1, 30), st.integers(0, 2**31), st.floats(0.01, 2), st.floats(0, 1.5), st.booleans())
def test_the_iterative_method_agrees_in_value(n, seed, t, l2_weight, positive):
    z = np.random.default_rng(seed).standard_normal(n)
    size = np.sort(z if positive else np.abs(z))[::-1]
    assume(n == 1 or size[0] > t or size[0] - size[1] > 0.05)  # near ties it is slow to leave a saddle
    options = {"l2_weight": l2_weight, "positive": positive}
    x, n_iter = prox_l12_iterative(z, t, max_iter=20_000, **options)
    assert 1 <= n_iter < 20_000
    penalty = partial(l1, np.ones(n))
    exact = objective(prox_l12(z, t, **options), z, t, l2_weight, penalty)
    assert objective(x, z, t, l2_weight, penalty) == pytest.approx(exact, abs=1e-9 * scale_of(z, t, l2_weight))


def test_the_iterative_method_does_not_rest_at_zero():
    z = np.array([0.2, -0.7, 0.1])
    x, n_iter = prox_l12_iterative(z, 1.0, start=np.zeros(3))
    np.testing.assert_allclose(x, [0, -0.7, 0], atol=1e-12)
    assert n_iter >= 2
    grown, _ = prox_l12_iterative(np.zeros(2), 1.0, l2_weight=1.5)
    np.testing.assert_allclose(grown, [0.5, 0], atol=1e-12)


def test_the_iterative_method_starts_warm_counts_its_steps_and_takes_weights():
    z = np.random.default_rng(0).standard_normal(20)
    x, cold = prox_l12_iterative(z, 0.5)
    counts = [
        prox_l12_iterative(z, 0.5, **options)[1] for options in ({"start": x}, {"max_iter": 3}, {"tol": 1e-2})
    ]
    assert counts[0] <= 2 < counts[1] == 3 < cold > counts[2]
    z, weights = np.array([2.0, -1.0, 0.4]), np.array([0.0, 1.0, np.inf])
    x, _ = prox_l12_iterative(z, 0.5, weights=weights, tol=1e-14)
    np.testing.assert_allclose(x, prox_l12(z, 0.5, weights=weights), rtol=1e-12)


@pytest.fixture
def compiled(monkeypatch):
    """Compiled loops for arrays of every size."""
    module = pytest.importorskip("ell12.prox.rows_compiled", reason="numba is not installed")
    monkeypatch.setattr(ell12.prox.closed_form, "COMPILED_FROM", 1)
    return module


def kernel(z, t, l2_weight):
    return ell12.prox.closed_form.plain_prox_rows(z, t, l2_weight, None, False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 2, 3, 8, 17, 1000])
@pytest.mark.parametrize(
    ("t", "l2_weight"), [(0.0, 1.0), (0.7, 1.0), (0.7, 0.0), (0.7, 1.7), (2.5, 0.8), (9.0, 0.5)]
)
def test_the_compiled_loop_equals_the_kernel(compiled, dtype, width, t, l2_weight):
    z = np.random.default_rng(width).standard_normal((400, width)).astype(dtype)
    z[::7], z[1::7] = 0, np.round(4 * z[1::7]) / 4  # zeros and ties
    z[2::7, 0] = t
    x = compiled.prox_rows(z, t, l2_weight)
    assert x.dtype == dtype
    np.testing.assert_array_max_ulp(x, kernel(z, t, l2_weight), maxulp=8)


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200, 1e-170])
def test_the_compiled_loop_declines_what_it_cannot_hold(compiled, width, bad):
    t = 1e-171 if bad == 1e-170 else 1.0
    z = np.random.default_rng(0).standard_normal((50, width))
    z[20] = bad
    assert compiled.prox_rows(z, t, 1.0) is None
    np.testing.assert_array_equal(prox_l12(z, t, axis=-1), kernel(z, t, 1.0))
