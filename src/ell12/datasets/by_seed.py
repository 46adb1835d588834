"""Problems and images by seed: compressed sensing, a correlated design, drawn images, radial lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# How the paper's text can be read (setup -> length factor of a column, noise's standard deviation). "stated" takes
# it literally; "calibrated" halves the columns and lowers the noise, which comes close to the printed errors.
COMPRESSED_SENSING_SETUPS = {"stated": (1.0, 0.01), "calibrated": (0.5, 0.004)}


@dataclass(frozen=True)
class SparseProblem:
    """Observations ``b = A x + noise`` of a sparse x."""

    A: Any
    b: Any
    x: Any

    def relative_error(self, estimate: Any) -> float:
        """``||estimate - x|| / ||x||``, the paper's RMSE."""
        return float(np.linalg.norm(estimate - self.x) / np.linalg.norm(self.x))


def compressed_sensing(
    seed: int,
    *,
    setup: str = "stated",
    n_samples: int = 500,
    n_features: int | None = None,
    nonzero: float = 0.05,
    one_draw_per_row: bool = False,
) -> SparseProblem:
    """The paper's problem: an oversampled cosine dictionary, 5 % of the entries of x drawn from N(0, 1).

    Parameters
    ----------
    seed : int
        The same seed gives the same problem.
    setup : {"stated", "calibrated"}, default "stated"
        Columns of norm about ``sqrt(1/2)`` and noise 0.01, or half that norm and noise 0.004.
    n_samples, n_features : int, default 500 and None
        Shape of A; four times as many columns as rows by default.
    nonzero : float, default 0.05
        Fraction of the entries of x that are not zero.
    one_draw_per_row : bool, default False
        Draw one frequency per row, as the paper's source does. A then has a low numerical rank.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.datasets import compressed_sensing
    >>> problem = compressed_sensing(0, n_samples=50)
    >>> problem.A.shape, int(np.count_nonzero(problem.x))
    ((50, 200), 10)
    """
    if setup not in COMPRESSED_SENSING_SETUPS:
        raise ValueError(f"setup must be one of {', '.join(COMPRESSED_SENSING_SETUPS)}; got {setup!r}")
    n_features = 4 * n_samples if n_features is None else n_features
    length, noise = COMPRESSED_SENSING_SETUPS[setup]
    random = np.random.default_rng(seed)
    draws = random.random((n_samples, 1 if one_draw_per_row else n_features))
    A = np.cos(2 * np.pi / 20 * np.arange(1, n_features + 1) * draws) * (length / np.sqrt(n_samples))
    x = _sparse_normal(random, n_features, round(nonzero * n_features))
    return SparseProblem(A, A @ x + noise * random.standard_normal(n_samples), x)


def correlated_design(
    seed: int,
    *,
    n_samples: int = 200,
    n_features: int = 1000,
    n_nonzero: int = 20,
    correlation: float = 0.9,
    noise: float = 0.2,
) -> SparseProblem:
    """Gaussian columns in which neighbours correlate (Toeplitz), x with entries from N(0, 1).

    ``noise`` is the noise's standard deviation as a fraction of the signal's.

    Examples
    --------
    >>> from ell12.datasets import correlated_design
    >>> correlated_design(0, n_samples=10, n_features=30, n_nonzero=3).A.shape
    (10, 30)
    """
    random = np.random.default_rng(seed)
    A = random.standard_normal((n_samples, n_features))
    for j in range(1, n_features):
        A[:, j] = correlation * A[:, j - 1] + np.sqrt(1 - correlation**2) * A[:, j]
    x = _sparse_normal(random, n_features, n_nonzero)
    signal = A @ x
    return SparseProblem(A, signal + noise * signal.std() * random.standard_normal(n_samples), x)


def _sparse_normal(random: np.random.Generator, size: int, count: int) -> Any:
    x = np.zeros(size)
    x[random.permutation(size)[:count]] = random.standard_normal(count)
    return x


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
