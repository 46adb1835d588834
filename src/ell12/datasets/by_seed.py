"""Problems, images and ratings by seed; nothing is downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ell12.datasets.ratings import Ratings

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
        x_own, y_own = right * cosine + above * sine, above * cosine - right * sine
        image[(x_own / across) ** 2 + (y_own / up) ** 2 <= 1] += value
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


def synthetic_ratings(
    seed: int,
    n_users: int = 1000,
    n_items: int = 500,
    n_ratings: int = 50_000,
    *,
    rank: int = 5,
    mean: float = 3.5,
    bias_deviations: tuple[float, float] = (0.4, 0.5),
    factor_deviation: float = 0.5,
    noise: float = 0.7,
    exponent: float = 0.5,
    scale: tuple[float, float] | None = (1.0, 5.0),
    round_to: float | None = 0.5,
) -> Ratings:
    """Ratings ``mean + b_u + c_i + <p_u, q_i> + noise``, of users and items whose activity follows a power law.

    Parameters
    ----------
    seed : int
        The same seed gives the same ratings.
    n_users, n_items, n_ratings : int, default 1000, 500 and 50_000
        Sizes. Every user and every item has a rating where there are enough, no pair has two.
    rank : int, default 5
        Length of the factors p and q.
    mean, factor_deviation, noise : float, default 3.5, 0.5 and 0.7
        The overall mean, and the standard deviations of the product of the factors and of the noise.
    bias_deviations : pair of floats, default (0.4, 0.5)
        The standard deviations of b and of c.
    exponent : float, default 0.5
        The k-th most active user, and the k-th most popular item, is drawn with a weight that falls as
        ``k ** -exponent``; below 1.
    scale : pair of floats, default (1.0, 5.0)
        Ratings are cut to this range.
    round_to : float, default 0.5
        Ratings are rounded to multiples of this.

    Returns
    -------
    Ratings
        Ids are the numbers from 0; which of them are active is random.

    Examples
    --------
    >>> from ell12.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(0, 100, 50, 1000)
    >>> ratings.shape, len(ratings), float(ratings.values.min()), float(ratings.values.max())
    ((100, 50), 1000, 1.0, 5.0)
    """
    if not 0 < n_ratings <= n_users * n_items:
        raise ValueError(f"n_ratings must be from 1 to {n_users * n_items}, got {n_ratings}")
    if not 0 <= exponent < 1:
        raise ValueError(f"exponent must be at least 0 and below 1, got {exponent}")
    random = np.random.default_rng(seed)
    pairs = _pairs(random, n_users, n_items, n_ratings, exponent)
    rows, columns = np.divmod(pairs, n_items)
    values = mean + (bias_deviations[0] * random.standard_normal(n_users))[rows]
    values += (bias_deviations[1] * random.standard_normal(n_items))[columns]
    if rank:
        spread = np.sqrt(factor_deviation / np.sqrt(rank))
        p, q = (spread * random.standard_normal((n, rank), dtype=np.float32) for n in (n_users, n_items))
        values += np.einsum("ij,ij->i", p[rows], q[columns])
    values += noise * random.standard_normal(n_ratings)
    if round_to is not None:
        values = np.rint(values / round_to) * round_to
    if scale is not None:
        np.clip(values, *scale, out=values)
    return Ratings(rows.astype(np.int32), columns.astype(np.int32), values, np.arange(n_users), np.arange(n_items))


def _pairs(random: np.random.Generator, n_users: int, n_items: int, count: int, exponent: float) -> Any:
    """Different pairs ``user * n_items + item``, sorted, drawn by the weights of both."""
    orders = [random.permutation(n) for n in (n_users, n_items)]
    users, items = (partial(_draw, random, order, exponent) for order in orders)
    pairs = np.empty(0, dtype=np.int64)
    if count >= n_users + n_items:  # each has one
        of_users, of_items = np.arange(n_users) * n_items + items(n_users), users(n_items) * n_items
        pairs = np.append(of_users, of_items + np.arange(n_items))
    while True:
        pairs = pairs[np.sort(np.unique(pairs, return_index=True)[1])]
        missing = count - pairs.size
        if missing <= 0:
            return np.sort(pairs[:count])
        if pairs.size > 0.5 * n_users * n_items:  # too full to find what is missing by drawing
            free = np.setdiff1d(np.arange(n_users * n_items), pairs, assume_unique=True)
            pairs = np.append(pairs, random.choice(free, missing, replace=False))
        else:
            pairs = np.append(pairs, users(2 * missing) * n_items + items(2 * missing))


def _draw(random: np.random.Generator, order: Any, exponent: float, size: int) -> Any:
    """Entries of ``order``, the k-th with a weight that falls as ``k ** -exponent``."""
    position = len(order) * random.random(size) ** (1 / (1 - exponent))
    return order[np.minimum(position.astype(np.int64), len(order) - 1)]
