"""Counts and impulses: the squared, the Poisson and the absolute loss, at automatic and at best strengths.

Counts have the expectation ``peak`` times the picture; impulses replace a share of the pixels, by 0 or 1 (salt and
pepper) or by uniform numbers (random). Pictures are the middle 96 x 96 pixels of photographs and drawings that
nothing was chosen by. The best strength is the one of a ladder by factors of 1.6 with the highest PSNR. For
impulses the median over 3 x 3 and over 5 x 5 pixels (scipy.ndimage, which scikit-image calls) is a plain
reference. A row is one picture, noise and loss.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from multiprocessing import Pool
from typing import Any

import numpy as np
from scipy.ndimage import median_filter

import ell12
import pictures
from study import table, write

SIDE, SEEDS = 96, range(100, 102)
PEAKS, SHARES = (5, 20, 100), (0.05, 0.2, 0.4)
NOISES = (
    *(("counts", peak) for peak in PEAKS),
    *((kind, share) for kind in ("salt and pepper", "random") for share in SHARES),
)
LOSSES = ("squared", "poisson", "absolute")
LADDERS = {
    "squared": tuple(0.01 * 1.6**k for k in range(11)),  # of the peak
    "poisson": tuple(0.05 * 1.6**k for k in range(10)),
    "absolute": tuple(0.3 * 1.6**k for k in range(7)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    with Pool(parser.parse_args().jobs) as pool:
        rows = [row for found in pool.imap(study_of, tasks(), chunksize=1) for row in found]
    write("losses", __doc__, {"side": SIDE, "ladders": LADDERS}, rows, tables(rows), ("scikit-image",))


def tasks() -> list[tuple[str, np.ndarray, str, float]]:
    """Name, values and noise of each problem."""
    clean = {f"drawing {seed}": pictures.drawing(seed, SIDE) for seed in SEEDS}
    clean |= {name: pictures.photograph(name, SIDE) for name in pictures.REPORTING[:4]}
    return [(name, values, *noise) for name, values in clean.items() for noise in NOISES]


def spoiled(clean: np.ndarray, kind: str, level: float) -> tuple[np.ndarray, float]:
    """The picture with its noise, and the unit of its values."""
    rng = np.random.default_rng(7)
    if kind == "counts":
        return rng.poisson(level * np.clip(clean, 0, 1)).astype(float), level
    hit, values = rng.random(clean.shape) < level, rng.random(clean.shape)
    return np.where(hit, np.round(values) if kind == "salt and pepper" else values, clean), 1.0


def study_of(task: tuple[str, np.ndarray, str, float]) -> list[dict[str, Any]]:
    """The rows of one problem."""
    name, clean, kind, level = task
    y, unit = spoiled(clean, kind, level)
    problem = {"picture": name, "noise": kind, "level": level, "psnr_given": pictures.psnr(y / unit, clean)}
    found = []
    for loss in LOSSES:
        begin = time.perf_counter()
        auto = ell12.denoise_tv(y, loss=loss, return_result=True)
        seconds = time.perf_counter() - begin
        strengths = [alpha * (unit if loss == "squared" else 1.0) for alpha in LADDERS[loss]]
        values = [pictures.psnr(ell12.denoise_tv(y, alpha, loss=loss) / unit, clean) for alpha in strengths]
        own = {"psnr": pictures.psnr(auto.image / unit, clean), "alpha": auto.alpha, "seconds": seconds}
        best = int(np.argmax(values))
        found.append(problem | {"loss": loss} | own | {"best": values[best], "best_alpha": strengths[best]})
    if kind != "counts":
        for size in (3, 5):
            value = pictures.psnr(median_filter(y, size), clean)
            found.append(problem | {"loss": f"median {size} x {size}", "psnr": value, "best": value})
    print(name, kind, level, flush=True)
    return found


def tables(rows: list[dict[str, Any]]) -> Iterable[str]:
    """Means over the drawings and over the photographs: automatic strength, best strength."""
    for group in ("drawing", "photograph"):
        chosen = [row for row in rows if row["picture"].startswith("drawing") == (group == "drawing")]
        names = (*LOSSES, "median 3 x 3", "median 5 x 5")
        lines = []
        for kind, level in NOISES:
            here = [row for row in chosen if (row["noise"], row["level"]) == (kind, level)]
            cells = [[row for row in here if row["loss"] == loss] for loss in names]
            given = np.mean([row["psnr_given"] for row in here])
            words = [_cell(cell) for cell in cells]
            lines.append([f"{kind}, {'peak ' if kind == 'counts' else ''}{level:g}", f"{given:.1f}", *words])
        yield f"Means over the {group}s in dB, at the automatic (at the best) strength:"
        yield table(["noise", "given", *names], lines)


def _cell(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    value, best = (np.mean([row[key] for row in rows]) for key in ("psnr", "best"))
    return f"{value:.1f}" if "alpha" not in rows[0] else f"{value:.1f} ({best:.1f})"


if __name__ == "__main__":
    main()
