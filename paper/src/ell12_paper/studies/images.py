"""The photographs of the studies: those that stand in for the paper's, or any in a folder."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

# The paper's names -> photographs that ship with scikit-image.
STAND_INS = {"Mountain": "camera", "Sea": "moon", "Windows": "brick"}
FOLDER = "ELL12_PAPER_IMAGES"  # the environment's name for a folder of pictures, as `--images` sets it
SIDE = 512  # pictures of a folder are enlarged or reduced to so many pixels a side, bilinearly


def names() -> tuple[str, ...]:
    """The names of the photographs."""
    return tuple(_files()) or tuple(STAND_INS)


def photograph(name: str, size: int) -> np.ndarray:
    """The middle of a photograph, ``size`` pixels a side, grey and from 0 to 1."""
    if name in _files():
        image = _from_folder(_files()[name])
    else:
        from skimage import data, util

        image = util.img_as_float64(getattr(data, STAND_INS[name])())
    top, left = ((side - size) // 2 for side in image.shape)
    return image[top : top + size, left : left + size]


def shown(name: str) -> str:
    """What an image is; behind a stand-in, the paper's name of the image it stands for.

    Examples
    --------
    >>> from ell12_paper.studies.images import shown
    >>> shown("Sea"), shown("Discs")
    ('moon (Sea)', 'Discs')
    """
    return f"{STAND_INS[name]} ({name})" if name in STAND_INS else name


def _files() -> dict[str, Path]:
    folder = os.environ.get(FOLDER)
    paths = sorted(Path(folder).iterdir()) if folder else []
    return {path.stem: path for path in paths if path.suffix in SUFFIXES}


SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")


def _from_folder(path: Path) -> np.ndarray:
    from PIL import Image

    with Image.open(path) as image:
        grey = image.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(grey, dtype=float) / 255
