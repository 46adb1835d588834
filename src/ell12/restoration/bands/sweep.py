"""The compiled sweep over an image in bands: each takes the four steps with rows of its neighbours beside it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ell12.protocols import Array
from ell12.restoration.bands.arrays import BandedArray
from ell12.restoration.pixel_steps import ImageNorms
from ell12.restoration.stencil import STEPS, Moving, Steps, Sums

Neighbourhood = tuple[Array | None, Array, Array | None]


class BandSweep:
    """`ell12.restoration.stencil.Sweep` for images in bands like x.

    A row after one more step needs the rows around it of the step before, no others. So a band with as many rows
    of its neighbours as there are steps becomes what it becomes in the whole image, and its sums are added to the
    others' before they decide anything.
    """

    def __init__(self, x: BandedArray, penalty: Any, threads: int | None = None) -> None:
        self.layout, self.shape, self.dtype = x.device, x.shape, x.dtype
        self.penalty, self.periodic = penalty, penalty.boundary == "periodic"
        self.threads = threads or x.device.keeper.threads
        self.norms, self.flip = ImageNorms(penalty), penalty.flip

    def value(self, x: BandedArray) -> float:
        """The smoothed penalty at x."""
        return sum(self._run(partial(_value, self.penalty, self.threads), x)[1])

    def gradient(self, x: BandedArray) -> tuple[float, BandedArray]:
        """The smoothed penalty at x and its gradient."""
        (parts,), values = self._run(partial(_gradient, self.penalty, self.threads), x, kept=1)
        return sum(values), BandedArray(self.layout, parts, x.shape, x.dtype)

    def advance(
        self, old: Moving, y: BandedArray, weight: BandedArray | None, steps: Steps, new: Moving
    ) -> tuple[Moving, Sums]:
        """What ``old`` is after some steps, as `ell12.restoration.stencil.Sweep.advance` says."""
        advance = partial(_advance, self.penalty, self.threads, steps)
        (z, u), sums = self._run(advance, *old, y, weight, kept=2)
        new[0].parts, new[1].parts = z, u
        return new, Sums(*map(sum, zip(*sums, strict=True)))

    def new_image(self) -> BandedArray:
        """An image whose bands are yet to come."""
        return BandedArray(self.layout, [], self.shape, self.dtype)

    def _run(self, function: Any, *images: BandedArray | None, kept: int = 0) -> Any:
        count = len(self.layout.cuts) - 1
        columns = [[None] * count if x is None else x.neighbourhoods(STEPS, self.periodic) for x in images]
        return self.layout.keeper.run(function, columns, kept)


class _Band:
    """A band between rows of its neighbours: what the sweep is given, and what of it is the band's own."""

    def __init__(self, penalty: Any, threads: int | None, neighbourhood: Neighbourhood) -> None:
        self.axis = -penalty.ndim
        above, own, below = neighbourhood
        before, after = (0 if rows is None else rows.shape[self.axis] for rows in (above, below))
        shape, rows = list(own.shape), own.shape[self.axis]
        shape[self.axis] += before + after
        self.own = (..., slice(before, before + rows), *(slice(None),) * (penalty.ndim - 1))
        self.sweep = penalty.compiled_sweep(tuple(shape), own.dtype, threads, (before, after))

    def joined(self, neighbourhood: Neighbourhood) -> Array:
        """A band and the rows around it in one piece of memory, which may be overwritten."""
        return np.concatenate([rows for rows in neighbourhood if rows is not None], axis=self.axis)


def _value(penalty: Any, threads: int | None, x: Neighbourhood) -> tuple[float]:
    band = _Band(penalty, threads, x)
    return (band.sweep.value(band.joined(x)),)


def _gradient(penalty: Any, threads: int | None, x: Neighbourhood) -> tuple[Array, float]:
    band = _Band(penalty, threads, x)
    value, gradient = band.sweep.gradient(band.joined(x))
    return gradient[band.own], value


def _advance(
    penalty: Any,
    threads: int | None,
    steps: Steps,
    z: Neighbourhood,
    u: Neighbourhood,
    y: Neighbourhood,
    weight: Neighbourhood | None,
) -> tuple[Array, Array, Sums]:
    band = _Band(penalty, threads, z)
    moving, data = (band.joined(z), band.joined(u)), band.joined(y)
    counts = None if weight is None else band.joined(weight)
    pair, sums = band.sweep.advance(moving, data, counts, steps, moving)
    return pair[0][band.own], pair[1][band.own], sums
