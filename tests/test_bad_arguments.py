"""Bad arguments that once reached NumPy, SciPy or scikit-learn: the error names the argument."""

import math
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import scipy.sparse

import ell12
from ell12 import checks

A = np.random.default_rng(0).standard_normal((12, 3))
b = A[:, 0]
RAGGED = [[1.0, 2.0], [3.0]]


def stationary(x):
    return ell12.stationarity(ell12.SquaredLoss(A, b), ell12.L12(0.5), x)


CALLS = [
    ("axis", lambda: ell12.prox_l12(A, 1.0, axis=0.5)),
    ("s", lambda: ell12.LowRank(np.ones((2, 1)), np.array(["a"]), np.ones((2, 1)))),
    ("shape", lambda: ell12.Observed([0], [0], [1.0], (1.5, 2))),
    ("alpha", lambda: ell12.complete_matrix(A, 10**400)),
    ("X", lambda: ell12.L12Regressor().fit(b, b)),
    ("sample_weight", lambda: ell12.L12CoxRegressor().fit(A, np.exp(b), sample_weight=1e-300)),
    ("y", lambda: ell12.L12CoxRegressor().fit(A, np.c_[b, 0 * b])),
    ("b", lambda: ell12.losses.MultinomialLoss(A, np.full(12, np.inf))),
    ("penalty", lambda: ell12.L12Regressor(penalty=ell12.FISTA()).fit(A, b)),
    ("scale", lambda: ell12.LogisticLoss(A.astype(np.float32), np.sign(b), scale=1e300)),
    ("x", lambda: ell12.penalties.TruncatedNuclear(1.0).prox(np.ones(3), 1.0)),
    ("step", lambda: ell12.penalties.SpectralLogSum(1.0).prox(np.eye(2), "word")),
    ("x", lambda: stationary(np.ones(4))),
    ("x", lambda: stationary(np.array([np.inf, 0.0, 0.0]))),
    ("x", lambda: ell12.stationarity(ell12.completion.CompletionLoss(A), ell12.SpectralL12(1.0), A)),
    ("alphas", lambda: ell12.l12_path(A, b, alphas=np.array([[1]]))),
    ("alphas", lambda: ell12.L12ClassifierCV(alphas=10**400).fit(A, b > 0)),
    ("b", lambda: ell12.losses.RowsLoss([(A, RAGGED)]).start()),
    ("X", lambda: ell12.l12_path(A[:-1], b)),
    ("n_jobs", lambda: ell12.L12RegressorCV(n_jobs=0).fit(A, b)),
    ("max_iter", lambda: ell12.solution_path(ell12.SquaredLoss(A, b), ell12.L12(), max_iter=None)),
    ("y", lambda: ell12.L12Classifier().fit(A, b)),
    ("sample_weight", lambda: ell12.L12Regressor().fit(A, b, sample_weight=np.inf)),
    ("t", lambda: ell12.prox.prox_l12_iterative(b, np.array([[1.0]]))),
    ("b", lambda: ell12.losses.RowsLoss([(A, scipy.sparse.csr_array(A))]).start()),
    ("scale", lambda: ell12.SquaredLoss(A, b, scale=10**400)),
    ("G", lambda: ell12.losses.QuadraticLoss(-np.eye(2), np.ones(2))),
    ("G", lambda: ell12.losses.QuadraticLoss(1e-310 * np.eye(2), np.ones(2))),
    ("c", lambda: ell12.losses.QuadraticLoss(np.eye(2), np.array([1e250, 1.0]))),
    ("clip", lambda: ell12.L12Recommender(clip=np.array(0.5)).fit(scipy.sparse.csr_array(A))),
    ("x", lambda: ell12.TotalVariationL12(1.0).prox([[1e-200, 0.0]], 1.0)),
    ("y", lambda: ell12.confidence_intervals(A, RAGGED)),
    ("loss", lambda: ell12.denoise_tv(np.eye(16), loss=np.array([0.5, 2.0]))),
    ("x", lambda: ell12.TotalVariationL12(1.0).prox(np.full((4, 4), 1e-200), 1.0)),
    ("x", lambda: ell12.penalties.TruncatedNuclear(1.0).prox(A[..., None], 1.0)),
    ("x", lambda: ell12.penalties.NoPenalty().prox(RAGGED, 1.0)),
    ("X", lambda: ell12.complete_matrix(pandas.DataFrame(np.full((3, 2), "word")), 1.0)),
    ("penalty", lambda: ell12.complete_matrix(A, 1.0, penalty=ell12.L12())),
    ("solver", lambda: ell12.completion.completion_path(A, solver=ell12.FISTA())),
    ("psf", lambda: ell12.deblur_tv(np.eye(16), np.full((3, 3), 1e-311), 0.1)),
    ("cv", lambda: ell12.L12RegressorCV(cv=[]).fit(A, b)),
    ("z", lambda: ell12.prox_l12(pytest.importorskip("torch").eye(3).to_sparse(), 1.0)),
    ("psf", lambda: ell12.deblur_tv(np.eye(16), pytest.importorskip("torch").ones((3, 3)), 0.1)),
    ("mask", lambda: ell12.reconstruct_mri(A, np.ma.masked_less(A > 0, 0), 0.1)),
]


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_the_error_names_the_argument(name, call):
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        call()


def graded(x):
    return pytest.importorskip("torch").tensor(x, requires_grad=True)


GRADED = [
    ("A", lambda: ell12.SquaredLoss(graded(A), b)),
    ("b", lambda: ell12.SquaredLoss(graded(A).detach(), graded(b))),
    ("x0", lambda: ell12.minimize(ell12.SquaredLoss(graded(A).detach(), b), ell12.L12(0.5), graded(b[:3]))),
    ("y", lambda: ell12.l12_path(graded(A).detach(), graded(b))),
    ("X", lambda: ell12.L12Regressor().fit(graded(A), b)),
    ("X", lambda: ell12.L12Imputer().fit(graded(A))),
    ("X", lambda: ell12.complete_matrix(graded(A), 1.0)),
    ("image", lambda: ell12.denoise_tv(graded(A), 0.1)),
]


@pytest.mark.parametrize(("name", "call"), GRADED)
def test_tensors_that_require_gradients_are_refused_by_name(name, call):
    with pytest.raises(TypeError, match=rf"^{name} requires gradients.*{name}.detach"):
        call()


@pytest.mark.parametrize("engine", [ell12.completion.FactoredAPG(), ell12.completion.AlternatingLeastSquares(2)])
def test_engines_on_factors_refuse_arrays_of_other_libraries_by_name(engine):
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match=r"X must be a NumPy, PyTorch or CuPy array.*BlockAPG"):
        ell12.complete_matrix(strict.asarray(A), 1.0, solver=engine, scale=None, center=None)


def test_the_parts_of_a_low_rank_matrix_are_arrays_of_one_library():
    with pytest.raises(TypeError, match="U, s and V"):
        ell12.LowRank(graded(np.eye(3)[:, :1]).detach(), np.ones(1), np.eye(2)[:, :1])


@pytest.mark.parametrize("dtype", ["int64", "float16"])
def test_tensors_of_integers_and_in_half_precision_are_computed_in_single(dtype):
    torch = pytest.importorskip("torch")
    matrix = torch.as_tensor(np.eye(4)).to(getattr(torch, dtype))
    result = ell12.minimize(ell12.SquaredLoss(matrix, np.ones(4)), ell12.L12(0.5))
    assert result.converged
    assert result.x.dtype == torch.float32
    loss = ell12.SquaredLoss(matrix, np.ones(4))
    assert ell12.stationarity(loss, ell12.L12(0.5), np.asarray(result.x, dtype=float)) < 1e-3
    assert ell12.restore_tv(np.ones(4), ell12.operators.Reshaped(matrix, (2, 2)), 0.1).dtype == torch.float32


@pytest.mark.parametrize(
    "penalty", [ell12.SpectralL12(1.0), ell12.penalties.SpectralLogSum(1.0), ell12.penalties.TruncatedNuclear(1.0)]
)
def test_spectral_penalties_keep_any_precision(penalty):
    for dtype in (np.float16, np.longdouble):
        found = penalty.prox(A.astype(dtype), 0.5)
        assert found.dtype == dtype
        np.testing.assert_allclose(found.astype(float), penalty.prox(A, 0.5), atol=5e-3)
        assert abs(penalty.value(A.astype(dtype)) - penalty.value(A)) < 2e-2


def test_a_tolerance_whose_square_overflows_ends_conjugate_gradients_at_once():
    solver = ell12.restoration.AlternatingMinimization(cg_tol=1e300)
    assert np.isfinite(ell12.denoise_tv(A, 0.1, solver=solver, max_iter=3, return_result=True).image).all()


def test_a_path_does_not_go_on_from_a_run_that_diverged():
    # At l2_weight 3 the logistic loss with its penalty has no minimum.
    loss, alphas = ell12.LogisticLoss(A, np.where(b > 0, 1.0, -1.0), scale=1 / len(b)), np.geomspace(1, 0.01, 5)
    with np.errstate(all="ignore"):
        results = ell12.path.path_results(loss, ell12.L12(1.0, 3.0), alphas, max_iter=1000, tol=1.0)
    assert not all(result.converged for result in results)
    assert all(np.isfinite(result.x).all() for result in results)


def test_stationarity_is_infinite_where_the_gradient_overflows():
    with np.errstate(all="ignore"):
        assert stationary(np.array([np.finfo(float).max, 0.0, 0.0])) == np.inf


def test_a_single_weight_of_zero_goes_with_tensors():
    torch = pytest.importorskip("torch")
    found = ell12.L1(1.0, weights=0).prox(torch.as_tensor(b), 1.0)
    np.testing.assert_array_equal(found.numpy(), b)


def test_subclasses_of_arrays_are_arrays():
    found = ell12.prox_l12(A.view(type("Subclass", (np.ndarray,), {})), 0.5)
    np.testing.assert_array_equal(found, ell12.prox_l12(A, 0.5))


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


RESPONSE = np.random.default_rng(0).standard_normal(30)
ENTRIES = {
    "minimize": lambda X: ell12.minimize(ell12.SquaredLoss(X, RESPONSE), ell12.L12(0.1)),
    "rows": lambda X: ell12.losses.RowsLoss([(X, RESPONSE)]),
    "columns": lambda X: ell12.l12_path(ell12.Columns(X), RESPONSE),
    "path": lambda X: ell12.l12_path(X, RESPONSE),
    "recover": lambda X: ell12.recover_sparse(X, RESPONSE),
    "fit": lambda X: ell12.L12Regressor().fit(X, RESPONSE),
    "predict": lambda X: ell12.L12Regressor(0.1).fit(np.eye(8), RESPONSE[:8]).predict(X),
    "partial_fit": lambda X: ell12.L12Regressor().partial_fit(X, RESPONSE),
    "cross-validation": lambda X: ell12.L12RegressorCV().fit(X, RESPONSE),
    "classifier": lambda X: ell12.L12Classifier().fit(X, RESPONSE > 0),
    "survival": lambda X: ell12.L12CoxRegressor().fit(X, np.abs(RESPONSE)),
    "intervals": lambda X: ell12.confidence_intervals(X, RESPONSE),
    "stability": lambda X: ell12.StabilitySelection().fit(X, RESPONSE),
    "completion": lambda X: ell12.complete_matrix(X, 0.1),
    "imputer": lambda X: ell12.L12Imputer().fit(X),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("index", [10**7, 100, -5])
def test_a_sparse_matrix_with_an_index_out_of_range_is_refused_where_it_comes_in(entry, index):
    for X in (with_bad_index("csr", index), with_bad_index("csc", index)):
        with pytest.raises(ValueError, match=r"index"):
            ENTRIES[entry](X)


def test_so_are_others_that_products_would_follow():
    starts = with_bad_index("csr", 0)
    starts.indptr[4] = 10**6
    for X in (with_bad_index("coo", 100), starts):
        with pytest.raises(ValueError, match="index out of range"):
            ell12.SquaredLoss(X, RESPONSE)
