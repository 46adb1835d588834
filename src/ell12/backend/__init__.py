"""Arrays of any kind: which namespace they belong to, and the few reductions that solvers need.

The only module that imports array-api-compat. NumPy, PyTorch, CuPy and JAX arrays go in, the same kind,
dtype and device come out. Reductions return Python floats, so that solvers read as the mathematics does.
"""

from __future__ import annotations

import math
from functools import lru_cache
from mmap import mmap
from typing import Any

import array_api_compat.numpy
import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_array_api_strict_namespace
from array_api_compat import is_cupy_array as is_cupy
from array_api_compat import is_jax_array as is_jax
from array_api_compat import is_torch_array as is_torch

Array = Any  # any array of the array API standard: NumPy, PyTorch, CuPy, JAX

_NAMESPACES: dict[type, Any] = {np.ndarray: array_api_compat.numpy}  # those found before, by the arrays' type
# PyTorch's and cuBLAS's inner products count their entries in 32 bits.
LONGEST_DOT = 2**31 - 1
# Rounding moves a sum by some units of its last digit. Sums and inner products of 1e2 to 1e5 random numbers were
# off by at most 2.5 units in single and in double precision, sums of 1e7 too. Inner products of 1e6 were off by 9.
LAST_DIGITS = 8


def namespace(*arrays: Array) -> Any:
    """The array API namespace that the arrays share."""
    kind = type(arrays[0])
    known = _NAMESPACES.get(kind)
    if known is not None and (len(arrays) == 1 or all(type(a) is kind for a in arrays)):
        return known
    for a in arrays:
        refuse_masked(a, "an array")
    found = array_namespace(*(a for a in arrays if is_array_api_obj(a)))
    if all(type(a) is kind for a in arrays):
        _NAMESPACES[kind] = found
    return found


def is_numpy(x: Array) -> bool:
    """Whether x is a NumPy array, for which a faster path may exist."""
    return type(x) is np.ndarray


def is_mapped(x: Any) -> bool:
    """Whether x is a view of a file that is mapped into memory."""
    while isinstance(x, np.ndarray):
        if isinstance(x.base, mmap):
            return True
        x = x.base
    return False


def is_array(x: Any) -> bool:
    """Whether x is a dense array of any library."""
    return bool(is_array_api_obj(x)) and not (is_torch(x) and str(x.layout) != "torch.strided")


def on_accelerator(x: Any) -> bool:
    """Whether x is an array on a device such as a GPU."""
    return is_array(x) and "cpu" not in str(device(x)).lower()


def in_memory(x: Array) -> bool:
    """Whether compiled loops read x where it is: a NumPy array, or a tensor on the processors."""
    return is_numpy(x) or (is_torch(x) and x.device.type == "cpu")


def is_complex(x: Array) -> bool:
    """Whether x holds complex numbers."""
    if type(x) is np.ndarray:
        return x.dtype.kind == "c"
    return bool(namespace(x).isdtype(x.dtype, "complex floating"))


def as_floating(x: Any, name: str, *, sparse: bool = False) -> Array:
    """``x`` as a real or complex floating array: lists become NumPy arrays, integers the default float.

    A memory map becomes the array it is, without a copy. NumPy numbers of foreign byte order or at odd addresses
    (out of a file, or over a network) are copied once: BLAS and compiled loops would copy them at every use, or
    misread them.
    """
    refuse_masked(x, name)
    if not sparse and getattr(x, "is_sparse", False):
        raise TypeError(f"{name} must be a dense array, got a sparse tensor")
    if isinstance(x, np.ndarray | np.generic) or not is_array_api_obj(x):
        try:
            x = np.asarray(x)
        except (TypeError, ValueError) as error:  # such as rows of different lengths
            raise type(error)(f"{name} is no array of numbers: {error}") from None
        if x.dtype.kind in "fc":
            return x if x.dtype.isnative and x.flags.aligned else np.array(x, dtype=x.dtype.newbyteorder("="))
        if x.dtype.kind not in "biu":
            raise TypeError(f"{name} must hold numbers, got dtype {x.dtype}")
    xp = namespace(x)
    if xp.isdtype(x.dtype, ("real floating", "complex floating")) or is_half(x):
        return x
    return xp.astype(x, xp.asarray(0.0).dtype)


def refuse_masked(x: Any, name: str) -> None:
    """Raise on a masked array, whose masked entries would be used, and on a class in place of an array."""
    if isinstance(x, type):
        raise TypeError(f"{name} must be an array, got the class {x.__name__}")
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array: fill or drop what is masked first")


def refuse_gradient(x: Any, name: str) -> None:
    """Raise on a tensor that requires gradients: no solver passes them on."""
    if getattr(x, "requires_grad", False):
        raise TypeError(f"{name} requires gradients, which solvers do not pass on: give {name}.detach()")


def is_half(x: Array) -> bool:
    """Whether x is in half precision, which holds neither sums of squares nor their roots."""
    return str(x.dtype).endswith("float16")


def stop_gradient(x: Array) -> Array:
    """``x`` without its derivative: for scales that cancel, whose own derivatives could overflow."""
    if is_torch(x):
        return x.detach()
    if is_jax(x):
        from jax.lax import stop_gradient

        return stop_gradient(x)
    return x


def number_like(value: Any, x: Array) -> Any:
    """A plain number as a float, which never widens the dtype of x; anything else as `as_array_of`."""
    return float(value) if is_number(value) else as_array_of(value, x)


def as_array_of(value: Any, x: Array) -> Array:
    """``value`` as an array of the kind, device and real dtype of x (its derivative, if any, is kept)."""
    dtype = real_dtype(x)
    if is_array_api_obj(value) and not isinstance(value, np.ndarray | np.generic):
        return as_numpy(value).astype(dtype) if is_numpy(x) else namespace(x).astype(value, dtype, copy=False)
    return indices_like(np.asarray(value, dtype=np.float64), x, dtype=dtype)


def as_numpy(x: Any) -> np.ndarray:
    """``x`` as a NumPy array, fetched from its device if it is not on this one."""
    if type(x) is np.ndarray:
        return x
    if is_torch(x):
        return x.detach().cpu().resolve_conj().resolve_neg().numpy()
    if is_cupy(x):
        return x.get()
    try:
        return np.asarray(x)
    except RuntimeError:  # how the bare standard says that x is on another device
        return np.from_dlpack(x)


def to_device_of(value: Array, A: Any, name: str) -> Array:
    """``value`` as the kind of array that the matrix A is; NumPy arrays are sent to where A is."""
    if isinstance(A, np.ndarray) or not is_array_api_obj(A):
        if isinstance(A, np.ndarray) and not is_numpy(value):
            raise TypeError(f"{name} must be a NumPy array like A, got {type(value).__name__}")
        return value
    return indices_like(value, A) if is_numpy(value) else value


def arange_like(x: Array) -> Array:
    """``0, 1, ..., n - 1`` along the last axis of x, on its device."""
    return namespace(x).arange(x.shape[-1], **_where(x))


def indices_like(value: np.ndarray, x: Array, **dtype: Any) -> Array:
    """A NumPy array of integers or truth values as an array of the kind and device of x."""
    # PyTorch takes no array that runs backwards.
    return namespace(x).asarray(np.asarray(value, order="C"), **dtype, **_where(x))


def _where(x: Array) -> dict[str, Any]:
    """The device of x as an argument; JAX's traced arrays have none."""
    return {} if is_jax(x) else {"device": device(x)}


def real_dtype(x: Array) -> Any:
    """The dtype of the modulus of x."""
    real = {"complex64": "float32", "complex128": "float64"}.get(str(x.dtype).rpartition(".")[2])
    return x.dtype if real is None else getattr(namespace(x), real)


def is_number(value: Any) -> bool:
    """Whether value is a plain real number rather than an array."""
    return isinstance(value, int | float | np.integer | np.floating)


def inner(x: Array, y: Array) -> float:
    """The real inner product ``Re <x, y>`` over all entries."""
    if type(x) is np.ndarray:
        return float(np.vdot(x, y).real)
    xp = namespace(x, y)
    pieces = is_cupy(x) and x.flags.c_contiguous and y.flags.c_contiguous and 0 < x.size == y.size <= LONGEST_DOT
    if pieces and x.dtype.char in "fd" and x.dtype == y.dtype:  # what cuBLAS takes for vectors
        from cupy import cublas

        return float(cublas.dot(x.reshape(-1), y.reshape(-1)))
    x, y = xp.reshape(x, (-1,)), xp.reshape(y, (-1,))
    if x.shape[0] > LONGEST_DOT:  # no library's product of vectors takes more
        starts = range(0, x.shape[0], LONGEST_DOT)
        return sum(inner(x[k : k + LONGEST_DOT], y[k : k + LONGEST_DOT]) for k in starts)
    # The standard's vecdot is a product of matrices in most libraries, which takes a GPU three times as long.
    quick = hasattr(xp, "vdot") and x.dtype == y.dtype
    product = xp.vdot(x, y) if quick else xp.vecdot(x, y)
    return float(xp.real(product) if is_complex(x) else product)


def norm(x: Array) -> float:
    """The Euclidean norm over all entries, without overflow or underflow."""
    if type(x) is np.ndarray:  # whose inner product never warns
        square = float(np.vdot(x, x).real)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            square = inner(x, x)
    tiny, huge = _square_range(x.dtype)
    if tiny < square < huge:
        return math.sqrt(square)
    largest = max_abs(x)
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * math.sqrt(inner(x / largest, x / largest))


def safe_square(square: float, x: Array) -> bool:
    """Whether a sum of squares of x neither overflowed nor lost digits to underflow."""
    tiny, huge = _square_range(x.dtype)
    return tiny < square < huge


@lru_cache(typed=True)  # dtypes of different libraries must not be compared
def _square_range(dtype: Any) -> tuple[float, float]:
    return (1e-270, 1e300) if str(dtype).endswith(("float64", "complex128")) else (1e-22, 1e37)


def max_abs(x: Array) -> float:
    """The largest modulus of the entries; 0 for an empty array."""
    if type(x) is np.ndarray:
        if x.dtype.kind == "f":  # two passes without a temporary
            return abs(max(float(x.max(initial=0.0)), -float(x.min(initial=0.0))))
        return float(np.abs(x).max(initial=0.0))
    xp = namespace(x)
    if not math.prod(x.shape):
        return 0.0
    if is_complex(x):
        return float(xp.max(xp.abs(x)))
    return max(float(xp.max(x)), -float(xp.min(x)))  # without the memory for all absolute values


def count_true(x: Array) -> int:
    """How many entries are true."""
    if type(x) is np.ndarray:
        return int(np.count_nonzero(x))
    xp = namespace(x)
    return int(xp.sum(xp.astype(x, xp.int32)))


def all_finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite; one pass without temporaries where the answer is yes."""
    xp = namespace(x)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(xp.isfinite(xp.sum(x))) or bool(xp.all(xp.isfinite(x)))


def square_fits(x: Array) -> bool:
    """Whether the squares of the entries and their sum are numbers of full precision in the precision of x.

    For NumPy arrays one pass without temporaries; for others, and in half precision, the largest entry stands for
    the sum.
    """
    single = is_half(x) or str(x.dtype).endswith(("float32", "complex64"))
    tiny, huge = (1e-31, 1e37) if single else (1e-303, 1e303)
    with np.errstate(over="ignore", invalid="ignore"):
        if is_numpy(x) and not is_half(x):
            return tiny < _square(x) < huge
        largest = max_abs(x)
        return tiny < largest * largest < huge  # a power would raise where a product is infinite


def _square(x: np.ndarray) -> float:
    """The sum of squares, without a copy of what is not in one piece."""
    if x.flags.forc or x.dtype.kind == "c":
        return inner(x.T, x.T) if x.flags.f_contiguous else inner(x, x)
    axes = list(range(x.ndim))
    return float(np.einsum(x, axes, x, axes, []))


def total(x: Array) -> float:
    """The sum of all entries."""
    return float(namespace(x).sum(x))


def all_true(mask: Array) -> bool:
    """Whether every entry is true."""
    return bool(namespace(mask).all(mask))


def take(x: Array, which: np.ndarray, axis: int) -> Array:
    """The entries of x along an axis whose numbers a NumPy array holds."""
    return np.take(x, which, axis=axis) if is_numpy(x) else namespace(x).take(x, indices_like(which, x), axis=axis)


def concat(arrays: list[Array], axis: int) -> Array:
    """The arrays one behind the other along an axis."""
    return namespace(*arrays).concat(arrays, axis=axis)


def orthogonalise(x: Array, basis: list[Array]) -> Array:
    """``x`` less its components along orthonormal arrays, in two products and without waiting for any number."""
    xp = namespace(x)
    rows = xp.stack([xp.reshape(b, (-1,)) for b in basis])
    flat = xp.reshape(x, (-1,))
    along = xp.conj(rows) @ flat if is_complex(x) else rows @ flat
    return xp.reshape(flat - along @ rows, x.shape)


def scatter(values: Array, indices: Array, size: int) -> Array:
    """Return a vector of ``size`` zeros with ``values`` at the given, different, ``indices``."""
    xp = namespace(values)
    if is_jax(values):
        return xp.zeros(size, dtype=values.dtype).at[indices].set(values)
    zeros = xp.zeros(size, dtype=values.dtype, device=device(values))
    if not is_array_api_strict_namespace(xp):
        zeros[indices] = values
        return zeros
    for i in range(values.shape[0]):  # the bare standard assigns no array of indices
        zeros[int(indices[i])] = values[i]
    return zeros


def precision(x: Array) -> float:
    """The distance from 1 to the next number in the precision of x."""
    return _precision(namespace(x), x.dtype)


def rounding(value: Any, x: Array) -> Any:
    """How far rounding can lift a value, or an array of them, that was summed in the precision of x.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.backend import rounding
    >>> rounding(4.0, np.zeros(3)) < 1e-14 < rounding(4.0, np.zeros(3, dtype=np.float32))
    True
    """
    return LAST_DIGITS * precision(x) * abs(value)


def rise_above_tangent(new: float, old: float, linear: float, x: Array) -> float:
    """``new - old - linear`` for values summed in the precision of x; what rounding made counts as 0.

    With ``linear = <gradient(old), new - old>`` this is how far a convex function rises above its tangent.
    Backtracking would halve a step for ever over a rise that is rounding. A new value that is infinite, or no
    number, is an infinite rise: then the step was too long.
    """
    if not math.isfinite(new):
        return math.inf
    return max(new - old - linear - rounding(abs(new) + abs(old) + abs(linear), x), 0.0)


def power_of_2(size: float) -> float:
    """The power of 2 nearest to a size in ratio, a unit by which nothing is rounded; 1 for a size of 0.

    Examples
    --------
    >>> from ell12.backend import power_of_2
    >>> power_of_2(5.0), power_of_2(0.3), power_of_2(0.0)
    (4.0, 0.25, 1.0)
    """
    return 2.0 ** round(math.log2(size)) if size > 0 else 1.0


@lru_cache(typed=True)  # dtypes of different libraries must not be compared
def _precision(xp: Any, dtype: Any) -> float:
    return float(xp.finfo(dtype).eps)
