"""The cases of images: the functions that restore them, and the solvers."""

from dataclasses import replace

import numpy as np
from tests.laws import certificates
from tests.laws.case import Answer, Case, Order, Unit, interrupting
from tests.restoration import short

import ell12

ALPHA, SMOOTHING, TOL, SIDE = 0.1, 0.02, 1e-3, 20
KERNEL = np.array([[0.0, 0.1, 0.0], [0.1, 0.6, 0.1], [0.0, 0.1, 0.0]])


def picture(random):
    clean = np.zeros((SIDE, SIDE))
    clean[5:14, 6:16] = 1
    return clean + 0.1 * random.standard_normal(clean.shape)


def _frequencies(random):
    mask = random.random((SIDE, SIDE)) < 0.7
    mask[:3, :3] = True
    return {"data": np.fft.fft2(picture(random), norm="ortho"), "mask": mask}


DATA = {
    "grey": lambda random: {"image": picture(random)},
    "colours": lambda random: {"image": np.stack([picture(random) for _ in range(3)], axis=-1)},
    "blurred": lambda random: {"image": picture(random), "psf": KERNEL},
    "masked": lambda random: {"image": picture(random), "mask": random.random((SIDE, SIDE)) < 0.8},
    "frequencies": _frequencies,
    "measured": lambda random: {"y": np.ravel(picture(random))},
    "counts": lambda random: {"image": random.poisson(2 + 10 * np.abs(picture(random))) + 0.0},
}


def _image(name, data, call, residual=None, automatic=False, tol=TOL, **changes):
    """A restoration; automatic strengths and smoothings scale by themselves, others are scaled with the image."""
    data = DATA[data]
    chosen = {} if automatic else {"alpha": ALPHA, "smoothing": SMOOTHING}

    def solve(interrupt_at=None, **given):
        options = {"tol": tol, "return_result": True} | chosen
        options |= {key: given.pop(key) for key in ("alpha", "smoothing", "solver") if key in given}
        result = call(**given, **options, callback=interrupting(interrupt_at))
        return Answer(result.image, result.result.n_iter, result.converged, result)

    def violation(given, answer):
        """The root mean square of the gradient, in units of what the solver promises."""
        image = answer.numbers
        size = certificates.smoothed_tv(image, residual(given, image), ALPHA, 0.5, SMOOTHING)
        return size / (tol * min(ALPHA, SMOOTHING))

    def with_image(c):
        return {} if automatic else {"alpha": ALPHA * c, "smoothing": SMOOTHING * c}

    first = next(iter(data(np.random.default_rng(0))))
    settings = {"name": name, "data": data, "solve": solve, "units": (Unit((first,), 1, with_image),)}
    settings |= {"violation": None if residual is None or automatic else violation}
    settings |= {"arrays": (first,), "interrupts": True, "single": 1e-3}
    return Case(**(settings | changes))


def _restore(y, **options):
    A = np.diag(np.full(SIDE * SIDE, 0.9, dtype=np.float32 if y.dtype == np.float32 else float))
    return short.restore_tv(y, A, shape=(SIDE, SIDE), **options)


def _denoise(name="denoise_tv", solver=None, max_iter=5000, **changes):
    options = {"max_iter": max_iter} | ({} if solver is None else {"solver": solver})
    return _image(
        name,
        "grey",
        lambda image, **given: short.denoise_tv(image, **options | given),
        lambda given, image: image - given["image"],
        **changes,
    )


def _channels(**options):
    def call(image, **given):
        return short.denoise_tv(image, channel_axis=-1, **options, **given)

    orders = (Order({"image": 2}, 2),) if options else ()  # of colours green is a case of its own
    return _image("denoise_tv", "colours", call, orders=orders)


def _penalty():
    """The value of the penalty, and its gradient."""

    def solve(x, penalty=None):
        penalty = penalty or ell12.TotalVariationL12(ALPHA, smoothing=SMOOTHING)
        return Answer(np.atleast_1d(penalty.value(x)))

    def scaled(c):
        return {"penalty": ell12.TotalVariationL12(ALPHA, smoothing=SMOOTHING * c)}

    given = {"units": (Unit(("x",), 1, scaled),), "arrays": ("x",), "single": 0.0}
    return Case(name="TotalVariationL12", data=lambda random: {"x": picture(random)}, solve=solve, **given)


def _of_loss(name, loss, data):
    """Noise of another kind; a strength has no unit next to its loss."""

    def call(image, **given):
        return short.denoise_tv(image, 0.7, loss=loss, penalty=ell12.TotalVariationL12(l2_weight=0.0), **given)

    return _image(name, data, call, automatic=True, tol=0.02)


def _automatic(case):
    return replace(case, violation=None, single=0.0, arrays=(), interrupts=False)


IMAGE_CASES = [
    _denoise(),
    _channels(),
    _channels(colour=False),
    _automatic(_denoise(automatic=True)),
    _image("deblur_tv", "blurred", short.deblur_tv),
    _automatic(_image("deblur_tv", "blurred", short.deblur_tv, automatic=True)),
    _image(
        "inpaint_tv",
        "masked",
        short.inpaint_tv,
        lambda given, image: np.where(given["mask"], image - given["image"], 0.0),
    ),
    _automatic(_image("inpaint_tv", "masked", short.inpaint_tv, automatic=True)),
    _image(
        "reconstruct_mri", "frequencies", lambda data, mask, **o: short.reconstruct_mri(data, mask, real=True, **o)
    ),
    _image(
        "restore_tv",
        "measured",
        _restore,
        lambda given, image: 0.9 * (0.9 * image - given["y"].reshape(image.shape)),
        kinds=("numpy",),
    ),
    _denoise("SmoothedGradient", ell12.restoration.SmoothedGradient()),
    _denoise("AlternatingMinimization", ell12.restoration.AlternatingMinimization(accelerated=True), tol=0.05),
    # This one minimises the true objective, and slowly: its first steps are compared.
    _denoise("GrowingADMM", ell12.restoration.GrowingADMM(), violation=None, max_iter=50, kinds=("numpy",)),
    _of_loss("AbsoluteLoss", "absolute", "grey"),
    _of_loss("KullbackLeiblerLoss", "poisson", "counts"),
    _penalty(),
]
