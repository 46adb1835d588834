"""The strength of least risk, estimated on a sample of the image.

The risk of an estimate f(y) is its mean squared error, which needs the true image. Without that, the residual and
the degrees of freedom, how much f(y) follows y, tell the risk up to a constant if the noise is known (Stein's
unbiased estimate), and nearly where it is not (generalised cross-validation; Golub, Heath & Wahba,
doi:10.1080/00401706.1979.10489751). The degrees of freedom come from a second run with a small random change of
the data (Ramani, Blu & Unser, doi:10.1109/TIP.2008.2001404).

Generalised cross-validation supposes noise of the same level everywhere. Photon noise and compressed files lead it
to far too small strengths. So it is also done for groups of pixels, each with degrees of freedom of its own: a far
larger strength counts where they ask for it and pixels that are held out agree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ell12.backend import as_numpy, inner, is_complex, like, namespace
from ell12.operators import product, sent_like
from ell12.operators.image_operators import Sampling
from ell12.protocols import Array

# The sample holds this part of the pixels, but at least and at most so many. With an eighth of ten photographs of
# 400 x 400 pixels the strength lost 0.35 dB at noise 0.02 and 0.14 at 0.05, with a quarter 0.16 and 0.07.
SAMPLED, LEAST_SAMPLE, MOST_SAMPLE = 3 / 16, 2**14, 2**20
# The sides of its tiles are at least this long, in images of one, two, or more axes, and there are at most so many
# tiles. Small tiles meet more kinds of detail than large ones: on these photographs a side of 36 lost 0.19 dB at
# noise 0.02, one of 48 lost 0.28.
LEAST_SIDES, MOST_TILES = (256, 36, 24), 64
# With fewer data in the sample their degrees of freedom are too uncertain to choose by.
FEWEST_DATA = 2**8
# The data are changed by this fraction of the noise: more than a run's accuracy, less than what changes the edges.
CHANGE = 0.1
# Each tile's pixels make this many groups, by their values in the restored image, each with degrees of freedom of
# its own. So noise may differ from place to place and with the brightness, as that of photons does.
GROUPS = 4
# Where a group's degrees of freedom nearly use up its data, chance decides about the rest: that counts as at least
# this fraction of what the sample has left.
LEAST_LEFT = 0.2
# The groups count where they ask for a strength this many times larger. With white noise of 0.02 to 0.1 on ten
# photographs and five drawings they did so once, to the good.
FAR = 1.5
# Where the degrees of freedom use up more of the data than this, fine texture stands above little noise. Little of
# a pixel can be told from the others there, by which cross-validation judges, and errors there cost most. Then
# Stein's estimate decides, with the noise of the quietest blocks or what the residual shows, if that is less.
MUCH_FREEDOM = 0.6
# Texture that fills a part of an image looks like noise of that part to the groups. So pixels that are held out
# have the last word: one in eight, predicted from the others at both strengths. The groups' strength is taken if
# it predicts them with this much less error, or, where freedom is little and next to all error is noise, with any
# less. On nine photographs and four drawings the errors of Poisson noise fell to 0.96 times or less, or freedom
# was below 0.22; with white noise they were 0.99 times and more, and freedom 0.45 and more.
FORETOLD, LITTLE_FREEDOM, ONE_IN = 0.97, 0.25, 8
# The groups' error is flat where they differ, and has small rises on its way to the minimum.
SMALL_RISE = 0.03
# Neighbouring strengths of the search differ by this factor; a parabola finds the best between them.
RATIO = 1.5
# The search ends after this many factors, which is a factor of 650 from where it began.
MOST_STEPS = 16

Sums = tuple[np.ndarray, np.ndarray, np.ndarray]
Prepare = Callable[[Array, Array | None], Callable[[float], Array]]


@dataclass(frozen=True)
class Sample:
    """Tiles of an image, from which its strength is chosen.

    Attributes
    ----------
    data : array
        The tiles, along an axis before the last ``ndim``; channels, if any, are along the axis before it.
    known : array of bool or None
        Which pixels are data; None for all.
    numbers : array
        `random_numbers` of each place.
    """

    data: Array
    known: Array | None
    numbers: np.ndarray

    @classmethod
    def of(cls, image: Array, known: Array | None, ndim: int) -> Sample:
        """The sample of an image whose last ``ndim`` axes are those of space."""
        shape = tuple(image.shape)[-ndim:]
        places = sample_places(shape)
        tiles = None if known is None else _tiles(known, places)
        return cls(_tiles(image, places), tiles, np.stack([random_numbers(shape, place) for place in places]))

    @property
    def axis(self) -> int:
        """The axis of the tiles, counted from the last."""
        return -self.numbers.ndim


def strength_of_least_risk(
    sample: Sample, first: float, noise: float, prepare: Prepare, *, given: bool = False
) -> tuple[float, float]:
    """The strength whose risk is least on a sample, and the level of the noise.

    Parameters
    ----------
    sample : Sample
        Of the image.
    first : float
        The strength at which the search begins.
    noise : float
        Standard deviation of the noise, more than 0.
    prepare : function
        ``prepare(tiles, known)`` gives the function of a strength that restores tiles: those of the sample, and
        after them the same with a small change.
    given : bool, default False
        Whether the noise is known for sure, rather than estimated.
    """
    risk = _Risk(sample, noise, prepare)
    if risk.count < FEWEST_DATA:
        return first, noise
    if given:
        return lowest(risk.stein, first), noise
    usual = walk(risk.generalised, first)
    grouped = climb(risk.grouped, usual)
    best, larger = refined(risk.generalised, usual), refined(risk.grouped, grouped)
    held = (sample.numbers >> np.uint64(40)) % np.uint64(ONE_IN) == 0
    held_out, freedom = HeldOut(sample, prepare, held, _squared_error), risk.freedom(usual)
    if larger > FAR * best:
        found = held_out.confirmed(larger, best, 1.0 if freedom < LITTLE_FREEDOM else FORETOLD)
        if found is not None:
            return found, risk.noise_at(found)
    if freedom <= MUCH_FREEDOM:
        return best, risk.noise_at(usual)
    steady = lowest(risk.stein, usual)
    found = held_out.confirmed(steady, best) if steady > FAR * best else None
    if found is not None:  # next to no data were left to judge by: the noise of the quietest blocks stands
        return found, risk.noise_at(found)
    risk.noise = min(noise, risk.noise_at(usual))
    return lowest(risk.stein, usual), risk.noise_at(usual)


class HeldOut:
    """Pixels of a sample that are held out, and how badly the others predict them at strengths tried.

    ``held`` says which, a truth value for each of the sample's numbers; ``score(prediction, data)`` is the error.
    """

    def __init__(self, sample: Sample, prepare: Prepare, held: np.ndarray, score: Callable[..., float]) -> None:
        xp = namespace(sample.data)
        there = sent_like(np.array(np.broadcast_to(held, tuple(sample.data.shape))), sample.data)
        known = xp.ones_like(there) if sample.known is None else sample.known
        self.data, self.prepare, self.score = sample.data, prepare, score
        self.kept, self.unseen = known & ~there, Sampling(known & there)
        self.tried: dict[float, float] = {}

    @cached_property
    def solve(self) -> Callable[[float], Array]:
        """The function of a strength that restores the sample from the pixels that are kept."""
        return self.prepare(self.data, self.kept)

    def error(self, alpha: float) -> float:
        """The error at a strength."""
        if alpha not in self.tried:
            found, hidden = (product(self.unseen, x) for x in (self.solve(alpha), self.data))
            self.tried[alpha] = self.score(found, hidden)
        return self.tried[alpha]

    def confirmed(self, larger: float, best: float, share: float = FORETOLD) -> float | None:
        """The larger of two strengths, or one still larger, if its error is clearly less; None if it is not."""
        if self.error(larger) >= share * self.error(best):
            return None
        further = climb(self.error, larger)
        return further if self.error(further) < FORETOLD * self.error(larger) else larger


def _squared_error(found: Array, data: Array) -> float:
    away = found - data
    return inner(away, away)


class _Risk:
    """The risk of a sample's restoration at strengths tried."""

    def __init__(self, sample: Sample, noise: float, prepare: Prepare) -> None:
        data, known, xp = sample.data, sample.known, namespace(sample.data)
        signs = signs_like(np.broadcast_to(sample.numbers, data.shape), data)
        self.signs = signs if known is None else xp.where(known, signs, 0 * signs)
        self.data, self.noise, self.change, self.axis = data, noise, CHANGE * noise, sample.axis
        both = xp.concat([data, data + self.change * self.signs], axis=self.axis)
        self.solve = prepare(both, None if known is None else xp.concat([known, known], axis=self.axis))
        self.tried: dict[float, Sums] = {}
        self.order: np.ndarray | None = None

    @cached_property
    def count(self) -> float:
        """How many numbers the data are: a complex one is two, each with noise."""
        return inner(self.signs, self.signs)

    def stein(self, alpha: float) -> float:
        """Stein's estimate of the risk, less a constant."""
        count, square, free = (float(part.sum()) for part in self._look(alpha))
        return (square + 2 * self.noise**2 * free) / count

    def generalised(self, alpha: float) -> float:
        """The generalised cross-validation, which needs no noise."""
        count, square, free = (float(part.sum()) for part in self._look(alpha))
        return square * count / (count - free) ** 2 if free < count else math.inf

    def grouped(self, alpha: float) -> float:
        """The same in each group, weighted by their sizes."""
        count, square, free = self._look(alpha)
        left = 1 - free.sum() / count.sum()
        if left <= 0:
            return math.inf
        return float(np.sum(square / np.maximum(1 - free / count, LEAST_LEFT * left) ** 2) / count.sum())

    def freedom(self, alpha: float) -> float:
        """The degrees of freedom, as a fraction of the data."""
        count, _, free = (float(part.sum()) for part in self._look(alpha))
        return free / count

    def noise_at(self, alpha: float) -> float:
        """The noise that the residual shows."""
        count, square, free = (float(part.sum()) for part in self._look(alpha))
        return math.sqrt(square / (count - free)) if free < count else self.noise

    def _look(self, alpha: float) -> Sums:
        """How many numbers the groups hold, the squared norms of their residuals, their degrees of freedom."""
        if alpha not in self.tried:
            first, second = np.split(as_numpy(self.solve(alpha)), 2, axis=self.axis)
            if self.order is None:  # the first strength tried makes the groups
                tiles = np.abs(first).reshape(-1, math.prod(first.shape[self.axis + 1 :]))
                self.order = np.argsort(tiles, axis=1, kind="stable")
            data, signs = as_numpy(self.data), as_numpy(self.signs)
            live = np.abs(signs) ** 2
            away = np.abs(first - data) ** 2 * (live > 0)
            free = (np.conj(signs) * (second - first)).real / self.change
            self.tried[alpha] = (_sums(live, self.order), _sums(away, self.order), _sums(free, self.order))
        return self.tried[alpha]


def _sums(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The sums over the groups of each tile: the first quarter in an order, the second, and so on."""
    ordered = np.take_along_axis(values.reshape(order.shape), order, axis=1)
    return np.concatenate([part.sum(axis=1) for part in np.array_split(ordered, GROUPS, axis=1)])


def lowest(error: Callable[[float], float], first: float) -> float:
    """The strength with the least error, searched from the first one."""
    return refined(error, walk(error, first))


def walk(error: Callable[[float], float], first: float) -> float:
    """The strength with the least error among those that differ by factors of 1.5 from the first.

    Small strengths take less time, so that the way down is tried first, and only where it leads nowhere that up.
    """
    lower = _along(error, first, 1 / RATIO)
    return lower if lower < first else _along(error, first, RATIO)


def climb(error: Callable[[float], float], first: float) -> float:
    """The same on the way up, over small rises too."""
    return _along(error, first, RATIO, SMALL_RISE)


def _along(error: Callable[[float], float], first: float, ratio: float, small: float = 0.0) -> float:
    """The best on one way, which ends when the error has risen twice, and not by little: that may be chance."""
    best, rises = first, 0
    for step in range(1, MOST_STEPS + 1):
        here = first * ratio**step
        best, rises = (here, 0) if error(here) < error(best) else (best, rises + 1)
        if rises >= 2 and error(here) > (1 + small) * error(best):
            break
    return best


def refined(error: Callable[[float], float], best: float) -> float:
    """The minimiser of the parabola through the errors at a strength and its two neighbours."""
    before, here, after = (error(best * factor) for factor in (1 / RATIO, 1.0, RATIO))
    bend = before - 2 * here + after
    shift = 0.5 * (before - after) / bend if 0 < bend < math.inf else 0.0
    # In eighths: finer than the errors can tell, and coarse enough to hide their rounding.
    return best * RATIO ** (round(8 * max(-0.5, min(0.5, shift))) / 8)


def sample_places(shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Where the tiles of the sample lie: in windows along each long axis that mirror each other.

    Examples
    --------
    >>> from ell12.restoration.risk import sample_places
    >>> sample_places((256, 60))
    [(slice(0, 256, None), slice(0, 60, None))]
    >>> [window.start for window, _ in sample_places((1000, 60))]
    [51, 194, 337, 480, 623, 766, 909]
    """
    side = LEAST_SIDES[min(len(LEAST_SIDES), max(1, sum(n > 1 for n in shape))) - 1]
    size, long = math.prod(shape), sum(n > 2 * side for n in shape)
    share = min(max(SAMPLED * size, LEAST_SAMPLE), MOST_SAMPLE) / size
    if share > 0.5 or not long:
        return [tuple(slice(0, n) for n in shape)]
    part, most = share ** (1 / long), int(MOST_TILES ** (1 / long) + 1e-9)
    return list(
        itertools.product(*(_windows(n, part, side, most) if n > 2 * side else [slice(0, n)] for n in shape))
    )


def _windows(n: int, part: float, side: int, most: int) -> list[slice]:
    """A part of an axis in windows of one length, evenly spread; mirrored, they are the same."""
    count = max(1, min(most, int(n * part / side)))
    length = int(n * part / count)
    length += count % 2 and (n - length) % 2  # so that the one in the middle has as much on both sides
    gap = (n / count - length) / 2
    starts = [int(k * n / count + gap) for k in range((count + 1) // 2)]
    ends = [n - a - length for a in reversed(starts[: count // 2])]
    return [slice(a, a + length) for a in starts + ends]


def random_numbers(shape: tuple[int, ...], place: tuple[slice, ...]) -> np.ndarray:
    """Numbers of 64 random bits for a place in an image: the same where that is mirrored or its axes exchanged.

    So the strength chosen does not depend on how an image is turned.

    Examples
    --------
    >>> from ell12.restoration.risk import random_numbers
    >>> whole = random_numbers((5, 5), (slice(None), slice(None)))
    >>> bool((whole == whole.T).all() and (whole == whole[::-1]).all())
    True
    """
    numbers = np.random.default_rng(0).integers(2**63, size=max(shape), dtype=np.uint64)
    mixed = np.zeros((1,) * len(shape), dtype=np.uint64)
    for axis, (n, window) in enumerate(zip(shape, place, strict=True)):
        index = np.arange(n)[window]
        depth = numbers[np.minimum(index, n - 1 - index)]
        mixed = mixed + depth.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):  # the finaliser of MurmurHash3
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(factor)
    return mixed


def _tiles(image: Array, places: list[tuple[slice, ...]]) -> Array:
    """The tiles, along a new axis before those of space."""
    return namespace(image).stack([image[(..., *place)] for place in places], axis=-len(places[0]) - 1)


def signs_like(numbers: np.ndarray, data: Array) -> Array:
    """Random signs as the kind of array that the data are; for complex data a sign for each part."""
    first, second = (like(np.where(numbers >> np.uint64(bit) & np.uint64(1), 1.0, -1.0), data) for bit in (63, 62))
    return first + 1j * second if is_complex(data) else first
