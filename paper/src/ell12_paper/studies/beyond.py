"""What the paper does not show of total variation: other weights of the subtracted norm, and blur.

Every result is the best over the strengths, so that two weights are compared each at its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ell12 import TotalVariationL12, datasets
from ell12.operators.image_operators import Convolution
from ell12.restoration import deblur_tv, denoise_tv
from ell12_paper.studies import size_of
from ell12_paper.studies.images import STAND_INS, names, photograph

WEIGHTS, BLUR = "l2-weight", "deblurring"
NOISE = {WEIGHTS: 0.05, BLUR: 0.01}
BLUR_WIDTH = 1.5  # standard deviation of the Gaussian, in pixels
# The search for the best strength: neighbours differ by the factor, at most 16 are tried in each direction, and a
# direction ends when the next strength gains less than NO_GAIN dB.
FACTOR, MOST, NO_GAIN = math.sqrt(2), 16, 0.02


def trials(preset: str, seed: int) -> list[dict[str, Any]]:
    """The settings of every trial."""
    size = size_of("beyond", preset)
    grids = {WEIGHTS: (size.images, size.weights), BLUR: (size.blurred, (0.0, 0.5, 1.0))}
    # in place of a stand-in comes the picture of a folder, if it has as many
    found = dict.fromkeys(STAND_INS) | dict(zip(STAND_INS, names(), strict=False))
    return [
        {"study": study, "image": found.get(image, image), "l2_weight": weight, "repeat": repeat}
        | {"seed": seed + repeat, "size": size.size}
        for study, (images, weights) in grids.items()
        for repeat, image, weight in product(range(size.n_repeats), images, weights)
        if found.get(image, image)
    ]


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


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """An image with noise, or with blur and noise, at the strength that is best for it."""
    clean, noise, is_blurred = image_of(settings), NOISE[settings["study"]], settings["study"] == BLUR
    given = Convolution(blur_kernel(), clean.shape) @ clean if is_blurred else clean
    given = given + noise * np.random.default_rng(settings["seed"]).standard_normal(clean.shape)
    options: dict[str, Any] = {"boundary": "periodic"} if is_blurred else {}
    penalty = TotalVariationL12(l2_weight=settings["l2_weight"], smoothing=0.01, **options)

    def psnr(alpha: float) -> float:
        arguments = (blur_kernel(), alpha) if is_blurred else (alpha,)
        restore = deblur_tv if is_blurred else denoise_tv
        found = restore(given, *arguments, penalty=penalty, return_result=True)
        return quality(found.image, clean)["psnr"]

    # About the best strength for denoising, which grows with the weight.
    start = 2 * noise ** (4 / 3) * 8 ** settings["l2_weight"] ** 2 * (0.25 if is_blurred else 1.0)
    return best_strength(psnr, start) | {"psnr_given": quality(given, clean)["psnr"]}


def blur_kernel() -> np.ndarray:
    """A Gaussian, its sum 1."""
    axis = np.arange(-4, 5)
    profile = np.exp(-(axis**2) / (2 * BLUR_WIDTH**2))
    kernel = np.outer(profile, profile)
    return kernel / kernel.sum()
