"""A restoration problem: the data, what is minimised, how the run goes, and what comes out."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ell12.backend import as_numpy, is_numpy, max_abs, namespace, on_accelerator
from ell12.checks import check_axis, check_flags, check_word, is_finite_number
from ell12.minimization import Result, Status, minimize
from ell12.minimization.run import as_run
from ell12.operators import sent_like
from ell12.operators.image_operators import Identity, flipped
from ell12.protocols import Array, offers
from ell12.restoration.alternating import AlternatingMinimization
from ell12.restoration.arrangements import by_numpy
from ell12.restoration.choice import chosen_strength, sample_of
from ell12.restoration.colour import ColourVariation, along_opponents, as_colours, as_opponents, is_coloured
from ell12.restoration.corners import Corner, corner_of, spin_flips, toggled
from ell12.restoration.images import channels_back
from ell12.restoration.likelihoods import LOSSES, POISSON, SQUARED, as_counts, not_negative
from ell12.restoration.normal_equations import has_exact_solver
from ell12.restoration.risk import Sample
from ell12.restoration.smoothed_gradient import SmoothedGradient
from ell12.restoration.splitting import GrowingADMM
from ell12.restoration.strength import strength_for_noise, value_range
from ell12.restoration.total_variation import TotalVariationL12
from ell12.restoration.variation import Bounds, ImageSolver

Measures = Mapping[str, Callable[[Array], float]]
Stop = Callable[[dict[str, list[float]]], bool]

# A run ends after this many iterations in any case. Denoising a photograph takes about ten.
MAX_ITER = 5000
# A denoised image is as near to the exact one as its gradient is small. The other problems are less well
# conditioned, so that a small gradient says less about the image: they are solved to a tenth of that.
TOL_DENOISING, TOL = 0.05, 0.005
# Differences below this fraction of the range are smoothed by default, as in the paper: its mu is 100 alpha for
# images in [0, 1].
SMOOTHED = 0.01
# Rounding of size r in the image changes the gradient by r alpha / smoothing. A run ends when the gradient is a
# few percent of the smoothing. So the automatic smoothing squared is at least this many times alpha r.
RESOLVED = 100


@dataclass(frozen=True)
class Restoration:
    """A restored image, and how it was restored.

    Attributes
    ----------
    image : array
        The restored image.
    alpha : float
        The strength used, chosen or given; of a batch a tuple of them, one for each image.
    noise : float or None
        The noise level, given or found, where alpha was chosen by it or found with it; else None. Of a batch a
        tuple.
    runs : tuple of Result
        One per spin, of a batch those of the first image, then of the second, and so on; in their x the channels,
        if any, are along the first axis.
    """

    image: Array
    alpha: Any
    noise: Any
    runs: tuple[Result, ...]

    @property
    def converged(self) -> bool:
        """Whether every run converged."""
        return all(run.converged for run in self.runs)


@dataclass(frozen=True)
class ImageModel:
    """The options that say what is minimised, and by which solver; `ell12.denoise_tv` explains them."""

    l2_weight: float
    smoothing: float | None
    noise: float | None
    channel_axis: int | None
    colour: bool | None
    boundary: str
    spins: int
    bounds: Bounds | None
    isotropic: bool
    spacing: float | tuple[float, ...] | None
    loss: str
    solver: Any

    def __post_init__(self) -> None:
        check_word(self.boundary, "boundary", "neumann", "periodic")
        check_word(self.loss, "loss", *LOSSES)
        check_axis(self.channel_axis, "channel_axis")
        check_flags(isotropic=self.isotropic)
        check_flags(optional=True, colour=self.colour)
        if self.noise is not None and not (is_finite_number(self.noise) and self.noise >= 0):
            raise ValueError(f"noise must be a number >= 0 or None, got {self.noise!r}")
        word = isinstance(self.solver, str)
        if (word and self.solver != "accelerated") or not (word or offers(self.solver, ImageSolver)):
            raise ValueError(
                "solver must be 'accelerated' or one for total variation, such as GrowingADMM(), "
                f"got {self.solver!r}"
            )
        if self.loss != SQUARED and self.colour:
            raise ValueError(f"loss={self.loss!r} restores channel by channel: give colour=False or None")
        if self.loss == POISSON:
            object.__setattr__(self, "bounds", not_negative(self.bounds))
        if self.loss != SQUARED and not word and self.solver.smooths:
            raise ValueError(
                f"loss={self.loss!r} needs a solver of the true objective, such as GrowingADMM(), "
                f"got {self.solver!r}"
            )


@dataclass(frozen=True)
class ImageRun:
    """The options that say how a run goes and what is returned; `ell12.denoise_tv` explains them."""

    tol: float
    max_iter: int
    measure: Measures | None = None
    objectives: bool = False
    stop: Stop | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_seconds: float = 60.0
    resume: bool = False
    return_result: bool = False

    def __post_init__(self) -> None:
        check_flags(objectives=self.objectives, resume=self.resume, return_result=self.return_result)


@dataclass(frozen=True)
class ImageProblem:
    """``1/2 ||A x - y||^2 + penalty(x)`` for an image x whose last ``ndim`` axes make one channel."""

    y: Array
    A: Any
    start: Array
    ndim: int
    model: ImageModel
    options: ImageRun
    opponents: bool = False  # whether the unknown are colours along the axes of `ell12.restoration.colour`

    @cached_property
    def spread(self) -> float:
        """The range of the image's values, as far as it is known beforehand: the unit of the automatic choices."""
        return value_range(self._pixels_from_the_corner, self.ndim)

    @cached_property
    def corner(self) -> Corner:
        """Where differences begin: the image decides, so that a mirrored one gives the mirrored result."""
        return corner_of(self._pixels, self.ndim)

    @property
    def _pixels(self) -> Array:
        """The start, its colours as such."""
        return as_colours(self.start) if self.opponents else self.start

    @property
    def _pixels_from_the_corner(self) -> Array:
        return flipped(self._pixels, self.corner)

    def restore(
        self,
        alpha: Any,
        estimate: Callable[[], float] | None = None,
        rule: Callable[[float, float], float] = strength_for_noise,
    ) -> Any:
        """The image, or the `Restoration` where the options ask for it.

        ``alpha`` is as in `ell12.denoise_tv`. ``estimate`` finds the noise level, where that can be found, and
        ``rule`` makes a strength of it and of the range of the values.
        """
        twin = None if is_numpy(self.start) or on_accelerator(self.start) else by_numpy(self.A)
        if twin is not None:  # other libraries take a hundred times as long on a processor
            return self._by_numpy(twin, alpha, estimate, rule)
        colour = self.model.colour if self.model.loss == SQUARED else False
        coloured = is_coloured(self._pixels_from_the_corner, self.ndim, colour, self.A)
        restored = (self._along_opponents() if coloured else self)._restored(alpha, estimate, rule)
        return finished(restored, self.options.return_result, stacklevel=4)

    def _restored(
        self, alpha: Any, estimate: Callable[[], float] | None, rule: Callable[..., float]
    ) -> Restoration:
        strength, noise = chosen_strength(self, alpha, estimate, rule)
        corners = [toggled(self.corner, flip) for flip in spin_flips(self.model.spins, self.ndim)]
        runs = [self._run(strength, corner, self._checkpoint(k, len(corners))) for k, corner in enumerate(corners)]
        runs = [replace(run, x=self._channels(run.x)) for run in runs]
        image = runs[0].x if len(runs) == 1 else sum(run.x for run in runs) / len(runs)
        return Restoration(channels_back(image, self.model.channel_axis), strength, noise, tuple(runs))

    def _along_opponents(self) -> ImageProblem:
        """The problem whose unknown are the colours along opponent axes."""
        y, A = along_opponents(self.y, self.A)
        return replace(self, y=y, A=A, start=as_opponents(self.start), opponents=True)

    def _channels(self, x: Array) -> Array:
        """The channels of an unknown; of colours rounding may have left the bounds."""
        if not self.opponents:  # the sweep may have seen it mirrored
            return np.ascontiguousarray(x) if is_numpy(x) else x
        colours = as_colours(x)
        return colours if self.model.bounds is None else namespace(x).clip(colours, *self.model.bounds)

    def _by_numpy(
        self, A: Any, alpha: Any, estimate: Callable[[], float] | None, rule: Callable[..., float]
    ) -> Any:
        """`restore` of the same numbers as NumPy arrays; what comes out is of the kind that went in."""
        back = partial(sent_like, x=self.start)
        measure = {name: lambda x, f=f: f(back(x)) for name, f in (self.options.measure or {}).items()}
        options = replace(self.options, measure=measure, return_result=True)
        y, start = as_numpy(self.y), as_numpy(self.start)
        found = replace(self, y=y, A=A, start=start, options=options).restore(alpha, estimate, rule)
        runs = tuple(replace(run, x=back(run.x)) for run in found.runs)
        found = replace(found, image=back(found.image), runs=runs)
        return finished(found, self.options.return_result, stacklevel=5)

    def sample(self) -> Sample | None:
        """Tiles by which the strength is chosen; None where the data are no pixels."""
        return sample_of(self.y, self.A, self.ndim)

    def like(
        self, y: Array, A: Any, start: Array, *, smooth: bool = False, **options: Any
    ) -> Callable[[float], Array]:
        """The function of a strength that restores other data, for a search; Ctrl-C ends the search too.

        The options replace those of the model and of the run. The smoothing is this problem's; with ``smooth`` it
        is the automatic one where this problem has none.
        """
        run = ImageRun(options.pop("tol", self.options.tol), self.options.max_iter)
        model = replace(self.model, **options)

        def solve(alpha: float) -> Array:
            smoothing = self._smoothing(alpha) or (self._automatic_smoothing(alpha) if smooth else 0.0)
            problem = replace(self, y=y, A=A, start=start, model=replace(model, smoothing=smoothing), options=run)
            found = problem._run(alpha, self.corner, None)
            if found.status is Status.STOPPED:
                raise KeyboardInterrupt
            return found.x

        return solve

    def _run(self, alpha: float, corner: Corner, checkpoint: Path | None) -> Result:
        """The problem solved with differences that begin at one corner."""
        model, options = self.model, self.options
        penalty = self.penalty(alpha, corner)
        solver = chosen_solver(model, self.A, penalty)
        start = as_counts(self.y, self.A, self.start) if model.loss == POISSON else self.start
        loss = LOSSES[model.loss](self.A, self.y)
        return minimize(
            loss,
            penalty if solver.smooths else replace(penalty, smoothing=0.0),
            penalty.project(start),
            solver,
            tol=options.tol,
            max_iter=options.max_iter,
            run=as_run(
                measure=self._measures(loss, penalty),
                stop=options.stop,
                checkpoint=checkpoint,
                checkpoint_seconds=options.checkpoint_seconds,
                resume=options.resume,
            ),
        )

    def penalty(self, alpha: float, corner: Corner = ()) -> TotalVariationL12:
        """The penalty of a strength."""
        model = self.model
        shape = (self.ndim, model.boundary, model.bounds, corner, model.isotropic, model.spacing)
        variation = ColourVariation if self.opponents else TotalVariationL12
        return variation(alpha, model.l2_weight, self._smoothing(alpha), *shape)

    def _smoothing(self, alpha: float) -> float:
        """The smoothing given, or the automatic one."""
        return self._automatic_smoothing(alpha) if self.model.smoothing is None else self.model.smoothing

    def _automatic_smoothing(self, alpha: float) -> float:
        """A hundredth of the range, or more where rounding asks for it."""
        return max(SMOOTHED * self.spread, math.sqrt(RESOLVED * alpha * self._rounding))

    @cached_property
    def _rounding(self) -> float:
        return float(namespace(self.start).finfo(self.start.dtype).eps) * max_abs(self.start)

    def _checkpoint(self, number: int, count: int) -> Path | None:
        """The file that follows a run: of several spins each has its own, by its number."""
        if self.options.checkpoint is None:
            return None
        path = Path(self.options.checkpoint)
        return path if count == 1 else numbered(path, number)

    def _measures(self, loss: Any, penalty: TotalVariationL12) -> dict[str, Callable[[Array], float]]:
        """The user's functions of the image, and both objectives where they are asked for."""
        axis, true = self.model.channel_axis, replace(penalty, smoothing=0.0)
        measures: dict[str, Callable[[Array], float]] = {
            name: lambda x, f=f: f(channels_back(self._channels(x), axis))  # type: ignore[misc]
            for name, f in (self.options.measure or {}).items()
        }
        if self.options.objectives:
            measures["smoothed"] = lambda x: loss.value(loss.point(x)) + penalty.value(x)
            measures["true"] = lambda x: loss.value(loss.point(x)) + true.value(x)
        return measures


def finished(restored: Restoration, return_result: bool, stacklevel: int) -> Any:
    """What the caller asked for: all of it, or the image, with a warning where a run was cut short."""
    if return_result:
        return restored
    if any(run.status is Status.MAX_ITER for run in restored.runs):
        warnings.warn(f"{Status.MAX_ITER.value} Raise max_iter or tol.", RuntimeWarning, stacklevel=stacklevel)
    return restored.image


def numbered(path: Path, number: int) -> Path:
    """The file of one of several: ``name-0.npz`` for ``name.npz``."""
    return path.with_name(f"{path.stem}-{number}{path.suffix}")


def chosen_solver(model: ImageModel, A: Any, penalty: Any) -> Any:
    """The solver itself; for "accelerated" the one that suits the problem."""
    if model.solver != "accelerated":
        return model.solver
    if penalty.smoothing == 0 or model.loss != SQUARED:
        return GrowingADMM()
    exact = has_exact_solver(A, penalty) and not isinstance(A, Identity)
    if exact and penalty.bounds is None:
        return AlternatingMinimization(inner="exact", accelerated=True)
    return SmoothedGradient()
