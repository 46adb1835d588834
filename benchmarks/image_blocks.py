"""Photographs larger than memory: denoised as Dask arrays, and as NumPy arrays.

Each row is a process of its own. ``peak MB`` is the most memory of its own that it held, pages of files not
counted, ``before`` what it held when the image was opened and all libraries loaded. ``largest difference`` is that
from the NumPy array's result, in units of the range: differences between pixels may begin at another corner. The
photograph is scikit-learn's china.jpg, continued by mirror images of itself, with noise of 0.08 of the range. The
strength is 0.05. Runs end after three iterations, which is enough to see memory and time; a whole run takes about
ten.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import study
from ell12 import TotalVariationL12

ITERATIONS = 3
KINDS = ("Dask", "NumPy")
ALPHA = 0.05
IMAGES = {"grey 8000 x 6000, uint8": ((6000, 8000), None), "colour 8000 x 6000, uint8": ((6000, 8000, 3), 2)}


def make(name: str, path: Path) -> None:
    """Write an image as an npy file, some rows at a time."""
    shape, _ = IMAGES[name]
    target = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape)
    rng, rows = np.random.default_rng(0), _photograph(shape)
    for start in range(0, shape[0], 50):
        part = rows(start, min(start + 50, shape[0]))
        part = part + 0.08 * rng.standard_normal(part.shape)
        target[start : start + 50] = np.clip(255 * part + 0.5, 0, 255)


def _photograph(shape: tuple[int, ...]) -> Any:
    from sklearn.datasets import load_sample_image

    photo = load_sample_image("china.jpg") / 255
    photo = photo if len(shape) == 3 else photo.mean(axis=2)
    wide = np.concatenate([photo, photo[:, ::-1]], axis=1)
    columns = np.arange(shape[1]) % wide.shape[1]
    both = np.concatenate([wide, wide[::-1]])

    def rows(start: int, stop: int) -> np.ndarray:
        return both[np.arange(start, stop) % len(both)][:, columns]

    return rows


def measure(name: str, kind: str, path: Path, result: Path) -> dict[str, Any]:
    """Denoise, in this process; the result goes to a file."""
    import dask.array as da

    from ell12 import distributed, restoration

    axis = IMAGES[name][1]
    image: Any = np.load(path, mmap_mode="r")
    options = {"channel_axis": axis, "max_iter": ITERATIONS, "tol": 0.0}
    restoration.denoise_tv(np.zeros((64, 64)) + np.eye(64), 0.1)  # so that compiled code is loaded
    before, begin = _anonymous(), time.perf_counter()
    with _Peak() as peak, warnings.catch_warnings(action="ignore"):
        if kind == "NumPy":
            found = restoration.denoise_tv(
                np.array(image), ALPHA, penalty=TotalVariationL12(colour=False), **options
            )
        else:
            found = distributed.denoise_tv(da.from_array(image, chunks=_chunks(image)), ALPHA, **options)
    seconds = time.perf_counter() - begin
    _save(found, result)
    return {"image": name, "kind": kind, "seconds": seconds, "before": before, "peak": peak.most}


def _chunks(image: np.ndarray) -> tuple[int, ...]:
    return (1000, 1000, 3)[: image.ndim]


class _Peak:
    """The most memory of its own that this process holds meanwhile, looked up twenty times a second."""

    def __enter__(self) -> _Peak:
        self.most, self.done = _anonymous(), threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()

    def _watch(self) -> None:
        while not self.done.wait(0.05):
            self.most = max(self.most, _anonymous())


def _anonymous() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def _save(image: Any, path: Path) -> None:
    target = np.lib.format.open_memmap(path, mode="w+", dtype=image.dtype, shape=image.shape)
    for start in range(0, image.shape[0], 100):
        target[start : start + 100] = np.asarray(image[start : start + 100])


def _difference(path: Path, other: Path) -> float:
    one, two = np.load(path, mmap_mode="r"), np.load(other, mmap_mode="r")
    return max(float(np.abs(one[i : i + 100] - two[i : i + 100]).max()) for i in range(0, len(one), 100))


def measure_all(folder: Path) -> None:
    found: list[dict[str, Any]] = []
    for name in IMAGES:
        path = folder / "image.npy"
        make(name, path)
        for kind in KINDS:
            command = [sys.executable, __file__, "--measure", name, kind, str(path), str(folder / f"{kind}.npy")]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found.append(json.loads(done.stdout))
            print(found[-1], flush=True)
        for row in found[-len(KINDS) :]:
            row["difference"] = _difference(folder / f"{row['kind']}.npy", folder / "NumPy.npy")
        write(found)


def write(found: list[dict[str, Any]]) -> None:
    header = ("image", "array", "seconds", "peak MB", "before", "largest difference")
    lines = [
        [r["image"], r["kind"]]
        + [f"{r[key]:.0f}" for key in ("seconds", "peak", "before")]
        + [f"{r['difference']:.1e}"]
        for r in found
    ]
    settings = {"load": os.getloadavg()[0], "processors": os.cpu_count()}
    study.write("image_blocks", __doc__ or "", settings, found, [study.table(header, lines)], ("dask",))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--folder", default=None, help="where the images and temporary files go")
    options = parser.parse_args()
    if options.measure:
        name, kind, path, result = options.measure
        print(json.dumps(measure(name, kind, Path(path), Path(result))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        os.environ["TMPDIR"] = folder
        measure_all(Path(folder))


if __name__ == "__main__":
    main()
