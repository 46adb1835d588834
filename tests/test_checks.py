"""Checks of arguments, each by what it lets pass and by the name in its error."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

import ell12
from ell12 import checks

NO_NUMBERS = ["word", None, object(), [1.0], {}, 1j, math.nan, -1.0, math.inf, 10**400, np.array([1.0, 2.0])]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_finite_number_is_refused_by_name(value):
    for check in (
        lambda: checks.set_numbers(SimpleNamespace(alpha=value), "alpha"),
        lambda: checks.check_positive(value, "alpha"),
        lambda: checks.check_scalars(alpha=value),
        lambda: checks.check_share(value, "alpha"),
    ):
        with pytest.raises(ValueError, match=r"^alpha must"):
            check()


def with_bad_index(kind, index):
    A = scipy.sparse.random_array((30, 8), density=0.4, format=kind, random_state=0)
    (A.coords[1] if kind == "coo" else A.indices)[3] = index
    return A


def with_bad_starts():
    A = scipy.sparse.random_array((30, 8), density=0.4, format="csr", random_state=0)
    A.indptr[4] = 10**6
    return A


y = np.random.default_rng(0).standard_normal(30)
ENTRIES = {
    "minimize": lambda X: ell12.minimize(ell12.SquaredLoss(X, y), ell12.L12(0.1)),
    "rows": lambda X: ell12.losses.RowsLoss([(X, y)]),
    "columns": lambda X: ell12.l12_path(ell12.Columns(X), y),
    "path": lambda X: ell12.l12_path(X, y),
    "recover": lambda X: ell12.recover_sparse(X, y),
    "fit": lambda X: ell12.L12Regressor().fit(X, y),
    "predict": lambda X: ell12.L12Regressor(0.1).fit(np.eye(8), y[:8]).predict(X),
    "partial_fit": lambda X: ell12.L12Regressor().partial_fit(X, y),
    "cross-validation": lambda X: ell12.L12RegressorCV().fit(X, y),
    "classifier": lambda X: ell12.L12Classifier().fit(X, y > 0),
    "survival": lambda X: ell12.L12CoxRegressor().fit(X, np.abs(y)),
    "intervals": lambda X: ell12.confidence_intervals(X, y),
    "stability": lambda X: ell12.StabilitySelection().fit(X, y),
    "completion": lambda X: ell12.complete_matrix(X, 0.1),
    "imputer": lambda X: ell12.L12Imputer().fit(X),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("index", [10**7, 100, -5])
def test_a_sparse_matrix_with_an_index_out_of_range_is_refused_where_it_comes_in(entry, index):
    for X in (with_bad_index("csr", index), with_bad_index("csc", index)):
        with pytest.raises(ValueError, match=r"index"):
            ENTRIES[entry](X)


@pytest.mark.parametrize("X", [with_bad_index("coo", 100), with_bad_starts()], ids=["coo", "starts"])
def test_so_are_others_that_products_would_follow(X):
    with pytest.raises(ValueError, match="index out of range"):
        ell12.SquaredLoss(X, y)


A = np.random.default_rng(1).standard_normal((30, 8))


@pytest.mark.parametrize("kind", [np.ndarray, list, ell12.SquaredLoss, scipy.sparse.csr_array])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("A", lambda kind: ell12.SquaredLoss(kind, y)),
        ("b", lambda kind: ell12.SquaredLoss(A, kind)),
        ("sample_weight", lambda kind: ell12.SquaredLoss(A, y, sample_weight=kind)),
        ("offset", lambda kind: ell12.PoissonLoss(A, np.abs(y), offset=kind)),
        ("time", lambda kind: ell12.losses.CoxLoss(A, kind)),
        ("G", lambda kind: ell12.losses.QuadraticLoss(kind, y)),
        ("x0", lambda kind: ell12.minimize(ell12.SquaredLoss(A, y), ell12.L12(0.1), kind)),
        ("z", lambda kind: ell12.prox_l12(kind, 1.0)),
        ("X", lambda kind: ell12.L12Regressor().fit(kind, y)),
        ("X", lambda kind: ell12.complete_matrix(kind, 0.1)),
        ("image", ell12.denoise_tv),
    ],
)
def test_a_class_in_place_of_an_array_is_refused_by_name(name, call, kind):
    with pytest.raises(TypeError, match=rf"^{name}\b"):
        call(kind)
