"""A restoration problem: the data, what it is solved with, and what came out."""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ell12.backend import is_number
from ell12.losses import SquaredLoss
from ell12.minimization import Result, Status, minimize
from ell12.operators.images import Identity
from ell12.protocols import Array
from ell12.restoration.alternating import AlternatingMinimization
from ell12.restoration.images import channels_back
from ell12.restoration.normal_equations import has_exact_solver
from ell12.restoration.smoothed_gradient import SmoothedGradient
from ell12.restoration.splitting import GrowingADMM
from ell12.restoration.strength import strength_by_held_out_data
from ell12.restoration.total_variation import Bounds, TotalVariationL12

MAX_ITER = 5000
# A denoised image is as near to the exact one as its gradient is small; elsewhere small gradients say less.
TOL_DENOISING, TOL = 0.05, 0.005
FIRST_STRENGTH = 0.02  # where a search by held-out data begins if the noise is not known


@dataclass(frozen=True)
class Restoration:
    """An image restored, and how.

    Attributes
    ----------
    image : array
        The restored image.
    alpha : float
        The strength used, chosen or given.
    noise : float or None
        The noise level that alpha was chosen from; None where it was chosen otherwise.
    runs : tuple of Result
        One per spin; in their x the channels, if any, are along the first axis.
    """

    image: Array
    alpha: float
    noise: float | None
    runs: tuple[Result, ...]

    @property
    def converged(self) -> bool:
        """Whether every run converged."""
        return all(run.converged for run in self.runs)


@dataclass(frozen=True)
class Options:
    """The options that all restoration functions share; `ell12.denoise_tv` explains them."""

    l2_weight: float = 0.5
    smoothing: float = 0.01
    noise: float | None = None
    channel_axis: int | None = None
    boundary: str = "neumann"
    spins: int = 1
    bounds: Bounds | None = None
    solver: Any = "accelerated"
    tol: float = TOL
    max_iter: int = MAX_ITER
    measure: Mapping[str, Callable[[Array], float]] | None = None
    objectives: bool = False
    stop: Callable[[dict[str, list[float]]], bool] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_seconds: float = 60.0
    resume: bool = False
    return_result: bool = False

    def __post_init__(self) -> None:
        if self.noise is not None and not (is_number(self.noise) and 0 <= self.noise < math.inf):
            raise ValueError(f"noise must be a number >= 0 or None, got {self.noise!r}")
        if self.solver != "accelerated" and not (
            hasattr(self.solver, "iterates") and hasattr(self.solver, "smooths")
        ):
            raise ValueError(
                "solver must be 'accelerated' or one for total variation, such as GrowingADMM(), "
                f"got {self.solver!r}"
            )


@dataclass(frozen=True)
class Problem:
    """``1/2 ||A x - y||^2 + penalty(x)`` for an image x whose last ``ndim`` axes make one channel."""

    y: Array
    A: Any
    start: Array
    ndim: int
    options: Options

    def restore(self, alpha: float, noise: float | None) -> Any:
        """The image, or the `Restoration` where the options ask for it."""
        flips = spin_flips(self.options.spins, self.ndim)
        runs = [self.run(alpha, flip, self._checkpoint(k, len(flips))) for k, flip in enumerate(flips)]
        image = runs[0].x if len(runs) == 1 else sum(run.x for run in runs) / len(runs)
        restoration = Restoration(channels_back(image, self.options.channel_axis), alpha, noise, tuple(runs))
        if self.options.return_result:
            return restoration
        if any(run.status is Status.MAX_ITER for run in runs):
            warnings.warn(f"{Status.MAX_ITER.value} Raise max_iter or tol.", RuntimeWarning, stacklevel=3)
        return restoration.image

    def run(self, alpha: float, flip: tuple[int, ...] = (), checkpoint: Path | None = None) -> Result:
        """The problem solved with differences that begin at one corner."""
        options = self.options
        penalty = TotalVariationL12(
            alpha, options.l2_weight, options.smoothing, self.ndim, options.boundary, options.bounds, flip
        )
        solver = chosen_solver(options.solver, self.A, penalty)
        loss = SquaredLoss(self.A, self.y)
        return minimize(
            loss,
            penalty if solver.smooths else replace(penalty, smoothing=0.0),
            penalty.project(self.start),
            solver,
            tol=options.tol,
            max_iter=options.max_iter,
            measure=self._measures(loss, penalty),
            stop=options.stop,
            checkpoint=checkpoint,
            checkpoint_seconds=options.checkpoint_seconds,
            resume=options.resume,
        )

    def _checkpoint(self, number: int, count: int) -> Path | None:
        """The file that follows a run: of several spins each has its own, by its number."""
        if self.options.checkpoint is None:
            return None
        path = Path(self.options.checkpoint)
        return path if count == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")

    def strength_by_held_out_data(self, first: float | None) -> float:
        """See `ell12.restoration.strength`."""
        quiet = replace(self.options, measure=None, objectives=False, stop=None, checkpoint=None, resume=False)

        def solve(y: Array, A: Any, alpha: float, x: Array | None) -> Array:
            return Problem(y, A, self.start if x is None else x, self.ndim, quiet).run(alpha).x

        return strength_by_held_out_data(self.y, self.A, first or FIRST_STRENGTH, solve)

    def _measures(self, loss: SquaredLoss, penalty: TotalVariationL12) -> dict[str, Callable[[Array], float]]:
        measures: dict[str, Callable[[Array], float]] = {}
        for name, f in (self.options.measure or {}).items():
            measures[name] = partial(_of_image, f, self.options.channel_axis)
        if self.options.objectives:
            measures["smoothed"] = partial(_objective, loss, penalty)
            measures["true"] = partial(_objective, loss, replace(penalty, smoothing=0.0))
        return measures


def _of_image(f: Callable[[Array], float], channel_axis: int | None, x: Array) -> float:
    return f(channels_back(x, channel_axis))


def _objective(loss: SquaredLoss, penalty: TotalVariationL12, x: Array) -> float:
    return loss.value(loss.point(x)) + penalty.value(x)


def denoising_result(image: Array, penalty: TotalVariationL12) -> Result:
    """The minimiser of ``1/2 ||x - image||^2 + penalty(x)``, started at the image."""
    A = Identity(tuple(image.shape))
    solver = chosen_solver("accelerated", A, penalty)
    return minimize(SquaredLoss(A, image), penalty, penalty.project(image), solver, tol=1e-3)


def chosen_solver(solver: Any, A: Any, penalty: TotalVariationL12) -> Any:
    """The solver itself; for "accelerated" the one that suits the problem."""
    if solver != "accelerated":
        return solver
    if penalty.smoothing == 0:
        return GrowingADMM()
    exact = has_exact_solver(A, penalty) and not isinstance(A, Identity)
    if exact and penalty.bounds is None:
        return AlternatingMinimization(inner="exact", accelerated=True)
    return SmoothedGradient()


def spin_flips(spins: int, ndim: int) -> list[tuple[int, ...]]:
    """The axes along which the first, second, ... spin is flipped: none, all, then the other choices."""
    axes = range(-ndim, 0)
    every = [flip for count in range(ndim + 1) for flip in itertools.combinations(axes, count)]
    if not isinstance(spins, int) or not 1 <= spins <= len(every):
        raise ValueError(f"spins must be a whole number from 1 to {len(every)} for {ndim} axes, got {spins!r}")
    return [every[0], every[-1], *every[1:-1]][:spins]
