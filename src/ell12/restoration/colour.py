"""Colours as one problem: total variation along opponent axes, brightness apart from two axes of chroma.

``1/2 ||A x - y||^2 + alpha sum_c w_c TV((T x)_c)`` with the orthogonal T below. The unknown of a run is
``z = T x``, so that each axis is an image with a strength of its own and the engines for images do the rest. Where
A acts on every channel alike it commutes with T, and the data are turned once; otherwise A is applied to the
colours of z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ell12.backend import count_true, is_complex, max_abs, namespace
from ell12.operators import ArrayOperator, adjoint_product, dtype_of, input_shape, output_shape, product
from ell12.operators.image_operators import Identity, RealInput, Sampling, Stacked, slice_of
from ell12.protocols import Array
from ell12.restoration.total_variation import TotalVariationL12

# Red plus green plus blue, red less blue, and red less twice green plus blue, each of length one.
AXES = tuple(
    tuple(entry / math.sqrt(sum(n * n for n in row)) for entry in row)
    for row in ((1.0, 1.0, 1.0), (1.0, 0.0, -1.0), (1.0, -2.0, 1.0))
)
# Chroma is penalised this many times as strongly as brightness: of 1 to 4 within 0.03 dB of the best at any noise,
# on five photographs. On five others principal axes gain at most 0.08 dB beside these (benchmarks/colour.py).
CHROMA = 2.0
# Channels are taken for colours where products of edges between them exceed this fraction of those within them.
# Photographs have 0.66 to 0.95, unrelated ones at most 0.03, at any noise. Near 0.5 it makes little difference how
# they are restored: so it was for channels shifted by a pixel, and for stains of which two in three agree.
AGREED = 0.5
# What lies above this many standard deviations is not chance.
SURE = 4.0
# The image is halved at most this often, along axes at least this long. Blocks have whole multiples of eight rows.
MOST_HALVINGS, SMALLEST = 3, 16
# So many numbers are looked at together: their products stay in the cache.
PIXELS_AT_ONCE = 2**16


def as_opponents(x: Array) -> Array:
    """The channels along the first axis of x, red, green and blue, along the opponent axes.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration.colour import as_opponents
    >>> as_opponents(np.array([[2.0], [2.0], [2.0]])).round(12).tolist()
    [[3.464101615138], [0.0], [0.0]]
    """
    return _combined(x, AXES)


def as_colours(z: Array) -> Array:
    """The inverse of `as_opponents`."""
    return _combined(z, tuple(zip(*AXES, strict=True)))


def _combined(x: Array, rows: tuple[tuple[float, ...], ...]) -> Array:
    """Sums of the three images with the weights of each row: no matrix product, which a GPU may round coarsely."""
    parts = [x[k, ...] for k in range(3)]
    return namespace(x).stack([a * parts[0] + b * parts[1] + c * parts[2] for a, b, c in rows])


@dataclass(frozen=True, eq=False, repr=False)
class ColourVariation(TotalVariationL12):
    """The total variation of three images along the opponent axes, chroma counting more; bounds hold the colours.

    Chroma's strength and its smoothing are both ``CHROMA`` times those of brightness. So mu, their quotient, is
    the same for all, and with it every bound on the curvature and every linear system.
    """

    weights: ClassVar[tuple[float, ...]] = (1.0, CHROMA, CHROMA)

    def sweep(self, x: Array, threads: int | None = None) -> Any:
        """The compiled sweep; None where bounds join the axes."""
        return None if self.bounds is not None else super().sweep(x, threads)

    def spread(self, x: Array) -> float:
        """The range of the colours."""
        return super().spread(as_colours(x))

    def project(self, x: Array) -> Array:
        """The nearest image whose colours lie within the bounds."""
        if self.bounds is None:
            return x
        colours = as_colours(x)
        return x + as_opponents(super().project(colours) - colours)

    def allows(self, x: Array) -> bool:
        """Whether the colours lie within the bounds, up to rounding."""
        if self.bounds is None:
            return True
        colours = as_colours(x)
        rounding = 16 * float(namespace(x).finfo(x.dtype).eps) * max_abs(x)
        return max_abs(colours - super().project(colours)) <= rounding


@dataclass(frozen=True, eq=False)
class OfColours(ArrayOperator):
    """An operator on colours, applied to an image along the opponent axes."""

    A: Any

    def __post_init__(self) -> None:
        self._set(input_shape=input_shape(self.A), output_shape=output_shape(self.A), dtype=dtype_of(self.A))
        self._set(norm_squared=getattr(self.A, "norm_squared", None))

    def _apply(self, x: Array) -> Array:
        return product(self.A, as_colours(x))

    def _apply_adjoint(self, y: Array) -> Array:
        return as_opponents(adjoint_product(self.A, y))


def along_opponents(y: Array, A: Any) -> tuple[Array, Any]:
    """Data and operator for an unknown along the opponent axes: both turned, or A taken of its colours."""
    if not acts_alike(A):
        return y, OfColours(A)
    if type(A) is not Sampling:
        return as_opponents(y), A
    xp = namespace(y)
    return xp.reshape(as_opponents(xp.reshape(y, (3, -1))), (-1,)), A


def acts_alike(A: Any) -> bool:
    """Whether the operator does the same to each of the images along the first axis."""
    A = A.A if isinstance(A, RealInput) else A
    if type(A) is not Sampling:
        return isinstance(A, Identity | Stacked)
    return _are_equal(A.mask)


def _are_equal(images: Array) -> bool:
    return bool(namespace(images).all(images == images[:1, ...]))


def is_coloured(x: Array, ndim: int, colour: bool | None, A: Any = None) -> bool:
    """Whether channels along the first axis are restored as colours: as the user says, or as they look."""
    possible = len(x.shape) == ndim + 1 and x.shape[0] == 3 and not is_complex(x)
    if colour and not possible:
        raise ValueError("colour=True needs three real channels along channel_axis")
    return possible and (look_like_colours(x, ndim, known_part(A)) if colour is None else bool(colour))


def known_part(A: Any) -> float:
    """The part of the pixels that are data; 1 unless there is a mask."""
    if type(A) is not Sampling:
        return 1.0
    return count_true(A.mask) / math.prod(A.mask.shape)


def look_like_colours(x: Array, ndim: int, known: float = 1.0) -> bool:
    """Whether edges of the channels along the first axis lie at the same places and go the same way.

    A difference between two pixels is multiplied by that beside it, across: both see an edge, but each has noise
    of its own. So the means of such products, within a channel and between two, do not see the noise. Where chance
    could have made them, the image is halved. It is halved before where only a part of the pixels is known, until
    about two of them make one: those that were filled in are copies of others.
    """
    unit = float(namespace(x).max(x)) - float(namespace(x).min(x))
    if unit == 0 or ndim == 1:
        return False
    sums = partial(edge_sums, ndim=ndim, unit=unit)
    first = math.ceil(math.log2(2 / known) / ndim) if known < 1 else 0
    for halvings in range(min(first, MOST_HALVINGS), MOST_HALVINGS + 1):
        look = partial(sums, halvings=halvings)
        between, within, square = look(x)
        if within > SURE * math.sqrt(square):
            return bool(between > AGREED * within)
    return False


def edge_sums(x: Array, ndim: int, unit: float, halvings: int) -> np.ndarray:
    """Sums of the products of differences between two channels, within one, and of the latter's squares.

    For equal channels the first two are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration.colour import edge_sums
    >>> edge = np.stack([np.outer(np.ones(5), np.arange(5.0) > 2)] * 3)
    >>> edge_sums(edge, 2, 1.0, 0).tolist()
    [12.0, 12.0, 36.0]
    """
    for _ in range(halvings):
        x = halved(x)
    xp, totals = namespace(x), np.zeros(3)
    rows = max(1, PIXELS_AT_ONCE * x.shape[1] // math.prod(x.shape))
    for first in range(0, max(1, x.shape[1] - 1), rows):
        part = x[:, first : first + rows + 1, ...]
        for axis in range(1, ndim + 1):
            across = axis % ndim + 1
            steps = (slice_of(part, axis, 1, None) - slice_of(part, axis, 0, -1)) / unit
            here, beside = slice_of(steps, across, 0, -1), slice_of(steps, across, 1, None)
            within = xp.sum(here * beside, axis=0)
            between = (xp.sum(here, axis=0) * xp.sum(beside, axis=0) - within) / 2
            totals += [float(xp.sum(between)), float(xp.sum(within)), float(xp.sum(within * within))]
    return totals


def halved(x: Array) -> Array:
    """Means of two neighbours along every axis but the first that is long; of an odd number the last is left."""
    for axis in range(1, len(x.shape)):
        before, n = (slice(None),) * axis, x.shape[axis]
        if n >= SMALLEST:
            x = (x[(*before, slice(0, n - 1, 2), ...)] + x[(*before, slice(1, n, 2), ...)]) / 2
    return x
