"""What the solvers of images ask of a penalty, and what a function of images asks of a solver."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from ell12.operators.images import FiniteDifference
from ell12.protocols import Array, DeclaringSolver, Penalty

Bounds = tuple[float | None, float | None]


class VariationPenalty(Penalty, Protocol):
    """A penalty on the differences of neighbouring pixels: `ell12.TotalVariationL12` explains what it holds."""

    l2_weight: float
    smoothing: float
    ndim: int
    boundary: str
    bounds: Bounds | None
    flip: tuple[int, ...]

    @property
    def mu(self) -> float:
        """The weight of the quadratic, ``alpha / smoothing``."""
        ...

    @property
    def lipschitz(self) -> float:
        """A bound on the Lipschitz constant of the smoothed penalty's gradient."""
        ...

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """The smoothed penalty and its gradient."""
        ...

    def project(self, x: Array) -> Array:
        """The nearest image within the bounds."""
        ...

    @property
    def unit(self) -> float:
        """What the root mean square of a gradient is multiplied by in `size`."""
        ...

    def size(self, gradient: Array) -> float:
        """How large a gradient is; `ell12.stationarity` is this over alpha."""
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
