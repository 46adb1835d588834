"""Restoration problems handed to `minimize`."""

from __future__ import annotations

from typing import Any

from ell12.image_operators import Identity
from ell12.losses import SquaredLoss
from ell12.minimization import Result, minimize
from ell12.protocols import Array
from ell12.restoration.smoothed_gradient import SmoothedGradient
from ell12.restoration.total_variation import TotalVariationL12


def denoising_result(image: Array, penalty: TotalVariationL12, solver: Any = None, **limits: Any) -> Result:
    """The minimiser of ``1/2 ||x - image||^2 + penalty(x)``, started at the image."""
    loss = SquaredLoss(Identity(tuple(image.shape)), image)
    return minimize(loss, penalty, penalty.project(image), solver or SmoothedGradient(), **limits)
