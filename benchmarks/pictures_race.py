"""Pictures: what automatic strengths reach on photographs, drawings and pages, and the time to an equal gap.

"chosen" is a plain call: `denoise_tv(y)`, `deblur_tv(y, psf)`, `inpaint_tv(y, mask)`. "best" is the best of nine
strengths and of both penalties that the call may choose, known only to who has the clean picture. Figures are PSNR
in dB. The rules were chosen on the first half, and on astronaut, rocket and gravel of scikit-image. The second
half reports, but camera and page 1 were seen while the search was written, and all ten pictures when the
sample of 2^15 pixels was chosen. "ms" is the processor time of the
plain call over all runs it makes, on a busy machine.

"Time to an equal gap" is the problem that Chambolle's method solves, isotropic differences without a subtracted
norm, on one picture. The gap is that of the true objective to a lower bound, the value of the dual problem after
8,000 accelerated steps, over the bound. Chambolle's steps and our tol are the fewest and the largest that reach
the gap; the last column is our time as a multiple of Chambolle's. "gap at tol" is what a tol gives.

With names of parts (denoise, deblur, inpaint, gap) only these are measured anew; each row says at which commit.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.ndimage
from skimage import data, restoration

import study
from ell12 import TotalVariationL12, deblur_tv, denoise_tv, inpaint_tv
from ell12.operators import adjoint_product, product
from ell12.operators.image_operators import FiniteDifference

SIDE = 256
PENALTIES = (TotalVariationL12(l2_weight=0.0, isotropic=True), TotalVariationL12())
LADDER = np.geomspace(1 / 16, 16, 9)  # strengths relative to sigma that are tried for the best one
GAPS = (1e-2, 1e-3, 1e-4, 1e-5)
HALVES = {
    "choosing": ("coins", "grass", "moon", "ellipses 0", "page 0"),
    "reporting": ("camera", "brick", "chelsea", "ellipses 1", "page 1"),
}
NOISES = ("white 0.02", "white 0.05", "white 0.1", "white 0.2", "8-bit 0.05", "8-bit 0.1", "photons 30",
          "photons 200", "clean 8-bit")  # fmt: skip


@cache
def picture(name: str) -> np.ndarray:
    """A grey picture in [0, 1], 256 x 256: ellipses on black, a page of text, or one of scikit-image's."""
    kind, _, number = name.partition(" ")
    if kind == "ellipses":
        return ellipses(int(number))
    if kind == "page":
        return page(int(number))
    if name == "camera":
        return data.camera()[::2, ::2] / 255
    values = getattr(data, name)()
    grey = values.mean(axis=-1) if values.ndim == 3 else values
    top, left = ((n - SIDE) // 2 for n in grey.shape)
    return grey[top : top + SIDE, left : left + SIDE] / 255


def ellipses(seed: int) -> np.ndarray:
    """Twelve ellipses of 0.3 to 1 on black."""
    random, image = np.random.default_rng(seed), np.zeros((SIDE, SIDE))
    row, column = np.indices(image.shape) / SIDE
    for _ in range(12):
        (y, x), (a, b), turn = random.random(2), random.uniform(0.04, 0.2, 2), random.uniform(0, math.pi)
        u = (row - y) * math.cos(turn) + (column - x) * math.sin(turn)
        v = (column - x) * math.cos(turn) - (row - y) * math.sin(turn)
        image[(u / a) ** 2 + (v / b) ** 2 < 1] = random.uniform(0.3, 1)
    return image


def page(seed: int) -> np.ndarray:
    """Black letters, smoothed at their edges as a scanner does, on white paper: all of it is saturated."""
    glyphs = np.kron(np.random.default_rng(seed).random((SIDE // 16 * 5, SIDE // 2)) < 0.4, np.ones((2, 2)))
    paper = np.ones((SIDE, SIDE))
    for line in range(SIDE // 16):
        paper[16 * line + 3 : 16 * line + 13, 8:-8] -= glyphs[10 * line : 10 * line + 10, 8:-8]
    return np.clip(scipy.ndimage.gaussian_filter(paper, 0.6), 0, 1)


def spoiled(clean: np.ndarray, noise: str, seed: int = 7) -> np.ndarray:
    """The picture with a kind of noise."""
    random, (kind, _, level) = np.random.default_rng(seed), noise.rpartition(" ")
    if kind == "photons":
        return random.poisson(float(level) * clean) / float(level)
    if noise == "clean 8-bit":
        return as_8_bit(clean)
    noisy = clean + float(level) * random.standard_normal(clean.shape)
    return as_8_bit(noisy) if kind == "8-bit" else noisy


def as_8_bit(image: np.ndarray) -> np.ndarray:
    return np.round(255 * np.clip(image, 0, 1)).astype(np.uint8)


def decibels(found: np.ndarray, clean: np.ndarray) -> float:
    """PSNR, at most 120."""
    return -10 * math.log10(max(float(np.mean((found - clean) ** 2)), 1e-12))


def best(restore: Callable[..., Any], clean: np.ndarray, middle: float, penalties: Any) -> float:
    """The best PSNR of a ladder of strengths."""
    return max(decibels(restore(float(middle * f), penalty=p), clean) for f in LADDER for p in penalties)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and the least processor time of three, or of one that takes over half a second."""
    seconds: list[float] = []
    while len(seconds) < 3 and (not seconds or min(seconds) < 0.5):
        begin = time.process_time()
        found = call()
        seconds.append(time.process_time() - begin)
    return found, min(seconds)


def row_of(problem: str, noise: str, name: str, given: Any, restore: Any, penalties: Any, middle: float) -> dict:
    """One picture restored by a plain call and by the best of some strengths."""
    clean, seen = picture(name), given / 255 if given.dtype == np.uint8 else given
    clean = seen if noise == "clean 8-bit" else clean
    found, seconds = timed(partial(restore, return_result=True))
    most = None if noise == "clean 8-bit" else round(best(restore, clean, middle, penalties), 2)
    return {
        "problem": problem,
        "half": next(half for half, names in HALVES.items() if name in names),
        "picture": name,
        "noise": noise,
        "given": round(decibels(seen, clean), 2),
        "chosen": round(decibels(found.image, clean), 2),
        "best": most,
        "alpha": found.alpha,
        "isotropic": found.penalty.isotropic,
        "ms": round(1e3 * seconds, 1),
    }


def denoising() -> Iterator[dict[str, Any]]:
    for name in sum(HALVES.values(), ()):
        for noise in NOISES:
            given, level = spoiled(picture(name), noise), noise.rpartition(" ")[2]
            middle = float(level) if "." in level else 0.1
            yield row_of("denoise", noise, name, given, partial(denoise_tv, given), PENALTIES, middle)


def deblurring() -> Iterator[dict[str, Any]]:
    psf = np.outer(*[np.exp(-(np.arange(-5.0, 6) ** 2) / 4.5)] * 2)
    for name in ("coins", "ellipses 0", "camera", "ellipses 1"):
        given = spoiled(scipy.ndimage.convolve(picture(name), psf / psf.sum()), "white 0.02")
        restore, penalties = partial(deblur_tv, given, psf / psf.sum()), (TotalVariationL12(l2_weight=0.0),)
        yield row_of("deblur", "Gaussian 1.5, 0.02", name, given, restore, penalties, 0.02**1.5)


def inpainting() -> Iterator[dict[str, Any]]:
    for name in ("coins", "ellipses 0", "camera", "ellipses 1"):
        for sigma in (0.0, 0.05):
            given = spoiled(picture(name), f"white {sigma}")
            mask = np.random.default_rng(3).random(given.shape) < 0.5
            restore = partial(inpaint_tv, given, mask)
            yield row_of(
                "inpaint", f"half missing, {sigma}", name, given * mask, restore, PENALTIES, sigma or 1e-3
            )


@cache
def bound(name: str, alpha: float) -> tuple[Any, float]:
    """The noisy picture, and the value of the dual problem after many steps: a lower bound of the objective."""
    y = spoiled(picture(name), "white 0.05")
    D = FiniteDifference(y.shape, "neumann", 2)
    v = ahead = np.zeros((*y.shape, 2))
    for k in range(8000):
        new = ahead + product(D, y - adjoint_product(D, ahead)) / 8
        new /= np.maximum(np.linalg.norm(new, axis=-1, keepdims=True) / alpha, 1)
        v, ahead = new, new + k / (k + 3) * (new - v)
    return y, 0.5 * (float(np.sum(y**2)) - float(np.sum((y - adjoint_product(D, v)) ** 2)))


def gap(x: np.ndarray, name: str, alpha: float) -> float:
    """How far the true objective is above the bound, as a fraction of it."""
    y, lowest = bound(name, alpha)
    objective = 0.5 * float(np.sum((x - y) ** 2)) + TotalVariationL12(alpha, 0.0, isotropic=True).value(x)
    return (objective - lowest) / lowest


def equal_gaps() -> Iterator[dict[str, Any]]:
    """The time to a gap of both methods, and the gap that a tol gives."""
    for name, alpha in (("coins", 0.05), ("camera", 0.05)):
        y, _ = bound(name, alpha)
        ours = partial(denoise_tv, y, alpha, penalty=PENALTIES[0])
        theirs = partial(restoration.denoise_tv_chambolle, y, weight=alpha, eps=0.0)
        tols = [5e-2 * 2 ** (-k / 2) for k in range(40)]
        steps = [round(4 * 2 ** (k / 2)) for k in range(28)]
        for tol in (5e-2, 5e-3, 5e-4, 5e-5):
            yield {"problem": "tol", "picture": name, "tol": tol, "gap": gap(ours(tol=tol), name, alpha)}
        for target in GAPS:
            tol = first(tols, lambda t: gap(ours(tol=t), name, alpha) <= target)  # noqa: B023
            count = first(steps, lambda k: gap(theirs(max_num_iter=k), name, alpha) <= target)  # noqa: B023
            calls = {"ours": partial(ours, tol=tol), "theirs": partial(theirs, max_num_iter=count)}
            times = study.medians(calls)
            yield {"problem": "gap", "picture": name, "gap": target, "tol": tol, "steps": count} | {
                f"{who} ms": round(1e3 * seconds, 2) for who, seconds in times.items()
            }


def first(values: list[Any], reaches: Callable[[Any], bool]) -> Any:
    """The first value of a rising effort that reaches what is asked."""
    return next((value for value in values if reaches(value)), values[-1])


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    for problem in ("denoise", "deblur", "inpaint"):
        for half in HALVES:
            own = [row for row in rows if row["problem"] == problem and row.get("half") == half]
            if not own:
                continue
            head = ["picture and noise", "given", "chosen", "best", "alpha", "isotropic", "ms"]
            lines = [
                [f"{r['picture']}, {r['noise']}", f"{r['given']:.2f}", f"{r['chosen']:.2f}",
                 "" if r["best"] is None else f"{r['best']:.2f}", f"{r['alpha']:.3g}", str(r["isotropic"]),
                 f"{r['ms']:.0f}"]
                for r in own
            ]  # fmt: skip
            yield f"## {problem}, {half}"
            yield study.table(head, lines)
    yield "## Time to an equal gap"
    keys = ["picture", "gap", "tol", "steps", "ours ms", "theirs ms"]
    own = [row for row in rows if row["problem"] == "gap"]
    lines = [[f"{r[k]:.3g}" if k != "picture" else r[k] for k in keys] for r in own]
    lines = [[*line, f"{r['ours ms'] / r['theirs ms']:.2f}"] for line, r in zip(lines, own, strict=True)]
    yield study.table([*keys, "ours / theirs"], lines)
    yield "## Gap at tol"
    own = [row for row in rows if row["problem"] == "tol"]
    yield study.table(["picture", "tol", "gap"], [[r["picture"], f"{r['tol']:g}", f"{r['gap']:.1e}"] for r in own])


def main() -> None:
    parts = {"denoise": denoising, "deblur": deblurring, "inpaint": inpainting, "gap": equal_gaps}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], choices=[*parts, []], help="all by default")
    chosen, file = parser.parse_args().parts or list(parts), study.RESULTS / "pictures_race.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    rows = [row for row in rows if row["part"] not in chosen]
    denoise_tv(spoiled(picture("coins"), "white 0.1"))  # which compiles
    for name in chosen:
        for row in parts[name]():
            print(row, flush=True)
            rows.append({"part": name, "commit": study.commit()} | row)
    study.write("pictures_race", __doc__, {"side": SIDE}, rows, tables(rows), ["scikit-image"])


if __name__ == "__main__":
    main()
