"""How near the automatic strength of denoise_tv comes to the best one.

Grey photographs that ship with scikit-image and scikit-learn, their middle 400 x 400 pixels or all there are, and
drawings of random ellipses and rectangles; none of them was looked at when the rule was made, which was tried on
other photographs and drawings. Noise of standard deviation 0.005 to 0.2 is added. A cell is the mean loss in dB of
PSNR against the best strength of a ladder (or against the noisy image, if no strength improves it), then the worst
image. "default" is a call without arguments, "noise known" one with the true level, "held-out" the search by
pixels held out, "noise alone" the rule from which the search begins, "nothing" the noisy image itself. Work is the
number of iterations times pixels of all runs of a call, as a multiple of that of its last run, which is a run with
a given strength: the median over the images, and the largest.

Below are kinds of noise that the rule does not suppose: Poisson counts (the noise follows the brightness), JPEG
after noise of 0.05 (quality 75), noise of 0.1 cut off at 0 and 1, and noise of 0.1 blurred over neighbours. Last
come the images as they are: what differs from them was taken for noise, which photographs have of their own.

What it shows: with white noise of 0.02 and more the default is within 0.15 dB of the best on average, and never
below the noisy image. With 0.005 it loses half a dB, and a known noise nothing. Photon noise, JPEG and saturation
cost it 0.3 dB at most on average. Correlated noise is kept: it looks like detail; where its level is given, it is
removed. A clean photograph comes back at 51 dB or more. The thresholds that decide between photon noise and
texture were chosen on other images, but after an earlier rule had failed on some of these.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.resources import files
from typing import Any

import numpy as np
from ell12.restoration.strength import strength_for_noise, value_range
from PIL import Image
from scipy.ndimage import gaussian_filter

import study
from ell12 import denoise_tv
from ell12.restoration import estimate_noise
from ell12.restoration.restore import ImageProblem

PHOTOGRAPHS = ("astronaut.png", "rocket.jpg", "cell.png", "moon.png", "retina.jpg", "clock_motion.png")
SAMPLE_IMAGES = ("china.jpg", "flower.jpg")
SIDE, N_DRAWINGS, FIRST_DRAWING = 400, 5, 100
LEVELS = (0.005, 0.02, 0.05, 0.1, 0.2)
METHODS = ("default", "noise known", "held-out", "noise alone", "nothing")


def photographs() -> Iterator[tuple[str, Any]]:
    for package, names in (("skimage.data", PHOTOGRAPHS), ("sklearn.datasets.images", SAMPLE_IMAGES)):
        for name in names:
            grey = np.asarray(Image.open(io.BytesIO((files(package) / name).read_bytes())).convert("L")) / 255.0
            top, left = (max(0, (n - SIDE) // 2) for n in grey.shape)
            yield name.partition(".")[0], np.ascontiguousarray(grey[top : top + SIDE, left : left + SIDE])


def drawing(seed: int, side: int = SIDE) -> Any:
    """Ellipses and rectangles, one over the other."""
    random = np.random.default_rng(seed)
    image, (rows, columns) = np.full((side, side), random.random()), np.mgrid[:side, :side]
    for _ in range(12):
        (top, left), (high, wide) = random.random(2) * side, random.uniform(0.03, 0.25, 2) * side
        down, right = np.abs(rows - top) / high, np.abs(columns - left) / wide
        inside = down**2 + right**2 < 1 if random.random() < 0.5 else np.maximum(down, right) < 1
        image[inside] = random.random()
    return image


def poisson(clean: Any, random: Any) -> Any:
    return random.poisson(100 * clean) / 100


def jpeg(clean: Any, random: Any) -> Any:
    noisy = np.clip(clean + 0.05 * random.standard_normal(clean.shape), 0, 1)
    file = io.BytesIO()
    Image.fromarray(np.round(255 * noisy).astype(np.uint8)).save(file, "JPEG", quality=75)
    return np.asarray(Image.open(file)) / 255.0


def saturated(clean: Any, random: Any) -> Any:
    return np.clip(clean + 0.1 * random.standard_normal(clean.shape), 0, 1)


def correlated(clean: Any, random: Any) -> Any:
    noise = gaussian_filter(random.standard_normal(clean.shape), 1.0, mode="wrap")
    return clean + 0.1 * noise / noise.std()


KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "Poisson": poisson,
    "JPEG": jpeg,
    "saturated": saturated,
    "correlated": correlated,
    "none": lambda clean, random: clean,  # noqa: ARG005
}


def ratio(image: Any, clean: Any) -> float:
    """The PSNR in dB, at most 100, for values in [0, 1]."""
    return -10 * math.log10(max(float(np.mean((image - clean) ** 2)), 1e-10))


def row(group: str, name: str, clean: Any, kind: str, level: float | None, seed: int) -> dict[str, Any]:
    """One image with one noise: the PSNR of every method, and of the best strength."""
    random = np.random.default_rng(seed)
    noisy = clean + level * random.standard_normal(clean.shape) if level else KINDS[kind](clean, random)
    first = strength_for_noise(estimate_noise(noisy, 2), value_range(noisy, 2))
    true_noise = float(np.std(noisy - clean))
    calls: dict[str, Callable[[], Any]] = {
        "default": lambda: denoise_tv(noisy),
        "noise known": lambda: denoise_tv(noisy, sigma=true_noise),
        "held-out": lambda: denoise_tv(noisy, "held-out"),
        "noise alone": lambda: denoise_tv(noisy, first),
        "nothing": lambda: noisy,
    }
    found, work = {}, {}
    for method, call in calls.items():
        runs: list[float] = []
        with counted(runs):
            found[method] = ratio(call(), clean)
        work[method] = sum(runs) / runs[-1] if runs else 0.0
    with counted(runs):
        ladder = [ratio(denoise_tv(noisy, alpha), clean) for alpha in (first or 1e-3) * np.geomspace(0.02, 8, 20)]
    best = max([*ladder, *found.values()])
    what = {"group": group, "image": name, "kind": kind, "level": level, "noise": true_noise}
    return what | {"best": best, "psnr": found, "work": work}


@contextlib.contextmanager
def counted(runs: list[float]) -> Iterator[None]:
    """Add iterations times pixels of every run to a list."""
    run = ImageProblem._run

    def counting(problem: Any, *arguments: Any) -> Any:
        result = run(problem, *arguments)
        runs.append(result.n_iter * math.prod(problem.start.shape))
        return result

    ImageProblem._run = counting  # type: ignore[method-assign]
    try:
        yield
    finally:
        ImageProblem._run = run  # type: ignore[method-assign]


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "## White noise\n\n" + losses(rows, "white")
    yield "## Work, as a multiple of a run with a given strength\n\n" + works(rows)
    for kind in KINDS:
        yield f"## {'A clean image' if kind == 'none' else f'{kind[0].upper()}{kind[1:]} noise'}\n\n" + losses(
            rows, kind
        )


def losses(rows: list[dict[str, Any]], kind: str) -> str:
    rows = [row for row in rows if row["kind"] == kind]
    lines = []
    for group, level in dict.fromkeys((row["group"], row["level"]) for row in rows):
        part = [row for row in rows if (row["group"], row["level"]) == (group, level)]
        cells = []
        for method in METHODS:
            lost = [row["best"] - row["psnr"][method] for row in part]
            cells.append(f"{np.mean(lost):.2f}, worst {max(lost):.2f}")
        noisy = np.mean([row["psnr"]["nothing"] for row in part])
        title = group if level is None else f"{group}, noise {level}"
        harmed = sum(row["psnr"]["default"] < row["psnr"]["nothing"] - 1e-9 for row in part)
        lines.append([f"{title} ({len(part)} images)", f"{noisy:.1f}", *cells, f"{harmed} of {len(part)}"])
    return study.table(["images", "PSNR of the noisy ones", *METHODS, "default below the noisy one"], lines)


def works(rows: list[dict[str, Any]]) -> str:
    lines = []
    for group, kind in dict.fromkeys((row["group"], row["kind"]) for row in rows):
        part = [row["work"] for row in rows if (row["group"], row["kind"]) == (group, kind)]
        cells = []
        for method in METHODS[:3]:
            multiples = [work[method] for work in part]
            cells.append(f"{np.median(multiples):.1f}, largest {max(multiples):.1f}")
        lines.append([f"{group}, {kind}", *cells])
    return study.table(["images and noise", *METHODS[:3]], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=None, help="only the first images, to try the script")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    drawings = [(f"drawing {k}", drawing(FIRST_DRAWING + k)) for k in range(N_DRAWINGS)]
    kinds = [("white", level) for level in LEVELS] + [(kind, None) for kind in KINDS]
    jobs = [
        (group, name, clean, kind, level, seed)
        for group, images in (("photographs", list(photographs())), ("drawings", drawings))
        for seed, (name, clean) in enumerate(images[: options.images])
        for kind, level in kinds
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(row, *zip(*jobs, strict=True)))
    study.write("strength", __doc__, {"side": SIDE, "drawings": N_DRAWINGS}, rows, tables(rows))


if __name__ == "__main__":
    main()
