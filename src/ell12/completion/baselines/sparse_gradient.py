"""The gradient of a completion loss as the sparse matrix that the rivals work on."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ell12.protocols import Point


def sparse_gradient(loss: Any, prediction: np.ndarray) -> Any:
    """The gradient at any x with these observed entries; an error where it is not sparse."""
    gradient = loss.gradient(Point(None, prediction))
    if not scipy.sparse.issparse(gradient):
        kind = type(gradient).__name__
        raise TypeError(f"this solver works on NumPy arrays and sparse gradients, the loss has a {kind}")
    return gradient
