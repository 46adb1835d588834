"""Projections of an image along parallel lines, as computed tomography measures them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ell12.checks import check_counts


def radon_matrix(size: int, theta: Any) -> scipy.sparse.csr_array:
    """The sparse matrix of ``skimage.transform.radon``: a square image, row by row, to its sinogram, row by row.

    The image is turned about its pixel ``size // 2``, by interpolation between its four nearest pixels, and its
    columns are summed. As a matrix it has an exact adjoint, which scikit-image's back projection is not.

    Parameters
    ----------
    size : int
        Pixels along a side. The image is zero outside the circle that touches its sides.
    theta : array of float
        The angles, in degrees.

    Returns
    -------
    sparse array of shape (size * len(theta), size * size)
        Of the sinogram, of shape (size, len(theta)), the entry at place j and angle i is the row
        ``j * len(theta) + i``.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.operators.tomography import radon_matrix
    >>> A = radon_matrix(4, [0.0, 90.0])
    >>> image = np.zeros((4, 4)); image[1, 2] = 1.0
    >>> (A @ image.ravel()).reshape(4, 2).round(12).tolist()
    [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    check_counts(least=1, optional=False, size=size)
    angles = np.deg2rad(np.atleast_1d(np.asarray(theta, dtype=float)))
    y, x = np.indices((size, size)) - size // 2  # of the image when it is turned
    parts = []
    for number, angle in enumerate(angles):
        across = np.cos(angle) * x + np.sin(angle) * y + size // 2
        down = -np.sin(angle) * x + np.cos(angle) * y + size // 2
        rows = (x + size // 2) * len(angles) + number
        for place in _neighbours(down, across, size):
            parts.append((rows[place[0]], *place[1:]))
    rows, columns, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    shape = (size * len(angles), size * size)
    return scipy.sparse.csr_array((weights, (rows, columns)), shape=shape)


def _neighbours(down: np.ndarray, across: np.ndarray, size: int) -> list[tuple[np.ndarray, ...]]:
    """Of the four pixels next to each place which lie inside, their numbers and their weights."""
    top, left = np.floor(down).astype(int), np.floor(across).astype(int)
    found: list[tuple[np.ndarray, ...]] = []
    for i, j in np.ndindex(2, 2):
        r, c = top + i, left + j
        weight = (1 - np.abs(down - r)) * (1 - np.abs(across - c))
        inside = (r >= 0) & (r < size) & (c >= 0) & (c < size) & (weight > 0)
        found.append((inside, (r * size + c)[inside], weight[inside]))
    return found
