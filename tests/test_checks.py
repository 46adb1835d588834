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


@pytest.mark.parametrize("value", [2, 0.5, np.float32(0.5), np.int64(2), True])
def test_numbers_of_any_type_become_floats(value):
    thing = SimpleNamespace(alpha=value)
    checks.set_numbers(thing, positive="alpha")
    assert type(thing.alpha) is float
    assert thing.alpha == value


def test_a_word_may_stand_for_a_number():
    checks.check_positive("auto", "step", "auto")
    with pytest.raises(ValueError, match="step must be a finite number > 0 or one of auto; got 'word'"):
        checks.check_positive("word", "step", "auto")
    with pytest.raises(ValueError, match="prox must be 'a' or 'b', got"):
        checks.check_word(np.array(["a", "b"]), "prox", "a", "b")


@pytest.mark.parametrize("value", [1.5, "3", True, -1, [3], math.nan])
def test_what_is_no_count_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"^n must be a whole number >= 0"):
        checks.check_counts(n=value)


def test_none_is_a_count_only_where_it_may_be():
    checks.check_counts(n=None)
    with pytest.raises(ValueError, match=r"^n must be a whole number >= 1, got None"):
        checks.check_counts(n=None, least=1, optional=False)


@pytest.mark.parametrize("value", ["word", 1.5, -1, object(), np.ma.masked, {}])
def test_what_seeds_nothing_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"^random_state must be"):
        checks.generator(value)
    for solver in (
        ell12.solvers.SAGA,
        ell12.solvers.ProxSVRG,
        ell12.completion.BlockAPG,
        ell12.completion.AlternatingLeastSquares,
    ):
        with pytest.raises(ValueError, match=r"^random_state must be"):
            solver(random_state=value)


OPTIONS = [
    (ell12.solvers.SupportNewton, "switch"),
    (ell12.solvers.SupportNewton, "step"),
    (ell12.DCA, "penalty_weight"),
    (ell12.DCA, "inner_tol"),
    (ell12.DCA, "inner_max_iter"),
    (ell12.NonmonotoneAPG, "eta"),
    (ell12.NonmonotoneAPG, "delta"),
    (ell12.solvers.ProxSVRG, "batch_size"),
    (ell12.solvers.ProxSVRG, "passes"),
    (ell12.restoration.AlternatingMinimization, "inner"),
    (ell12.restoration.AlternatingMinimization, "cg_tol"),
    (ell12.restoration.AlternatingMinimization, "cg_max_iter"),
    (ell12.restoration.TotalVariationDCA, "penalty_weight"),
    (ell12.restoration.TotalVariationDCA, "inner_max_iter"),
    (ell12.restoration.GrowingADMM, "growth"),
    (ell12.restoration.GrowingADMM, "first_threshold"),
]


BAD = [
    (solver, option, value)
    for solver, option in OPTIONS
    for value in ("word", None, [], np.array([0.5, 2.0]), -1)
    if option != "first_threshold" or value is not None  # which stands for the range of the image
]


@pytest.mark.parametrize(("solver", "option", "value"), BAD)
def test_a_bad_option_of_a_solver_is_refused_by_name(solver, option, value):
    with pytest.raises(ValueError, match=rf"^{option} must"):
        solver(**{option: value})


# What is allowed depends on what a check is told, not on the argument's name.


@pytest.mark.parametrize("name", ["alpha", "weights", "l2_weight", "t"])
def test_only_parameters_decide_what_numbers_may_be(name):
    checks.check_numbers(**{name: 1.0})
    checks.check_numbers(**{name: [0.0, 2.0]})
    checks.check_numbers(infinite=True, **{name: [0.0, math.inf]})
    with pytest.raises(ValueError, match=rf"^{name} must hold finite numbers >= 0 only"):
        checks.check_numbers(**{name: [0.0, math.inf]})
    with pytest.raises(ValueError, match=rf"^{name} must hold numbers >= 0 only"):
        checks.check_numbers(infinite=True, **{name: [0.0, math.nan]})
    with pytest.raises(ValueError, match=rf"^{name} must be one number, got shape \(2,\)"):
        checks.check_numbers(single=True, **{name: [0.0, 2.0]})
    with pytest.raises(ValueError, match=rf"^{name} must be a finite number >= 0, got -1"):
        checks.check_numbers(**{name: -1})
    for bad in (None, "1", [1j]):
        with pytest.raises(TypeError, match=rf"^{name} must hold real numbers"):
            checks.check_numbers(**{name: bad})


@pytest.mark.parametrize("name", ["tol", "alpha"])
def test_only_parameters_decide_what_scalars_may_be(name):
    checks.check_scalars(infinite=True, **{name: math.inf})
    checks.check_scalars(**{name: np.float32(0.5)})
    for bad in (math.inf, -1.0, math.nan, None, "1", [1.0]):
        with pytest.raises(ValueError, match=rf"^{name} must be a finite number >= 0, got"):
            checks.check_scalars(**{name: bad})


@pytest.mark.parametrize("name", ["max_rank", "passes"])
def test_only_parameters_decide_what_counts_may_be(name):
    checks.check_counts(**{name: 0})
    checks.check_counts(least=1, **{name: None})
    with pytest.raises(ValueError, match=rf"^{name} must be a whole number >= 1, got 0"):
        checks.check_counts(least=1, **{name: 0})
    for bad in (-1, 1.5, True, "2"):
        with pytest.raises(ValueError, match=rf"^{name} must be a whole number >= 0, got"):
            checks.check_counts(**{name: bad})


def test_arrays_of_other_libraries_are_not_looked_at():
    library = pytest.importorskip("array_api_strict")
    checks.check_numbers(alpha=library.asarray([-1.0]))


def test_an_array_passes_as_it_is_and_a_list_becomes_one():
    x = np.ones(3, dtype=np.float32)
    assert checks.as_array(x, "x") is x
    assert checks.as_array([1, 2], "x").dtype == np.float64
    assert checks.as_array(np.ones(2, dtype=">f8"), "x").dtype.isnative
    with pytest.raises(TypeError, match=r"^x must hold numbers"):
        checks.as_array("text", "x")


def test_a_step_becomes_a_float():
    assert type(checks.as_step(np.float64(2))) is float
    with pytest.raises(ValueError, match=r"^step must be a finite number >= 0, got \[1\.0\]"):
        checks.as_step([1.0])


def test_weights_must_broadcast():
    checks.check_weights(np.ones(3), (2, 3))
    checks.check_weights(2.0, (5,))
    for shape in ((2,), (2, 3, 3)):
        with pytest.raises(ValueError, match="do not broadcast to the shape"):
            checks.check_weights(np.ones(shape), (2, 3))


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
