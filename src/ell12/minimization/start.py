"""What a run may begin at, and what its stationarity may be asked for: arrays that fit the loss."""

from __future__ import annotations

from typing import Any

from ell12.backend import all_finite, as_floating, beside, is_complex, is_numpy, namespace, refuse_gradient
from ell12.protocols import Array, Factored, FactoredLoss, offers


def starting_point(loss: Any, x0: Array | None) -> Array:
    """``x0``, checked, in the precision of the loss; zero where there is none."""
    zero = loss.start()
    if x0 is None:
        return zero
    x0 = as_unknown(loss, x0, "x0")
    return x0 if offers(x0, Factored) or x0.dtype == zero.dtype else namespace(zero).astype(x0, zero.dtype)


def as_unknown(loss: Any, x: Any, name: str) -> Any:
    """``x`` as an unknown of the loss; NumPy arrays keep their precision. An error names the argument."""
    zero = loss.start()
    if offers(zero, Factored):  # the loss, whose unknown is no array, knows what it may be
        if not offers(loss, FactoredLoss):
            raise TypeError(f"{name} cannot be given: {type(loss).__name__} has no check_start")
        try:
            return loss.check_start(x)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(str(error).replace("x0", name)) from error
    refuse_gradient(x, name)
    x = beside(as_floating(x, name), zero, name)
    if tuple(x.shape) != tuple(zero.shape):
        raise ValueError(f"{name} must have shape {tuple(zero.shape)}, got {tuple(x.shape)}")
    if not all_finite(x):
        raise ValueError(f"{name} holds NaN or infinity; every entry must be finite")
    if is_complex(x) and not is_complex(zero):
        raise TypeError(f"{name} holds complex numbers, but the loss is one of real numbers")
    return x if is_numpy(zero) else namespace(zero, x).astype(x, zero.dtype, copy=False)
