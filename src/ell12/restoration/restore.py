"""What all functions of images do: options, loss, penalty, strength, run; `Restoration`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, Protocol, Unpack, overload

from numpy.typing import NDArray

from ell12.backend import as_numpy, is_number, is_numpy, max_abs, namespace, on_accelerator
from ell12.checks import check_counts, check_flags, check_scalars, check_word, set_numbers
from ell12.losses import AbsoluteLoss, KullbackLeiblerLoss, SquaredLoss
from ell12.minimization import Result, Run, Status, minimize
from ell12.minimization.loop import check_limits
from ell12.operators import sent_to_device_of
from ell12.operators.image_operators import Identity, Sampling, as_spacing
from ell12.penalties import with_strength
from ell12.protocols import Array, offers
from ell12.restoration.colour import ColourVariation, along_opponents, as_colours, as_opponents, is_coloured
from ell12.restoration.pixels import by_numpy, channels_back, value_range
from ell12.restoration.smoothed_gradient import SMOOTHED, ImageSolver, SmoothedGradient
from ell12.restoration.splitting import AlternatingMinimization, GrowingADMM
from ell12.restoration.splitting_parts import has_exact_solver
from ell12.restoration.strength_choice import choose, strength_for_noise
from ell12.restoration.total_variation import ImageArguments, TotalVariationL12

LOSSES: dict[str, Callable[[Any, Array], Any]] = {
    "squared": SquaredLoss.of_checked,
    "poisson": KullbackLeiblerLoss.of_checked,
    "absolute": AbsoluteLoss,
}


class ImageFunction(Protocol):
    """What a type checker knows of a function of images: the image, or with ``return_result`` a `Restoration`."""

    @overload
    def __call__(self, *a: Any, return_result: Literal[True], **b: Unpack[ImageArguments]) -> Restoration: ...
    @overload
    def __call__(
        self, *a: Any, return_result: Literal[False] = False, **b: Unpack[ImageArguments]
    ) -> NDArray[Any]: ...


def documented(tol: float) -> Callable[[Any], ImageFunction]:
    """Put what all functions of images share into a docstring, where it says ``{shared}``."""

    def fill(function: Any) -> Any:
        if function.__doc__ is not None:  # python -OO has none
            shared = str(Options.__doc__).partition("----------\n    ")[2].rstrip().replace("{tol}", str(tol))
            function.__doc__ = function.__doc__.replace("{shared}", shared)
        return function

    return fill


@dataclass(frozen=True, repr=False)
class Restoration:
    """A restored image, and how it was restored.

    Attributes
    ----------
    image : array
        The restored image.
    penalty : TotalVariationL12
        The penalty that was used, its strength and smoothing included.
    sigma : float or None
        The noise level, given or found, where alpha was chosen by it or found with it; else None.
    chosen_by : str
        What chose the strength: "GCV", "SURE", "held-out data", "sigma", "sigma 0"; empty where it was given.
    result : Result
        The run; in its x the channels, if any, are along the first axis.
    """

    image: Array
    penalty: TotalVariationL12
    sigma: float | None
    chosen_by: str
    result: Result

    @property
    def alpha(self) -> float:
        """The strength, chosen or given."""
        return self.penalty.strength

    @property
    def converged(self) -> bool:
        """Whether the run converged."""
        return self.result.converged

    def __repr__(self) -> str:
        shape, result = " x ".join(map(str, self.image.shape)), self.result
        by = f" by {self.chosen_by}" if self.chosen_by else ""
        sigma = "" if self.sigma is None else f"sigma {self.sigma:.2g}, "
        ran = f"{result.status.name}, {result.n_iter} iterations of {result.solver}, {result.seconds:.2g} s"
        return f"Restoration({shape}, alpha {self.alpha:.3g}{by}, {sigma}{ran})"


@dataclass(frozen=True)
class Options:
    """What a caller says next to the data: the docstrings of the functions of images show it.

    Parameters
    ----------
    penalty : TotalVariationL12, default as in the signature
        The shape of the penalty: weight of the subtracted norm, isotropic or not, boundary, bounds, spacing,
        colours, smoothing.
    sigma : float, optional
        Standard deviation of the noise, estimated by default. Only used where alpha is chosen, which a noise that
        is known makes surer: with fine texture or little noise, give it.
    loss : {"squared", "poisson", "absolute"}, default "squared"
        How far x may be from the data. "poisson" is for counts of expectation ``A x``, where x is then at least 0:
        ``sum(A x - y log A x)`` in place of the half square. "absolute" is for impulses, pixels that are far off:
        ``||A x - y||_1``. With both the true objective is minimised, by `GrowingADMM`, alpha has no unit, and
        None is "held-out", judged by the loss. ``sigma`` and ``smoothing`` are not used; colours are channels.
    channel_axis : int, optional
        The axis of channels; by default the image has none.
    solver : Solver, optional
        `SmoothedGradient`, `AlternatingMinimization` or `GrowingADMM`; by default what suits the problem. The last
        minimises the true objective, whatever ``smoothing`` says.
    tol : float, default {tol}
        How near the true objective comes to its minimum: an automatic smoothing falls with tol. The run ends when
        the root mean square of the gradient is {tol} times the smaller of alpha and the smoothing. Where smoothing
        is given, it is tol times that.
    max_iter : int, default 5000
        Stop after this number of iterations in any case, with a warning unless ``return_result`` is set.
    run : Run, optional
        Limits of time, a callback, measurements (functions of the image), a checkpoint.
    return_result : bool, default False
        Return a `Restoration`, with the strength chosen and the run's result.

    Returns
    -------
    array or Restoration
        The image, of the same kind as the one given.
    """

    alpha: Any
    penalty: Any  # afterwards a tuple of those to choose from
    sigma: float | None
    loss: str
    channel_axis: int | None
    solver: Any
    tol: float
    max_iter: int
    run: Run | None
    return_result: bool

    def __post_init__(self) -> None:
        check_word(self.loss, "loss", *LOSSES)
        check_counts(least=-math.inf, channel_axis=self.channel_axis)
        check_flags(return_result=self.return_result)
        check_limits(self.tol, self.max_iter, self.run)
        if self.sigma is not None:
            set_numbers(self, "sigma")
        if self.solver is not None and not offers(self.solver, ImageSolver):
            raise ValueError(f"solver must be None or one of ell12.restoration, got {self.solver!r}")
        if is_number(self.alpha):
            check_scalars(alpha=self.alpha)
            object.__setattr__(self, "alpha", float(self.alpha))
        elif self.alpha is not None and not (isinstance(self.alpha, str) and self.alpha == "held-out"):
            raise ValueError(f"alpha must be a number, 'held-out' or None, got {self.alpha!r}")
        self._set_shapes(self.penalty if isinstance(self.penalty, tuple) else (self.penalty,))
        if self.loss != "squared" and self.solver is not None and self.solver.smooths:
            raise ValueError(f"loss={self.loss!r} needs a solver of the true objective, got {self.solver!r}")

    def _set_shapes(self, shapes: tuple[Any, ...]) -> None:
        """Check the penalties to choose from, and take the strength out of them."""
        for shape in shapes:
            if not isinstance(shape, TotalVariationL12):
                raise TypeError(f"penalty must be a TotalVariationL12, got {shape!r}")
            if self.loss != "squared" and shape.colour:
                raise ValueError(f"loss={self.loss!r} restores channel by channel: give colour=False or None")
            if shape.alpha is not None:
                object.__setattr__(self, "alpha", with_strength(shape, self.alpha).alpha)
        if self.loss == "poisson":
            shapes = tuple(replace(shape, bounds=(max(0.0, shape.limits[0]), shape.limits[1])) for shape in shapes)
        object.__setattr__(self, "penalty", tuple(replace(shape, alpha=None) for shape in shapes))


@dataclass(frozen=True)
class ImageProblem:
    """``1/2 ||A x - y||^2 + penalty(x)`` for an image x whose last ``ndim`` axes make one channel.

    Parameters
    ----------
    estimate : function, optional
        ``estimate()`` is the noise level, where it can be found.
    rule : function
        Makes a strength of the noise and of the range of the values.
    base_tol : float
        The default tol, at which the smoothing is a hundredth of the range. A denoised image is as near to the
        exact one as its gradient is small. The other problems are less well conditioned: they are solved to a
        tenth of that.
    scale : float, optional
        The range of the image's values, where this is a part of a problem.
    """

    y: Array
    A: Any
    start: Array
    ndim: int
    options: Options
    estimate: Callable[[], float] | None = None
    rule: Callable[[float, float], float] = strength_for_noise
    base_tol: float = 0.005
    scale: float | None = None
    opponents: bool = False  # whether the unknown are colours along opponent axes

    @property
    def shapes(self) -> tuple[TotalVariationL12, ...]:
        """The penalties to choose from, without a strength."""
        return self.options.penalty

    @cached_property
    def spread(self) -> float:
        """The range of the image's values, as far as it is known beforehand: the unit of the automatic choices."""
        return value_range(self.pixels, self.ndim) if self.scale is None else self.scale

    @property
    def pixels(self) -> Array:
        """The start, its colours as such."""
        return as_colours(self.start) if self.opponents else self.start

    @cached_property
    def sigma(self) -> float | None:
        """The noise, given or estimated; None where it cannot be.

        A larger level than the one returned at most makes an image flat too.
        """
        if self.options.sigma is not None:
            return min(self.options.sigma, self.spread * math.prod(self.start.shape))
        return None if self.estimate is None else self.estimate()

    @property
    def first_strength(self) -> float:
        """Where a search by data held out begins: by noise that all differences show, which is rather too large.

        The search comes down from there: begun at the strength for noise of a twentieth of the range, it ended at
        another minimum on a texture of few counts, 9.9 in place of 23.2 dB. For counts it is the strength for the
        squared loss, over the mean count: near the solution the loss is the square over twice that.
        """
        if self.options.loss == "absolute":
            return 1.0
        image, xp = self.start, namespace(self.start)
        steps = image[..., 1:] - image[..., :-1]
        noise = math.sqrt(float(xp.mean(xp.abs(steps) ** 2)) / 2) if math.prod(steps.shape) else 0.0
        mean = float(xp.mean(image)) if self.options.loss == "poisson" else 1.0
        return self.rule(noise or 0.02 * self.spread, self.spread) / mean if mean > 0 else 1.0

    def restore(self) -> Any:
        """The image, or the `Restoration` where the options ask for it."""
        found = self._restoration()
        if self.options.return_result:
            return found
        if found.result.status is Status.MAX_ITER:
            warnings.warn(f"{Status.MAX_ITER.value} Raise max_iter or tol.", RuntimeWarning, stacklevel=3)
        return found.image

    def _restoration(self) -> Restoration:
        in_numpy = None if is_numpy(self.start) or on_accelerator(self.start) else by_numpy(self.A)
        if in_numpy is not None:  # other libraries take a hundred times as long on a processor
            return self._by_numpy(in_numpy)
        colour = self.shapes[0].colour if self.options.loss == "squared" else False
        problem = self._along_opponents() if is_coloured(self.pixels, self.ndim, colour) else self
        choice = choose(problem)
        result = problem.minimised(choice.penalty, self.options.run or Run())
        result = replace(result, x=problem._channels(result.x))
        image = channels_back(result.x, self.options.channel_axis)
        return Restoration(image, problem.penalty(choice.penalty), choice.sigma, choice.by, result)

    def _along_opponents(self) -> ImageProblem:
        """The problem whose unknown are the colours along opponent axes."""
        y, A = along_opponents(self.y, self.A)
        return replace(self, y=y, A=A, start=as_opponents(self.start), opponents=True, scale=self.spread)

    def _channels(self, x: Array) -> Array:
        """The channels of an unknown; of colours rounding may have left the bounds."""
        if not self.opponents:
            return x
        colours, bounds = as_colours(x), self.shapes[0].bounds
        return colours if bounds is None else namespace(x).clip(colours, *bounds)

    def _by_numpy(self, A: Any) -> Restoration:
        """The same with NumPy arrays; what comes out is of the kind that went in."""
        back = partial(sent_to_device_of, x=self.start)
        run = self.options.run or Run()
        measure = {name: lambda x, f=f: f(back(x)) for name, f in (run.measure or {}).items()}
        options = replace(self.options, run=replace(run, measure=measure))
        found = replace(self, y=as_numpy(self.y), A=A, start=as_numpy(self.start), options=options)._restoration()
        return replace(found, image=back(found.image), result=replace(found.result, x=back(found.result.x)))

    def search(self, boundary: str | None = None, tol: float = 0.05, **part: Any) -> ImageProblem:
        """A problem like this one, or a part of it, as the search for a strength solves it."""
        shapes = tuple(
            replace(shape, smoothing=shape.smoothing or None, boundary=boundary or shape.boundary)
            for shape in self.shapes
        )
        solver = self.options.solver if self.options.loss != "squared" else None
        options = replace(self.options, penalty=shapes, tol=tol, solver=solver)
        return replace(self, options=options, base_tol=tol, scale=self.spread, **part)

    def minimised(self, shape: TotalVariationL12, run: Run | None = None, tol: float | None = None) -> Result:
        """The problem solved with a penalty that has its strength; Ctrl-C ends a search, which gives no run, too.

        ``tol`` is another tolerance than the caller's.
        """
        options, loss = self.options, LOSSES[self.options.loss](self.A, self.y)
        penalty = self.penalty(shape)
        solver = self._solver(penalty)
        start = _as_counts(self.y, self.A, self.start) if options.loss == "poisson" else self.start
        penalty = penalty if solver.smooths else replace(penalty, smoothing=0.0)
        axis, measure = options.channel_axis, {}
        for name, f in ((run and run.measure) or {}).items():  # functions of the image; these are of the unknown
            measure[name] = lambda x, f=f: f(channels_back(self._channels(x), axis))
        # An automatic smoothing falls with tol, in place of the gradient.
        falls = solver.smooths and shape.smoothing is None and options.tol > 0
        if tol is None:
            tol = max(options.tol, self.base_tol) if falls else options.tol
        limits: dict[str, Any] = {"tol": tol, "max_iter": options.max_iter}
        run_of_unknown = replace(run or Run(), measure=measure)
        result = minimize(loss, penalty, penalty.project(start), solver, run=run_of_unknown, **limits)
        if run is None and result.status is Status.STOPPED:
            raise KeyboardInterrupt
        return result

    def penalty(self, penalty: TotalVariationL12) -> TotalVariationL12:
        """The penalty with all that the problem decides: axes, colours and the automatic smoothing."""
        kind = ColourVariation if self.opponents else TotalVariationL12
        if penalty.spacing is not None and len(penalty.spacing) > 1:
            as_spacing(penalty.spacing, self.ndim)
        smoothing = penalty.smoothing
        if smoothing is None:
            # Rounding of size r changes the gradient by r alpha / smoothing, at most by that at which a run ends.
            rounding = float(namespace(self.start).finfo(self.start.dtype).eps) * max_abs(self.start)
            least = math.sqrt(penalty.strength * rounding / self.base_tol)
            smoothing = max(SMOOTHED * self.spread * (min(1.0, self.options.tol / self.base_tol) or 1.0), least)
        return kind(**vars(penalty) | {"ndim": self.ndim, "smoothing": smoothing})

    def _solver(self, penalty: Any) -> Any:
        """The solver that was given, or the one that suits the problem."""
        if self.options.solver is not None:
            return self.options.solver
        if penalty.smoothing == 0 or self.options.loss != "squared":
            return GrowingADMM()
        exact = has_exact_solver(self.A, penalty, self.start) and not isinstance(self.A, Identity)
        if exact and penalty.bounds is None:
            return AlternatingMinimization(inner="exact", accelerated=True)
        return SmoothedGradient()


def _as_counts(y: Array, A: Any, start: Array) -> Array:
    """A start at which the likelihood of the counts y is not zero."""
    xp = namespace(y)
    if xp.isdtype(y.dtype, "complex floating") or bool(xp.any(y < 0)):
        raise ValueError("loss='poisson' needs counts, or other real numbers that are at least 0")
    positive = xp.where(start > 0, start, 0)
    return positive if type(A) in (Identity, Sampling) else (positive + xp.mean(positive)) / 2
