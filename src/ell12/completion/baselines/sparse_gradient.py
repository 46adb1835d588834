"""The gradient of a completion loss as the sparse matrix that the rivals work on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.backend import is_numpy
from ell12.completion.loss import CompletionLoss
from ell12.protocols import Point


def sparse_gradient(loss: CompletionLoss, prediction: np.ndarray) -> Any:
    """The gradient, in CSR, at any x with these observed entries."""
    return loss.gradient(Point(None, prediction))


def check_sparse(loss: Any) -> None:
    """Raise unless the loss is one of a matrix's known entries, in NumPy arrays."""
    if not isinstance(loss, CompletionLoss):
        raise TypeError(f"this solver needs a CompletionLoss, got {type(loss).__name__}")
    if not is_numpy(loss.observed.values):
        kind = type(loss.observed.values).__name__
        raise TypeError(f"this solver works on NumPy arrays, but the observed values are of type {kind}")
