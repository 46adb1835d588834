"""The choice of an image's strength: what the user says, else by risk, by data held out, or from the noise."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ell12.backend import is_number, namespace
from ell12.checks import check_scalars
from ell12.operators import adjoint_product, product, sent_like
from ell12.operators.image_operators import Identity, Sampling
from ell12.protocols import Array
from ell12.restoration.blur_risk import strength_under_blur
from ell12.restoration.images import start_of
from ell12.restoration.likelihoods import SQUARED, first_strength, least_strength, score
from ell12.restoration.risk import HeldOut, Sample, lowest, strength_of_least_risk
from ell12.restoration.strength import strength_by_held_out_data

# A search by held-out data begins at this fraction of the range if the noise is not known; any start would do.
FIRST_STRENGTH = 0.02
# Coefficients that the user calls noise-free are kept as they are, but for this fraction of the range.
FAITHFUL = 1e-6
# Where no noise is found, blurred and incomplete images get this strength, as a fraction of the range. With 1e-6
# inpainting a drawing took nine times the iterations for the same error; with 1e-2 deblurring left a larger one.
NOISE_FREE = 1e-4
# The runs on a sample end at this accuracy: see ``tol`` of `ell12.denoise_tv`. At four times as much the strengths
# chosen for drawings with noise 0.005 lost 2.8 dB on average, at this one nothing.
TOL_SAMPLE = 0.05
# Of the pixels of a sample one in so many is held out, where they are judged by the loss.
HELD_OUT_ONE_IN = 10

Estimate = Callable[[], float]
Rule = Callable[[float, float], float]


def chosen_strength(problem: Any, alpha: Any, estimate: Estimate | None, rule: Rule) -> tuple[float, float | None]:
    """The strength and, where that was chosen by it or found with it, the noise level.

    ``problem`` is an `ell12.restoration.problems.ImageProblem`: its data ``y, A, start, ndim``, its ``model``, the
    range of its values ``spread``, its ``sample()`` and ``like(y, A, start)``, which restores other data.
    ``alpha`` is as in `ell12.denoise_tv`. ``estimate`` finds the noise level, where that can be found, and
    ``rule`` makes a strength of it and of the range of the values.
    """
    if is_number(alpha):
        check_scalars(alpha=alpha)
        return float(alpha), None
    held_out = isinstance(alpha, str) and alpha == "held-out"
    if alpha is not None and not held_out:
        raise ValueError(f"alpha must be a number, 'held-out' or None, got {alpha!r}")
    if problem.model.loss != SQUARED:  # its noise has no level that the strength could follow
        first, sample = first_strength(problem.model.loss, problem.start, problem.spread), problem.sample()
        return _by_held_out_data(problem, first) if sample is None else _by_loss(problem, sample, first), None
    noise = problem.model.noise
    if noise is None and estimate is not None:
        with contextlib.suppress(ValueError) if held_out else contextlib.nullcontext():
            noise = estimate()
    if held_out:
        first = rule(noise, problem.spread) if noise else FIRST_STRENGTH * problem.spread
        return _by_held_out_data(problem, first), None
    if noise is None:
        raise ValueError("alpha cannot be chosen without a noise level: give alpha, noise, or alpha='held-out'")
    if noise == 0 and not isinstance(problem.A, Identity):
        return (FAITHFUL if estimate is None else NOISE_FREE) * problem.spread, noise
    return _by_noise(problem, rule(noise, problem.spread), noise)


def _by_noise(problem: Any, first: float, noise: float) -> tuple[float, float]:
    """The first strength, which follows from the noise, or a better one where the data allow a search."""
    if noise == 0:
        return first, noise
    sample = problem.sample()
    if sample is not None:
        return _by_risk(problem, sample, first, noise)
    found = strength_under_blur(problem, first, noise, given=problem.model.noise is not None)
    return found or (first, noise)


def sample_of(y: Array, A: Any, ndim: int) -> Sample | None:
    """The sample of an image whose data are pixels, all or some; None for other data."""
    if isinstance(A, Identity):
        return Sample.of(y, None, ndim)
    return Sample.of(adjoint_product(A, y), sent_like(A.mask, y), ndim) if type(A) is Sampling else None


def _by_risk(problem: Any, sample: Sample, first: float, noise: float) -> tuple[float, float]:
    """See `ell12.restoration.risk`."""
    prepare = partial(_prepared, problem)
    return strength_of_least_risk(sample, first, noise, prepare, given=problem.model.noise is not None)


def _prepared(problem: Any, y: Array, mask: Array | None) -> Callable[[float], Array]:
    """The function of a strength that restores the tiles of a sample."""
    ndim = problem.ndim
    whole = tuple(y.shape)[-ndim:] == tuple(problem.start.shape)[-ndim:]
    A = Identity(tuple(y.shape)) if mask is None else Sampling(mask)
    start = y if mask is None else start_of(y, mask, ndim, problem.corner)
    options = {"boundary": problem.model.boundary if whole else "neumann", "solver": "accelerated"}
    return problem.like(product(A, y), A, start, **options, tol=TOL_SAMPLE, smooth=True)


def _by_loss(problem: Any, sample: Sample, first: float) -> float:
    """The strength by which pixels of the sample that are held out are predicted best, judged by the loss."""
    loss, xp = problem.model.loss, namespace(sample.data)
    held = sample.numbers % HELD_OUT_ONE_IN == 0
    held_out = HeldOut(sample, partial(_prepared, problem), held, partial(score, loss))
    if not bool(xp.any(held_out.kept)) or not bool(xp.any(held_out.unseen.mask)):
        raise ValueError("too few pixels to hold some out: give alpha")
    least = least_strength(loss, problem.penalty(1.0))
    return lowest(lambda alpha: math.inf if alpha < least else held_out.error(alpha), first)


def _by_held_out_data(problem: Any, first: float) -> float:
    """See `ell12.restoration.strength`."""
    options = {} if problem.model.loss == SQUARED else {"tol": TOL_SAMPLE}

    def solve(y: Array, A: Any, alpha: float, x: Array | None) -> Array:
        return problem.like(y, A, problem.start if x is None else x, **options)(alpha)

    score_of = partial(score, problem.model.loss)
    return strength_by_held_out_data(problem.y, problem.A, first, solve, score_of)
