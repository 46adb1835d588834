"""What the solvers of images ask of a loss and a penalty, and what a function of images asks of a solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from ell12.operators.image_operators import FiniteDifference
from ell12.protocols import Array, DeclaringSolver, Loss, Penalty, Point

Bounds = tuple[float | None, float | None]


class ImageLoss(Protocol):
    """A loss of the prediction ``A x`` that tells its operator and its data, such as `AbsoluteLoss`."""

    A: Any
    b: Array
    scale: float
    sample_weight: Array | None
    is_quadratic: bool

    def point(self, x: Array) -> Point:
        """``x`` with its prediction."""
        ...

    def value(self, point: Point) -> float:
        """The loss."""
        ...

    def gradient(self, point: Point) -> Array:
        """The gradient, or a subgradient."""
        ...


class SmoothImageLoss(ImageLoss, Loss, Protocol):
    """The same of a smooth loss, such as `ell12.SquaredLoss`."""


class VariationPenalty(Penalty, Protocol):
    """A penalty on the differences of neighbouring pixels: `ell12.TotalVariationL12` explains what it holds."""

    l2_weight: float
    smoothing: float
    ndim: int
    boundary: str
    bounds: Bounds | None
    isotropic: bool
    relative_spacing: tuple[float, ...] | None
    mu: float
    lipschitz: float
    unit: float

    def evaluator(self, x: Array) -> Callable[[Array], tuple[float, Array]]:
        """The function of images like x that gives the smoothed penalty and its gradient."""
        ...

    def shrink(self, differences: Array, rho: float, l2_weight: float) -> Array:
        """The proximal step of the penalty over rho on differences, with that weight of the subtracted norm."""
        ...

    def relief(self, differences: Array) -> Array:
        """The gradient of the subtracted norm."""
        ...

    def project(self, x: Array) -> Array:
        """The nearest image within the bounds."""
        ...

    def size(self, gradient: Array) -> float:
        """How large a gradient is; `ell12.stationarity` is this over alpha."""
        ...

    def spread(self, x: Array) -> float:
        """The range of the values of x."""
        ...

    def differences(self, x: Array) -> FiniteDifference:
        """The operator D for images like x."""
        ...

    def sweep(self, x: Array, threads: int | None = None) -> Any:
        """The compiled sweep for images like x; None where there is none."""
        ...


class ImageSolver(DeclaringSolver, Protocol):
    """A solver of image restoration, which says whether it minimises the smoothed objective or the true one."""

    smooths: ClassVar[bool]


def is_plain_square(loss: ImageLoss) -> bool:
    """Whether the loss is ``1/2 ||A x - b||^2``, with neither scale nor weights."""
    return loss.is_quadratic and loss.scale == 1 and loss.sample_weight is None


def check_smoothing(penalty: VariationPenalty, smooths: bool, bounded: bool = True) -> None:
    """Raise unless the penalty is smoothed, or not, as a solver needs it, and the solver takes its bounds."""
    if bool(penalty.smoothing) != smooths:
        wanted = "> 0" if smooths else "0"
        raise ValueError(f"this solver needs a TotalVariationL12 with smoothing {wanted}, got {penalty!r}")
    if penalty.bounds is not None and not bounded:
        raise ValueError("this solver takes no bounds; use SmoothedGradient() or GrowingADMM()")
