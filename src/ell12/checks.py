"""Checks of arguments: errors that name what is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import (
    all_finite,
    as_floating,
    is_array_api_obj,
    is_number,
    max_abs,
    namespace,
    refuse_gradient,
    refuse_masked,
    square_fits,
)


def check_entries(x: Any, name: str) -> None:
    """Raise, with the argument's name, on an array with NaN, infinity, or entries whose squares cannot be held.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.checks import check_entries
    >>> check_entries(np.array([1e200, 1.0]), "y")
    Traceback (most recent call last):
        ...
    ValueError: y holds numbers up to 1e+200, too large for their squares in float64: rescale it first
    """
    if square_fits(x):  # as a rule
        return
    if not all_finite(x):
        raise ValueError(f"{name} holds NaN or infinity; every entry must be finite")
    _check_scale(x, x, name)


def check_indices(A: Any, name: str) -> None:
    """Raise on a sparse matrix with indices out of range: its products would read memory that is not theirs."""
    if not scipy.sparse.issparse(A):
        return
    if A.format in ("csr", "csc"):
        starts, parts = A.indptr, [(A.indices, A.shape[A.format == "csr"])]
        whole = starts[0] == 0 and starts[-1] <= A.indices.size and bool((starts[1:] >= starts[:-1]).all())
    else:
        whole, parts = True, list(zip(A.coords, A.shape, strict=True)) if A.format == "coo" else []
    if not whole or any(part.size and not 0 <= part.min() <= part.max() < size for part, size in parts):
        raise ValueError(f"{name} is a sparse matrix with an index out of range")


def check_container(x: Any, name: str) -> None:
    """Raise on masked arrays, classes, tensors that require gradients, and wrong indices of sparse matrices."""
    refuse_masked(x, name)
    refuse_gradient(x, name)
    check_indices(x, name)


def convert(x: Any, dtype: Any, name: str) -> Any:
    """``x`` in another precision; an error names the argument if its squares cannot be held there."""
    if x.dtype == dtype:
        return x
    with np.errstate(over="ignore"):
        converted = namespace(x).astype(x, dtype)
    if not square_fits(converted):
        _check_scale(x, converted, name)
    return converted


def _check_scale(x: Any, converted: Any, name: str) -> None:
    largest, dtype = max_abs(x), str(converted.dtype).rpartition(".")[2]
    if largest > 0:
        size = f"{largest:.3g}, too {'large' if largest > 1 else 'small'} for their squares in {dtype}"
        raise ValueError(f"{name} holds numbers up to {size}: rescale it first")


@contextmanager
def naming(*names: str) -> Iterator[None]:
    """Put the first name before errors of other libraries that hold none of these names of arguments."""
    try:
        yield
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        if re.search(rf"\b({'|'.join(names)})\b", str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{names[0]}: {error}") from error


def is_finite_number(value: Any) -> bool:
    """Whether value is a real number that a float holds."""
    try:
        return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


def as_array(x: Any, name: str) -> Any:
    """``x`` as a floating array, quickly where it is one already; an error names what is none."""
    return x if type(x) is np.ndarray and x.dtype.char in "fd" and x.dtype.isnative else as_floating(x, name)


def as_step(step: Any) -> float:
    """The step of a prox as a float, if it is a finite number >= 0."""
    check_scalars(step=step)
    return float(step)


def check_numbers(*, infinite: bool = False, single: bool = False, **arguments: Any) -> None:
    """Raise, with the argument's name, on anything but real numbers >= 0, or arrays of them.

    Arrays of other libraries are trusted: a check would wait for the device, or break a trace.

    Parameters
    ----------
    infinite : bool, default False
        Whether they may be infinite.
    single : bool, default False
        Whether each must be one number.
    **arguments
        The values by their names.
    """
    for name, value in arguments.items():
        if is_finite_number(value) and value >= 0:
            continue
        with naming(name):  # rows of different lengths have no shape
            if single and np.shape(value) != ():
                raise ValueError(f"{name} must be one number, got shape {tuple(np.shape(value))}")
            if not is_array_api_obj(value) or isinstance(value, np.ndarray | np.generic | type):
                _check_values(name, value, infinite)


def _check_values(name: str, value: Any, infinite: bool) -> None:
    refuse_masked(value, name)
    numbers, finite = np.asarray(value), "" if infinite else "finite "
    if numbers.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got {value!r}")
    # One pass each; the initial value serves empty arrays, and a NaN fails both comparisons.
    if numbers.min(initial=0) >= 0 and (infinite or numbers.max(initial=0) < math.inf):
        return
    if numbers.ndim == 0:
        raise ValueError(f"{name} must be a {finite}number >= 0, got {value}")
    raise ValueError(f"{name} must hold {finite}numbers >= 0 only")


def check_scalars(*, infinite: bool = False, **arguments: Any) -> None:
    """Raise, with the argument's name, on anything but single real numbers >= 0, finite ones unless so said."""
    for name, value in arguments.items():
        number = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        if not (is_finite_number(number) or (infinite and is_number(number) and number == math.inf)) or number < 0:
            raise ValueError(f"{name} must be a {'' if infinite else 'finite '}number >= 0, got {value!r}")


def check_share(share: Any, name: str) -> None:
    """Raise unless it is a number between 0 and 1."""
    if not is_number(share) or not 0 < share < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {share!r}")


def check_weights(weights: Any, shape: tuple[int, ...]) -> None:
    """Raise if weights do not broadcast to the shape of what they weigh."""
    with suppress(ValueError):
        if np.broadcast_shapes(np.shape(weights), shape) == shape:
            return
    raise ValueError(f"weights of shape {np.shape(weights)} do not broadcast to the shape {shape}")


def set_numbers(thing: Any, *names: str, positive: str = "") -> None:
    """Check that these attributes are finite real numbers, >= 0 or positive, and make them floats.

    A NumPy number would turn a product with a float32 array into float64.
    """
    for name in (*names, positive) if positive else names:
        value = getattr(thing, name)
        check_positive(value, name) if name == positive else check_scalars(**{name: value})
        object.__setattr__(thing, name, float(value))


def check_positive(value: Any, name: str, *words: str) -> None:
    """Raise, with the argument's name, unless the value is a finite number > 0 or one of the words."""
    if not (is_finite_number(value) and value > 0) and not (isinstance(value, str) and value in words):
        among = f" or one of {', '.join(words)}" if words else ""
        raise ValueError(f"{name} must be a finite number > 0{among}; got {value!r}")


def check_flags(*, optional: bool = False, **arguments: Any) -> None:
    """Raise, with the argument's name, on anything but True and False, or 1 and 0; None may be allowed."""
    for name, flag in arguments.items():
        if not ((isinstance(flag, int | np.integer | np.bool) and 0 <= flag <= 1) or (optional and flag is None)):
            raise ValueError(f"{name} must be True or False{' or None' * optional}, got {flag!r}")


def check_word(value: Any, name: str, *words: str) -> None:
    """Raise, with the argument's name, unless the value is one of the words."""
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{name} must be {' or '.join(map(repr, words))}, got {value!r}")


def generator(random_state: Any) -> np.random.Generator:
    """The generator of random numbers that ``random_state`` stands for; an error names it."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(f"random_state must be an integer >= 0, a Generator or None: {random_state!r}") from None


def check_counts(*, least: float = 0, most: float = math.inf, optional: bool = True, **arguments: Any) -> None:
    """Raise, with the argument's name, on anything but whole numbers in these bounds, and None where it may be."""
    for name, value in arguments.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not (whole and least <= value <= most) and not (value is None and optional):
            bounds = (f" >= {least}" if least > -math.inf else "") + (f" and <= {most}" if most < math.inf else "")
            raise ValueError(f"{name} must be a whole number{bounds}, got {value!r}")
