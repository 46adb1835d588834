"""Photographs that ship with scikit-image, and drawn images; nothing is downloaded."""

from __future__ import annotations

from typing import Any

import numpy as np

# The paper's images are not published. For each of them, the shipped 512 x 512 grey photograph nearest to its
# subject: an open landscape under a sky, a smooth surface with fine texture, and a regular pattern with edges.
STAND_INS = {"Mountain": "camera", "Sea": "moon", "Windows": "brick"}

# The head phantom of Shepp and Logan with the contrast of Toft: value, half axes, centre, angle (degrees) of each
# ellipse, in a square from -1 to 1.
_ELLIPSES = (
    (1.0, 0.69, 0.92, 0.0, 0.0, 0.0),
    (-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0),
    (-0.2, 0.11, 0.31, 0.22, 0.0, -18.0),
    (-0.2, 0.16, 0.41, -0.22, 0.0, 18.0),
    (0.1, 0.21, 0.25, 0.0, 0.35, 0.0),
    (0.1, 0.046, 0.046, 0.0, 0.1, 0.0),
    (0.1, 0.046, 0.046, 0.0, -0.1, 0.0),
    (0.1, 0.046, 0.023, -0.08, -0.605, 0.0),
    (0.1, 0.023, 0.023, 0.0, -0.605, 0.0),
    (0.1, 0.023, 0.046, 0.06, -0.605, 0.0),
)


def photographs() -> dict[str, Any]:
    """The three 512 x 512 grey images that stand in for the paper's, as float64 in [0, 1], by the paper's names.

    "Mountain" is scikit-image's camera, "Sea" its moon and "Windows" its brick. Needs scikit-image.
    """
    try:
        from skimage import data, util
    except ImportError as error:
        raise ImportError("the photographs ship with scikit-image: pip install 'ell12[images]'") from error
    return {name: util.img_as_float64(getattr(data, shipped)()) for name, shipped in STAND_INS.items()}


def piecewise_constant(size: int) -> dict[str, Any]:
    """Drawn grey images in [0, 1] with ``size`` pixels a side: rectangles, discs, and the head phantom.

    The edges of the rectangles follow the axes of the image, those of the others do not.

    Examples
    --------
    >>> from ell12.datasets import piecewise_constant
    >>> [image.shape for image in piecewise_constant(32).values()]
    [(32, 32), (32, 32), (32, 32)]
    """
    random = np.random.default_rng(0)
    row, column = _coordinates(size)
    rectangles, discs = np.full((size, size), 0.3), np.full((size, size), 0.3)
    for value in random.permutation(np.linspace(0, 1, 12)):
        y, x, height, width = random.uniform((-1, -1, 0.15, 0.15), (1, 1, 0.6, 0.6))
        rectangles[(abs(row - y) < height) & (abs(column - x) < width)] = value
        discs[(row - y) ** 2 + (column - x) ** 2 < height * width] = value
    return {"Rectangles": rectangles, "Discs": discs, "Phantom": phantom(size)}


def phantom(size: int) -> Any:
    """The head phantom of Shepp and Logan with ``size`` pixels a side, in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.datasets import phantom
    >>> image = phantom(64)
    >>> float(image.min()), float(image.max()), np.unique(image.round(6)).size
    (0.0, 1.0, 6)
    """
    row, column = _coordinates(size)
    image = np.zeros((size, size))
    for value, across, up, x, y, degrees in _ELLIPSES:
        cosine, sine = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
        right, above = column - x, -row - y
        along, beside = right * cosine + above * sine, above * cosine - right * sine
        image[(along / across) ** 2 + (beside / up) ** 2 <= 1] += value
    return np.clip(image, 0, 1)


def radial_lines(size: int, count: int) -> Any:
    """The Fourier coefficients of a square image that lie on lines through the zero frequency, at equal angles.

    Returns
    -------
    array of bool, shape (size, size)
        True where a coefficient is measured; the zero frequency comes first, as `numpy.fft` has it.

    Examples
    --------
    >>> from ell12.datasets import radial_lines
    >>> radial_lines(4, 2).astype(int)
    array([[1, 1, 1, 1],
           [1, 0, 0, 0],
           [1, 0, 0, 0],
           [1, 0, 0, 0]])
    """
    mask = np.zeros((size, size), dtype=bool)
    radius = np.arange(-(size // 2), (size + 1) // 2)
    for angle in np.pi * np.arange(count) / count:
        steep = abs(np.tan(angle)) > 1
        other = np.rint(radius / np.tan(angle) if steep else radius * np.tan(angle)).astype(int)
        mask[(radius, other) if steep else (other, radius)] = True
    return mask


def _coordinates(size: int) -> tuple[Any, Any]:
    """The centres of the pixels, from -1 to 1, as a column and a row."""
    axis = (np.arange(size) + 0.5) * (2 / size) - 1
    return axis[:, None], axis[None, :]
