"""Colours as one problem: axes, the strength of chroma, and which channels are taken for colours.

Photographs in colour, 256 x 256 pixels from their middle, with white noise, denoised channel by channel, along
opponent axes (brightness, and two of chroma with a multiple of its strength) and along the principal axes of the
noisy differences. The mean PSNR in dB over the photographs, each method at the best strength of its own for each,
and at the automatic one. The multiple was chosen on the first table's photographs; all else is reported on others.
scikit-image's Chambolle has the best weight for each photograph; its non-local means are given the noise. The last
tables show how often channels are taken for colours: photographs, three unrelated photographs as
channels, drawn stains that share some of their blobs, and other colour spaces, whole or in part.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.ndimage
import skimage.color
import skimage.data
import skimage.io
import skimage.restoration
import sklearn.datasets
from ell12.restoration.strength import strength_for_noise, value_range

import ell12
import study
from ell12.restoration import colour

NOISES = (0.02, 0.05, 0.1, 0.2)
CHOOSING = ("chelsea", "coffee", "motorcycle_left", "hubble_deep_field", "ihc")
REPORTING = ("astronaut", "rocket", "retina", "china", "flower")
GREY = (*REPORTING, "cell", "moon", "clock_motion")
MULTIPLES = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
FACTORS = 1.35 ** np.arange(-5.0, 4.0)
SIDE = 256

Row = dict[str, Any]


def photograph(name: str, side: int = SIDE) -> np.ndarray:
    """The middle of a photograph in [0, 1], channels last."""
    homes = (Path(skimage.data.__file__).parent, Path(sklearn.datasets.__file__).parent / "images")
    path = next(path for home in homes for path in home.glob(f"{name}.*"))
    pixels = skimage.io.imread(path) / 255.0
    pixels = pixels[..., :3] if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=-1)
    row, column = ((n - min(n, side)) // 2 for n in pixels.shape[:2])
    return np.ascontiguousarray(pixels[row : row + side, column : column + side])


def with_noise(clean: np.ndarray, noise: float, seed: int = 0) -> np.ndarray:
    return clean + noise * np.random.default_rng(seed).standard_normal(clean.shape)


def psnr(x: np.ndarray, clean: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((x - clean) ** 2)))


def principal_axes(y: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """The principal axes of differences, the longest first."""
    steps = np.concatenate([np.diff(y, axis=axis).reshape(-1, 3) for axis in (0, 1)])
    return tuple(map(tuple, np.linalg.eigh(steps.T @ steps)[1].T[::-1].tolist()))


def ours(y: np.ndarray, alpha: float | None, axes: Any = colour.AXES, multiple: float | None = 2.0) -> np.ndarray:
    """Denoised along axes, or channel by channel where there is no multiple."""
    if multiple is None:
        return ell12.denoise_tv(y, alpha, channel_axis=-1, penalty=ell12.TotalVariationL12(colour=False))
    weights = (1.0, multiple, multiple)
    with mock.patch.object(colour, "AXES", axes), mock.patch.object(colour, "WEIGHTS", weights):
        return ell12.denoise_tv(y, alpha, channel_axis=-1, penalty=ell12.TotalVariationL12(colour=True))


def best(
    denoise: Callable[..., np.ndarray], y: np.ndarray, clean: np.ndarray, noise: float, **options: Any
) -> float:
    """The PSNR at the best of nine strengths around the usual one for the noise."""
    centre = strength_for_noise(noise, value_range(np.moveaxis(y, -1, 0), 2))
    return max(psnr(denoise(y, centre * factor, **options), clean) for factor in FACTORS)


def choosing() -> Iterator[Row]:
    """The multiple for chroma."""
    for name, noise in itertools.product(CHOOSING, NOISES):
        clean = photograph(name)
        y = with_noise(clean, noise)
        row = {"part": "multiple", "image": name, "noise": noise}
        yield row | {"multiple": 0.0, "psnr": best(ours, y, clean, noise, multiple=None)}
        for multiple in MULTIPLES:
            yield row | {
                "multiple": multiple,
                "psnr": best(ours, y, clean, noise, multiple=multiple),
            }


def reporting() -> Iterator[Row]:
    """Methods on other photographs."""
    for name, noise in itertools.product(REPORTING, NOISES):
        clean = photograph(name)
        y = with_noise(clean, noise, seed=1)
        row = {"part": "report", "image": name, "noise": noise}
        variants: dict[str, dict[str, Any]] = {
            "channel by channel": {"multiple": None},
            "colours": {},
            "principal axes": {"axes": principal_axes(y)},
        }
        for method, options in variants.items():
            found = {
                "best": best(ours, y, clean, noise, **options),
                "automatic": psnr(ours(y, None, **options), clean),
            }
            yield row | {"method": method} | found
        yield row | {"method": "the noisy image", "best": psnr(y, clean), "automatic": None}
        for method, value in peers(y, clean, noise).items():
            yield row | {"method": method, "best": value, "automatic": None}


def peers(y: np.ndarray, clean: np.ndarray, noise: float) -> dict[str, float]:
    """The PSNR of scikit-image's methods."""
    tv, means = skimage.restoration.denoise_tv_chambolle, skimage.restoration.denoise_nl_means
    patches = {"patch_size": 5, "patch_distance": 6, "h": 0.8 * noise, "sigma": noise, "channel_axis": -1}
    return {
        "scikit-image, Chambolle": best(tv, y, clean, noise, channel_axis=-1),
        "scikit-image, non-local means": psnr(means(y, fast_mode=True, **patches), clean),
    }


def stains(shared: float, seed: int) -> np.ndarray:
    """Three channels of blobs, of which a part lies at the same places."""
    rng = np.random.default_rng(seed)
    common, *own = rng.random((4, SIDE, SIDE))
    picks = rng.random((3, SIDE, SIDE)) < shared
    spots = [np.where(pick, common, mine) > 0.997 for pick, mine in zip(picks, own, strict=True)]
    return 60 * np.stack([scipy.ndimage.gaussian_filter(spot.astype(float), 4) for spot in spots], axis=-1)


def samples() -> Iterator[tuple[str, np.ndarray]]:
    """Kinds of channels, and one image after the other of each."""
    for name in REPORTING:
        clean = photograph(name, 512)
        yield "photographs", photograph(name)
        rng = np.random.default_rng(0)
        for side, _ in itertools.product((64, 128), range(8)):
            row, column = (int(rng.integers(n - side + 1)) for n in clean.shape[:2])
            yield f"parts of photographs, {side} x {side}", clean[row : row + side, column : column + side]
        clean = photograph(name)
        yield "their hue, saturation, value", skimage.color.rgb2hsv(clean)
        yield "their L*a*b*", skimage.color.rgb2lab(clean) / 100
        yield (
            "one grey, shifted by 16 pixels",
            np.stack(
                [np.roll(clean.mean(axis=-1), shift, axis=(0, 1)) for shift in ((0, 0), (16, 0), (0, 16))], axis=-1
            ),
        )
    greys = [photograph(name).mean(axis=-1) for name in GREY]
    for three in itertools.combinations(greys, 3):
        yield "three unrelated photographs", np.stack(three, axis=-1)
    for shared, seed in itertools.product((0.0, 0.3, 0.6, 0.9), range(100, 110)):
        yield f"stains, {shared:.0%} of blobs shared", stains(shared, seed)


def recognising() -> Iterator[Row]:
    """How often channels are taken for colours."""
    for (kind, clean), noise in itertools.product(samples(), (0.0, *NOISES)):
        channels = np.ascontiguousarray(np.moveaxis(with_noise(clean, noise, seed=2), -1, 0))
        yield {"part": "colours?", "kind": kind, "noise": noise, "taken": colour.look_like_colours(channels, 2)}


def costs() -> Iterator[Row]:
    """What is lost where unrelated channels are restored as colours all the same."""
    greys = [photograph(name, 128).mean(axis=-1) for name in GREY]
    for k, noise in itertools.product(range(len(greys)), NOISES):
        clean = np.stack([greys[k], greys[(k + 1) % len(greys)], greys[(k + 3) % len(greys)]], axis=-1)
        y = with_noise(clean, noise)
        apart, joined = (best(ours, y, clean, noise, multiple=m) for m in (None, 2.0))
        yield {"part": "mistaken", "image": str(k), "noise": noise, "psnr": joined - apart}


def mean_table(rows: list[Row], part: str, name: str, value: str) -> Iterator[list[str]]:
    """One line for each entry of a column, the mean of a value for each noise."""
    rows = [row for row in rows if row["part"] == part]
    for entry in dict.fromkeys(row[name] for row in rows):
        cells = [[row[value] for row in rows if row[name] == entry and row["noise"] == noise] for noise in NOISES]
        if None not in cells[0]:
            yield [f"{entry:g}" if isinstance(entry, float) else entry, *(f"{np.mean(c):.2f}" for c in cells)]


def tables(rows: list[Row]) -> Iterator[str]:
    noises = [f"noise {noise}" for noise in NOISES]
    lines = list(mean_table(rows, "multiple", "multiple", "psnr"))
    lines[0][0] = "channel by channel"
    yield "## Strength of chroma over that of brightness, at the best strength"
    yield study.table([", ".join(CHOOSING), *noises], lines)
    for value in ("best", "automatic"):
        yield f"## Other photographs, at the {value} strength"
        yield study.table([", ".join(REPORTING), *noises], mean_table(rows, "report", "method", value))
    yield "## The fraction taken for colours"
    found = [row for row in rows if row["part"] == "colours?"]
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in found):
        here = [row for row in found if row["kind"] == kind]
        each = [[row["taken"] for row in here if row["noise"] == noise] for noise in (0.0, *NOISES)]
        lines.append([kind, str(len(each[0])), *(f"{np.mean(part):.2f}" for part in each)])
    yield study.table(["channels", "images", "no noise", *noises], lines)
    yield "## Three unrelated photographs as colours: what is gained, at the best strengths"
    yield study.table(
        ["", *noises], mean_table([r | {"all": "mean, dB"} for r in rows], "mistaken", "all", "psnr")
    )


def main() -> None:
    rows = [*choosing(), *reporting(), *recognising(), *costs()]
    settings = {"noises": NOISES, "multiples": MULTIPLES, "factors": FACTORS.tolist(), "side": SIDE}
    study.write("colour", __doc__ or "", settings, rows, tables(rows), ("scikit-image",))


if __name__ == "__main__":
    main()
