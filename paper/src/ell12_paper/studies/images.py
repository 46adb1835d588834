"""The photographs of the studies: those that stand in for the paper's, or any in a folder."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

# The paper's names -> photographs that ship with scikit-image.
STAND_INS = {"Mountain": "camera", "Windows": "brick", "Sea": "moon"}
# Public photographs that are very likely the paper's own, by the names of their files; they have no licence.
LIKELY = {"testimage": "Mountain", "re7": "Windows", "re4": "Sea"}
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
    """What an image is; behind it, the paper's name of the image it stands for or is likely to be.

    Examples
    --------
    >>> from ell12_paper.studies.images import shown
    >>> shown("Sea"), shown("re4"), shown("Discs")
    ('moon (Sea)', 're4 (Sea)', 'Discs')
    """
    if name in LIKELY:
        return f"{name} ({LIKELY[name]})"
    return f"{STAND_INS[name]} ({name})" if name in STAND_INS else name


def short_name(name: str) -> str:
    """What an image is, without the paper's name for it.

    Examples
    --------
    >>> from ell12_paper.studies.images import short_name
    >>> short_name("Sea"), short_name("re4")
    ('moon', 're4')
    """
    return STAND_INS.get(name, name)


def may_be_shown(name: str) -> bool:
    """Whether rows may hold a small copy of a picture or of its errors: not of those without a licence."""
    return name not in LIKELY


def _files() -> dict[str, Path]:
    folder = os.environ.get(FOLDER)
    paths = sorted(Path(folder).iterdir()) if folder else []
    found = {path.stem: path for path in paths if path.suffix in (".png", ".jpg", ".jpeg", ".tif", ".tiff")}
    return {name: found[name] for name in (*LIKELY, *found) if name in found}


def _from_folder(path: Path) -> np.ndarray:
    from PIL import Image

    with Image.open(path) as image:
        grey = image.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(grey, dtype=float) / 255
