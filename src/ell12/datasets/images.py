"""Photographs that ship with scikit-image; nothing is downloaded."""

from __future__ import annotations

from typing import Any

# The paper's images are not published. For each of them, the shipped 512 x 512 grey photograph nearest to its
# subject: an open landscape under a sky, a smooth surface with fine texture, and a regular pattern with edges.
STAND_INS = {"Mountain": "camera", "Sea": "moon", "Windows": "brick"}


def photographs() -> dict[str, Any]:
    """The three 512 x 512 grey images that stand in for the paper's, as float64 in [0, 1], by the paper's names.

    "Mountain" is scikit-image's camera, "Sea" its moon and "Windows" its brick. Needs scikit-image.
    """
    try:
        from skimage import data, util
    except ImportError as error:
        raise ImportError("the photographs ship with scikit-image: pip install 'ell12[images]'") from error
    return {name: util.img_as_float64(getattr(data, shipped)()) for name, shipped in STAND_INS.items()}
