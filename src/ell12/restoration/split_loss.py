"""The loss in a splitting method: squared, in the normal equations, or split off by its proximal map."""

from __future__ import annotations

import math
from typing import Any

from ell12.backend import norm
from ell12.operators import Composition, adjoint_product, product
from ell12.operators.image_operators import Identity, Sampling
from ell12.protocols import Array, Point, SplitLoss, offers
from ell12.restoration.variation import is_plain_square


def fit_of(loss: Any, x: Array) -> Any:
    """The loss in a splitting method that begins at x."""
    return SquaredFit(loss) if is_plain_square(loss) else SplitPrediction(loss, x)


class SquaredFit:
    """The squared loss in the normal equations of a step: ``A'A`` and ``A'y``."""

    gradient: Any = None  # the loss has its own
    left: Any = 0.0
    distance: float = 0.0

    def __init__(self, loss: Any) -> None:
        self.A = loss.A
        self.right = -loss.gradient(Point(loss.start(), 0 * loss.b))  # A'y

    def weight(self, rho: float, alpha: float) -> float:  # noqa: ARG002
        """The weight of A'A."""
        return 1.0

    def unit(self, alpha: float) -> float:
        """What ADMM's rho is for a threshold of 1."""
        return alpha or 1.0

    def data(self, weight: float) -> Array:  # noqa: ARG002
        """What the loss adds to the right-hand side."""
        return self.right

    def advance(self, x: Array, weight: float) -> None:
        """Nothing else to do."""

    def scale_multipliers(self, factor: float) -> None:
        """There are none."""


class SplitPrediction:
    """Any other loss ``l(S v)`` subject to ``v = A x``, by the proximal map of l; S keeps some of v, or all."""

    def __init__(self, loss: Any, x: Array) -> None:
        if not offers(loss, SplitLoss):
            raise ValueError(
                "this solver needs a SquaredLoss of scale 1 without sample_weight, or a loss with "
                f"prediction_prox, got {loss!r}"
            )
        self.loss = loss
        self.S, self.A = _parts(loss.A)
        self.v = product(self.A, x)
        self.p = 0 * self.v  # the scaled multiplier of v = A x
        self.gradient = self.left = 0 * x  # the subgradient at v, and what the last step changed of it
        self.distance = 0.0  # that of A x from v, per pixel

    def weight(self, rho: float, alpha: float) -> float:
        """The weight of ``||A x - v||^2 / 2``."""
        return self.loss.scale * rho / self.unit(alpha)

    def unit(self, alpha: float) -> float:
        """What ADMM's rho is for a threshold of 1.

        Where S leaves pixels out, only the differences move these. With a small alpha these must weigh as much as
        v, or such pixels would stay where they began.
        """
        return alpha or 1.0 if self.S is None else max(alpha, 1.0)

    def data(self, weight: float) -> Array:
        """What the constraint adds to the right-hand side."""
        return weight * adjoint_product(self.A, self.v - self.p)

    def advance(self, x: Array, weight: float) -> None:
        """The step of v and of its multiplier."""
        prediction, old = product(self.A, x), self.v
        near = prediction + self.p
        if self.S is None:
            self.v = self.loss.prediction_prox(near, weight)
        else:
            kept = product(self.S, near)
            self.v = near + adjoint_product(self.S, self.loss.prediction_prox(kept, weight) - kept)
        self.p = near - self.v
        self.distance = norm(prediction - self.v) / math.sqrt(math.prod(self.v.shape))
        self.gradient = weight * adjoint_product(self.A, self.p)
        self.left = weight * adjoint_product(self.A, self.v - old)

    def scale_multipliers(self, factor: float) -> None:
        """Keep the multiplier what it is when the weight is divided by the factor."""
        self.p = factor * self.p


def _parts(A: Any) -> tuple[Any, Any]:
    """A as ``S B``, where S keeps some of the results of B; None where it keeps all."""
    if type(A) is Sampling:
        return A, Identity(A.input_shape)
    if isinstance(A, Composition) and type(A.A) is Sampling:
        return A.A, A.B
    return None, A
