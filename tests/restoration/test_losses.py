"""Counts and impulses: the losses besides the squared one, in the functions of images."""

import numpy as np
import pytest
import scipy.ndimage
import scipy.optimize
from tests.restoration import short

import ell12
from ell12.operators import to_dense
from ell12.operators.image_operators import Convolution, FiniteDifference

RNG = np.random.default_rng(0)
SHAPE = (4, 5)
SMALL = np.where(np.indices(SHAPE).sum(axis=0) > 4, 4.0, 1.0) + 0.3 * RNG.standard_normal(SHAPE)
SMALL[1, 1], SMALL[3, 3] = 9.0, 0.0
KERNEL = np.array([[0.1, 0.2, 0.1], [0.0, 0.5, 0.1], [0.0, 0.0, 0.0]])
MASK = RNG.random(SHAPE) < 0.7
EXACT = {"l2_weight": 0.0, "solver": ell12.restoration.GrowingADMM(1.01), "tol": 1e-4, "max_iter": 2000}


PROBLEMS = {
    "denoise": (np.eye(20), "neumann", short.denoise_tv),
    "inpaint": (np.eye(20)[MASK.ravel()], "neumann", lambda y, alpha, **o: short.inpaint_tv(y, MASK, alpha, **o)),
    "deblur": (
        to_dense(Convolution(KERNEL, SHAPE)),
        "periodic",
        lambda y, alpha, **o: short.deblur_tv(y, KERNEL, alpha, boundary="periodic", **o),
    ),
}


def problem(name, image):
    """The operator, the differences that are not zero by themselves, the data, and what solves the problem."""
    A, boundary, restore = PROBLEMS[name]
    D = to_dense(FiniteDifference(SHAPE, boundary))
    return A, D[np.abs(D).sum(axis=1) > 0], image[MASK] if name == "inpaint" else image.ravel(), restore


@pytest.mark.parametrize("alpha", [0.2, 0.7])
@pytest.mark.parametrize("name", PROBLEMS)
def test_impulses_are_a_linear_program(name, alpha):
    A, D, b, restore = problem(name, SMALL)
    m, k = len(A), len(D)
    sides = [[s * A, -np.eye(m), np.zeros((m, k))] for s in (1, -1)]
    sides += [[s * D, np.zeros((k, m)), -np.eye(k)] for s in (1, -1)]
    best = scipy.optimize.linprog(
        np.r_[np.zeros(20), np.ones(m), alpha * np.ones(k)],
        A_ub=np.block(sides),
        b_ub=np.r_[b, -b, np.zeros(2 * k)],
        bounds=[(None, None)] * 20 + [(0, None)] * (m + k),
    )
    x = restore(SMALL, alpha, loss="absolute", **EXACT).ravel()
    value = np.abs(A @ x - b).sum() + alpha * np.abs(D @ x).sum()
    assert best.fun <= value * (1 + 1e-9) <= best.fun * (1 + 1e-3)


@pytest.mark.parametrize("name", PROBLEMS)
def test_counts_are_a_convex_program(name):
    counts, alpha = np.round(SMALL), 0.3
    A, D, b, restore = problem(name, counts)
    k = len(D)

    def value(z):
        """The objective of the image and of bounds on its differences."""
        u = np.maximum(A @ z[:20], 1e-12)
        return float(np.sum(u - b * np.log(u)) + alpha * z[20:].sum())

    sides = np.vstack([np.hstack([s * D, np.eye(k)]) for s in (1, -1)])
    best = scipy.optimize.minimize(
        value,
        np.r_[np.full(20, counts.mean()), np.ones(k)],
        jac=lambda z: np.r_[A.T @ (1 - b / np.maximum(A @ z[:20], 1e-12)), alpha * np.ones(k)],
        method="SLSQP",
        bounds=[(1e-9, None)] * 20 + [(0, None)] * k,
        constraints={"type": "ineq", "fun": lambda z: sides @ z, "jac": lambda z: sides},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert best.success
    x = restore(counts, alpha, loss="poisson", **EXACT).ravel()
    assert x.min() >= 0
    np.testing.assert_allclose(x, best.x[:20], atol=0.02)
    assert value(np.r_[x, np.abs(D @ x)]) == pytest.approx(best.fun, abs=2e-3)


CLEAN = np.full((24, 24), 3.0)
CLEAN[6:18, 6:18] = 20.0
COUNTS = np.random.default_rng(0).poisson(CLEAN).astype(float)


def with_impulses(share):
    rng = np.random.default_rng(0)
    hit = rng.random(CLEAN.shape) < share
    return np.where(hit, rng.choice([0.0, 25.0], CLEAN.shape), CLEAN)


def test_counts_may_be_whole_numbers_or_none():
    x = short.denoise_tv(COUNTS.astype(np.uint16), 0.4, loss="poisson", l2_weight=0.0)
    expected = short.denoise_tv(COUNTS, 0.4, loss="poisson", l2_weight=0.0)
    np.testing.assert_allclose(65535 * x, expected, atol=1e-3)
    np.testing.assert_array_equal(short.denoise_tv(np.zeros((9, 9)), 0.3, loss="poisson"), 0)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_impulses_are_removed(share):
    image = with_impulses(share)
    found = short.denoise_tv(image, loss="absolute", return_result=True)
    assert found.sigma is None
    assert np.mean(np.abs(found.image - CLEAN)) < 0.15 * np.mean(np.abs(image - CLEAN))
    squared = short.denoise_tv(image)
    assert np.std(found.image - CLEAN) < 0.5 * np.std(squared - CLEAN)


def test_counts_are_smoothed_where_they_are_many_and_where_they_are_few():
    found = short.denoise_tv(COUNTS, loss="poisson", return_result=True)
    assert found.converged
    assert np.std(found.image - CLEAN) < 0.4 * np.std(COUNTS - CLEAN)
    assert found.image.min() >= 0
    bounded = short.denoise_tv(COUNTS, 0.4, loss="poisson", bounds=(4.0, 15.0))
    assert 4.0 <= bounded.min() <= bounded.max() <= 15.0


@pytest.mark.parametrize("photons", [5, 100])
def test_pixels_that_are_held_out_do_not_tell_their_own_counts(photons):
    i, j = np.indices((64, 64)) / 64
    clean = photons * (0.55 + 0.3 * np.sin(6 * i) * np.cos(5 * j) + 0.1 * np.sin(60 * j) * (i > 0.6))
    counts = np.random.default_rng(1).poisson(clean).astype(float)
    assert np.std(short.denoise_tv(counts, loss="poisson") - clean) < 0.6 * np.std(counts - clean)


def test_a_run_that_ends_by_itself_tells_its_own_stationarity():
    found = short.denoise_tv(COUNTS, 0.6, loss="absolute", tol=1e-9, return_result=True).result
    assert found.status is ell12.Status.ENDED
    lowest = int(np.argmin(found.history["objective"]))
    assert found.stationarity == pytest.approx(found.history["optimality"][lowest])
    assert found.stationarity < 0.1


def test_blurred_counts_may_be_zero_where_the_image_is():
    clean = np.zeros((16, 16))
    clean[5:11, 5:11] = 30.0
    kernel = np.full((3, 3), 1 / 9)
    counts = np.random.default_rng(0).poisson(scipy.ndimage.convolve(clean, kernel))
    x = short.deblur_tv(counts * 1.0, kernel, 0.05, loss="poisson")
    assert x.min() >= 0
    assert np.std(x - clean) < 0.7 * np.std(counts - clean)


@pytest.mark.parametrize("options", [{"isotropic": True}, {"boundary": "periodic"}], ids=str)
def test_other_losses_take_the_other_options(options):
    for loss, image in (("poisson", COUNTS), ("absolute", with_impulses(0.1))):
        x = short.denoise_tv(image, 0.7, loss=loss, **options)
        assert np.std(x - CLEAN) < 0.65 * np.std(image - CLEAN)


def test_channels_have_losses_of_their_own():
    both = np.stack([COUNTS, COUNTS[::-1] + 1], axis=-1)
    x = short.denoise_tv(both, 0.5, loss="poisson", channel_axis=-1, l2_weight=0.0, tol=1e-3)
    one = short.denoise_tv(COUNTS, 0.5, loss="poisson", l2_weight=0.0, tol=1e-3)
    np.testing.assert_allclose(x[..., 0], one, atol=0.05)


def test_a_blur_at_neumann_boundaries_and_any_operator_take_them_too():
    kernel = np.full((3, 3), 1 / 9)
    blurred = scipy.ndimage.convolve(CLEAN, kernel)
    counts = np.random.default_rng(1).poisson(50 * blurred) / 50.0
    x = short.deblur_tv(counts, kernel, 0.002, loss="poisson")
    assert np.std(x - CLEAN) < 0.6 * np.std(counts - CLEAN)
    A = np.random.default_rng(2).random((90, 64))
    clean = CLEAN[:8, :8]
    y = A @ clean.ravel()
    y[::9] += 40
    x = short.restore_tv(y, A, 0.5, shape=(8, 8), loss="absolute")
    assert np.abs(x - clean).max() < 0.1


def test_what_a_loss_cannot_take_is_said():
    with pytest.raises(ValueError, match="needs counts"):
        short.denoise_tv(-COUNTS, 0.1, loss="poisson")
    with pytest.raises(ValueError, match="needs a solver of the true objective"):
        short.denoise_tv(COUNTS, 0.1, loss="poisson", solver=ell12.restoration.SmoothedGradient())
    with pytest.raises(ValueError, match="channel by channel"):
        short.denoise_tv(np.stack([COUNTS] * 3), 0.1, loss="absolute", channel_axis=0, colour=True)
