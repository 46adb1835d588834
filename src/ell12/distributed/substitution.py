"""Affine changes of the unknown, made where x is, so that blocks need not be made again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ell12.backend import scatter
from ell12.protocols import Array


class Substitution(Protocol):
    """``x -> linear(x) + offset``, from the solver's unknown to that of the blocks."""

    def linear(self, x: Array) -> Array:
        """The linear part."""
        ...

    def offset(self) -> Any:
        """What is added."""
        ...

    def adjoint(self, gradient: Array) -> Array:
        """The adjoint of the linear part: it takes gradients back."""
        ...


@dataclass(frozen=True)
class NoSubstitution:
    """``x -> x``."""

    def linear(self, x: Array) -> Array:
        """The vector itself."""
        return x

    def offset(self) -> Any:
        """Nothing."""
        return 0

    def adjoint(self, gradient: Array) -> Array:
        """The gradient itself."""
        return gradient


@dataclass(frozen=True)
class Centering:
    """Columns less their means: ``(c, t) -> (c, t - means'c)``, the last entry being the intercept.

    Where ``level`` is given, t is that number and x is c alone: a squared loss is least at the mean of its target.
    `ell12.operators.centering.CenteredColumns` does the same to a matrix at hand. Here the rows are on workers,
    who made them before the means were known: x is changed instead.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.distributed.substitution import Centering
    >>> centering = Centering(np.array([1.0, 2.0]), level=5.0)
    >>> centering.linear(np.array([1.0, 1.0])) + centering.offset()
    array([1., 1., 2.])
    """

    means: Array
    level: float | None = None

    def linear(self, x: Array) -> Array:
        """The coefficients, and the intercept less what the means make of them."""
        coef, last = (x, 0.0) if self.level is not None else (x[:-1], x[-1])
        return np.append(coef, np.asarray(last - self.means @ coef, dtype=x.dtype))

    def offset(self) -> Any:
        """The level, for the intercept."""
        return 0 if self.level is None else np.append(np.zeros_like(self.means), self.means.dtype.type(self.level))

    def adjoint(self, gradient: Array) -> Array:
        """The gradient of centred columns."""
        coef = gradient[:-1] - gradient[-1] * self.means
        return coef if self.level is not None else np.append(coef, gradient[-1])


@dataclass(frozen=True)
class Selection:
    """Some entries of x, the others being zero; then another substitution."""

    columns: Array
    size: int
    after: Substitution

    def linear(self, x: Array) -> Array:
        """The entries at their places."""
        return self.after.linear(scatter(x, self.columns, self.size))

    def offset(self) -> Any:
        """That of the other."""
        return self.after.offset()

    def adjoint(self, gradient: Array) -> Array:
        """These entries of the gradient."""
        return self.after.adjoint(gradient)[self.columns]
