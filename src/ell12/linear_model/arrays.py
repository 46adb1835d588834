"""Arrays other than NumPy's, where scikit-learn is set to let them pass: ``array_api_dispatch=True``.

They stay what and where they are, and coefficients come out as X went in. Without that setting scikit-learn makes
NumPy arrays of them before any of this is asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn import get_config
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_X_y

from ell12.backend import as_numpy, beside, device, is_numpy, namespace
from ell12.operators import is_far
from ell12.protocols import Array


def passes(values: Any) -> bool:
    """Whether values are an array that is not NumPy's and that scikit-learn lets pass."""
    foreign = hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray | np.generic)
    return foreign and bool(get_config().get("array_api_dispatch", False))


def floating_dtypes(X: Any) -> tuple[Any, Any]:
    """Double and single precision, in the terms of the library that X is of."""
    xp = namespace(X) if passes(X) else np
    return xp.float64, xp.float32


def follow(values: Any, X: Any) -> Any:
    """``values`` as the kind of array that X is, and where X is; what is no array, or no number, as it is."""
    if not (passes(values) or (passes(X) and is_numpy(values))):
        return values
    if passes(values) and passes(X) and namespace(values) is namespace(X) and device(values) == device(X):
        return values
    values = as_numpy(values)
    return beside(values, X, "y") if passes(X) and values.dtype.kind in "biuf" else values


def check_follows(X: Any, model: Any, method: str) -> None:
    """Raise if X is another kind of array than the coefficients, or elsewhere."""
    coef = model.coef_
    if not isinstance(coef, np.ndarray) and not passes(coef):
        kind = type(coef).__module__.split(".")[0]
        raise ValueError(
            f"{type(model).__name__} was fitted to arrays of {kind}: {method} needs scikit-learn's setting"
            " array_api_dispatch=True, as fit did"
        )
    if not (passes(X) or passes(coef)):
        return
    same = passes(X) and passes(coef) and namespace(X) is namespace(coef) and device(X) == device(coef)
    if not same:
        given, known = (type(values).__module__.split(".")[0] for values in (X, coef))
        raise ValueError(
            f"Inputs passed to {type(model).__name__}.{method}() must use the same namespace and the same device"
            f" as those passed to fit(): X is of {given}, coef_ of {known}, or they are on different devices."
        )


def check_numpy(X: Any, what: str) -> None:
    """Raise if X is another kind of array than NumPy's, where no other will do."""
    if passes(X) or is_far(X):
        raise TypeError(f"{what} needs NumPy arrays or sparse matrices, got {type(X).__name__}")


def check_columns(model: Any, X: Any, *, reset: bool = False) -> None:
    """Compare the number of columns of an `ell12.Columns` with that of the fit, or take note of it."""
    _check_feature_names(model, X, reset=reset)
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
