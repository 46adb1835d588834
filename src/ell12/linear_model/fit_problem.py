"""From data to a loss and back: kinds of arrays, centring, intercepts, sample weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn import get_config
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_X_y

from ell12.backend import (
    as_array_of,
    as_numpy,
    device,
    is_array,
    is_numpy,
    namespace,
    norm,
    power_of_2,
    precision,
    to_device_of,
    total,
)
from ell12.linear_model.families import NoInformation, weighted_mean
from ell12.losses.multinomial import Classwise
from ell12.operators import input_shape, is_out_of_memory
from ell12.operators.centering import CenteredColumns, column_squares
from ell12.operators.gram import column_sums
from ell12.penalties import GroupL12, WithIntercept
from ell12.protocols import Array, ColumnLoss, offers


class Data(NamedTuple):
    """Rows, their targets, and what else belongs to each row."""

    X: Any
    y: Any
    sample_weight: Any = None
    offset: Any = None

    def rows(self, which: Array) -> Data:
        """Some of the rows."""
        return Data(*(_rows(values, which) for values in self))


class CentredData:
    """The columns of X, which were checked before, made ready for a solver.

    Where there is an intercept the columns are centred, which changes the intercept alone and makes the problem
    easier. The squared loss then needs no intercept; others get one as the last entry of x (``constant``).
    A sparse X, and columns out of memory (`ell12.Columns`), are centred implicitly; these are read once for it.

    With ``standardize`` the columns are divided by their standard deviations (without ``center``, by the roots of
    their mean squares), and coefficients are returned in the units of X.

    The intercept's column is not of ones but of the size of the others, so that a fit takes as many steps whatever
    the units of X: next to columns of 1e-8, ones would make steps of a gradient method 1e16 times too short.
    """

    means: Any

    def __init__(
        self, X: Any, sample_weight: Any, *, center: bool, constant: bool, standardize: bool = False
    ) -> None:
        self.sample_weight, self.scale, self.constant = sample_weight, None, float(constant)
        self.total = float(X.shape[0]) if sample_weight is None else _sum(sample_weight)
        if self.total == 0:
            raise NoInformation("sample_weight sums to zero: no sample is left to fit")
        if standardize:
            if is_out_of_memory(X):
                raise ValueError("standardize=True needs X in memory; scale the columns of the source")
            unit = self.scale = self._scale(X, center)
            X = X / unit if is_array(X) else (X @ scipy.sparse.diags_array(1 / unit)).asformat(X.format)
        empty, squares = None, None
        if not center:
            means = np.zeros(X.shape[1], X.dtype) if not is_array(X) else namespace(X).zeros_like(X[0, :])
        elif is_out_of_memory(X):  # one read tells the means, the size of entries, and which columns are constant
            means, squares = X.moments(sample_weight)
            means, empty = means.astype(X.dtype), squares == 0
        else:
            means, empty = _exact_where_constant(self._mean(X), X)
        self.means = means if self.scale is None else means * self.scale
        if is_array(X):
            self.A = X - means if center else X
        else:
            empty = empty if empty is not None and empty.any() else None
            self.A = CenteredColumns(X, means, 0.0, empty) if center or constant else X
        if constant:
            self._add_constant(squares, center)

    def _add_constant(self, squares: Any, center: bool) -> None:
        """Add the intercept's column to A; the sums of the squares of the others may be known."""
        A, size = self.A, 1.0
        if center and is_array(A):
            size = norm(A) / math.sqrt(math.prod(A.shape))
        elif center:
            rows = self.total
            if squares is None:
                rows, squares = A.A.shape[0], column_squares(A, np.ones(A.A.shape[0], dtype=A.dtype))
            size = math.sqrt(float(squares.mean()) / rows)
        self.constant = power_of_2(size)  # by which nothing is rounded
        if isinstance(A, CenteredColumns):
            self.A = replace(A, constant=self.constant)
        else:
            xp = namespace(A)
            self.A = xp.concat([A, xp.full_like(A[:, :1], self.constant)], axis=1)

    def _mean(self, X: Any) -> Array:
        """The means of the columns, weighted."""
        if not scipy.sparse.issparse(X):
            return weighted_mean(X, self.sample_weight)
        weight = np.ones(X.shape[0]) if self.sample_weight is None else self.sample_weight
        return (column_sums(X, weight) / self.total).astype(X.dtype)

    def _scale(self, X: Any, center: bool) -> Array:
        """The root of the mean square of each column, less its mean with ``center``; 1 where that is rounding."""
        means = self._mean(X)
        shift = means if center else 0 * means
        if scipy.sparse.issparse(X):
            weight = np.ones(X.shape[0]) if self.sample_weight is None else self.sample_weight
            squares = column_squares(CenteredColumns(X, shift), weight) / self.total
        else:
            squares = weighted_mean((X - shift) ** 2, self.sample_weight)
        xp = namespace(means)
        scale = xp.astype(xp.sqrt(squares), means.dtype)
        return xp.where(scale > 8 * precision(means) * xp.abs(means), scale, 1)

    def problem(self, family: Any, y: Array, offset: Any = None, *, intercept: bool = False) -> FitProblem:
        """The mean loss of this family on a target, or on several at once."""
        known = 0.0 if offset is None else offset
        level = family.level(y, self.sample_weight, known) if intercept else 0.0
        numbers = {"sample_weight": self.sample_weight, "scale": 1 / self.total}
        if family.joint:
            loss = family.loss(self._classwise(y.shape[1]), y, offset=known + level, **numbers)
            return FitProblem(loss, self.means, level, self.constant, n_classes=y.shape[1], scale=self.scale)
        loss = family.loss(self.A, y, offset=known + level, **numbers)
        n_targets = 0 if not family.centred or y.ndim == 1 else y.shape[1]
        return FitProblem(loss, self.means, level, self.constant, n_targets, scale=self.scale)

    def _classwise(self, classes: int) -> Classwise:
        """The columns once for each class.

        A constant that is added to all intercepts changes nothing: the last one is held at zero, or a Newton step
        might go any length in that direction.
        """
        if is_out_of_memory(self.A):
            raise ValueError("loss='multinomial' needs X in memory; loss='logistic' takes columns from a source")
        entries = np.arange(classes * input_shape(self.A)[0] - 1) if self.constant else None
        return Classwise(self.A, classes, entries)


@dataclass(frozen=True)
class FitProblem:
    """A loss, and how its unknown x makes coefficients and intercepts.

    Parameters
    ----------
    loss : Loss
        Of columns less their means.
    means : array of shape (n_features,)
        The means, zeros where there is no intercept.
    level : float or array of shape (n_targets,)
        The intercept for centred columns at x = 0.
    constant : float
        What the last entry of x is multiplied with to be added to the level; 0 where x does not hold it.
    n_targets : int, default 0
        How many columns x has; 0 where it is a vector.
    n_classes : int, default 0
        How many classes a vector x has an entry of for each column of A; 0 where it has one.
    scale : array of shape (n_features,), optional
        What the columns were divided by.
    """

    loss: Any
    means: Array
    level: Any
    constant: float
    n_targets: int = 0
    n_classes: int = 0
    scale: Any = None

    @property
    def n_rows(self) -> int:
        """How many rows of coefficients there are."""
        return self.n_targets or self.n_classes or 1

    @property
    def out_of_memory(self) -> bool:
        """Whether the columns are out of memory."""
        return offers(self.loss, ColumnLoss) and self.loss.out_of_memory

    def penalty(self, penalty: Any) -> Any:
        """The penalty of x, its intercepts left out."""
        penalty = self.coefficient_penalty(penalty)
        return WithIntercept(penalty, self.n_intercepts) if self.n_intercepts else penalty

    def coefficient_penalty(self, penalty: Any) -> Any:
        """The penalty of the coefficients in x: of each class, where the data are."""
        if self.n_classes:
            penalty = per_class(penalty, self.n_classes)
        if passes(self.means):  # sent once, not at every step
            penalty = _with_arrays(penalty, lambda a: a if a.dtype.kind == "b" else as_array_of(a, self.means))
        return penalty

    @property
    def n_intercepts(self) -> int:
        """How many entries at the end of x, or rows, are intercepts; that of the last of several classes is 0."""
        return (self.n_classes - 1 if self.n_classes else 1) if self.constant else 0

    def coefficients(self, x: Array) -> tuple[Array, Array]:
        """The coefficients of the columns of X as they were given, a row for each target, and the intercepts."""
        xp = namespace(x)
        if self.n_classes and self.constant:
            x = xp.concat([x, 0 * x[:1]])
        rows = xp.reshape(x, (-1, self.n_rows)).T
        coef = rows[:, :-1] if self.constant else rows
        coef = coef if self.scale is None else coef / self.scale
        level = (self.level + self.constant * rows[:, -1] if self.constant else self.level) - coef @ self.means
        if self.n_classes:  # a constant added to all changes nothing
            level = level - xp.mean(level)
        return coef, level

    def unknown(self, coef: Array, intercept: Array) -> Array:
        """The x that has these coefficients and intercepts: the inverse of `coefficients`."""
        xp = namespace(coef)
        rows = coef if self.scale is None else coef * self.scale
        if self.constant:
            last = (intercept + coef @ self.means - self.level) / self.constant
            rows = xp.concat([rows, (last - last[-1] if self.n_classes else last)[:, None]], axis=1)
        if self.n_targets:
            return rows.T
        x = xp.reshape(rows.T, (-1,))
        return x[:-1] if self.n_classes and self.constant else x


def per_class(penalty: Any, classes: int) -> Any:
    """The penalty of a vector that has an entry of every class for each feature: each class has its own groups.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import GroupL12
    >>> from ell12.linear_model.fit_problem import per_class
    >>> per_class(GroupL12([0, 0, 1]), 2).units(6)
    array([0, 1, 0, 1, 2, 3])
    """
    if not isinstance(penalty, GroupL12):
        return _with_arrays(penalty, lambda values: np.repeat(values, classes))
    own = (classes * penalty.groups.labels[:, None] + np.arange(classes)).reshape(-1)
    weights = None if penalty.weights is None else np.repeat(penalty.weights, classes)
    return replace(penalty, groups=own, weights=weights)


def _with_arrays(penalty: Any, change: Callable[[Array], Array]) -> Any:
    """The penalty with other arrays in its fields."""
    names = [field.name for field in fields(penalty) if field.init]
    arrays = {name: vars(penalty)[name] for name in names}
    changed = {name: change(values) for name, values in arrays.items() if isinstance(values, np.ndarray)}
    return replace(penalty, **changed) if changed else penalty


def _exact_where_constant(means: Array, X: Any) -> tuple[Array, Array | None]:
    """The means of the columns, exact where a column is constant; of a sparse matrix also which columns are.

    So nothing is left of such a column. As a rule that takes no other pass over X.
    """
    xp = namespace(means)
    first = X[0, :] if is_array(X) else X[[0]].toarray()[0]
    close = xp.abs(first - means) <= (8 + X.shape[0]) * precision(means) * xp.abs(means)
    if is_array(X):
        if bool(xp.any(close & (first != means))):
            means = xp.where(close & xp.all(first == X, axis=0), first, means)
        return means, None
    close = np.flatnonzero(close & (first != 0))
    if close.size == 0:
        return means, None
    constant, some = np.zeros(means.size, dtype=bool), X[:, close]
    constant[close] = np.ravel(some.min(axis=0).toarray()) == np.ravel(some.max(axis=0).toarray())
    return means, constant


def _sum(weight: Array) -> float:
    """The sum, in double precision where that is sure to exist."""
    return float(weight.sum(dtype=np.float64)) if is_numpy(weight) else total(weight)


def passes(values: Any) -> bool:
    """Whether values are an array that is not NumPy's and that scikit-learn lets pass."""
    foreign = hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray | np.generic)
    return foreign and bool(get_config().get("array_api_dispatch", False))


def accepted(X: Any) -> dict[str, Any]:
    """Sparse formats, and double and single precision in the terms of the library that X is of."""
    xp = namespace(X) if passes(X) else np
    return {"accept_sparse": ("csr", "csc"), "dtype": (xp.float64, xp.float32)}


def follow(values: Any, X: Any) -> Any:
    """``values`` as the kind of array that X is, and where X is; what is no array, or no number, as it is."""
    if not (passes(values) or (passes(X) and is_numpy(values))):
        return values
    if passes(values) and passes(X) and namespace(values) is namespace(X) and device(values) == device(X):
        return values
    values = as_numpy(values)
    return to_device_of(values, X, "y") if passes(X) and values.dtype.kind in "biuf" else values


def check_follows(X: Any, model: Any, method: str) -> None:
    """Raise if X is another kind of array than the coefficients, or elsewhere."""
    coef, name = model.coef_, type(model).__name__
    kinds = [(namespace(values), device(values)) if passes(values) else None for values in (X, coef)]
    if kinds[0] != kinds[1] or not (isinstance(coef, np.ndarray) or passes(coef)):
        given, known = (type(values).__module__.split(".")[0] for values in (X, coef))
        raise ValueError(
            f"Inputs passed to {name}.{method}() must use the same namespace and the same device as those passed"
            f" to fit(), and its setting array_api_dispatch=True: X is of {given}, coef_ of {known}"
        )


def check_numpy(X: Any, what: str) -> None:
    """Raise if X is another kind of array than NumPy's, where no other will do."""
    if passes(X) or is_out_of_memory(X):
        raise TypeError(f"{what} needs NumPy arrays or sparse matrices, got {type(X).__name__}")


def check_columns(model: Any, X: Any, *, reset: bool = False) -> None:
    """Compare the number and names of columns that are not in memory with those of the fit, or keep them."""
    _check_feature_names(model, getattr(X, "_meta", X), reset=reset)
    _check_n_features(model, X, reset=reset)


def targets_of_columns(model: Any, X: Any, y: Any, *, reset: bool = True, **checks: Any) -> tuple[Any, Any]:
    """X, which is an `ell12.Columns`, and the targets, checked as scikit-learn checks them."""
    checks = {name: checks[name] for name in ("multi_output", "y_numeric") if name in checks}
    _, y = check_X_y(np.zeros((X.shape[0], 1)), y, estimator=model, **checks)
    check_columns(model, X, reset=reset)
    return X, y


def as_vector(x: Any) -> Array:
    """A solution as an array, also one that a path keeps as a sparse column."""
    return x.toarray()[:, 0] if scipy.sparse.issparse(x) else x


def linear_functions(X: Any, coef: Array, intercept: Any) -> Array:
    """``X coef' + intercept``, dense."""
    product = X @ (coef.T if coef.ndim == 2 else coef)
    return (product.toarray() if scipy.sparse.issparse(product) else product) + intercept


def _rows(values: Any, which: Array) -> Any:
    """Some rows of an array of any kind, if there is one."""
    if values is None:
        return None
    return values[which] if is_out_of_memory(values) else _safe_indexing(values, which)
