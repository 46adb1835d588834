"""The engines reach the same stationary points, miss no direction, and say how they ended."""

import numpy as np
import pytest
from skimage import data

from ell12 import LowRank, Observed, SpectralL12, Status, complete_matrix, minimize
from ell12.completion import AlternatingLeastSquares, BlockAPG, CompletionLoss, FactoredAPG, FullSVD
from ell12.completion.hidden_entries import largest_strength
from ell12.penalties import NoPenalty, SpectralLogSum, TruncatedNuclear

PROXIMAL = [FullSVD(), BlockAPG(), FactoredAPG()]
ALL = [*PROXIMAL, AlternatingLeastSquares(30)]


def noisy(shape=(60, 45), rank=3, known=0.5, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((shape[0], rank)) @ random.standard_normal((rank, shape[1]))
    X += 0.3 * random.standard_normal(shape)
    return CompletionLoss(Observed.from_mask(X, random.random(shape) < known))


@pytest.fixture(scope="module")
def reference():
    """What the full decomposition each step reaches, for each penalty."""
    loss = noisy()
    penalties = [SpectralL12(2.0), SpectralL12(1.0, 0.0), SpectralL12(2.0, 0.5)]
    penalties += [SpectralLogSum(20.0, 5.0), TruncatedNuclear(1.5, 2)]
    return loss, [(p, minimize(loss, p, solver=FullSVD(), tol=1e-6)) for p in penalties]


@pytest.mark.parametrize("solver", ALL, ids=str)
def test_engines_agree(reference, solver):
    loss, expected = reference
    for penalty, wanted in expected:
        if isinstance(solver, AlternatingLeastSquares) and not isinstance(penalty, SpectralL12):
            continue
        result = minimize(loss, penalty, solver=solver, tol=1e-5)
        assert result.converged
        assert result.x.rank == wanted.x.rank
        rel = 1e-7 if isinstance(penalty, SpectralL12) else 1e-5
        assert result.objective == pytest.approx(wanted.objective, rel=rel)
        value = loss.value(loss.point(result.x)) + penalty.value(result.x.to_array())  # nothing is carried along
        assert result.objective == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.0])
def test_the_block_misses_no_direction_of_a_photograph(alpha):
    image = data.camera()[100:228, 150:246] / 255
    loss = CompletionLoss(Observed.from_mask(image, np.random.default_rng(0).random(image.shape) < 0.5))
    result = minimize(loss, SpectralL12(alpha), solver=BlockAPG())
    wanted = minimize(loss, SpectralL12(alpha), solver=FullSVD())
    assert result.converged
    assert result.x.rank == wanted.x.rank
    assert result.objective == pytest.approx(wanted.objective, rel=1e-5)
    # The first-order condition by one exact decomposition of X - gradient: alpha parts the kept from the dropped,
    # and what is kept stands its slope above them.
    x, gradient = result.x, loss.gradient(loss.point(result.x)).toarray()
    s = np.linalg.svd(x.to_array() - gradient)[1]
    assert s[x.rank] <= alpha * (1 + 1e-3)
    np.testing.assert_allclose(s[: x.rank], x.s + alpha * (1 - x.s / np.linalg.norm(x.s)), atol=1e-3 * alpha)


def test_without_the_norm_it_is_soft_impute():
    loss, alpha = noisy((30, 20)), 1.0
    known, values = loss.observed.mask(), loss.observed.dense()
    X = np.zeros(known.shape)
    for _ in range(3000):
        U, s, Vt = np.linalg.svd(np.where(known, values, X), full_matrices=False)
        X = (U * np.maximum(s - alpha, 0)) @ Vt
    expected = 0.5 * np.sum((X - values)[known] ** 2) + alpha * np.linalg.norm(X, "nuc")
    for solver in (BlockAPG(), FactoredAPG(), AlternatingLeastSquares(20)):
        result = minimize(loss, SpectralL12(alpha, l2_weight=0.0), solver=solver, tol=1e-6, max_iter=5000)
        assert result.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("solver", [FactoredAPG(), AlternatingLeastSquares(5)], ids=str)
@pytest.mark.parametrize("l2_weight", [0.0, 0.5])
@pytest.mark.parametrize("factor", [1.0, 1.01, 1.2])
def test_from_the_largest_strength_on_nothing_is_left(solver, l2_weight, factor):
    loss = noisy(known=0.2)
    penalty = SpectralL12(factor * largest_strength(loss, l2_weight), l2_weight)
    result = minimize(loss, penalty, solver=solver, tol=1e-3, max_iter=100)
    assert result.converged
    assert result.objective == pytest.approx(loss.value(loss.point(loss.start())), rel=1e-5)
    assert factor == 1.0 or result.x.rank == 0
    below = minimize(loss, SpectralL12(0.9 * penalty.alpha / factor, l2_weight), result.x, solver, tol=1e-3)
    assert below.converged
    assert below.x.rank > 0


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_no_sweep_of_alternating_least_squares_raises_the_objective(l2_weight):
    loss = noisy(known=0.2)
    result = minimize(loss, SpectralL12(1.0, l2_weight), solver=AlternatingLeastSquares(12), tol=0, max_iter=40)
    objective = np.array(result.history["objective"][1:])
    assert np.all(np.diff(objective) <= 1e-12 * objective[0])


@pytest.mark.parametrize("solver", [FullSVD(2), BlockAPG(2), FactoredAPG(2), AlternatingLeastSquares(2)], ids=str)
def test_a_bound_rank_is_a_status_of_its_own(solver):
    loss = noisy()
    result = minimize(loss, SpectralL12(1.0), solver=solver, tol=1e-5)
    wanted = minimize(loss, SpectralL12(1.0), solver=FullSVD(2), tol=1e-7)
    assert result.status is Status.RANK_CAPPED
    assert not result.converged
    assert result.x.rank == 2
    assert result.objective == pytest.approx(wanted.objective, rel=1e-6)
    assert result.stationarity > 1  # among all matrices it is far from stationary, and says so
    tangent = SpectralL12(1.0).tangent_violation(result.x, loss.gradient(loss.point(result.x)))
    assert tangent < 1e-4


def test_directions_that_a_start_lacks_are_found():
    loss = noisy()
    wanted = minimize(loss, SpectralL12(5.0), solver=FullSVD())
    start = wanted.x.truncate(1)
    for solver in (BlockAPG(), AlternatingLeastSquares(20)):
        result = minimize(loss, SpectralL12(5.0), start, solver)
        assert result.converged
        assert result.objective == pytest.approx(wanted.objective, rel=1e-6)
    assert wanted.x.rank > 1


@pytest.mark.parametrize(
    ("solver", "penalty", "message"),
    [
        (AlternatingLeastSquares(3), SpectralLogSum(1.0), "SpectralL12"),
        (AlternatingLeastSquares(3), SpectralL12(0.0), "alpha > 0"),
        (BlockAPG(), NoPenalty(), "NoPenalty.* lacks value_of, prox_values"),
    ],
)
def test_solvers_say_what_they_need(solver, penalty, message):
    with pytest.raises((TypeError, ValueError), match=message):
        minimize(noisy(), penalty, solver=solver)


@pytest.mark.parametrize("make", [BlockAPG, FactoredAPG, FullSVD, AlternatingLeastSquares])
@pytest.mark.parametrize("max_rank", [0, -1, 1.5, True])
def test_wrong_ranks(make, max_rank):
    with pytest.raises(ValueError, match="max_rank"):
        make(max_rank)


def test_single_precision_at_a_tiny_alpha_is_solved():
    random = np.random.default_rng(3)
    X = (random.standard_normal((200, 2)) @ random.standard_normal((2, 150)) + 1).astype(np.float32)
    X[random.random(X.shape) > 0.2] = np.nan
    result = complete_matrix(X, 1e-6, center=None, penalty=SpectralL12(l2_weight=1.0), max_rank=5, max_iter=100)
    known = ~np.isnan(X)
    assert np.abs(result.to_array() - X)[known].max() < 0.05 * np.abs(X[known]).max()


@pytest.mark.parametrize(("dtype", "kept"), [(np.float16, np.float32), (np.longdouble, np.float64)])
@pytest.mark.parametrize("solver", [BlockAPG(), FactoredAPG(), AlternatingLeastSquares(), FullSVD()])
def test_half_and_extended_precision_become_single_and_double(dtype, kept, solver):
    X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0])
    X[3, 2] = np.nan
    result = complete_matrix(X.astype(dtype), 0.01, solver=solver)
    assert result.x.dtype == kept
    expected = complete_matrix(X.astype(kept), 0.01, solver=solver)  # small whole numbers are exact in all
    np.testing.assert_array_equal(result.to_array(), expected.to_array())
    again = complete_matrix(X.astype(dtype), 0.01, solver=solver, x0=expected.x.astype(np.float64))
    assert again.x.dtype == kept


def test_rounding_in_single_precision_does_not_hide_convergence():
    random = np.random.default_rng(0)
    W, H = random.standard_normal((2, 600, 20)).astype(np.float32)
    X, known = W @ H.T, random.random((600, 600)) < 0.5
    alpha = 0.02 * float(np.linalg.norm(np.where(known, X, 0), 2))
    loss = CompletionLoss(Observed.from_mask(X, known))
    result = minimize(loss, SpectralL12(alpha), solver=BlockAPG(), max_iter=200)
    assert result.converged
    assert result.x.dtype == np.float32


def test_values_and_gradients_are_those_of_the_known_errors():
    random = np.random.default_rng(0)
    X, mask = random.standard_normal((6, 5)), random.random((6, 5)) < 0.5
    x, y = (LowRank.from_factors(random.standard_normal((6, 2)), random.standard_normal((5, 2))) for _ in range(2))
    loss = CompletionLoss(Observed.from_mask(X, mask))
    errors = np.where(mask, x.to_array() - X, 0)
    point, other = loss.point(x), loss.point(y)
    assert loss.value(point) == pytest.approx(0.5 * np.sum(errors**2), rel=1e-13)
    np.testing.assert_allclose(loss.gradient(point).toarray(), errors, atol=1e-13)
    above = loss.value(other) - loss.value(point) - np.sum(errors * (y.to_array() - x.to_array()))
    assert 0 <= above <= loss.lipschitz() / 2 * np.sum((y.to_array() - x.to_array()) ** 2)


def test_a_start_that_does_not_fit_is_named():
    loss = noisy((6, 5))
    x = LowRank.from_factors(np.eye(6)[:, :2], np.eye(5)[:, :2])
    np.testing.assert_array_equal(loss.check_start(x).to_array(), x.to_array())
    with pytest.raises(TypeError, match="x0 must be a LowRank matrix, got ndarray"):
        loss.check_start(x.to_array())
    with pytest.raises(ValueError, match=r"x0 must have shape \(6, 5\), got \(5, 6\)"):
        loss.check_start(x.T)
    with pytest.raises(ValueError, match="x0 holds NaN or infinity"):
        loss.check_start(LowRank(x.U, np.full(2, np.nan), x.V))
