"""What the paper does not show of total variation: other weights of the subtracted norm, blur, and radial lines.

Every result is the best over the strengths, so that two weights are compared each at its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ell12 import TotalVariationL12, datasets
from ell12.operators.image_operators import Convolution, FourierSampling
from ell12.restoration import GrowingADMM, deblur_tv, denoise_tv, reconstruct_mri
from ell12_paper.studies import size_of
from ell12_paper.studies.images import photograph

WEIGHTS, BLUR, LINES = "l2-weight", "deblurring", "radial lines"
NOISE = {WEIGHTS: 0.05, BLUR: 0.01}
BLUR_WIDTH = 1.5  # standard deviation of the Gaussian, in pixels
BOUNDS = {"any": None, "not negative": (0.0, None)}
RECOVERED = 1e-3  # a relative error below which the phantom counts as recovered
# The search for the best strength: neighbours differ by the factor, at most 16 are tried in each direction, and a
# direction ends when the next strength gains less than NO_GAIN dB.
FACTOR, MOST, NO_GAIN = math.sqrt(2), 16, 0.02


def trials(preset: str, seed: int) -> list[dict[str, Any]]:
    """The settings of every trial."""
    size = size_of("beyond", preset)
    grids = {WEIGHTS: (size.images, size.weights), BLUR: (size.blurred, (0.0, 0.5, 1.0))}
    found = [
        {"study": study, "image": image, "l2_weight": weight, "repeat": repeat, "seed": seed + repeat}
        | {"size": size.size}
        for study, (images, weights) in grids.items()
        for repeat, image, weight in product(range(size.n_repeats), images, weights)
    ]
    return found + [
        {"study": LINES, "lines": count, "l2_weight": weight, "bounds": bounds, "size": size.phantom_size}
        | {"growth": size.growth, "max_iter": size.max_iter}
        for bounds, weight, count in product(BOUNDS, (0.0, 0.5, 1.0), size.lines)
    ]


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """One trial."""
    return {WEIGHTS: _denoised, BLUR: _deblurred, LINES: _reconstructed}[settings["study"]](settings)


def image_of(settings: dict[str, Any]) -> np.ndarray:
    """The clean image of a trial."""
    drawn = datasets.piecewise_constant(settings["size"])
    if settings["image"] in drawn:
        return drawn[settings["image"]]
    return photograph(settings["image"], settings["size"])


def quality(x: np.ndarray, clean: np.ndarray) -> dict[str, float]:
    """How near an image is to the clean one: the root of the mean squared error, and PSNR for values in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from ell12_paper.studies.beyond import quality
    >>> quality(np.full((2, 2), 0.1), np.zeros((2, 2)))
    {'rmse': 0.1, 'psnr': 20.0}
    """
    rmse = float(np.sqrt(np.mean(np.abs(x - clean) ** 2)))
    return {"rmse": rmse, "psnr": -20 * math.log10(rmse) if rmse else math.inf}


def best_strength(psnr: Callable[[float], float], start: float) -> dict[str, Any]:
    """The best of the strengths start * sqrt(2)^k; the search goes up and down from the start while it gains.

    Examples
    --------
    >>> import math
    >>> from ell12_paper.studies.beyond import best_strength
    >>> found = best_strength(lambda alpha: -abs(math.log(alpha)), 4.0)
    >>> round(found["alpha"], 9), round(found["psnr"], 9), len(found["tried"])
    (1.0, -0.0, 7)
    """
    tried = {0: psnr(start)}
    for direction in (1, -1):
        for k in range(1, MOST):
            tried[direction * k] = psnr(start * FACTOR ** (direction * k))
            if tried[direction * k] < tried[direction * (k - 1)] + NO_GAIN:
                break
    best = max(tried, key=lambda k: tried[k])
    pairs = [[start * FACTOR**k, tried[k]] for k in sorted(tried)]
    return {"alpha": start * FACTOR**best, "psnr": tried[best], "tried": pairs}


def usual_strength(noise: float, weight: float) -> float:
    """Where the search starts: about the best strength for denoising, which grows with the weight."""
    return 2 * noise ** (4 / 3) * 8**weight**2


def _denoised(settings: dict[str, Any]) -> dict[str, Any]:
    clean, noise = image_of(settings), NOISE[WEIGHTS]
    noisy = clean + noise * np.random.default_rng(settings["seed"]).standard_normal(clean.shape)

    def psnr(alpha: float) -> float:
        penalty = TotalVariationL12(l2_weight=settings["l2_weight"], smoothing=0.01)
        restored = denoise_tv(noisy, alpha, penalty=penalty, return_result=True)
        return quality(restored.image, clean)["psnr"]

    found = best_strength(psnr, usual_strength(noise, settings["l2_weight"]))
    return found | {"psnr_given": quality(noisy, clean)["psnr"]}


def blur_kernel() -> np.ndarray:
    """A Gaussian, its sum 1."""
    axis = np.arange(-4, 5)
    profile = np.exp(-(axis**2) / (2 * BLUR_WIDTH**2))
    kernel = np.outer(profile, profile)
    return kernel / kernel.sum()


def _deblurred(settings: dict[str, Any]) -> dict[str, Any]:
    clean, kernel = image_of(settings), blur_kernel()
    noise = NOISE[BLUR] * np.random.default_rng(settings["seed"]).standard_normal(clean.shape)
    blurred = Convolution(kernel, clean.shape) @ clean + noise

    def psnr(alpha: float) -> float:
        penalty = TotalVariationL12(l2_weight=settings["l2_weight"], smoothing=0.01, boundary="periodic")
        found = deblur_tv(blurred, kernel, alpha, penalty=penalty, return_result=True)
        return quality(found.image, clean)["psnr"]

    found = best_strength(psnr, 0.25 * usual_strength(NOISE[BLUR], settings["l2_weight"]))
    return found | {"psnr_given": quality(blurred, clean)["psnr"]}


def _reconstructed(settings: dict[str, Any]) -> dict[str, Any]:
    clean = datasets.phantom(settings["size"])
    mask = datasets.radial_lines(settings["size"], settings["lines"])
    data = FourierSampling(mask) @ clean
    penalty = TotalVariationL12(
        l2_weight=settings["l2_weight"], smoothing=0.0, boundary="periodic", bounds=BOUNDS[settings["bounds"]]
    )
    options = {"sigma": 0.0, "real": True, "tol": 0.0, "max_iter": settings["max_iter"]}
    solver = GrowingADMM(settings["growth"], first_threshold=1.0)
    restored = reconstruct_mri(data, mask, penalty=penalty, solver=solver, return_result=True, **options).image
    error = float(np.linalg.norm(restored - clean) / np.linalg.norm(clean))
    return {"relative_error": error, "measured": float(mask.mean())} | quality(restored, clean)
