"""The l1-2 family over magnitudes: entries, groups, rows."""

from __future__ import annotations

import copy
import math
from typing import Any, ClassVar

import numpy as np

from ell12.backend import as_array_of, as_floating, as_numpy, indices_like, is_complex, max_abs, namespace, norm
from ell12.backend.number_types import l1_and_l2
from ell12.checks import as_array, as_step, check_flags, check_numbers, naming
from ell12.penalties.penalty_base import PenaltyBase
from ell12.protocols import Array
from ell12.prox.closed_form import prox_vector


class MagnitudesL12(PenaltyBase):
    """``alpha (sum_i w_i |m_i| - l2_weight ||m||_2 + ridge/2 ||m||_2^2)`` of the magnitudes m of an array.

    A modulus of weight 0 is not penalised at all: it enters no norm. One of infinite weight is fixed at zero.
    """

    l2_weight: float
    weights: Any
    positive: Any = False
    ridge: float = 0.0
    signed: ClassVar[bool] = True  # whether magnitudes carry the signs of single entries

    _unpenalised: Any = None  # which magnitudes have weight 0
    _kernel_weights: Any = None  # infinite for unpenalised magnitudes, which the kernel then fixes at zero
    _infinite: bool = False  # whether some weight is infinite

    def magnitudes(self, x: Array) -> Array:
        """The numbers whose magnitudes are penalised: here the entries themselves."""
        return x

    def rebuild(self, x: Array, magnitudes: Array, new: Array) -> Array:  # noqa: ARG002
        """The array with the ``new`` magnitudes and the directions of x, whose own magnitudes are given too."""
        return new

    def directions(self, x: Array, magnitudes: Array) -> Array:  # noqa: ARG002
        """The directions of x, whose magnitudes are given: magnitudes 1, or 0 where those of x are."""
        return signs(x)

    def spread(self, values: Array) -> Array:
        """One number for each modulus, shaped to stand next to the entries of an array."""
        return values

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise where the penalty, with its weights, does not take an array of this shape."""
        raise NotImplementedError

    def value(self, x: Array) -> float:
        """The penalty at x; infinite where a negative entry is not allowed."""
        x = self._checked(x)
        if self.positive is not False and bool(namespace(x).any(self._must_be_positive(x) & (x < 0))):
            return math.inf
        strength = self.strength
        return strength * self._difference(x) if strength > 0 else 0.0

    def prox(self, x: Array, step: float) -> Array:
        """`ell12.prox.prox_l12` of the magnitudes with threshold ``t = alpha step``; those of weight 0 pass.

        With a ridge both the magnitudes and the threshold are divided by ``1 + t ridge`` first.
        """
        x, step = self._checked(x), as_step(step)
        if self.strength * step == 0:
            return self._allowed(x)
        magnitudes = self._magnitudes_to_shrink(x)
        shrunk = self.rebuild(x, magnitudes, self._prox_magnitudes(magnitudes, step))
        if self._unpenalised is None:
            return shrunk
        return namespace(x).where(self._unpenalised_like(x), self._allowed(x), shrunk)

    @property
    def convex(self) -> Any:
        """The part without the subtracted norm."""
        return self._with(l2_weight=0.0)

    def subtracted_gradient(self, x: Array) -> Array:
        """``alpha l2_weight x / ||x||``; zero at zero, and where the weight is 0."""
        return self._tangent(self._checked(x))

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest violation of the first-order condition where the loss has this gradient.

        The largest modulus of `least_slope`. At zero, where the norm has no gradient, that of one proximal step.
        """
        found = max_abs(self.magnitudes(self.least_slope(x, gradient)))
        if self.l2_weight > 0 and max_abs(self.magnitudes(self._penalised(x))) == 0:
            step = self._with(ridge=0.0).prox(-gradient, 1.0)  # a ridge would only make it shorter
            found = max(found, max_abs(self.magnitudes(self._penalised(step))))
        return found

    def least_slope(self, x: Array, gradient: Array) -> Array:
        """The subgradient of the objective whose magnitudes are smallest, where the loss has this gradient.

        Where x is not zero it is ``gradient - alpha l2_weight x/||x|| + alpha ridge x + alpha w x/|x|``. Where x
        is zero it is what the modulus of ``gradient - alpha l2_weight x/||x||`` has above ``alpha w``.
        """
        x, gradient = self._checked(x), as_array(gradient, "gradient")
        xp, sizes = namespace(x), self.magnitudes(x)
        support = self.spread(sizes != 0)
        slope, threshold = gradient - self._tangent(x), self._threshold(x)
        if self.ridge > 0:
            slope = slope + self.strength * self.ridge * self._penalised(x)
        weight = threshold if self.weights is None else self.spread(threshold)
        if self._infinite:  # an infinite weight counts on the support only
            weight = xp.where(support, weight, 0)
        on = slope + weight * self.directions(x, sizes)
        if self.positive is not False and not self.signed:
            # What pushes a part of a norm against its bound is no violation.
            on, slope = xp.where((x == 0) & (on > 0), 0, on), xp.where(slope > 0, 0, slope)
        steep = self.magnitudes(slope)
        size = xp.abs(steep)
        if self.positive is not False and self.signed:
            size = -steep if self.positive is True else xp.where(self._must_be_positive(x), -steep, size)
        off = size - threshold
        return xp.where(support, on, self.spread(xp.where(off > 0, off, 0)) * self.directions(slope, steep))

    def _with(self, **fields: float) -> Any:
        """The same penalty with other numbers, which are sure to be right."""
        new = copy.copy(self)
        vars(new).update(fields)
        return new

    def _set_masks(self) -> None:
        """Check which entries must not be negative, and the weights, once, and find the unpenalised magnitudes."""
        with naming("positive"):
            mask: Any = None if isinstance(self.positive, bool) else as_numpy(self.positive)
        if mask is None or mask.shape == () or mask.dtype != bool:
            check_flags(positive=self.positive)
            mask = bool(self.positive)
        object.__setattr__(self, "positive", mask)
        if self.weights is None:
            return
        weights = as_floating(self.weights, "weights")
        check_numbers(infinite=True, weights=weights)
        object.__setattr__(self, "weights", weights)
        xp = namespace(weights)
        zero = xp.asarray(weights == 0)  # of a single weight NumPy makes no array
        some = bool(xp.any(zero))
        object.__setattr__(self, "_unpenalised", zero if some else None)
        object.__setattr__(self, "_kernel_weights", xp.where(zero, math.inf, weights) if some else weights)
        object.__setattr__(self, "_infinite", bool(xp.any(xp.isinf(weights))))

    def _checked(self, x: Any) -> Array:
        x = as_array(x, "x")
        self.check_shape(tuple(x.shape))
        if self.positive is not False and is_complex(x):
            raise TypeError("positive needs real x, got complex numbers")
        return x

    def _difference(self, x: Array) -> Any:
        """The penalty at a strength of 1."""
        magnitudes = self.magnitudes(self._penalised(x))
        if self.weights is None:
            total, length = l1_and_l2(magnitudes)
        else:  # what an infinite weight fixes at zero costs nothing
            xp = namespace(x)
            weights = as_array_of(self.weights, x)
            weights = xp.where(magnitudes != 0, weights, 0) if self._infinite else weights
            total, length = float(xp.sum(weights * xp.abs(magnitudes))), norm(magnitudes)
        return total - self.l2_weight * length + 0.5 * self.ridge * length * length

    def _magnitudes_to_shrink(self, x: Array) -> Array:
        return self.magnitudes(x)

    def _prox_magnitudes(self, magnitudes: Array, step: float) -> Array:
        threshold = self.strength * step
        if self.ridge > 0:
            grown = 1 + threshold * self.ridge
            magnitudes, threshold = magnitudes / grown, threshold / grown
        given = threshold, self.l2_weight, self._kernel_weights
        if isinstance(self.positive, bool):
            return prox_vector(magnitudes, *given, self.positive or not self.signed)
        # Those entries that must not be negative, and the sizes of the others, are one vector.
        xp, signed = namespace(magnitudes), self._must_be_positive(magnitudes)
        shrunk = prox_vector(xp.where(signed, magnitudes, xp.abs(magnitudes)), *given, positive=True)
        return xp.where(signed | (magnitudes >= 0), shrunk, -shrunk)

    def _tangent(self, x: Array) -> Array:
        inside = self._penalised(x)
        return self.l2_weight * self.strength * inside / (norm(inside) or 1.0)

    def _threshold(self, x: Array) -> Any:
        """``alpha w``, one for each modulus."""
        if self.weights is None:
            return self.strength
        weights = as_array_of(self.weights, x)
        return self.strength * weights if self.strength > 0 else namespace(x).zeros_like(weights)

    def _unpenalised_like(self, x: Array) -> Array:
        """Which entries of x are not penalised."""
        mask = self._unpenalised
        return self.spread(indices_like(mask, x) if isinstance(mask, np.ndarray) else mask)

    def _penalised(self, x: Array) -> Array:
        """X with zeros where the weight is 0."""
        return x if self._unpenalised is None else namespace(x).where(self._unpenalised_like(x), 0, x)

    def _allowed(self, x: Array) -> Array:
        return namespace(x).where(self._must_be_positive(x) & (x < 0), 0, x) if self.positive is not False else x

    def _must_be_positive(self, x: Array) -> Any:
        """Which entries of x must not be negative; True where all."""
        return self.positive if isinstance(self.positive, bool) else indices_like(self.positive, x)


def signs(x: Array) -> Array:
    """The sign of each entry, the phase of a complex one; 0 at zero."""
    xp = namespace(x)
    if not is_complex(x):
        return xp.sign(x)
    size = xp.abs(x)
    return x / xp.where(size > 0, size, 1)
