"""Linear maps: product, adjoint, shapes and columns of any of them, and products with chosen columns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from ell12.backend import as_floating, indices_like, is_array, is_complex, is_half, namespace, scatter
from ell12.checks import check_container, check_entries
from ell12.protocols import Array


def as_operator(A: Any, name: str = "A") -> Any:
    """Check A, and return it in a form whose products are fast.

    Lists become NumPy arrays and integers floats; float32, float64 and complex numbers are kept. Sparse
    matrices are kept as CSR or CSC, other formats become CSR. Operators come back as they are. Anything else,
    masked arrays, matrices that are empty or hold NaN, infinity or numbers whose squares would overflow or
    underflow raise an error that names the argument.

    Examples
    --------
    >>> from ell12.operators import as_operator
    >>> as_operator([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    check_container(A, name)
    if hasattr(A, "__dask_graph__"):
        raise TypeError(f"{name} is a Dask {type(A).__name__}: make its loss with ell12.distributed.rows_loss")
    if not _is_matrix(A):
        _check_operator(A, name)
        return A
    if scipy.sparse.issparse(A):
        A = A.tocsr() if A.ndim == 2 and A.format not in ("csr", "csc") else A
        A = A if A.dtype.kind in "fc" else A.astype(np.float64)
    else:
        A = as_floating(np.asarray(A) if isinstance(A, np.ndarray) else A, name, sparse=True)
        if is_half(A) and type(A) is not np.ndarray:  # other libraries multiply arrays of one precision only
            A = namespace(A).astype(A, namespace(A).float32)
    _check_shape(tuple(A.shape), name)
    check_entries(stored(A), name)
    return A


def adjoint(A: Any) -> Any:
    """Return the operator ``A^H``, which is ``A^T`` where A is real; a copy of complex matrices, else a view.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.operators import adjoint
    >>> adjoint(np.array([[1.0, 2.0]])) @ np.array([3.0])
    array([3., 6.])
    """
    if not _is_matrix(A):
        return A.H if hasattr(A, "H") else A.T
    if scipy.sparse.issparse(A):
        return A.conj().T if A.dtype.kind == "c" else A.T
    return conjugate_of(A).T


def product(A: Any, x: Array) -> Array:
    """``A x`` for an x that is known to fit: our own operators do not check it."""
    return A._apply(x) if isinstance(A, ArrayOperator) else A @ x


def adjoint_product(A: Any, y: Array) -> Array:
    """``A^H y`` for a y that is known to fit."""
    return A._apply_adjoint(y) if isinstance(A, ArrayOperator) else adjoint(A) @ y


def input_shape(A: Any) -> tuple[int, ...]:
    """Return the shape of what A acts on: ``(n,)``, or that of an image for an operator on images."""
    return tuple(A.input_shape) if hasattr(A, "input_shape") else (int(A.shape[1]),)


def output_shape(A: Any) -> tuple[int, ...]:
    """Return the shape of what A makes of one input."""
    return tuple(A.output_shape) if hasattr(A, "output_shape") else (int(A.shape[0]),)


def dtype_of(A: Any) -> Any:
    """Return the dtype of A, or None for an operator that follows its input."""
    return getattr(A, "dtype", None)


def select_columns(A: Any, columns: Any) -> Any:
    """Return the operator ``A_S`` made of the given columns of A.

    Parameters
    ----------
    A : operator
        One that acts on vectors.
    columns : array of int
        Different columns, counted from 0.

    Returns
    -------
    operator
        A matrix of the same kind for a matrix; for others one that embeds x and applies A.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.operators import select_columns
    >>> select_columns(np.array([[1.0, 2.0, 3.0]]), [0, 2])
    array([[1., 3.]])
    """
    columns = np.asarray(columns) if isinstance(columns, list | range) else columns
    if hasattr(A, "select_columns"):
        return A.select_columns(columns)
    if not _is_matrix(A):
        return ColumnSelection(A, columns)
    if scipy.sparse.issparse(A):
        return A[:, columns]
    if type(A) is np.ndarray:
        if np.array_equal(columns, np.arange(A.shape[1])):
            return A
        return A.T[columns].T  # np.take would first copy the whole of a matrix that is not in C order
    return namespace(A).take(A, sent_to_device_of(columns, A), axis=1)


def has_columns(A: Any) -> bool:
    """Whether the columns of A are at hand in memory, so that some of them cost less than all.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy
    >>> from ell12.operators import has_columns
    >>> has_columns(np.eye(3)), has_columns(scipy.sparse.linalg.aslinearoperator(np.eye(3)))
    (True, False)
    """
    if isinstance(A, ArrayOperator):
        return hasattr(A, "select_columns") and (not hasattr(A, "A") or has_columns(A.A))
    return type(A) is np.ndarray or hasattr(A, "select_columns") or scipy.sparse.issparse(A) or is_array(A)


def is_out_of_memory(A: Any) -> bool:
    """Whether the columns of A are out of memory, so that all of them cost more than some."""
    return getattr(A, "out_of_memory", False)


def stored_entries(A: Any) -> float:
    """How many numbers a sparse matrix holds, inside of an operator too; infinity for what is not sparse.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy
    >>> from ell12.operators import stored_entries
    >>> stored_entries(scipy.sparse.csr_array([[0.0, 2.0]])), stored_entries(np.eye(3))
    (1, inf)
    """
    if scipy.sparse.issparse(A):
        return int(A.nnz)
    return stored_entries(A.A) if isinstance(A, ArrayOperator) and hasattr(A, "A") else math.inf


def to_dense(A: Any) -> Array:
    """Return A as a dense matrix, for small factorizations; its columns are flattened where A acts on images.

    An array comes back as it is. An operator is applied to every unit vector of NumPy, n products and m n
    numbers: for n up to a few thousand.

    Examples
    --------
    >>> import scipy
    >>> from ell12.operators import to_dense
    >>> to_dense(scipy.sparse.csr_array([[0.0, 2.0]]))
    array([[0., 2.]])
    """
    if scipy.sparse.issparse(A):
        return A.toarray()
    if _is_matrix(A):
        return A.to_dense() if getattr(A, "is_sparse", False) else A
    shape, units = input_shape(A), np.eye(math.prod(input_shape(A)), dtype=dtype_of(A))
    if not hasattr(A, "input_shape"):
        return np.asarray(A @ units)
    images = [np.reshape(A @ unit.reshape(shape), (-1,)) for unit in units]
    return np.stack(images, axis=1) if images else np.zeros((math.prod(output_shape(A)), 0), dtype=dtype_of(A))


@dataclass(frozen=True, eq=False)
class ArrayOperator(ABC):
    """An operator of ours: it acts on one array of its input shape and keeps its kind, dtype and device.

    A subclass sets the attributes and defines ``_apply`` and ``_apply_adjoint``. ``A @ x`` checks x and applies A.
    """

    input_shape: tuple[int, ...] = field(init=False)
    output_shape: tuple[int, ...] = field(init=False)
    dtype: Any = field(init=False, default=None)  # None: that of the input
    norm_squared: float | None = field(init=False, default=None)  # an upper bound on ||A||^2
    takes_columns: bool = field(init=False, default=False)  # whether x may be several vectors side by side

    __array_ufunc__ = None  # so that a NumPy array on the left of @ does not take this for an entry

    def __matmul__(self, x: Any) -> Any:
        if isinstance(x, ArrayOperator):
            return Composition(self, x)
        x = as_floating(x, "x")
        shape = tuple(x.shape[: len(self.input_shape)] if self.takes_columns else x.shape)
        if shape != self.input_shape:
            raise ValueError(f"x must have shape {self.input_shape} for this operator, got {tuple(x.shape)}")
        return self._apply(x)

    @property
    def H(self) -> ArrayOperator:
        """The adjoint."""
        return Adjoint(self)

    @property
    def T(self) -> ArrayOperator:
        """The transpose: the adjoint for a real operator."""
        return Adjoint(self, conjugate=True)

    @abstractmethod
    def _apply(self, x: Array) -> Array:
        """``A x`` for a floating x of the input shape, which is not checked."""

    @abstractmethod
    def _apply_adjoint(self, y: Array) -> Array:
        """``A^H y`` for a floating y of the output shape, which is not checked."""

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Adjoint(ArrayOperator):
    """``y -> A^H y``, or its conjugate, the transpose ``y -> A^T y``."""

    A: ArrayOperator
    conjugate: bool = False

    def __post_init__(self) -> None:
        A = self.A
        self._set(input_shape=A.output_shape, output_shape=A.input_shape)
        self._set(dtype=A.dtype, norm_squared=A.norm_squared, takes_columns=A.takes_columns)

    @property
    def H(self) -> ArrayOperator:
        """The operator itself, or its conjugate."""
        return Adjoint(self) if self.conjugate else self.A

    def _apply(self, x: Array) -> Array:
        return conjugate_of(self.A._apply_adjoint(conjugate_of(x))) if self.conjugate else self.A._apply_adjoint(x)

    def _apply_adjoint(self, y: Array) -> Array:
        return conjugate_of(self.A._apply(conjugate_of(y))) if self.conjugate else self.A._apply(y)


@dataclass(frozen=True, eq=False)
class Composition(ArrayOperator):
    """``x -> A (B x)``, of any two operators whose shapes fit."""

    A: Any
    B: Any

    def __post_init__(self) -> None:
        if output_shape(self.B) != input_shape(self.A):
            raise ValueError(f"A acts on shape {input_shape(self.A)}, but B returns {output_shape(self.B)}")
        bounds = [getattr(operator, "norm_squared", None) for operator in (self.A, self.B)]
        self._set(norm_squared=None if None in bounds else math.prod(bounds))
        self._set(input_shape=input_shape(self.B), output_shape=output_shape(self.A))

    def _apply(self, x: Array) -> Array:
        return product(self.A, product(self.B, x))

    def _apply_adjoint(self, y: Array) -> Array:
        return adjoint_product(self.B, adjoint_product(self.A, y))


@dataclass(frozen=True, eq=False)
class Reshaped(ArrayOperator):
    """A matrix or an operator on vectors, applied to the entries of an image row by row."""

    A: Any
    shape: InitVar[Any]

    def __post_init__(self, shape: Any) -> None:
        shape, size = as_shape(shape), math.prod(input_shape(self.A))
        if math.prod(shape) != size:
            raise ValueError(f"shape {shape} does not hold the {size} entries that A acts on")
        self._set(input_shape=shape, output_shape=output_shape(self.A), dtype=dtype_of(self.A))
        self._set(norm_squared=getattr(self.A, "norm_squared", None))

    def _apply(self, x: Array) -> Array:
        return product(self.A, namespace(x).reshape(x, input_shape(self.A)))

    def _apply_adjoint(self, y: Array) -> Array:
        x = adjoint_product(self.A, y)
        return namespace(x).reshape(x, self.input_shape)


@dataclass(frozen=True, eq=False)
class ColumnSelection(ArrayOperator):
    """Some columns of an operator on vectors: ``x -> A E x``, where E puts x back at these columns."""

    A: Any
    columns: Array

    def __post_init__(self) -> None:
        self._set(input_shape=(int(self.columns.shape[0]),), output_shape=output_shape(self.A))
        self._set(dtype=dtype_of(self.A), norm_squared=getattr(self.A, "norm_squared", None))

    def _apply(self, x: Array) -> Array:
        return product(self.A, scatter(x, sent_to_device_of(self.columns, x), input_shape(self.A)[0]))

    def _apply_adjoint(self, y: Array) -> Array:
        x = adjoint_product(self.A, y)
        return namespace(x).take(x, sent_to_device_of(self.columns, x), axis=0)


def _is_matrix(A: Any) -> bool:
    """Whether A holds its entries, or is not an operator at all."""
    return scipy.sparse.issparse(A) or not hasattr(A, "__matmul__") or hasattr(A, "__array__")


def _check_operator(A: Any, name: str) -> None:
    shaped = hasattr(A, "input_shape") or len(getattr(A, "shape", ())) == 2
    if not shaped or not (hasattr(A, "H") or hasattr(A, "T")):
        raise TypeError(f"{name} must be a matrix or an operator with a shape and .H, got {type(A).__name__}")
    _check_shape((math.prod(output_shape(A)), math.prod(input_shape(A))), name)
    if isinstance(A, LinearOperator):  # one without an adjoint says so when that is applied, and not before
        try:
            A.rmatvec(np.zeros(output_shape(A), dtype=A.dtype))
        except NotImplementedError:
            raise TypeError(f"{name} has no adjoint: give its LinearOperator an rmatvec, y -> A^H y") from None


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(f"{name} must be two-dimensional, got shape {shape}")
    if 0 in shape:
        raise ValueError(f"{name} is empty: its shape is {shape}")


def stored(A: Any) -> Array:
    """Return the entries that a matrix stores."""
    if scipy.sparse.issparse(A):
        return A.data
    return A.coalesce().values() if getattr(A, "is_sparse", False) else A


def as_shape(shape: Any) -> tuple[int, ...]:
    """Check that shape holds positive integers, and return it as a tuple."""
    sizes = np.atleast_1d(np.asarray(shape))
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu" or sizes.min() < 1:
        raise ValueError(f"shape must hold positive integers, got {shape}")
    return tuple(sizes.tolist())


def sent_to_device_of(value: Array, x: Array) -> Array:
    """Return a NumPy array as the kind of x; any other is of that kind already."""
    return value if type(x) is np.ndarray or type(value) is not np.ndarray else indices_like(value, x)


def conjugate_of(x: Array) -> Array:
    """Return the complex conjugate of x, itself where x is real."""
    return namespace(x).conj(x) if is_complex(x) else x
