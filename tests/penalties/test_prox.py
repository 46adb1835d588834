"""The prox of every penalty is a global minimiser: against searches that know nothing of the closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from tests.penalties.formulas import size_formula

from ell12 import L1, L12, MCP, GroupL12, SpectralL12
from ell12.penalties import SCAD, CappedL1, LogSum, Lp, TransformedL1
from ell12.prox import prox_l12, prox_l12_groups, prox_l12_spectral

EPS = np.finfo(float).eps
POWERS = st.floats(-4, 4).map(lambda e: 10.0**e)
P_VALUES = st.floats(0.01, 0.99)

SEEDS = st.integers(0, 2**32 - 1)


SEPARABLE = {
    "l1": lambda alpha, step, ratio: L1(alpha),
    "log-sum": lambda alpha, step, ratio: LogSum(alpha, ratio * math.sqrt(alpha * step)),
    "capped": lambda alpha, step, ratio: CappedL1(alpha, ratio * alpha * step),
    "mcp": lambda alpha, step, ratio: MCP(alpha, ratio * step),
    "lp": lambda alpha, step, ratio: Lp(alpha, ratio / (1 + ratio)),
    "scad": lambda alpha, step, ratio: SCAD(alpha, 1.01 + ratio * step),
    "transformed l1": lambda alpha, step, ratio: TransformedL1(alpha, ratio * math.sqrt(alpha * step)),
}


def breakpoints(penalty, step):
    """Where the solution changes its form."""
    t = penalty.alpha * step
    match penalty:
        case LogSum(theta=theta):
            return [theta, t / theta, abs(2 * math.sqrt(t) - theta), math.sqrt(2 * t)]
        case CappedL1(theta=theta):
            return [t, theta, theta + t / 2, math.sqrt(2 * t * theta), theta + t]
        case MCP(alpha=alpha, gamma=gamma):
            return [t, gamma * alpha, alpha * math.sqrt(gamma * step)]
        case Lp(p=p):
            return [_lp_threshold(t, p)]
        case SCAD(alpha=alpha, a=a):
            return [t, alpha, t + alpha, a * alpha, alpha * (a + 1 + step) / 2]
        case TransformedL1(a=a):
            return [t * (a + 1) / a, a, math.sqrt(2 * t * (a + 1)) - a / 2 if a * a < 2 * t * (a + 1) else a]
    return [t]


@st.composite
def separable_problems(draw, kind):
    """A penalty, a step and an entry, often at or next to one where the solution changes its form."""
    alpha, step = draw(POWERS), draw(POWERS)
    ratio = draw(
        st.floats(0.1, 10) | st.floats(-4, 4).map(lambda e: 10.0**e) | st.sampled_from([1 - EPS, 1.0, 1 + 1e-6])
    )
    penalty = SEPARABLE[kind](alpha, step, ratio)
    factor = st.floats(0.3, 3) | st.sampled_from([1.0, 1 - EPS, 1 + EPS, 1 - 1e-9, 1 + 1e-9, 0.999, 1.001])
    near = st.tuples(st.sampled_from(breakpoints(penalty, step)), factor).map(math.prod)
    return penalty, step, draw(near | near | POWERS | st.just(0.0))


def _lp_threshold(t, p):
    """Where zero and the other local minimiser cost the same (Marjanovic & Solo, 2012)."""
    return (2 - p) / (2 - 2 * p) * (2 * t * (1 - p)) ** (1 / (2 - p))


def search(cost, z, landmarks):
    """The least cost of a number near z: a grid that knows nothing of the solution, then golden sections."""
    grid = [
        np.linspace(-0.5, 1.5, 1001) * z,
        z * 10.0 ** -np.arange(17),
        z * (1 - 10.0 ** -np.arange(1, 17)),
        landmarks,
    ]
    grid = np.unique(np.concatenate([[0.0], *grid]))
    costs = cost(grid)
    best = float(costs.min())
    for i in np.argsort(costs)[:3]:
        low, high = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
        polished = minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-12 * abs(z)})
        best = min(best, float(polished.fun))
    return best


@pytest.mark.parametrize("kind", SEPARABLE)
@settings(max_examples=250, deadline=None)
@given(data=st.data(), sign=st.sampled_from([1, -1]))
def test_separable_prox_is_a_global_minimiser(kind, data, sign):
    check_global_minimiser(*data.draw(separable_problems(kind)), sign)


@pytest.mark.parametrize("alpha", [1.0, 1.1])
def test_mcp_where_the_step_nearly_makes_it_concave(alpha):
    for z in alpha * np.array([2.9, 3 - 1e-15, 3.0, 3 + 1e-15, 3.1]):
        check_global_minimiser(MCP(alpha, 3.0), float(np.nextafter(3.0, 0)), float(z), 1)


def check_global_minimiser(penalty, step, z, sign):
    def cost(s):
        return 0.5 * (s - z) ** 2 + step * size_formula(penalty, np.abs(s))

    x = sign * float(penalty.prox(np.array([sign * z]), step)[0])
    assert 0 <= x <= z
    landmarks = [getattr(penalty, "theta", 0.0), getattr(penalty, "gamma", 0.0) * penalty.alpha]
    best = search(cost, z, [v for v in landmarks if v <= 2 * z]) if z else 0.0
    rounding = 8 * EPS * z * (EPS * z + math.sqrt(2 * best))  # what a relative error of EPS in x can cost
    assert cost(x) <= best * (1 + 1e-10) + rounding


FAR = [L1(1.0), LogSum(2.0, 0.5), CappedL1(1.0, 2.0), Lp(1.0), Lp(1.0, 0.9), MCP(1), SCAD(1), TransformedL1(1)]


@pytest.mark.parametrize("penalty", FAR)
def test_separable_prox_far_away_and_next_to_zero(penalty):
    x = penalty.prox(np.array([1e200, -1e300, 1e-200, -0.0]), 1.0)
    np.testing.assert_allclose(x[:2], [1e200, -1e300], rtol=1e-15)
    np.testing.assert_array_equal(x[2:], 0)


@given(alpha=POWERS, p=P_VALUES, step=POWERS)
def test_lp_keeps_nothing_below_its_threshold_and_everything_above(alpha, p, step):
    threshold = _lp_threshold(alpha * step, p)
    x = Lp(alpha, p).prox(threshold * np.array([1 - 1e-9, 1 + 1e-9]), step)
    assert x[0] == 0
    assert x[1] > 0


@pytest.mark.parametrize(("tiny", "dtype"), [(1e-310, np.complex128), (1e-40, np.complex64)])
@pytest.mark.parametrize("penalty", [L12(1.0), L1(1.0), CappedL1(1.0)])
def test_subnormal_complex_entries(penalty, tiny, dtype):
    x = penalty.prox(np.array([tiny, 3 + 4j], dtype=dtype), 1.0)
    assert np.all(np.isfinite(x))
    np.testing.assert_allclose(x[1] / abs(x[1]), 0.6 + 0.8j, rtol=1e-6)


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, t=st.floats(0.05, 3), l2_weight=st.floats(0, 2), step=st.floats(0.1, 3))
def test_the_prox_of_l12_and_its_kin_is_that_of_the_functions(seed, t, l2_weight, step):
    """Whose values `tests/prox` compares with brute force; weight 0 leaves both norms."""
    random = np.random.default_rng(seed)
    z, w = t * step * random.uniform(-3, 3, 5), random.uniform(0.1, 2, 5) * (random.random(5) < 0.7)
    for data, positive in ((z, False), (z, True), (z * np.exp(1j * np.arange(5)), False)):
        options = {"l2_weight": l2_weight, "positive": positive}
        x = L12(t, weights=w, **options).prox(data, step)
        expected = np.where(positive & (z < 0), 0, data)
        expected[w > 0] = prox_l12(data[w > 0], t * step, weights=w[w > 0], **options)
        np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-15)
    labels, own = [0, 0, 1, 2, 1], random.uniform(0.1, 2, 3)
    expected = prox_l12_groups(z, t * step, labels, l2_weight=l2_weight, weights=own)
    np.testing.assert_allclose(GroupL12(labels, t, l2_weight, weights=own).prox(z, step), expected, rtol=1e-12)
    Z = random.standard_normal((3, 4))
    expected = prox_l12_spectral(Z, t * step, l2_weight=l2_weight)
    np.testing.assert_allclose(SpectralL12(t, l2_weight).prox(Z, step), expected, rtol=1e-10, atol=1e-14)
