"""What the rivals share: what they need, and the sparse gradient."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ell12.backend import is_numpy
from ell12.completion.squared_error import EntryLoss
from ell12.protocols import Needs, Penalty, Point


class Rival:
    """A solver for NumPy arrays that bounds a rank or a norm by itself, and takes no penalty."""

    needs: ClassVar[Needs] = Needs(EntryLoss, Penalty, "factors")

    def check(self, loss: Any, penalty: Any) -> None:
        """Raise unless the problem is one for this rival."""
        if not is_numpy(loss.observed.values):
            kind = type(loss.observed.values).__name__
            raise TypeError(f"this solver works on NumPy arrays, but the observed values are of type {kind}")
        self.check_penalty(penalty)

    def check_penalty(self, penalty: Any) -> None:
        """Raise where a penalty is given, which would not be used."""
        if penalty.alpha:
            name = type(self).__name__
            raise TypeError(
                f"{name} takes no penalty but has parameters of its own: give NoPenalty(), not {penalty!r}"
            )


def sparse_gradient(loss: EntryLoss, prediction: np.ndarray) -> Any:
    """The gradient, in CSR, at any x with these observed entries."""
    return loss.gradient(Point(None, prediction))
