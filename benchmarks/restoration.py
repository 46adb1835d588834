"""Time against quality: denoising by total variation with ell12 and with scikit-image's Chambolle.

Photographs with Gaussian noise of standard deviation 0.05: mosaics of crops of eight pictures on which nothing was
chosen, from 256 to 2048 pixels a side; one picture in colour; a volume of ellipsoids. Both methods run at several
accuracies: scikit-image's `eps` from 0.006 to 1e-4 (its default is 2e-4, the smallest for more than 2^19 numbers),
our smoothing from 0.03 to 0.0025, with isotropic differences and l2_weight 0: that is the problem that Chambolle
solves, but for the smoothing. tol is 1, the largest that lost no quality on camera, coins, brick and chelsea. Each
accuracy has its own best strength, searched on a grid (above 512 pixels around the best at 512). The ratio at a
PSNR of Chambolle's is its time over the least of ours that reach this PSNR. The aim is 4 at every PSNR within 0.1
dB of its best. The points "defaults" are our plain call at its best strength: l2_weight 0.5, another penalty.

Processor time of one thread, medians of interleaved rounds. What two threads add is wall time.
`python benchmarks/restoration.py [IMAGES.npz [CASE...]]`: with a file the pictures are taken from there, or stored
there if there is none yet; with cases, such as "volume", only those are measured anew. In the results here each
case had its own process on two processors of a quiet machine, and the largest were measured in float32 alone.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from skimage.restoration import denoise_tv_chambolle

import ell12
import study

NOISE = 0.05
EPS = [6e-3, 3e-3, 1e-3, 5e-4, 2e-4, 1e-4]
SMOOTHINGS = [0.03, 0.02, 0.015, 0.01, 0.007, 0.005, 0.0035, 0.0025]
TOL = 1.0
SIDES = [256, 512, 1024, 2048]
WITHIN = 0.1  # dB below Chambolle's best
FEWEST_ROUNDS, MOST_ROUNDS, BUDGET = 3, 15, 3.0

Denoise = Callable[[np.ndarray, float], np.ndarray]


def main(file: str | None = None, *chosen: str) -> None:
    rows = [row for row in stored() if chosen and not row["case"].startswith(chosen)]
    strengths: dict[str, dict[str, float]] = {}
    for name, clean, channel_axis in cases(file):
        if chosen and not name.startswith(chosen):
            continue
        noisy = clean + NOISE * np.random.default_rng(0).standard_normal(clean.shape)
        for dtype in ("float32", "float64"):
            y, base, kind = noisy.astype(dtype), {"case": name, "dtype": dtype}, name.split()[0]
            known = strengths.get(kind) if clean.size > 512**2 or dtype == "float64" else None
            found = curve(y, clean, all_methods(y, channel_axis), known)
            strengths.setdefault(kind, {point["method"]: point["strength"] for point in found})
            rows += [base | point for point in (*found, *ratios(found))]
            if clean.size >= 512**2:
                rows.append(base | {"what": "threads", "gain": gain_of_two_threads(y, found, channel_axis)})
            write(rows)


def stored() -> list[dict[str, Any]]:
    """The rows measured before."""
    file = study.RESULTS / "restoration.json"
    return json.loads(file.read_text())["rows"] if file.exists() else []


def write(rows: list[dict[str, Any]]) -> None:
    settings = {"noise": NOISE, "eps": EPS, "smoothing": SMOOTHINGS, "tol": TOL, "within": WITHIN}
    study.write("restoration", __doc__ or "", settings, rows, tables(rows), packages=("scikit-image", "numba"))


def all_methods(y: np.ndarray, channel_axis: int | None) -> dict[str, tuple[Denoise, float]]:
    """Each method at each accuracy, with the strength around which its best is searched."""
    found: dict[str, tuple[Denoise, float]] = {}
    for eps in EPS if y.size <= 2**19 else EPS[:-1]:
        options: dict[str, Any] = {"eps": eps, "max_num_iter": 2000, "channel_axis": channel_axis}
        found[f"Chambolle, eps {eps:g}"] = (partial(chambolle, **options), 0.035)
    for smoothing in SMOOTHINGS:
        options = {"isotropic": True, "l2_weight": 0.0, "smoothing": smoothing, "tol": TOL}
        found[f"ell12, smoothing {smoothing:g}"] = (partial(ours, channel_axis=channel_axis, **options), 0.04)
    found["ell12, defaults"] = (partial(ours, channel_axis=channel_axis), 0.05)
    return found


def chambolle(y: np.ndarray, strength: float, **options: Any) -> np.ndarray:
    return denoise_tv_chambolle(y, weight=strength, **options)


def ours(y: np.ndarray, strength: float, threads: int = 1, **options: Any) -> np.ndarray:
    # Colours are restored one by one on both sides.
    return ell12.denoise_tv(
        y,
        strength,
        solver=ell12.restoration.SmoothedGradient(threads=threads),
        penalty=ell12.TotalVariationL12(colour=False),
        **options,
    )


def curve(
    y: np.ndarray, clean: np.ndarray, methods: dict[str, tuple[Denoise, float]], known: dict[str, float] | None
) -> list[dict[str, Any]]:
    """What each method reaches at its best strength, and how long it takes."""
    points, calls = [], {}
    for name, (denoise, centre) in methods.items():
        grid = centre * np.geomspace(0.6, 1.7, 7) if known is None else known[name] * np.geomspace(0.8, 1.25, 3)
        quality, strength = max((psnr(denoise(y, float(a)), clean), float(a)) for a in grid)
        points.append({"what": "point", "method": name, "psnr": quality, "strength": strength})
        calls[name] = partial(denoise, y, strength)
    seconds = medians(calls, time.process_time)
    return [point | {"seconds": seconds[point["method"]]} for point in points]


def medians(calls: dict[str, Callable[[], Any]], clock: Callable[[], float]) -> dict[str, float]:
    """The median time of each call, in rounds of one call of each."""
    begin = time.perf_counter()
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for count in range(MOST_ROUNDS):
        if count >= FEWEST_ROUNDS and time.perf_counter() - begin > BUDGET:
            break
        for name, call in calls.items():
            start = clock()
            call()
            samples[name].append(clock() - start)
    return {name: statistics.median(times) for name, times in samples.items()}


def ratios(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At each PSNR of Chambolle's within `WITHIN` of its best: its time over the least of ours that reach it."""
    theirs = [point for point in points if point["method"].startswith("Chambolle")]
    mine = [point for point in points if point["method"].startswith("ell12, smoothing")]
    best, found = max(point["psnr"] for point in theirs), []
    for point in theirs:
        if point["psnr"] < best - WITHIN:
            continue
        fast = min((p for p in mine if p["psnr"] >= point["psnr"]), key=lambda p: p["seconds"], default=None)
        row = {"what": "ratio", "psnr": point["psnr"], "method": point["method"], "theirs": point["seconds"]}
        if fast is not None:
            row |= {"ours": fast["seconds"], "with": fast["method"], "ratio": point["seconds"] / fast["seconds"]}
        found.append(row)
    return sorted(found, key=lambda row: row["psnr"])


def gain_of_two_threads(y: np.ndarray, points: list[dict[str, Any]], channel_axis: int | None) -> float:
    strength = next(p["strength"] for p in points if p["method"] == "ell12, defaults")
    calls = {str(n): partial(ours, y, strength, threads=n, channel_axis=channel_axis) for n in (1, 2)}
    times = medians(calls, time.perf_counter)
    return times["1"] / times["2"]


def cases(file: str | None) -> list[tuple[str, np.ndarray, int | None]]:
    found = pictures(file)
    return [
        *((f"grey {side} x {side}", mosaic(found, side), None) for side in SIDES),
        ("colour 512 x 512", found["astronaut"] / 255, -1),
        ("volume 128^3", ellipsoids(128), None),
    ]


def pictures(file: str | None) -> dict[str, np.ndarray]:
    """Pictures on which nothing was chosen, as bytes."""
    if file is not None and Path(file).exists():
        with np.load(file) as stored:
            return {name: stored[name] for name in stored.files}
    from skimage import data
    from sklearn.datasets import load_sample_images

    found = {name: getattr(data, name)() for name in ("astronaut", "moon", "retina", "cell", "rocket")}
    found["clock"] = data.clock()
    found |= dict(zip(("china", "flower"), load_sample_images().images, strict=True))
    if file is not None:
        np.savez_compressed(file, **found)
    return found


def mosaic(found: dict[str, np.ndarray], side: int) -> np.ndarray:
    """Crops of 256 pixels of all pictures in turn, from other places each time, side by side."""
    grey = [image if image.ndim == 2 else image[..., :3].mean(axis=-1) for image in found.values()]
    rng, count = np.random.default_rng(100), side // 256
    crops = []
    for k in range(count**2):
        image = grey[k % len(grey)]
        i, j = (rng.integers(n - 255) for n in image.shape)
        crops.append(image[i : i + 256, j : j + 256] / 255)
    return np.block([crops[row * count : (row + 1) * count] for row in range(count)])


def ellipsoids(side: int) -> np.ndarray:
    """A volume of ellipsoids of different brightness."""
    rng = np.random.default_rng(100)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, side)] * 3, indexing="ij"))
    volume = np.zeros((side,) * 3)
    for _ in range(15):
        centre, axes = rng.uniform(-0.6, 0.6, 3), rng.uniform(0.1, 0.5, 3)
        inside = sum(((grid[k] - centre[k]) / axes[k]) ** 2 for k in range(3)) < 1
        volume[inside] = rng.random()
    return volume


def psnr(x: np.ndarray, clean: np.ndarray) -> float:
    return -10 * math.log10(np.mean((np.asarray(x, dtype=np.float64) - clean) ** 2))


def tables(rows: list[dict[str, Any]]) -> list[str]:
    """The Markdown tables."""
    kinds = {what: [row for row in rows if row["what"] == what] for what in ("ratio", "threads", "point")}
    header = ["case", "precision", "PSNR", "Chambolle", "its time, ms", "ell12", "its time, ms", "ratio"]
    ratio = [row["ratio"] for row in kinds["ratio"] if "ratio" in row]
    least, middle, most = min(ratio), statistics.median(ratio), max(ratio)
    summary = (
        f"We reached {len(ratio)} of {len(kinds['ratio'])} PSNRs within {WITHIN} dB of Chambolle's best. The "
        f"ratio is {least:.2f} at least, {middle:.2f} in the middle, {most:.2f} at most, and below 4 at "
        f"{sum(r < 4 for r in ratio)} of them."
    )
    threads = [[row["case"], row["dtype"], f"{row['gain']:.2f}"] for row in kinds["threads"]]
    points = [
        [
            *(row["case"], row["dtype"], row["method"]),
            *(f"{row['psnr']:.3f}", f"{row['strength']:.3g}", milliseconds(row["seconds"])),
        ]
        for row in kinds["point"]
    ]
    return [
        "## The ratio at equal PSNR\n\n" + summary,
        study.table(header, map(ratio_cells, kinds["ratio"])),
        "## What two threads add\n\nThe time of one thread over that of two, with the defaults.",
        study.table(["case", "precision", "gain"], threads),
        "## All points",
        study.table(["case", "precision", "method", "PSNR", "strength", "ms"], points),
    ]


def ratio_cells(row: dict[str, Any]) -> list[str]:
    method, theirs = row["method"].split(", ")[1], milliseconds(row["theirs"])
    head = [row["case"], row["dtype"], f"{row['psnr']:.3f}", method, theirs]
    if "ratio" not in row:
        return [*head, "not reached", "", ""]
    return [*head, row["with"].split(", ")[1], milliseconds(row["ours"]), f"{row['ratio']:.2f}"]


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}"


if __name__ == "__main__":
    main(*sys.argv[1:])
