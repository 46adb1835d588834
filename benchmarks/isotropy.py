"""Total variation by axes and by length: missing pixels, noise, and voxels that are not cubes.

Each picture is restored by six penalties: a pixel's differences count by axes (anisotropic) or by their length
(isotropic), each with l2_weight 0, 0.5 and 1. Each has its own best strength, on a ladder by factors of 1.4, by
ten where there is no noise. A row is one picture, problem and penalty; figures are PSNR in dB. Seven photographs
and drawings 0 to 3 are to choose by; six other photographs and drawings 100 to 104 to report. Pictures are the
middle 256 x 256 pixels. Volumes are balls and boxes, 16 slices of 48 x 48 pixels, a slice three times as thick as
a pixel is wide.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ell12
from pictures import CHOOSING, REPORTING, drawing, photograph, psnr, volume
from study import table, write

SIDE = 256
PENALTIES = [(isotropic, l2_weight) for isotropic in (False, True) for l2_weight in (0.0, 0.5, 1.0)]
LADDERS = {
    0.0: (1e-4, 1e-3, 1e-2),
    0.05: tuple(0.01 * 2 ** (k / 2) for k in range(-1, 13)),
    0.1: tuple(0.02 * 2 ** (k / 2) for k in range(-1, 13)),
}
# What is known of the pixels, and the noise.
PROBLEMS = {
    "half the pixels": (0.5, 0.0),
    "a fifth of the pixels": (0.2, 0.0),
    "half, noise 0.05": (0.5, 0.05),
    "noise 0.05": (1.0, 0.05),
    "noise 0.1": (1.0, 0.1),
}
SPACED = {"by axes": False, "by length": True}


def main() -> None:
    rows = [*flat_rows(), *volume_rows()]
    write("isotropy", __doc__, {"side": SIDE, "ladders": LADDERS}, rows, tables(rows), ("scikit-image",))


def pictures() -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Use, kind, name and values."""
    for use, names, seeds in (("choosing", CHOOSING, range(4)), ("reporting", REPORTING, range(100, 105))):
        for seed in seeds:
            yield use, "drawing", f"drawing {seed}", drawing(seed, SIDE)
        for name in names:
            yield use, "photograph", name, photograph(name, SIDE)


def flat_rows() -> Iterator[dict[str, Any]]:
    for use, kind, name, clean in pictures():
        for problem, (known, noise) in PROBLEMS.items():
            rng = np.random.default_rng(7)
            noisy, mask = clean + noise * rng.standard_normal(clean.shape), rng.random(clean.shape) < known
            for isotropic, l2_weight in PENALTIES:
                options = {"isotropic": isotropic, "l2_weight": l2_weight, "spins": 1}

                def restore(alpha: float, y: np.ndarray = noisy, m: np.ndarray = mask, o: Any = options) -> Any:
                    return ell12.denoise_tv(y, alpha, **o) if m.all() else ell12.inpaint_tv(y, m, alpha, **o)

                value, alpha, image = best(restore, clean, LADDERS[noise])
                row = {"use": use, "kind": kind, "picture": name, "problem": problem, "isotropic": isotropic}
                steps = np.linalg.norm(
                    ell12.operators.image_operators.FiniteDifference(clean.shape) @ image, axis=-1
                )
                share = float(np.linalg.norm(steps) / np.sum(steps))  # what the whole norm is of the sum
                yield row | {"l2_weight": l2_weight, "psnr": value, "alpha": alpha, "norm_over_sum": share}
        print(use, name, flush=True, file=sys.stderr)


def volume_rows() -> Iterator[dict[str, Any]]:
    for use, seeds in (("choosing", range(2)), ("reporting", range(100, 104))):
        for seed in seeds:
            clean = volume(seed)
            noisy = clean + 0.1 * np.random.default_rng(seed).standard_normal(clean.shape)
            for isotropic in (False, True):
                for spacing in (None, (3.0, 1.0, 1.0)):
                    options = {"isotropic": isotropic, "l2_weight": 0.5, "spacing": spacing}

                    def restore(alpha: float, y: np.ndarray = noisy, o: Any = options) -> Any:
                        return ell12.denoise_tv(y, alpha, **o)

                    value, alpha, _ = best(restore, clean, LADDERS[0.1])
                    row = {"use": use, "kind": "volume", "picture": f"volume {seed}", "problem": "noise 0.1"}
                    yield (
                        row
                        | {"isotropic": isotropic, "l2_weight": 0.5, "spacing": spacing}
                        | {
                            "psnr": value,
                            "alpha": alpha,
                        }
                    )


def best(
    restore: Callable[[float], Any], clean: np.ndarray, ladder: tuple[float, ...]
) -> tuple[float, float, np.ndarray]:
    """The highest PSNR over the strengths, the strength, and the picture."""
    found = [(alpha, np.asarray(restore(alpha))) for alpha in ladder]
    return max(((psnr(image, clean), alpha, image) for alpha, image in found), key=lambda item: item[0])


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    header = ["", *(f"{word} {w:g}" for word in ("by axes", "by length") for w in (0, 0.5, 1))]
    for use, kind in ((u, k) for u in ("choosing", "reporting") for k in ("drawing", "photograph")):
        lines = []
        for problem in PROBLEMS:
            values = [
                mean(rows, use=use, kind=kind, problem=problem, isotropic=i, l2_weight=w) for i, w in PENALTIES
            ]
            lines.append([problem, *(f"{value:.2f}" for value in values)])
        yield f"## {kind.capitalize()}s, {use}: mean PSNR in dB\n\n" + table(header, lines)
    lines = []
    for problem in PROBLEMS:
        for kind in ("drawing", "photograph"):
            gains = gains_of(rows, "reporting", kind, problem)
            lines.append([f"{problem}, {kind}s", *(f"{g:+.2f}" for g in (min(gains), np.mean(gains), max(gains)))])
    about = "## Gain of isotropic over anisotropic at l2_weight 0.5, reporting: least, mean, largest, in dB\n\n"
    yield about + table(["", "least", "mean", "largest"], lines)
    lines = []
    for noise in ("noise 0.05", "noise 0.1"):
        for kind in ("drawing", "photograph"):
            found = [
                np.array(
                    [row["alpha"] for row in chosen(rows, kind=kind, problem=noise, isotropic=i, l2_weight=w)]
                )
                for i, w in PENALTIES
            ]
            lines.append([f"{noise}, {kind}s", *(f"{np.median(each / found[1]):.2f}" for each in found)])
    yield "## The best strength over that by axes with 0.5, median of all pictures\n\n" + table(header, lines)
    shares = [
        [
            kind,
            *(
                f"{100 * f([r['norm_over_sum'] for r in chosen(rows, kind=kind, isotropic=True)]):.1f}"
                for f in (min, np.median, max)
            ),
        ]
        for kind in ("drawing", "photograph")
    ]
    yield "## The norm of the whole image over the sum of lengths, in percent\n\n" + table(
        ["", "least", "median", "largest"], shares
    )
    lines = [
        [
            f"{use}, {word}",
            *(
                f"{mean(rows, use=use, kind='volume', isotropic=i, spacing=s):.2f}"
                for s in (None, (3.0, 1.0, 1.0))
            ),
        ]
        for use in ("choosing", "reporting")
        for word, i in SPACED.items()
    ]
    yield "## Volumes of thick slices, noise 0.1: mean PSNR in dB\n\n" + table(
        ["", "spacing not told", "told"], lines
    )


def gains_of(rows: list[dict[str, Any]], use: str, kind: str, problem: str) -> list[float]:
    """Isotropic less anisotropic, picture by picture."""
    pair = [chosen(rows, use=use, kind=kind, problem=problem, isotropic=i, l2_weight=0.5) for i in (True, False)]
    return [a["psnr"] - b["psnr"] for a, b in zip(*pair, strict=True)]


def chosen(rows: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def mean(rows: list[dict[str, Any]], **wanted: Any) -> float:
    return float(np.mean([row["psnr"] for row in chosen(rows, **wanted)]))


if __name__ == "__main__":
    main()
