"""What the rivals share: what they need, the sparse gradient, published stopping rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ell12.backend import is_numpy
from ell12.completion.squared_error import EntryLoss
from ell12.protocols import CertifyingPenalty, Needs, Point


class Rival:
    """A solver for NumPy arrays that bounds a rank or a norm by itself, and takes no penalty."""

    needs: ClassVar[Needs] = Needs(EntryLoss, CertifyingPenalty, "factors")

    def check(self, loss: Any, penalty: Any) -> None:
        """Raise unless the problem is one for this rival."""
        if not is_numpy(loss.observed.values):
            kind = type(loss.observed.values).__name__
            raise TypeError(f"this solver works on NumPy arrays, but the observed values are of type {kind}")
        self.check_penalty(penalty)

    def check_penalty(self, penalty: Any) -> None:
        """Raise where a penalty is given that would not be looked at."""
        if penalty.alpha:
            name = type(self).__name__
            raise TypeError(
                f"{name} takes no penalty but has parameters of its own: give NoPenalty(), not {penalty!r}"
            )


def sparse_gradient(loss: EntryLoss, prediction: np.ndarray) -> Any:
    """The gradient, in CSR, at any x with these observed entries."""
    return loss.gradient(Point(None, prediction))


def objective_settled(
    *, relative: float = 0.0, absolute: float = 0.0, reduced_to: float = 0.0, after: int = 1
) -> Callable[[dict[str, list[float]]], bool]:
    """Stop when ``|F_k - F_{k-1}| <= absolute + relative |F_{k-1}|`` or ``F_k <= reduced_to F_0``.

    Parameters
    ----------
    relative, absolute : float, default 0.0
        How small a change of the objective is small. A change of exactly zero always is.
    reduced_to : float, default 0.0
        What share of the first objective is left where there is nothing more to gain.
    after : int, default 1
        The first step at which to look at the change.

    Returns
    -------
    function
        For the ``stop`` of `ell12.minimize`.

    Examples
    --------
    >>> from ell12_paper.rivals import objective_settled
    >>> stop = objective_settled(relative=0.1)
    >>> stop({"objective": [10.0, 5.0]}), stop({"objective": [10.0, 5.0, 4.9]})
    (False, True)
    """

    def stop(history: dict[str, list[float]]) -> bool:
        column = history["objective"]
        if column[-1] <= reduced_to * column[0]:
            return True
        if len(column) <= max(after, 1):
            return False
        return abs(column[-1] - column[-2]) <= absolute + relative * abs(column[-2])

    return stop
