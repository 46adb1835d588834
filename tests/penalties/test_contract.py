"""What penalties offer beyond value and prox, against definitions written out and searches by brute force."""

import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from tests.penalties.formulas import formula

from ell12 import L1, L12, MCP, GroupL12, RowsL12
from ell12.penalties import SCAD, CappedL1, LogSum, Lp, TransformedL1, WithIntercept
from ell12.protocols import DifferencePenalty, Penalty, PiecewisePenalty, missing, offers, with_alpha
from ell12.prox import prox_l12_groups

GROUPS = [0, 1, 0, 2, 1]
SMOOTH = {
    "l12": L12(0.7),
    "l12 of weight 1.4": L12(0.7, 1.4),
    "l12 with a ridge": L12(0.7, 0.9, weights=[1.0, 0.0, 0.5, 2.0, 0.0], ridge=0.8),
    "l1": L1(0.7),
    "l1 with a ridge": L1(0.7, ridge=0.8),
    "l12 with weights": L12(0.7, 0.9, weights=[1.0, 0.0, 0.5, 2.0, 0.0]),
    "positive l12": L12(0.7, weights=[1.0, 0.0, 0.5, 2.0, 3.0], positive=True),
    "l12 with signs": L12(
        0.7, weights=[1.0, 0.0, 0.5, 2.0, 0.0], positive=np.array([True, False, False, True, False])
    ),
    "log-sum": LogSum(0.7, theta=0.6),
    "mcp": MCP(0.7, gamma=1.5),
    "scad": SCAD(0.7, a=2.5),
    "transformed l1": TransformedL1(0.7, a=0.6),
    "ridge and intercept": WithIntercept(L12(0.7, weights=[1.0, 0.0, 0.5, 2.0], ridge=0.8)),
    "with an intercept": WithIntercept(L12(0.7, weights=[1.0, 0.0, 0.5, 2.0])),
    "mcp with an intercept": WithIntercept(MCP(0.7, gamma=1.5)),
}
VECTORS = SMOOTH | {
    "groups": GroupL12(GROUPS, 0.7),
    "groups with weights": GroupL12(GROUPS, 0.7, 0.6, weights=[0.0, 1.0, 2.0]),
    "groups with a ridge": GroupL12(GROUPS, 0.7, 0.6, weights=[0.0, 1.0, 2.0], ridge=0.8),
    "capped": CappedL1(0.7, theta=0.8),
    "lp": Lp(0.7, p=0.4),
}
MATRICES = {
    "rows": RowsL12(0.7, 0.8, weights=[1.0, 0.0, 2.0]),
    "rows with a ridge": RowsL12(0.7, 0.8, weights=[1.0, 0.0, 2.0], ridge=0.8),
}
X = np.array([1.5, -0.4, 0.3, 0.0, -2.5])


def point_for(name):
    """A point that the penalty of this name allows."""
    if name in MATRICES:
        return np.array([[1.5, -0.4], [0.3, 0.0], [-2.5, 0.6]])
    return np.abs(X) if name == "positive l12" else X


@pytest.mark.parametrize(
    ("protocol", "penalties"),
    [
        (PiecewisePenalty, [L12(1.0), LogSum(1.0), MCP(1.0)]),
        (DifferencePenalty, [GroupL12([0, 1], 1.0), RowsL12(1.0), CappedL1(1.0)]),
        (Penalty, [Lp(1.0)]),
    ],
)
def test_penalties_offer_what_they_can_and_an_intercept_takes_nothing_away(protocol, penalties):
    for penalty in penalties:
        assert missing(penalty, protocol) == []
        for other in (DifferencePenalty, PiecewisePenalty):
            assert offers(WithIntercept(penalty), other) == offers(penalty, other)
    assert missing(CappedL1(1.0), PiecewisePenalty)  # it has another kink


@pytest.mark.parametrize("name", [name for name in VECTORS | MATRICES if not {"mcp", "scad"} & set(name.split())])
@pytest.mark.parametrize("factor", [0.3, 1.0, 7.0])
def test_a_scaled_penalty_costs_that_much_more(name, factor):
    penalty = (VECTORS | MATRICES)[name]
    scaled = with_alpha(penalty, factor * penalty.alpha)
    assert scaled.alpha == factor * penalty.alpha
    for x in (point_for(name), 0.1 * point_for(name), 0 * point_for(name)):
        assert scaled.value(x) == pytest.approx(factor * penalty.value(x), rel=1e-13, abs=1e-15)
        np.testing.assert_allclose(scaled.prox(x, 0.2), penalty.prox(x, 0.2 * factor), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", SMOOTH)
def test_a_restricted_penalty_is_the_penalty_where_the_others_are_zero(name):
    penalty, gradient = SMOOTH[name], np.array([0.3, -2.0, 0.1, 1.4, -0.2])
    for count in range(1, 5):
        for first in itertools.combinations(range(4), count):
            columns = np.array([*first, 4])  # an intercept is always among them
            x, within = np.zeros(5), penalty.restrict(columns)
            x[columns] = point_for(name)[columns]
            assert within.value(x[columns]) == pytest.approx(penalty.value(x), rel=1e-14, abs=1e-15)
            inside = gradient[columns]
            np.testing.assert_allclose(
                within.least_slope(x[columns], inside), penalty.least_slope(x, gradient)[columns], atol=1e-14
            )
            np.testing.assert_array_equal(within.kinks(x[columns]), penalty.kinks(x)[columns])
            for part, whole in zip(within.slopes_at_zero(x[columns]), penalty.slopes_at_zero(x), strict=True):
                np.testing.assert_array_equal(part, whole[columns])


def gradient_of(penalty, x):
    return penalty.least_slope(x, 0 * x)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("seed", range(4))
def test_curvature_is_the_derivative_of_the_slope(name, seed):
    penalty, random = SMOOTH[name], np.random.default_rng(seed)
    x = random.uniform(0.05, 1.5, 5) * (1.0 if name == "positive l12" else random.choice([-1.0, 1.0], 5))
    x[np.abs(np.abs(x) - 1.05) < 1e-3] = 0.3  # where MCP becomes constant
    h = 1e-6
    rows = [(gradient_of(penalty, x + h * e) - gradient_of(penalty, x - h * e)) / (2 * h) for e in np.eye(5)]
    curvature = penalty.curvature(x)
    np.testing.assert_allclose(curvature.matrix(np.arange(5)), rows, atol=2e-8)
    assert curvature.largest >= np.abs(np.linalg.eigvalsh(rows)).max() - 1e-7
    for columns in (np.arange(5), np.array([1, 3]), np.array([0, 4]), np.array([4]), np.array([], dtype=int)):
        matrix, v = curvature.matrix(columns), random.standard_normal(columns.size)
        assert matrix.shape == (columns.size, columns.size)
        np.testing.assert_allclose(curvature.product(columns)(v), matrix @ v, atol=1e-14)


def test_only_a_penalty_that_subtracts_nothing_is_convex():
    assert all(penalty.is_convex for penalty in (L1(1.0), L12(0.0), WithIntercept(L1(1.0))))
    assert not any(penalty.is_convex for penalty in (L12(1.0), MCP(1.0)))


class OneRow:
    """A penalty of matrices, for vectors that are their only row."""

    def __init__(self, penalty):
        self.penalty = penalty

    def value(self, x):
        return self.penalty.value(x[None, :])

    def prox(self, x, step):
        return self.penalty.prox(x[None, :], step)[0]

    def violation(self, x, gradient):
        return self.penalty.violation(x[None, :], gradient[None, :])


SIGNS = np.array([True, False, True])
SMALL = {  # penalties and the number of entries
    "positive": (L12(0.8, positive=True), 2),
    "positive, one entry unpenalised": (L12(0.8, 0.6, weights=[1.0, 0.0, 2.0], positive=True), 3),
    "positive where signs say so": (L12(0.8, 0.7, weights=[1.0, 0.5, 0.0], positive=SIGNS), 3),
    "positive where signs say so, a large weight": (L12(0.8, 1.6, positive=SIGNS), 3),
    "a ridge": (L12(0.8, 0.7, weights=[1.0, 2.0, 0.0], ridge=0.3), 3),
    "a large ridge": (L12(0.8, ridge=4.0), 3),
    "groups with a ridge": (GroupL12([0, 1, 0], 0.8, weights=[0.5, 0.0], ridge=0.3), 3),
    "the group lasso with a ridge": (GroupL12([0, 1, 0], 0.8, 0.0, ridge=4.0), 3),
    "a positive row": (OneRow(RowsL12(0.8, 0.6, positive=True)), 3),
    "one entry": (L12(0.8, 0.5), 1),
    "two entries": (L12(0.8), 2),
    "three entries": (L12(0.8), 3),
    "more than the l1 norm": (L12(0.5, 1.5), 2),
    "weights": (L12(0.8, 0.7, weights=[1.0, 0.0, 2.0]), 3),
    "groups": (GroupL12([0, 1, 0], 0.8), 3),
    "an unpenalised group": (GroupL12([0, 1, 0], 0.8, 0.9, weights=[1.5, 0.0]), 3),
    "log-sum": (LogSum(0.5, 0.4), 2),
    "capped": (CappedL1(0.9, 0.7), 2),
    "mcp": (MCP(0.9, 1.3), 2),
}


class SmallProblem:
    """``1/2 (x - z)' H (x - z)`` plus the cost of a penalty, written out, at many points at once."""

    def __init__(self, penalty, size, seed):
        random = np.random.default_rng(seed)
        root = random.standard_normal((size, size))
        self.H, self.z, self.penalty = root @ root.T + 0.5 * np.eye(size), random.standard_normal(size), penalty

    def cost(self, x):
        one_row = isinstance(self.penalty, OneRow)
        return formula(self.penalty.penalty, x, [0] * x.shape[-1]) if one_row else formula(self.penalty, x)

    def value(self, x):
        away = x - self.z
        return 0.5 * np.einsum("...i,ij,...j->...", away, self.H, away) + self.cost(x)

    def gradient(self, x):
        return self.H @ (x - self.z)

    def best(self):
        """The minimiser: a grid around zero, then finer ones; entries may be zero at every stage."""
        size, centre, width = len(self.z), np.zeros(len(self.z)), 4.0
        while width > 1e-8:
            axes = [np.r_[np.linspace(c - width, c + width, 41), 0.0] for c in centre]
            points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, size)
            centre, width = points[np.argmin(self.value(points))], 0.4 * width
        return np.where(np.abs(centre) < 1e-6, 0.0, centre)

    def steepest(self, x, random, count=4000):
        """The most that the value falls along a unit vector: numerically, some vectors with zeros among them."""
        moves = random.standard_normal((count, len(x))) * (random.random((count, len(x))) < 0.7)
        moves = np.concatenate([moves, np.eye(len(x)), -np.eye(len(x))])
        lengths = np.linalg.norm(moves, axis=1, keepdims=True)
        moves = (moves / np.where(lengths > 0, lengths, 1))[lengths[:, 0] > 0]
        h = 1e-6
        return float(max(0.0, -((self.value(x + h * moves) - self.value(x)) / h).min()))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SMALL)
def test_the_prox_is_as_good_as_what_brute_force_finds(name, seed):
    penalty, size = SMALL[name]
    problem = SmallProblem(penalty, size, seed)
    problem.H = np.eye(size) / 0.7
    assert problem.value(penalty.prox(problem.z, 0.7)) <= problem.value(problem.best()) + 1e-12


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SMALL)
def test_violation_is_zero_at_the_minimiser_that_brute_force_finds(name, seed):
    penalty, size = SMALL[name]
    problem = SmallProblem(penalty, size, seed)
    x = problem.best()
    assert penalty.value(x) == pytest.approx(float(problem.cost(x)), abs=1e-12)
    assert penalty.violation(x, problem.gradient(x)) < 1e-6


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SMALL)
def test_violation_is_positive_exactly_where_some_direction_descends(name, seed):
    penalty, size = SMALL[name]
    problem, random = SmallProblem(penalty, size, seed), np.random.default_rng(seed)
    points = [problem.best(), np.zeros(size)]
    points += [random.standard_normal(size) * (random.random(size) < 0.6) for _ in range(8)]
    for x in (np.abs(x) if "positive" in name else x for x in points):
        steepest, violation = problem.steepest(x, random), penalty.violation(x, problem.gradient(x))
        assert violation > 0.1 * steepest - 1e-4
        assert steepest > 0.1 * violation - 1e-4


def test_where_capped_l1_stops_rising_no_point_is_stationary():
    penalty, x = CappedL1(1.0, theta=0.5), np.array([0.5, -0.5])
    for slope in (-1.0, -0.5, 0.0):
        assert penalty.violation(x, slope * np.sign(x)) >= 0.5
    assert penalty.violation(x, -np.sign(x)) == pytest.approx(1.0)


@pytest.mark.parametrize(("l2_weight", "ridge"), [(0.0, 0.0), (0.7, 0.0), (1.3, 0.0), (0.8, 1.5)])
def test_groups_of_equal_sizes_are_rows(l2_weight, ridge):
    random, options = np.random.default_rng(0), {"weights": [1.0, 0.0, 2.0, np.inf], "ridge": ridge}
    groups = GroupL12(np.repeat(np.arange(4), 3), 0.7, l2_weight, **options)
    rows = RowsL12(0.7, l2_weight, **options)
    for scale in (0.3, 1.0, 3.0):
        x, gradient = scale * random.standard_normal((4, 3)), random.standard_normal((4, 3))
        np.testing.assert_allclose(groups.prox(x.ravel(), 0.5), rows.prox(x, 0.5).ravel(), atol=1e-15)
        for some in (x * [[1], [1], [0], [0]], x * [[0], [1], [0], [0]], 0 * x):
            flat = some.ravel()
            assert groups.value(flat) == pytest.approx(rows.value(some), abs=1e-14)
            assert groups.violation(flat, gradient.ravel()) == pytest.approx(rows.violation(some, gradient))
            slopes = groups.subtracted_gradient(flat), rows.subtracted_gradient(some).ravel()
            np.testing.assert_allclose(*slopes, atol=1e-15)


@pytest.mark.parametrize("shape", [(3, 0), (3,)])
def test_matrices_of_a_wrong_shape_are_refused_by_name(shape):
    penalty = RowsL12(1.0)
    for call in (penalty.value, lambda x: penalty.prox(x, 1.0), lambda x: penalty.violation(x, x)):
        with pytest.raises(ValueError, match=r"^x must"):
            call(np.ones(shape))


def test_an_intercept_has_no_penalty_and_no_sign():
    penalty, x = WithIntercept(L12(0.5, positive=True)), np.array([2.0, -1.0, -5.0])
    shrunk = penalty.prox(x, 1.0)
    np.testing.assert_array_equal(shrunk, [*L12(0.5, positive=True).prox(x[:-1], 1.0), -5.0])
    assert penalty.violation(shrunk, np.array([0.0, 0.0, -0.7])) >= 0.7


@pytest.mark.parametrize("size", [8_000, 64_000])
def test_unequal_groups_take_memory_in_proportion_to_the_entries(size):
    half = size // 2
    labels = np.r_[np.zeros(half, int), 1 + np.arange(half)]
    x = np.ones(size)
    tracemalloc.start()
    penalty = GroupL12(labels, 1.0)
    penalty.violation(penalty.prox(x, 0.1), x)
    prox_l12_groups(x, 0.1, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * size


def test_at_zero_the_violation_is_in_the_units_of_the_gradient_however_large_the_ridge():
    gradient = np.array([3.0, -1.0, 0.5])
    for alpha in (1.0, 1e6):
        plain, ridged = (L12(alpha, ridge=ridge).violation(np.zeros(3), gradient) for ridge in (0.0, 100.0))
        assert ridged == plain > 1


def test_a_ridge_scales_with_the_strength_and_belongs_to_the_convex_part():
    x, penalty = np.array([1.0, -2.0, 0.0]), L12(0.8, 0.9, ridge=0.7)
    assert replace(penalty, alpha=2.4).value(x) == pytest.approx(3 * penalty.value(x))
    subtracted = 0.8 * 0.9 * np.linalg.norm(x)
    assert penalty.convex.value(x) - subtracted == pytest.approx(penalty.value(x))
    np.testing.assert_allclose(penalty.convex.curvature(x).matrix(np.arange(3)), 0.56 * np.eye(3))
