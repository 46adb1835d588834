"""Pictures that the studies of restoration share: photographs and drawings to choose by, others to report on."""

from __future__ import annotations

import numpy as np

CHOOSING = ("camera", "coins", "chelsea", "coffee", "brick", "grass", "gravel")
REPORTING = ("astronaut", "rocket", "cell", "moon", "china", "flower")


def photograph(name: str, side: int | None = None) -> np.ndarray:
    """A photograph of scikit-image or scikit-learn in grey, values in [0, 1]; its middle, of that side."""
    if name in ("china", "flower"):
        from sklearn.datasets import load_sample_image

        pixels = load_sample_image(f"{name}.jpg")
    else:
        from skimage import data

        pixels = getattr(data, name)()
    grey = pixels[..., :3] @ np.array([0.2125, 0.7154, 0.0721]) if pixels.ndim == 3 else pixels
    grey = grey.astype(float) / 255
    if side is None:
        return grey
    rows, columns = ((n - side) // 2 for n in grey.shape)
    return grey[rows : rows + side, columns : columns + side]


def drawing(seed: int, side: int = 160) -> np.ndarray:
    """Discs, upright and slanted rectangles, each of one shade, over each other; values in [0, 1]."""
    rng = np.random.default_rng(seed)
    i, j = np.indices((side, side)) / side
    picture = np.full((side, side), rng.random())
    for number in range(12):
        (y, x), (a, b) = rng.random(2), 0.05 + 0.2 * rng.random(2)
        angle = rng.uniform(0, np.pi) if number % 3 == 2 else 0.0
        u, v = (i - y) * np.cos(angle) + (j - x) * np.sin(angle), (j - x) * np.cos(angle) - (i - y) * np.sin(angle)
        inside = u**2 + v**2 < a**2 if number % 3 == 0 else (np.abs(u) < a) & (np.abs(v) < b)
        picture[inside] = rng.random()
    return picture


def volume(seed: int, side: int = 48, thickness: int = 3) -> np.ndarray:
    """Balls and boxes in a cube, sampled by slices so many times as thick as a pixel is wide."""
    rng = np.random.default_rng(seed)
    k, i, j = np.indices((side,) * 3) / side
    cube = np.full(k.shape, rng.random())
    for number in range(14):
        centre, half = rng.random(3), 0.08 + 0.17 * rng.random(3)
        away = [np.abs(axis - c) for axis, c in zip((k, i, j), centre, strict=True)]
        ball = sum(d**2 for d in away) < half[0] ** 2
        box = np.logical_and.reduce([d < h for d, h in zip(away, half, strict=True)])
        cube[ball if number % 2 else box] = rng.random()
    return cube.reshape(side // thickness, thickness, side, side).mean(axis=1)


def psnr(x: np.ndarray, clean: np.ndarray) -> float:
    """Of values in [0, 1], in dB."""
    return float(-10 * np.log10(np.mean((np.asarray(x) - clean) ** 2)))
