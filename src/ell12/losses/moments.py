"""Weighted means and centred products of columns, added up over chunks of rows without cancellation.

The columns are centred here and not by `ell12.operators.centering`: their means are not known before the last
chunk has gone by.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import as_array_of, as_numpy, is_numpy, namespace, rounding
from ell12.checks import naming
from ell12.losses.block_of_rows import Block
from ell12.losses.multinomial import MOST_CLASSES
from ell12.losses.quadratic import QuadraticLoss
from ell12.operators.gram import weighted_gram
from ell12.protocols import Array


@dataclass(frozen=True)
class Moments:
    """Of the columns Z = [A, targets] with weights w: their mean, and the products of what deviates from it.

    Two of them add by the rule of Chan, Golub & LeVeque (doi:10.1080/00031305.1983.10483115), which stays accurate
    where means are far larger than deviations.

    Attributes
    ----------
    rows : int
        Number of rows.
    total : float
        Sum of the weights.
    mean : array of shape (p + k,)
        Weighted means.
    products : array of shape (p + k, p + k), optional
        ``(Z - mean)' diag(w) (Z - mean)``.
    labels, label_weights : arrays, optional
        The different labels, where the targets are labels, and the weight of each.
    """

    rows: int
    total: float
    mean: Array
    products: Any  # None where they were not asked for
    labels: Array | None = None
    label_weights: Array | None = None

    @classmethod
    def of(cls, A: Any, targets: Array, weight: Array, products: bool = True, *labels: Array) -> Moments:
        """The moments of some rows, whose labels and their weights may be given."""
        mean, square = of_rows(A, targets, weight, products)
        return cls(len(targets), float(weight.sum()), mean, square, *labels)

    def __add__(self, other: Moments) -> Moments:
        total = self.total + other.total
        share = other.total / total if total > 0 else 0.0
        apart, products = other.mean - self.mean, None
        if self.products is not None:
            products = self.products + other.products + self.total * share * np.outer(apart, apart)
        mean = self.mean + share * apart
        return Moments(self.rows + other.rows, total, mean, products, *_merge_labels(self, other))

    def gram(self, width: int, intercept: bool) -> Array:
        """``A' diag(w) A`` of the first columns, not centred; the ones of an intercept come last."""
        mean = self.mean[:width]
        gram = self.products[:width, :width] + self.total * np.outer(mean, mean)
        if not intercept:
            return gram
        border = self.total * mean[:, None]
        return np.block([[gram, border], [border.T, np.full((1, 1), self.total)]])

    def normal_equations(self, width: int, k: int, intercept: bool) -> tuple[Array, Array, float]:
        """``A' diag(w) A``, ``A' diag(w) b`` and ``b' diag(w) b``, not centred, b being the k-th target."""
        whole, target = self.gram(self.mean.size, intercept), width + k
        columns = np.r_[:width, -1] if intercept else np.arange(width)
        return whole[np.ix_(columns, columns)], whole[columns, target], float(whole[target, target])


def of_rows(A: Any, targets: Array, weight: Array, products: bool = True) -> tuple[Array, Array | None]:
    """The weighted mean of the columns of ``[A, targets]``, and the products of what deviates from it.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses.moments import of_rows
    >>> mean, products = of_rows(np.array([[1.0], [3.0]]), np.array([[2.0], [6.0]]), np.ones(2))
    >>> mean, products
    (array([2., 4.]), array([[2., 4.],
           [4., 8.]]))
    """
    is_sparse, total = scipy.sparse.issparse(A), float(weight.sum())
    if is_sparse:
        Z = scipy.sparse.hstack([A.astype(np.float64, copy=False), scipy.sparse.csr_array(targets)], format="csr")
    elif is_numpy(A):
        Z = np.concatenate([A, targets], axis=1, dtype=np.float64)
    else:  # on a GPU, which alone adds up the products
        A = namespace(A).astype(A, namespace(A).float64)
        Z = namespace(A).concat([A, as_array_of(targets, A)], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        center = (weight if is_sparse else as_array_of(weight, Z)) @ Z / (total or 1.0)
        mean, square = as_numpy(center), None
        if products and is_sparse:
            square = weighted_gram(Z, weight) - total * np.outer(mean, mean)
        elif products:
            Z -= center
            Z *= as_array_of(np.sqrt(weight), Z)[:, None]
            square = as_numpy(Z.T @ Z)
    squares = 0.0 if square is None else np.diagonal(square)  # no product is larger than the largest of them
    if not (np.isfinite(mean).all() and np.isfinite(squares).all()):
        raise ValueError("X or y is too large for the squares of its entries; scale it first")
    return mean, square


def mean_squared_loss(found: Moments, width: int, targets: Any, intercept: bool, dtype: Any) -> QuadraticLoss:
    """The mean squared loss for a target, by its number, or for several; of centred columns with an intercept."""
    columns, products = width + np.asarray(targets), found.products / found.total
    if intercept:  # what centring leaves of a constant column or target is rounding, and counts as nothing
        varies = np.diagonal(products) > rounding(found.mean, products) ** 2
        products *= np.outer(varies, varies)
    else:
        products += np.outer(found.mean, found.mean)
    square = np.sum(np.diagonal(products)[columns])
    return QuadraticLoss(products[:width, :width], products[:width, columns], square / 2, dtype)


def mean_squared_losses(
    found: Moments, width: int, intercept: bool, dtype: Any, shared: bool
) -> list[tuple[Any, Array, Any]]:
    """The mean squared loss of each target, or of all in one, with the means of columns and targets taken out."""
    means, levels = (part.astype(dtype) * intercept for part in np.split(found.mean, [width]))
    which: Any = [np.arange(levels.size)] if shared else range(levels.size)
    return [(mean_squared_loss(found, width, k, intercept, dtype), means, levels[k]) for k in which]


def _merge_labels(one: Moments, other: Moments) -> tuple[Array | None, Array | None]:
    if one.labels is None or other.labels is None:
        return None, None
    if one.labels.size == 0:  # and of a dtype that says nothing
        return other.labels, other.label_weights
    both = np.concatenate([one.labels, other.labels]), np.concatenate([one.label_weights, other.label_weights])
    return _counted(*both)


def _counted(y: Array, weight: Array) -> tuple[Array, Array]:
    """The different labels, and the weight of each."""
    try:
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"y must hold labels of one kind, none of them missing: {error}") from error
    return labels, np.bincount(codes, weight, labels.size)


def moments(block: Block, products: bool, role: str) -> Moments:
    """The moments of a block; y is among the columns as a "target", or its "labels" are gathered, or "none" is."""
    with naming(block.name):
        parts = []
        nothing = (np.zeros((0, block.kind.width)), block.y[:0], np.zeros(0))
        for A, y, given in list(block.slices()) or [nothing]:
            weight = np.ones(len(y)) if given is None else given
            found = _counted(y, weight) if role == "labels" else ()
            if found and found[0].size > MOST_CLASSES:
                raise ValueError(f"y holds over {MOST_CLASSES} different labels; is it meant for regression?")
            parts.append(Moments.of(A, _targets(y, role), weight, products, *found))
        return reduce(add, parts)


def _targets(y: Array, role: str) -> Array:
    """The columns of y that are measured."""
    if role != "target":
        return np.empty((len(y), 0))
    try:
        return np.asarray(y[:, None] if y.ndim == 1 else y, dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"y must hold numbers: {error}") from error
