"""Colours as one problem: total variation along opponent axes, brightness apart from two axes of chroma.

``1/2 ||A x - y||^2 + alpha sum_c w_c TV((T x)_c)`` with the orthogonal T below. The unknown of a run is
``z = T x``, so that each axis is an image with a strength of its own and the engines for images do the rest. Where
A acts on every channel alike it commutes with T, and the data are turned once; otherwise A is applied to the
colours of z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.backend import is_complex, max_abs, namespace
from ell12.operators import ArrayOperator, adjoint_product, dtype_of, input_shape, output_shape, product
from ell12.operators.image_operators import Identity, RealInput, Sampling, Stacked, slice_of
from ell12.protocols import Array
from ell12.restoration.pixels import block_means
from ell12.restoration.total_variation import TotalVariationL12

# Red plus green plus blue, red less blue, and red less twice green plus blue, each of length one.
AXES = tuple(
    tuple(entry / math.sqrt(sum(n * n for n in row)) for entry in row)
    for row in ((1.0, 1.0, 1.0), (1.0, 0.0, -1.0), (1.0, -2.0, 1.0))
)
# Chroma is penalised this many times as strongly as brightness: of 1 to 4 within 0.03 dB of the best at any noise,
# on five photographs. On five others principal axes gain at most 0.08 dB over these (docs/decisions/studies.md).
CHROMA = 2.0


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
    return bool(namespace(A.mask).all(A.mask == A.mask[:1, ...]))


def is_coloured(x: Array, ndim: int, colour: bool | None) -> bool:
    """Whether channels along the first axis are restored as colours: as the user says, or as their edges agree."""
    possible = len(x.shape) == ndim + 1 and x.shape[0] == 3 and not is_complex(x)
    if colour and not possible:
        raise ValueError("colour=True needs three real channels along channel_axis")
    return possible and (are_colours(x, ndim) if colour is None else bool(colour))


def are_colours(x: Array, ndim: int) -> bool:
    """Whether edges of the channels along the first axis lie at the same positions and go the same way.

    Of means over blocks, a difference between two neighbours is multiplied by that next to it, across: both see an
    edge, but each has noise of its own. So the sums of such products, within a channel and between two, do not see
    the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration.colour import are_colours
    >>> edge = np.outer(np.ones(64), np.arange(64) > 30)
    >>> are_colours(np.stack([edge, edge, edge]), 2), are_colours(np.stack([edge, edge.T, -edge]), 2)
    (True, False)
    """
    x, xp, between, within = block_means(x, ndim), namespace(x), 0.0, 0.0
    for axis in range(1, ndim + 1) if ndim > 1 else ():
        across = axis % ndim + 1
        steps = slice_of(x, axis, 1, None) - slice_of(x, axis, 0, -1)
        one, next_to = slice_of(steps, across, 0, -1), slice_of(steps, across, 1, None)
        own = float(xp.sum(one * next_to))
        between += (float(xp.sum(xp.sum(one, axis=0) * xp.sum(next_to, axis=0))) - own) / 2
        within += own
    # Photographs have 0.66 to 0.95, unrelated channels at most 0.03, at any noise (docs/decisions/studies.md).
    return 2 * between > within > 0
