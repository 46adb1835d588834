"""Multinomial regression, and a matrix applied once per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import as_array_of, as_floating, as_numpy, concat, namespace, scatter, take, to_device_of
from ell12.backend.number_types import Given_co
from ell12.checks import check_numbers
from ell12.losses.of_prediction import PredictionLoss
from ell12.operators import (
    ArrayOperator,
    adjoint,
    adjoint_product,
    as_operator,
    dtype_of,
    input_shape,
    output_shape,
    product,
    select_columns,
    sent_to_device_of,
)
from ell12.operators.centering import column_squares
from ell12.operators.gram import weighted_gram
from ell12.protocols import Array, Point

# Numbers of classes above this, and above twice the number of rows, are taken for names; as many labels
# in a slice of rows for numbers to be regressed on. A matrix of shares has a column for each: 8 kB a row.
MOST_CLASSES = 1000


@dataclass(frozen=True, eq=False)
class Classwise(ArrayOperator):
    """``x -> A X`` with X of shape (n, k) kept as a vector, row by row: entry ``j k + c`` belongs to A's column j.

    Parameters
    ----------
    A : array, sparse matrix or operator with columns, of shape (m, n)
        What each of the k columns of X is multiplied with.
    k : int
        How many there are.
    entries : NumPy array of int, optional
        The entries of X that x holds, the others being zero; all of them by default.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses.multinomial import Classwise
    >>> Classwise(np.array([[1.0, 2.0], [0.0, 1.0]]), 2) @ np.array([1.0, 0.0, 0.0, 1.0])
    array([[1., 2.],
           [0., 1.]])
    """

    A: Any
    k: int
    entries: Any = None

    def __post_init__(self) -> None:
        (m,), (n,) = output_shape(self.A), input_shape(self.A)
        size = n * self.k if self.entries is None else len(self.entries)
        self._set(input_shape=(size,), output_shape=(m, self.k), dtype=dtype_of(self.A))

    @property
    def pairs(self) -> tuple[Array, Array]:
        """The column of A and the class that each entry of x belongs to, as NumPy arrays."""
        entries = np.arange(self.input_shape[0]) if self.entries is None else self.entries
        return entries // self.k, entries % self.k

    def select_columns(self, columns: Array) -> Classwise:
        """The same operator on some entries of x, and on no more of A than they need."""
        features, classes = (part[np.asarray(columns)] for part in self.pairs)
        needed, position = np.unique(features, return_inverse=True)
        return Classwise(select_columns(self.A, needed), self.k, position * self.k + classes)

    def _apply(self, x: Array) -> Array:
        (n,) = input_shape(self.A)
        full = x if self.entries is None else scatter(x, sent_to_device_of(self.entries, x), n * self.k)
        return product(self.A, namespace(x).reshape(full, (n, self.k)))

    def _apply_adjoint(self, y: Array) -> Array:
        full = namespace(y).reshape(adjoint_product(self.A, y), (-1,))
        return full if self.entries is None else take(full, self.entries, 0)


class MultinomialLoss(PredictionLoss[Given_co]):
    """The multinomial loss, for several classes.

    ``-scale sum_i w_i log p_i(b_i)``, p_i the softmax of the i-th row of A X; X has a column for each class.

    The unknown x is the matrix X, of shape (n, k) for k classes, as a vector, row by row: ``x.reshape(n, k)``.

    Parameters
    ----------
    A : array, sparse matrix or operator of shape (m, n)
        As in `SquaredLoss`.
    b : array of shape (m,) or (m, k)
        The class of each row, a number from 0 to k - 1; or the share of each class, which sum to 1 in each row.
    sample_weight : array of shape (m,), optional
        Weights w, at least 0.
    scale : float, default 1.0
        Factor of the whole loss.

    See Also
    --------
    LogisticLoss : Two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses import MultinomialLoss
    >>> loss = MultinomialLoss(np.eye(3), [0, 1, 2])
    >>> point = loss.point(loss.start())
    >>> round(loss.value(point) / 3, 6), loss.gradient(point).reshape(3, 3).round(2)[0]
    (1.098612, array([-0.67,  0.33,  0.33]))
    """

    second_bound = 0.5  # of the matrix diag(p) - p p', whatever p is

    def __init__(self, A: Any, b: Given_co, *, sample_weight: Any = None, scale: float = 1.0) -> None:
        A, shares = as_operator(A), shares_of_classes(b)
        A, shares = Classwise(A, shares.shape[1]), to_device_of(shares, A, "b")
        super().__init__(A, shares, sample_weight=sample_weight, scale=scale)

    def value(self, point: Point) -> float:
        """The loss; no product."""
        logs = log_softmax(point.prediction)
        return -self.scale * float(namespace(logs).sum(self._weighted(self.b * logs)))

    def slope(self, point: Point) -> Array:
        """The gradient with respect to the prediction."""
        return self.scale * self._weighted(softmax(point.prediction) - self.b)

    def hessian(self, point: Point, columns: Array | None = None, others: Array | None = None) -> Array:
        """The Hessian in the given entries of x, or in all: a block for each pair of classes."""
        left = self.A if columns is None else select_columns(self.A, columns)
        right = left if others is None else select_columns(self.A, others)
        p, weight = softmax(point.prediction), self._row_weight
        sizes = (*input_shape(left), *input_shape(right))
        if 0 in sizes:
            return namespace(p).reshape(p[:0, :], sizes)
        own, other = _by_class(left), _by_class(right)
        rows = [
            concat([weighted_gram(A, weight * p[:, k] * ((k == c) - p[:, c]), B) for c, B, _ in other], 1)
            for k, A, _ in own
        ]
        order, across = (np.argsort(np.concatenate([where for *_, where in part])) for part in (own, other))
        return take(take(concat(rows, 0), order, 0), across, 1)

    def hessian_product(self, point: Point, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> hessian(point, columns) v``: two products with these columns, and no matrix."""
        A, p, weight = select_columns(self.A, columns), softmax(point.prediction), self._row_weight[:, None]
        transposed, xp = adjoint(A), namespace(p)

        def product(v: Array) -> Array:
            change = p * (A @ v)
            return transposed @ (weight * (change - p * xp.sum(change, axis=1, keepdims=True)))

        return product

    def column_curvatures(self, point: Point) -> Array:
        """The diagonal of the Hessian."""
        p, (features, classes) = softmax(point.prediction), self.A.pairs
        squares = [column_squares(self.A.A, self._row_weight * p[:, k] * (1 - p[:, k])) for k in range(self.A.k)]
        return np.stack([as_numpy(square) for square in squares])[classes, features]

    @property
    def _row_weight(self) -> Array:
        """The weight of each row, times the scale."""
        return self.scale * self._weighted(namespace(self.b).ones_like(self.b))[:, 0]

    def _as_observations(self, b: Any) -> Array:
        b = super()._as_observations(b)
        xp = namespace(b)
        if bool(xp.any(b < 0)) or bool(xp.any(xp.abs(xp.sum(b, axis=1) - 1) > 1e-3)):
            raise ValueError("b must hold shares of classes that are at least 0 and sum to 1 in each row")
        return b

    def _as_weights(self, sample_weight: Any) -> Array:
        check_numbers(sample_weight=sample_weight)
        if np.ndim(sample_weight) != 1 or len(sample_weight) != self.b.shape[0]:
            raise ValueError(f"sample_weight must have shape ({self.b.shape[0]},), got {np.shape(sample_weight)}")
        return super()._as_weights(self._aligned(as_array_of(sample_weight, self.b)))

    def _aligned(self, weight: Array) -> Array:
        xp = namespace(weight)
        return xp.broadcast_to(weight if weight.ndim == 2 else weight[:, None], self.b.shape)


def shares_of_classes(b: Any, k: int | None = None) -> Array:
    """Ones where a row is of a class, zeros elsewhere; k is the number of classes, one more than the last.

    Examples
    --------
    >>> from ell12.losses.multinomial import shares_of_classes
    >>> shares_of_classes([0, 2])
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    b = as_floating(b, "b")
    if b.ndim == 2:
        return b
    xp = namespace(b)
    if b.ndim != 1 or not bool(xp.all((b >= 0) & (b == xp.round(b)) & xp.isfinite(b))):
        raise ValueError("b must be a vector of the numbers of classes, 0, 1, ..., or a matrix of their shares")
    k = k or (int(xp.max(b)) + 1 if b.shape[0] else 0)
    if k > max(MOST_CLASSES, 2 * b.shape[0]):
        raise ValueError(f"b names a class {k - 1} in {b.shape[0]} rows: number the classes 0, 1, ..., k - 1")
    return xp.astype(b[:, None] == as_array_of(np.arange(k), b), b.dtype)


def log_softmax(scores: Array) -> Array:
    """The logarithms of `softmax`, without overflow."""
    xp = namespace(scores)
    scores = scores - xp.max(scores, axis=1, keepdims=True)
    return scores - xp.log(xp.sum(xp.exp(scores), axis=1, keepdims=True))


def softmax(scores: Array) -> Array:
    """``exp(scores)`` over their sum in each row: the probability of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses.multinomial import softmax
    >>> softmax(np.log([[1.0, 3.0]]))
    array([[0.25, 0.75]])
    """
    return namespace(scores).exp(log_softmax(scores))


def _by_class(A: Classwise) -> list[tuple[int, Any, Array]]:
    """Each class with the columns of the matrix inside that belong to it, and the indices of these in x."""
    features, classes = A.pairs
    entries = {int(k): np.flatnonzero(classes == k) for k in np.unique(classes)}
    whole = np.arange(input_shape(A.A)[0])
    return [
        (k, A.A if np.array_equal(features[where], whole) else select_columns(A.A, features[where]), where)
        for k, where in entries.items()
    ]
