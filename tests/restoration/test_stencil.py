"""The compiled sweep and the kernel of GPUs against plain operations, and these against the definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import check_grad
from tests.restoration import short

from ell12.losses import SquaredLoss
from ell12.operators.image_operators import FiniteDifference, Identity
from ell12.prox import moreau_l12
from ell12.restoration import TotalVariationL12
from ell12.restoration.stencil import Sweep, envelope_and_gradient
from ell12.restoration.stencil_cuda import CudaSweep, sweep_on_gpu

SHAPES = [
    ((1, 9), 2),
    ((9, 1), 2),
    ((1, 1), 2),
    ((2, 2), 2),
    ((7, 5), 2),
    ((33, 64), 2),
    ((3, 6, 5), 2),
    ((8,), 1),
]
SHAPES += [((3, 4, 5), 3), ((1, 4, 1), 3), ((5, 1, 1), 3), ((2, 2, 2), 3), ((2, 3, 4, 5), 3)]
# One compiled variant each: two axes and three, both precisions.
KINDS = [
    ((2, 7, 5), 2, np.float64, {"isotropic": True, "spacing": (3.0, 1.0)}),
    ((3, 4, 5), 3, np.float32, {"isotropic": True, "spacing": (3.0, 1.0, 2.0)}),
    ((6, 5), 2, np.float32, {"spacing": (1.0, 2.0)}),
]
STEPS = [(0.3, 0.6, 0.2), (0.2, 0.5, 0.0), (0.25, 0.4, 0.1), (0.3, 0.1, 0.0)]  # size, momentum, what is left


def image(shape, dtype=np.float64, seed=0):
    """Differences on both sides of every threshold, with ties and zeros among them."""
    rng = np.random.default_rng(seed)
    return (
        rng.integers(-4, 5, shape) * 0.1 + 0.3 * rng.standard_normal(shape) * (rng.random(shape) < 0.5)
    ).astype(dtype)


def plain(x, penalty):
    """The smoothed penalty and its gradient by plain operations."""
    options = (penalty.smoothing, penalty.l2_weight, penalty.isotropic)
    value, gradient = envelope_and_gradient(x, penalty.differences(x), *options)
    return penalty.mu * value, penalty.mu * gradient


def compiled(x, penalty):
    return [Sweep(x.shape, x.dtype, penalty, threads) for threads in (1, 3)]


def kernels(x, penalty):
    return [sweep_on_gpu(x, penalty)]


def check_gradient(sweeps, shape, ndim, dtype, make_array=np.array, to_numpy=np.asarray, **options):
    """The gradient at an image with ties, which the rounding of plain operations in that precision decides."""
    x, epsilon = image(shape, dtype), float(np.finfo(dtype).eps)
    weights = (0.0,) if "isotropic" in options else (0.0, 0.5, 1.0)
    summed = max(20, np.sqrt(x.size)) * epsilon  # the terms are summed in another order
    for l2_weight, t, boundary in itertools.product(weights, (0.2, 0.6, 9.0), ("neumann", "periodic")):
        penalty = TotalVariationL12(0.05, l2_weight, smoothing=t, ndim=ndim, boundary=boundary, **options)
        value, gradient = plain(x, penalty)
        for sweep in sweeps(make_array(x), penalty):
            found_value, found = sweep.gradient(make_array(x))
            assert to_numpy(found).dtype == dtype
            np.testing.assert_allclose(to_numpy(found), gradient, atol=20 * epsilon)
            np.testing.assert_allclose(found_value, value, rtol=summed, atol=summed)


def plain_steps(z, u, y, weight, penalty, steps):
    """What z and u become, and the sums at the z of the last step."""
    low, high = penalty.limits
    for size, momentum, back in steps:
        value, slope = plain(z, penalty)
        gradient = weight * (z - y) + slope
        left = gradient if penalty.bounds is None else z - np.clip(z - gradient, low, high)
        loss = 0.5 * np.sum(weight * (z - y) ** 2)
        sums = (value, loss, np.sum(left**2), np.sum(gradient * (z - u)))
        ahead = np.clip(z - size * gradient + momentum * (z - u), low, high)
        z, u = ahead, np.clip(z - back * gradient, low, high) if back else z
    return z, u, sums


def check_steps(sweeps, shape, ndim, make_array=np.array, to_numpy=np.asarray, l2_weight=0.5, **options):
    """Steps with and without weights, bounds and a period, written apart and in place."""
    z, y, x = 0.3 * np.random.default_rng(0).standard_normal((3, *shape))  # ties would be decided by rounding
    known = (np.random.default_rng(1).random(shape) < 0.5).astype(float)
    variants = itertools.product((None, known), ("neumann", "periodic"), (None, (-0.1, 0.2)), (1, 2, 3, 4))
    for weight, boundary, bounds, count in variants:
        options |= {"boundary": boundary, "bounds": bounds, "smoothing": 0.2, "ndim": ndim}
        penalty = TotalVariationL12(0.05, l2_weight, **options)
        expected = plain_steps(z, x, y, 1.0 if weight is None else weight, penalty, STEPS[:count])
        data = make_array(y), None if weight is None else make_array(weight)
        for sweep in sweeps(make_array(z), penalty):
            old, apart = (make_array(z), make_array(x)), (make_array(0 * z), make_array(0 * z))
            for new in (apart, old):  # in place the second time
                pair, sums = sweep.advance(old, *data, STEPS[:count], new)
                for found, wanted in zip(pair, expected[:2], strict=True):
                    np.testing.assert_allclose(to_numpy(found), wanted, atol=1e-14)
                np.testing.assert_allclose(sums, expected[2], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "ndim"), SHAPES)
def test_the_compiled_gradient_equals_the_plain_one(shape, ndim, dtype):
    pytest.importorskip("numba")
    check_gradient(compiled, shape, ndim, dtype)


@pytest.mark.parametrize(("shape", "ndim", "dtype", "options"), KINDS)
def test_compiled_gradients_know_isotropy_and_spacing(shape, ndim, dtype, options):
    pytest.importorskip("numba")
    check_gradient(compiled, shape, ndim, dtype, **options)


@pytest.mark.parametrize(
    ("shape", "ndim"), [((7, 5), 2), ((2, 6, 3), 2), ((3, 4, 5), 3), ((1, 9), 2), ((2, 2), 2), ((33, 20), 2)]
)
def test_compiled_steps_equal_plain_ones(shape, ndim):
    pytest.importorskip("numba")
    check_steps(compiled, shape, ndim)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("unit", [1e-14, 1.0, 1e14])
def test_the_compiled_gradient_knows_no_unit(dtype, unit):
    pytest.importorskip("numba")
    x = unit * image((7, 9)).astype(dtype)
    penalty = TotalVariationL12(0.05 * unit, 0.5, smoothing=0.2 * unit)
    value, gradient = Sweep((7, 9), dtype, penalty).gradient(x)
    expected_value, expected = plain(x.astype(np.float64) / unit, TotalVariationL12(0.05, 0.5, smoothing=0.2))
    near = np.abs(gradient / unit - expected) < 20 * np.finfo(dtype).eps
    assert near.mean() > 0.9  # ties are decided by rounding
    assert value / unit**2 == pytest.approx(expected_value, rel=1e-5)


def test_the_envelope_is_the_smallest_value_and_has_the_gradient_it_claims():
    x, D = image((5, 6)), FiniteDifference((5, 6))
    for l2_weight in (0.0, 0.5, 1.0):
        value, _ = envelope_and_gradient(x, D, 0.2, l2_weight)
        np.testing.assert_allclose(value, np.sum(moreau_l12(D @ x, 0.2, l2_weight=l2_weight, axis=-1)), rtol=1e-12)
    smooth = np.random.default_rng(0).standard_normal(30)  # away from ties, where the envelope has a kink
    for options in ((0.5, False), (0.0, True)):

        def at(v, options=options):
            return envelope_and_gradient(v.reshape(5, 6), D, 0.2, *options)

        assert check_grad(lambda v: at(v)[0], lambda v: at(v)[1].ravel(), smooth) < 1e-5


@pytest.mark.parametrize("boundary", ["neumann", "periodic"])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
def test_a_gradient_step_never_raises_the_objective(l2_weight, boundary):
    rng = np.random.default_rng(0)
    for alpha, smoothing in ((0.05, 0.01), (1.0, 0.1), (0.01, 1.0)):
        y = rng.standard_normal((12, 9))
        loss = SquaredLoss(Identity(y.shape), y)
        penalty = TotalVariationL12(alpha, l2_weight, smoothing=smoothing, boundary=boundary)
        x, size = 3 * rng.standard_normal(y.shape), 1 / (1 + penalty.lipschitz)
        for _ in range(40):
            value, slope = penalty.value_and_gradient(x)
            new = x - size * (x - y + slope)
            before = loss.value(loss.point(x)) + value
            assert loss.value(loss.point(new)) + penalty.value(new) <= before * (1 + 1e-14)
            x = new


def test_the_sweep_is_for_large_real_arrays_with_up_to_three_axes():
    pytest.importorskip("numba")
    large, smooth = np.zeros((256, 256)), TotalVariationL12(0.1, smoothing=0.01)
    assert smooth.sweep(large) is not None
    assert smooth.sweep(large[:100, :100]) is not None
    assert smooth.sweep(large[:31, :31]) is None
    assert smooth.sweep(large.astype(complex)) is None
    assert TotalVariationL12(0.1, smoothing=0.0).sweep(large) is None
    assert TotalVariationL12(0.1, smoothing=0.01, ndim=4).sweep(large.reshape(16, 16, 16, 16)) is None


ROUND = {"isotropic": True, "spacing": (3.0, 1.0), "l2_weight": 0.0}


@pytest.mark.usefixtures("kernels_on_cpu")
def test_the_kernel_of_gpus_computes_the_gradient_and_takes_the_steps():
    for (shape, ndim), dtype in itertools.product(SHAPES, (np.float32, np.float64)):
        check_gradient(kernels, shape, ndim, dtype)
    for shape, ndim, dtype, options in KINDS:
        check_gradient(kernels, shape, ndim, dtype, **options)
    for shape, ndim in [((7, 5), 2), ((2, 6, 3), 2), ((3, 4, 5), 3), ((9,), 1)]:
        check_steps(kernels, shape, ndim)
    check_steps(kernels, (2, 6, 3), 2, **ROUND)


def test_the_kernel_on_a_gpu(gpu):
    on_gpu = (gpu.make_array, gpu.to_numpy)
    more = [*SHAPES, ((40, 600), 2), ((2, 3, 5, 300), 3), ((9000, 3), 2)]
    for (shape, ndim), dtype in itertools.product(more, (np.float32, np.float64)):
        check_gradient(kernels, shape, ndim, dtype, *on_gpu)
    for shape, ndim, dtype, options in KINDS:
        check_gradient(kernels, shape, ndim, dtype, *on_gpu, **options)
    check_steps(kernels, (33, 300), 2, *on_gpu)
    check_steps(kernels, (4, 5, 300), 3, *on_gpu)
    check_steps(kernels, (2, 33, 300), 2, *on_gpu, **ROUND)


def test_images_restored_on_a_gpu(gpu):
    clean = np.kron(np.random.default_rng(0).random((8, 8)), np.ones((20, 20)))
    noisy = clean + 0.1 * np.random.default_rng(1).standard_normal(clean.shape)
    mask = np.random.default_rng(2).random(clean.shape) < 0.7
    make = gpu.make_array
    assert isinstance(TotalVariationL12(0.1, smoothing=0.01).sweep(make(noisy)), CudaSweep)
    wide = {"bounds": (0.2, 0.8)}

    def check(function, *arguments, atol=5e-3, channels=None, **options):
        """The same on the GPU as with NumPy arrays."""
        options |= {} if channels is None else {"channel_axis": channels}
        found = function(*(make(a) if isinstance(a, np.ndarray) else a for a in arguments), **options)
        np.testing.assert_allclose(gpu.to_numpy(found), function(*arguments, **options), atol=atol)

    for options in ({}, wide, {"l2_weight": 1.0}, {"boundary": "periodic"}, {"isotropic": True}):
        check(short.denoise_tv, noisy, 0.1, atol=1e-3, tol=1e-3, **options)
    check(short.inpaint_tv, noisy, mask, 0.05)
    check(lambda y, alpha: short.inpaint_tv(y, mask, alpha), noisy, 0.05)  # a mask of NumPy
    check(short.denoise_tv, np.stack([noisy, 1 - noisy, noisy.T], axis=-1), 0.1, channels=-1)
    colours = noisy[..., None] * np.array([1.0, 0.9, 0.7]) + 0.05 * np.random.default_rng(3).random((160, 160, 3))
    check(short.denoise_tv, colours, 0.1, channels=-1)
    check(short.denoise_tv, colours, 0.1, channels=-1, colour=True, **wide)
    check(short.inpaint_tv, colours, mask, 0.05, channels=-1)
