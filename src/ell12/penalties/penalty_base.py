"""What all penalties share: a strength that may be left out, ``penalty(x)``, and equality with ``"l1"``."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, ClassVar

import numpy as np

from ell12.backend import is_array
from ell12.checks import set_numbers
from ell12.protocols import Array, with_alpha


class PenaltyBase:
    """Base class of penalties, which are frozen dataclasses with a field ``alpha``.

    A subclass adds ``value(x)`` and ``prox(x, step)``, as `ell12.protocols.Penalty` says.

    Attributes
    ----------
    alpha : float or None
        The strength. None leaves it to the function or estimator that takes the penalty.
    joint : bool
        Whether the penalty takes a matrix of coefficients, a row for each feature.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from ell12.penalties import PenaltyBase
    >>> @dataclass(frozen=True, eq=False)
    ... class Hard(PenaltyBase):
    ...     alpha: float | None = None
    ...
    ...     def value(self, x):
    ...         return self.alpha * int(np.count_nonzero(x))
    ...
    ...     def prox(self, x, step):
    ...         return np.where(x**2 > 2 * self.alpha * step, x, 0)
    >>> Hard(2.0)(np.array([3.0, 0.0]))
    2.0
    """

    alpha: float | None = None
    joint: ClassVar[bool] = False

    def __call__(self, x: Any) -> float:
        """The value at x."""
        return self.value(x)  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        # scikit-learn's SelectFromModel asks `penalty == "l1"` to learn that zeros are exact.
        return other == "l1" if isinstance(other, str) else self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        """The fields that differ from their defaults; arrays by their shapes."""
        words = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.init and (field.default is MISSING or is_array(value) or value != field.default):
                words.append(f"{field.name}=array{tuple(value.shape)}" if is_array(value) else _word(field, value))
        return f"{type(self).__name__}({', '.join(words)})"

    @property
    def strength(self) -> float:
        """``alpha``; a ValueError where it was left out."""
        if self.alpha is None:
            raise ValueError(f"{self!r} has no strength: give {type(self).__name__}(alpha=...)")
        return self.alpha

    def units(self, n: int) -> Array:
        """The label of what each of n entries is selected with: here each entry is on its own."""
        return np.arange(n)

    def _set_numbers(self, *names: str, positive: str = "") -> None:
        """Check alpha, if it is given, and other numbers, and make them floats."""
        alpha = () if self.alpha is None else ("alpha",)
        set_numbers(self, *alpha, *names, positive=positive)


def _word(field: Any, value: Any) -> str:
    return repr(value) if field.name == "groups" else f"{field.name}={value!r}"


def with_strength(penalty: Any, alpha: float | None, default: float | None = None) -> Any:
    """The penalty with the strength that a caller said, either in it or beside it.

    Parameters
    ----------
    penalty : Penalty
        Its own alpha may be None.
    alpha : float or None
        The strength that was given next to the penalty.
    default : float, optional
        The strength if neither is given; None leaves it open.

    Examples
    --------
    >>> from ell12 import MCP
    >>> from ell12.penalties import with_strength
    >>> with_strength(MCP(gamma=2.0), 0.1)
    MCP(alpha=0.1, gamma=2.0)
    >>> with_strength(MCP(alpha=0.2), 0.1)
    Traceback (most recent call last):
        ...
    ValueError: alpha is given twice: 0.1 and MCP(alpha=0.2)
    """
    own = penalty.alpha
    if alpha is not None and own is not None:
        raise ValueError(f"alpha is given twice: {alpha} and {penalty!r}")
    found = own if alpha is None else alpha
    found = default if found is None else found
    return penalty if found is None or found is own else with_alpha(penalty, found)
