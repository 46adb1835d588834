"""The strength and the shape of least estimated error: by generalised cross-validation, or by data held out.

The residual of an estimate f(y), and its degrees of freedom, how much f(y) follows y, tell its mean squared error
up to a constant: by generalised cross-validation (Golub, Heath & Wahba, doi:10.1080/00401706.1979.10489751), or by
Stein's unbiased estimate where sigma is given. The degrees of freedom come from a second run on data with a small
random change (Ramani, Blu & Unser, doi:10.1109/TIP.2008.2001404).

Cross-validation supposes the same noise everywhere. That of photons follows brightness: so it is also done in
groups of pixels of similar brightness, each with its own residual and degrees of freedom, and added up.
Saturated pixels, which have no noise, do not count.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import uniform_filter

from ell12.backend import as_array_of, as_numpy, inner, is_complex, namespace
from ell12.operators import adjoint_product, output_shape, product, sent_to_device_of
from ell12.operators.image_operators import Convolution, Identity, MirroredConvolution, Sampling, Stacked
from ell12.path import best_on_log_grid
from ell12.protocols import Array
from ell12.restoration.pixels import filled
from ell12.restoration.sigma import FEWEST
from ell12.restoration.smoothed_gradient import NEGLIGIBLE

# Strengths are tried on a sample of about this many pixels, in tiles; smaller images are restored with several
# random changes. Half as many were 0.3 dB worse on average, up to 5 dB (benchmarks/results/pictures_race).
SAMPLE = 2**15
# A tile, 48 x 48 in two axes, and a group of pixels of similar brightness have about this many pixels.
TILE = 48**2
# The data are changed by this fraction of the noise: more than a run's accuracy, less than what changes the edges.
CHANGE = 0.1
# Coefficients that the user calls noise-free keep their values, but for this fraction of the range. Where no noise
# is found, blurred and incomplete images get the strength NEGLIGIBLE: with a weaker one runs take much longer.
FAITHFUL = 1e-6
# This part of the data is held out: what is left is restored nearly as well as the whole.
HELD_OUT = 0.1


class Choice(NamedTuple):
    """A penalty with its strength, the noise that was given or found with it, and what chose the strength."""

    penalty: Any
    sigma: float | None
    by: str


def choose(problem: Any) -> Choice:
    """The strength that was given, or the best one, of the best shape where several are offered.

    ``problem`` is an `ell12.restoration.restore.ImageProblem`.
    """
    alpha, shape = problem.options.alpha, problem.shapes[0]
    if isinstance(alpha, float):
        return Choice(replace(shape, alpha=alpha), None, "")
    if alpha == "held-out" or problem.options.loss != "squared":
        return Choice(replace(shape, alpha=_by_held_out_data(problem)), None, "held-out data")
    sigma = problem.sigma
    if sigma is None:
        raise ValueError("alpha cannot be chosen without a noise level: give alpha, sigma, or alpha='held-out'")
    if sigma == 0:
        faithful = 0.0 if isinstance(problem.A, Identity) else NEGLIGIBLE if problem.estimate else FAITHFUL
        return Choice(replace(shape, alpha=faithful * problem.spread), sigma, "sigma 0")
    score = _score_of(problem, sigma)
    if score is None or score.count < FEWEST:
        return Choice(replace(shape, alpha=problem.rule(sigma, problem.spread)), sigma, "sigma")
    return score.choice()


def _score_of(problem: Any, sigma: float) -> _Score | None:
    """What estimates the error of restored data; None where nothing can."""
    if _has_pixels(problem.A):
        return _Score(problem, sigma, *_tiles_of(problem))
    one = problem.A.A if isinstance(problem.A, Stacked) else problem.A
    shape = tuple(problem.y.shape)[-problem.ndim :]
    if type(one) not in (Convolution, MirroredConvolution) or math.prod(shape) < TILE:
        return None
    return _Score(problem, sigma, *_middle_of(problem, one, shape))


def _has_pixels(A: Any) -> bool:
    """Whether the data are pixels, all or some."""
    return isinstance(A, Identity) or type(A) is Sampling


class _Score:
    """The estimated error of data restored at strengths tried: ``tried`` has a dictionary for each shape.

    The data and those with small changes are one problem: solved in the same steps, so that their errors cancel.
    """

    def __init__(self, problem: Any, sigma: float, data: Array, mask: Array | None, live: np.ndarray) -> None:
        self.problem, self.sigma, self.data = problem, sigma, as_numpy(data)
        self.known, self.change = problem.options.sigma is not None, CHANGE * sigma
        self.live = np.broadcast_to(live, tuple(data.shape))
        self.groups = _groups(self.data, self.live, problem.ndim)
        random, count = np.random.default_rng(0), max(1, SAMPLE // math.prod(data.shape))
        self.signs = [self._random_signs(random, is_complex(data)) for _ in range(count)]
        self.counts = self._sums(np.abs(self.signs[0]) ** 2)
        self.count = float(self.counts.sum())
        changed = [data + self.change * as_array_of(signs, data) for signs in self.signs]
        concat, self.axis = namespace(data).concat, -problem.ndim - 1
        masks = None if mask is None else concat([mask] * (1 + count), axis=self.axis)
        self.all = _joined(problem, concat([data, *changed], axis=self.axis), masks)
        self.near = self.all.start  # the last estimate, from which the next run begins
        self.tried: list[dict[float, tuple[float, float, float]]] = [{} for _ in problem.shapes]

    def _random_signs(self, random: np.random.Generator, with_imaginary: bool) -> np.ndarray:
        """1 or -1 where a pixel counts, else 0; for complex data a sign for each part."""
        parts = [2.0 * random.integers(0, 2, self.live.shape) - 1 for _ in range(1 + with_imaginary)]
        return np.where(self.live, parts[0] + 1j * parts[1] if with_imaginary else parts[0], 0.0)

    def choice(self) -> Choice:
        """The best strength and shape; those of the rule where blurred data have a better score as they are.

        Groups decide where they ask for twice the strength that all pixels together do: their noise differs. The
        search for a second shape gives up after one step that brings nothing: on 90 pictures that saved 16 % of
        the time and none lost 0.1 dB, of 20 others one lost 0.25. For the first shape it lost up to 1.2 dB.
        """
        problem, pixels = self.problem, _has_pixels(self.problem.A)
        # Where nothing is hidden, weaker strengths are possible.
        least = problem.spread * (FAITHFUL if not pixels or self.live.all() else NEGLIGIBLE)
        first = min(max(problem.rule(self.sigma, problem.spread), least), problem.spread)

        def best(kind: int, number: int, patience: int) -> float:
            limits: dict[str, Any] = {"least": least, "most": problem.spread, "patience": patience}
            return best_on_log_grid(lambda alpha: self.at(alpha, number)[kind], first, ratio=2.0, **limits)

        together, grouped = best(0, 0, 2), 0.0 if self.known else best(1, 0, 2)
        groups_tell = any(math.isfinite(score[1]) for score in self.tried[0].values())
        kind = int(groups_tell and grouped >= 2 * together)
        strengths = [grouped if kind else together]
        strengths += [best(kind, number, 1) for number in range(1, len(self.tried))]
        scores = [min((score[kind], score[2]) for score in tried.values()) for tried in self.tried]
        number = scores.index(min(scores))
        score, noise = scores[number]
        untouched = not pixels and self.of(product(self.all.A, self.all.y))[kind] < score
        penalty = replace(problem.shapes[number], alpha=first if untouched else strengths[number])
        return Choice(penalty, self.sigma if self.known else noise, "SURE" if self.known else "GCV")

    def at(self, alpha: float, number: int) -> tuple[float, float, float]:
        """What `of` says of a shape at a strength."""
        tried = self.tried[number]
        if alpha not in tried:
            penalty = self.all.penalty(replace(self.all.shapes[number], alpha=alpha))
            tol, pixels = self.all.options.tol, _has_pixels(self.all.A)
            if pixels:  # weak strengths leave few degrees of freedom, which errors of the run must not exceed
                tol *= min(alpha / (4 * penalty.smoothing), 1.0) ** 2
            x = self.near = replace(self.all, start=self.near).minimised(penalty, tol=tol).x
            tried[alpha] = self.of(x if pixels else product(self.all.A, x))
        return tried[alpha]

    def of(self, predicted: Array) -> tuple[float, float, float]:
        """The score of what is predicted from the data, that by groups, and the noise shown."""
        first, *others = np.split(as_numpy(predicted), 1 + len(self.signs), axis=self.axis)
        moves = np.conj(self.signs) * (np.stack(others) - first)
        free = moves.real.sum(axis=0) / (self.change * len(others))
        squares, left = self._sums(np.abs(first - self.data) ** 2), self.counts - self._sums(free)
        square, whole = float(squares.sum()), float(left.sum())
        noise = math.sqrt(square / whole) if whole > 0 else self.sigma
        if self.known:
            return square - 2 * self.sigma**2 * whole, math.inf, noise
        together = square * (self.count / whole) ** 2 if whole > 0 else math.inf
        grouped = float(np.sum(squares * (self.counts / left) ** 2)) if left.min() > 0 else math.inf
        return together, grouped, noise

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """The sums over groups."""
        return np.bincount(self.groups, values[self.live])


def _groups(data: np.ndarray, live: np.ndarray, ndim: int) -> np.ndarray:
    """The group of each pixel that counts: by the mean of its neighbourhood, each of about the same size."""
    nearby = (1,) * (data.ndim - ndim) + (5,) * ndim
    level = uniform_filter(np.abs(data) if is_complex(data) else data, nearby, mode="nearest")[live]
    count = max(1, level.size // TILE)
    groups = np.searchsorted(np.quantile(level, np.arange(1, count) / count), level)
    return np.unique(groups, return_inverse=True)[1]  # where many levels are equal some groups would be empty


def _middle_of(problem: Any, one: Any, shape: tuple[int, ...]) -> tuple[Array, None, np.ndarray]:
    """The middle of a blurred image, as one tile, and its pixels that do not depend on what is cut off."""
    share = min(1.0, SAMPLE / math.prod(shape)) ** (1 / problem.ndim)
    sides = [min(n, max(math.ceil(share * n), 4 * k)) for n, k in zip(shape, one.kernel.shape, strict=True)]
    middle: Any = (..., *(slice((n - m) // 2, (n - m) // 2 + m) for n, m in zip(shape, sides, strict=True)))
    live = live_pixels(problem.pixels, None, problem.opponents)[middle]
    for axis, (n, m, k) in enumerate(zip(shape, sides, one.kernel.shape, strict=True)):
        inside = (np.arange(m) >= k) & (np.arange(m) < m - k) if m < n else np.ones(m, bool)
        live = live & inside.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    y = namespace(problem.y).expand_dims(problem.y[middle], axis=-problem.ndim - 1)
    return y, None, np.expand_dims(live, -problem.ndim - 1)


def _tiles_of(problem: Any) -> tuple[Array, Array | None, np.ndarray]:
    """A sample of tiles, which lie along an axis before those of space; their known and their live pixels."""
    ndim, A = problem.ndim, problem.A
    image = problem.y if isinstance(A, Identity) else adjoint_product(A, problem.y)
    windows = sample_windows(tuple(image.shape)[-ndim:])

    def tiles(x: Array) -> Array:
        return namespace(x).stack([x[(..., *window)] for window in windows], axis=-ndim - 1)

    known = None if isinstance(A, Identity) else sent_to_device_of(A.mask, image)
    live = live_pixels(problem.pixels, known, problem.opponents)
    return tiles(image), None if known is None else tiles(known), tiles(live)


def _joined(problem: Any, data: Array, mask: Array | None) -> Any:
    """The problem of tiles; parts of a blurred image are continued by their mirror images."""
    shape, A = tuple(data.shape)[-problem.ndim :], problem.A
    if _has_pixels(A):
        A = Identity(tuple(data.shape)) if mask is None else Sampling(mask)
        boundary = None if shape == tuple(problem.start.shape)[-problem.ndim :] else "neumann"
        start = data if mask is None else filled(data, mask, problem.ndim)
        return problem.search(boundary, y=data if mask is None else product(A, data), A=A, start=start)
    one = A.A if isinstance(A, Stacked) else A
    A = one if shape == tuple(one.input_shape) else MirroredConvolution(one.kernel, shape)
    for count in reversed(data.shape[: -problem.ndim]):
        A = Stacked(A, int(count))
    return problem.search(y=data, A=A, start=data)


def live_pixels(image: Array, known: Array | None, joined: bool = False) -> np.ndarray:
    """Which pixels are known and not saturated, in all channels where these are ``joined``; all if too few are.

    The least and the largest value count as saturated: where they are not, hardly any pixel has them.
    """
    values = as_numpy(image)
    known = np.ones(values.shape, bool) if known is None else as_numpy(known)
    if is_complex(values) or not known.any():
        return known
    live = known & (values > values[known].min()) & (values < values[known].max())
    live = np.broadcast_to(live.all(axis=0), live.shape).copy() if joined else live
    return live if live.sum() >= FEWEST else known


def sample_windows(shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Where the tiles of the sample lie: evenly along each long axis.

    Examples
    --------
    >>> from ell12.restoration.strength_choice import sample_windows
    >>> sample_windows((128, 60))
    [(slice(0, 128, None), slice(0, 60, None))]
    >>> [window.start for window, _ in sample_windows((2000, 60))]
    [66, 248, 430, 611, 793, 975, 1157, 1339, 1520, 1702, 1884]
    """
    side, share = round(TILE ** (1 / len(shape))), SAMPLE / math.prod(shape)
    long = sum(n > 2 * side for n in shape)
    if share > 0.5 or not long:
        return [tuple(slice(0, n) for n in shape)]
    windows = []
    for n in shape:
        part = share ** (1 / long) if n > 2 * side else 1.0
        count = max(1, int(n * part / side)) if n > 2 * side else 1
        length = int(n * part / count)
        starts = [int((k + 0.5) * n / count - length / 2) for k in range(count)]
        windows.append([slice(start, start + length) for start in starts])
    return list(itertools.product(*windows))


def _by_held_out_data(problem: Any) -> float:
    """The strength that predicts a tenth of the data, unseen, best from the rest.

    What is held out carries noise of its own, so that the error it shows is that of the image plus a constant
    (J-invariance; Batson & Royer, Noise2Self, 2019).
    """
    loss, first = problem.options.loss, problem.first_strength
    part = _joined(problem, *_tiles_of(problem)[:2]) if _has_pixels(problem.A) else problem.search()
    kept = np.random.default_rng(0).random(output_shape(part.A)) >= HELD_OUT
    if kept.all() or not kept.any():
        raise ValueError("too few data to hold some out: give alpha, or sigma")
    seen, unseen, A = Sampling(kept), Sampling(~kept), _kept_part(part.A, kept)
    known, hidden = product(seen, part.y), product(unseen, part.y)
    # A start that holds what is hidden would predict it the better, the weaker the strength.
    mask, S = (A.mask, A) if type(A) is Sampling else (kept, seen)
    if tuple(mask.shape) == tuple(part.start.shape):
        x0 = filled(adjoint_product(S, known), sent_to_device_of(mask, known), problem.ndim)
    else:
        x0 = adjoint_product(A, known)
    rest = replace(part, y=known, A=A, start=x0)

    def error(alpha: float) -> float:
        # A rough run leaves unknown pixels near the start, and chose too weak a strength at low noise.
        x = rest.minimised(replace(part.shapes[0], alpha=alpha), tol=0.01 if loss == "squared" else None).x
        return misfit(loss, product(unseen, product(part.A, x)), hidden)

    least = least_strength(loss, problem.penalty(replace(problem.shapes[0], alpha=1.0)))
    return best_on_log_grid(error, max(first, least), least=least)


def _kept_part(A: Any, kept: np.ndarray) -> Any:
    """The operator whose results are those of A that are kept."""
    if isinstance(A, Identity):
        return Sampling(kept)
    if type(A) is not Sampling:
        return Sampling(kept) @ A
    mask = as_numpy(A.mask).copy()
    mask[mask] = kept
    return Sampling(mask)


def misfit(loss: str, prediction: Array, hidden: Array) -> float:
    """How badly data held out are predicted: squares, absolute values, or the log-likelihood of counts."""
    xp, away = namespace(hidden), prediction - hidden
    if loss == "squared":
        return inner(away, away)
    if loss == "absolute":
        return float(xp.sum(xp.abs(away)))
    # At least a hundredth of the mean count is expected: a single count in the dark must not decide for all.
    least = 1e-2 * float(xp.mean(hidden)) or 1.0
    expected = xp.where(prediction > least, prediction, least)
    return float(xp.sum(expected - hidden * xp.log(expected / least)))


def least_strength(loss: str, penalty: Any) -> float:
    """The strength below which none is tried: that by which a block of impulses two pixels wide is removed.

    Pixels that are held out do not tell it, because impulses do not harm the prediction of their neighbours much.
    On five photographs with 5 percent of impulses it was at most 0.9 dB below the best, that for two impulses
    next to each other up to 14 dB; with 1 percent at most 4. ``penalty`` has the strength 1.
    """
    if loss != "absolute":
        return 0.0
    block = np.zeros((6,) * penalty.ndim)
    block[(slice(2, 4),) * penalty.ndim] = 1.0
    return 2.0**penalty.ndim / (penalty.true_value(block) or math.inf)


def strength_for_noise(sigma: float, spread: float) -> float:
    """``2.6 spread (sigma / spread)^(4/3)``: the best on average over photographs, at ``l2_weight`` 0.5.

    Examples
    --------
    >>> from ell12.restoration.strength_choice import strength_for_noise
    >>> round(strength_for_noise(0.05, 1.0), 4)
    0.0479
    """
    return 2.6 * spread * (sigma / spread) ** (4 / 3)


def strength_for_deblurring(sigma: float, spread: float) -> float:
    """``0.6 spread (sigma / spread)^(3/2)``: the middle of what was best under Gaussian blur, at ``l2_weight`` 0.

    It lay between a fifth and six times as much, being smaller for wider blurs and finer texture, larger for
    drawings.

    Examples
    --------
    >>> from ell12.restoration.strength_choice import strength_for_deblurring
    >>> round(strength_for_deblurring(0.01, 1.0), 6)
    0.0006
    """
    return 0.6 * spread * (sigma / spread) ** 1.5
