import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import lasso_path

from ell12 import LogisticLoss, NonmonotoneAPG, SquaredLoss, Status, l12_path, minimize, stationarity
from ell12.datasets import compressed_sensing, correlated_design
from ell12.operators.centering import CenteredColumns, column_squares
from ell12.path import alpha_grid, alpha_max, falling, l12_penalty, one_sparse_fit, squared_loss
from ell12.penalties import L12, WithIntercept


def problem(seed=0, n=40, p=15):
    random = np.random.default_rng(seed)
    A = random.standard_normal((n, p)) * random.uniform(0.3, 3, p)
    return A, A[:, 2] - 0.5 * A[:, 7] + 0.3 * random.standard_normal(n)


def labels(b):
    return np.where(b + np.random.default_rng(9).standard_normal(len(b)) > 0.3, 1.0, -1.0)


# The beginning of the grid


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 0.9])
def test_below_one_zero_is_a_solution_from_alpha_max_on(l2_weight, nonnegative):
    loss = squared_loss(*problem())
    top = alpha_max(loss, l2_weight, nonnegative=nonnegative)
    for factor, is_solution in ((1.0001, True), (0.999, False)):
        penalty = l12_penalty(factor * top, l2_weight, nonnegative=nonnegative)
        assert (stationarity(loss, penalty, loss.start()) == 0) is is_solution


def brute_force_column(A, b):
    """The column with the least residual, by least squares on each."""
    rests = [np.linalg.lstsq(A[:, [j]], b, rcond=None)[1][0] for j in range(A.shape[1])]
    return int(np.argmin(rests))


@pytest.mark.parametrize("seed", range(4))
def test_at_one_the_best_single_column_is_a_solution_from_alpha_max_on(seed):
    A, b = problem(seed)
    loss = squared_loss(A, b)
    x = one_sparse_fit(loss)
    assert np.flatnonzero(x) == [brute_force_column(A, b)]
    top = alpha_max(loss)
    assert stationarity(loss, L12(1.0001 * top), x) < 1e-8
    assert stationarity(loss, L12(0.999 * top), x) > 5e-4


@pytest.mark.parametrize("l2_weight", [0.5, 1.0])
def test_an_intercept_is_fitted_first(l2_weight):
    A, b = problem()
    y = labels(b)
    with_ones = np.column_stack([A, np.ones(len(b))])
    loss = LogisticLoss(with_ones, y, scale=1 / len(b))
    top = alpha_max(loss, l2_weight, intercept=True)
    for factor, nonzeros in ((1.01, {int(l2_weight)}), (0.7, {2, 3, 4})):
        penalty = l12_penalty(factor * top, l2_weight, intercept=True)
        start = one_sparse_fit(loss, intercept=True) if l2_weight == 1 else None
        result = minimize(loss, penalty, start, tol=1e-8)
        assert result.converged
        assert np.count_nonzero(result.x[:-1]) in nonzeros | ({1} if l2_weight < 1 and factor < 1 else set())


def test_entries_of_weight_zero_are_fitted_first():
    A, b = problem()
    weights = np.ones(A.shape[1])
    weights[2] = 0
    loss = squared_loss(A, b)
    top = alpha_max(loss, 0.5, weights=weights)
    x = minimize(loss, L12(1.001 * top, 0.5, weights=weights), tol=1e-9).x
    assert np.flatnonzero(x) == [2]
    assert np.count_nonzero(minimize(loss, L12(0.9 * top, 0.5, weights=weights), tol=1e-9).x) == 2


def test_where_one_column_fits_all_any_grid_will_do():
    A, _ = problem()
    assert alpha_max(squared_loss(A, 3 * A[:, 4])) == 0
    assert alpha_max(squared_loss(A[:, :1], A[:, 4])) == 0
    assert alpha_grid(0.0, 3, 0.01).tolist() == [1.0, 0.1, 0.01]


def test_bad_grids_are_errors():
    with pytest.raises(ValueError, match="eps must lie between 0 and 1"):
        alpha_grid(1.0, eps=1.0)
    with pytest.raises(ValueError, match="alphas must be a vector"):
        falling([])
    with pytest.raises(ValueError, match="alphas must hold finite"):
        falling([1.0, -1.0])


# Paths


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_alphas": 0}, "n_alphas must be a whole number >= 1"),
        ({"n_alphas": 2.5}, "n_alphas must be a whole number >= 1"),
        ({"n_alphas": None}, "n_alphas must be a whole number >= 1"),
        ({"eps": "a"}, "eps must lie between 0 and 1"),
        ({"alphas": ["a"]}, "alphas must hold numbers"),
        ({"weights": [1.0, 2.0]}, "weights of shape"),
        ({"sample_weight": np.zeros(4)}, "sample_weight sums to zero"),
        ({"y": 3.0}, "y must be a vector"),
        ({"y": np.ones((4, 2))}, "y must be a vector"),
    ],
)
def test_wrong_arguments_of_a_path_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        l12_path(np.eye(4), **{"y": [4.0, 3.0, 0.0, 1.0]} | options)


def test_the_lasso_path_is_that_of_scikit_learn():
    A, b = problem()
    alphas, coefs, results = l12_path(A, b, l2_weight=0.0, n_alphas=20, tol=1e-9)
    theirs = lasso_path(A, b, eps=1e-3, alphas=20, tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(alphas, theirs[0], rtol=1e-10)
    np.testing.assert_allclose(coefs, theirs[1], atol=1e-7)
    assert all(result.converged for result in results)


def test_a_path_begins_with_one_entry_and_falls():
    alphas, coefs, results = l12_path(*problem(), n_alphas=8)
    assert np.count_nonzero(coefs[:, 0]) == 1
    assert np.count_nonzero(coefs[:, -1]) > 5
    assert (np.diff(alphas) < 0).all()
    assert np.isclose(alphas[-1], 1e-3 * alphas[0])
    assert coefs.shape == (15, 8)
    assert all(result.converged for result in results)


def test_alphas_given_are_sorted_and_sparse_data_agree_with_dense():
    A, b = problem()
    dense = l12_path(A, b, alphas=[0.1, 0.3])
    sparse = l12_path(scipy.sparse.csc_array(A), b, alphas=[0.3, 0.1])
    assert dense[0].tolist() == [0.3, 0.1]
    np.testing.assert_allclose(dense[1], sparse[1], atol=1e-9)


def test_what_warm_starts_lose_and_save(capsys):
    """Continuation may end in other minima than runs from zero; on these problems the objectives agree."""
    for name, data in {"correlated": correlated_design(0), "paper": compressed_sensing(0, n_samples=125)}.items():
        options = {"n_alphas": 10, "eps": 0.01, "tol": 1e-3}
        _, _, warm = l12_path(data.A, data.b, **options)
        _, _, cold = l12_path(data.A, data.b, warm_start=False, **options)
        ratios = [w.objective / c.objective for w, c in zip(warm, cold, strict=True)]
        saved = sum(r.n_iter for r in cold) / sum(r.n_iter for r in warm)
        with capsys.disabled():
            span = f"{min(ratios):.4f} to {max(ratios):.4f}"
            print(f"\n{name}: objective warm/cold {span}, steps cold/warm {saved:.1f}")
        assert saved > 1
        assert max(ratios) < 1.005


def test_a_path_in_single_precision_asks_for_no_more_than_rounding_allows():
    A, b = problem()
    alphas, _, results = l12_path(A.astype(np.float32), b, n_alphas=10, eps=1e-4, tol=1e-6, max_iter=1000)
    assert all(result.converged for result in results)
    assert results[-1].x.dtype == np.float32
    assert results[-1].stationarity * alphas[-1] < 1e-5 * alphas[0]


# The pieces


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_centred_columns_agree_with_a_centred_copy(form, constant):
    A, b = problem()
    means = np.linspace(-1, 1, A.shape[1])
    copy = A - means
    if constant:
        copy = np.column_stack([copy, np.ones(len(b))])
    operator = CenteredColumns(form(A), means, constant)
    x = np.random.default_rng(0).standard_normal(copy.shape[1])
    np.testing.assert_allclose(operator @ x, copy @ x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(operator.T @ b, copy.T @ b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(operator.H @ b, copy.T @ b, rtol=1e-12, atol=1e-12)
    weight = np.linspace(0, 1, len(b))
    np.testing.assert_allclose(column_squares(operator, weight), column_squares(copy, weight), rtol=1e-10)
    assert np.isclose(SquaredLoss(operator, b).lipschitz(), SquaredLoss(copy, b).lipschitz(), rtol=2e-2)


def test_a_centred_constant_column_has_no_length():
    A = scipy.sparse.csr_array(np.full((7, 2), 0.1))
    assert column_squares(CenteredColumns(A, np.array([0.1, 0.0])), np.ones(7)).tolist()[0] == 0


def test_centred_columns_keep_float32_and_check_the_means():
    A = scipy.sparse.csr_array(problem()[0].astype(np.float32))
    operator = CenteredColumns(A, np.ones(15, dtype=np.float32), True)
    assert (operator @ np.ones(16, dtype=np.float32)).dtype == np.float32
    assert (operator.T @ np.ones(40, dtype=np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match="means must have shape"):
        CenteredColumns(A, np.ones(3))


def test_an_intercept_is_free_of_penalty_and_sign():
    penalty = WithIntercept(L12(0.5, nonnegative=True))
    x = np.array([2.0, -1.0, -5.0])
    shrunk = penalty.prox(x, 1.0)
    np.testing.assert_array_equal(shrunk[:-1], L12(0.5, nonnegative=True).prox(x[:-1], 1.0))
    assert shrunk[-1] == -5.0
    assert penalty.subtracted_gradient(np.abs(x))[-1] == 0
    assert penalty.convex.value(np.abs(x)) == 1.5
    assert penalty.violation(shrunk, np.array([0.0, 0.0, -0.7])) >= 0.7


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_all_alphas_together_are_the_same_convex_path(nonnegative, weighted):
    A, b = problem()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(b)) if weighted else None
    options = {"l2_weight": 0.0, "nonnegative": nonnegative, "sample_weight": weight, "n_alphas": 6, "eps": 0.05}
    if weighted:
        options["weights"] = np.linspace(0.5, 1.5, A.shape[1])
    one_by_one = l12_path(A, b, tol=1e-9, **options)
    alphas, coefs, results = l12_path(A, b, together=True, tol=1e-9, **options)
    np.testing.assert_array_equal(alphas, one_by_one[0])
    np.testing.assert_allclose(coefs, one_by_one[1], atol=1e-6)
    for k, result in enumerate(results):
        assert result.converged
        assert result.objective == pytest.approx(one_by_one[2][k].objective, rel=1e-9)
        np.testing.assert_array_equal(result.x, coefs[:, k])


def test_all_alphas_together_are_stationary_at_l1_2():
    A, b = problem()
    alphas, coefs, results = l12_path(A, b, together=True, n_alphas=5, eps=0.1, tol=1e-6)
    for alpha, x, result in zip(alphas, coefs.T, results, strict=True):
        assert result.stationarity == pytest.approx(stationarity(squared_loss(A, b), L12(alpha), x), abs=1e-12)
        assert result.converged
    short = l12_path(A, b, together=True, n_alphas=5, eps=0.1, tol=1e-9, max_iter=3)[2]
    assert short[-1].status is Status.MAX_ITER


def test_paths_on_other_arrays(backend):
    A, b = problem()
    options = {"n_alphas": 3, "eps": 0.5, "l2_weight": 0.0, "tol": 1e-5 if backend.float64 else 1e-3}
    expected = l12_path(A, b, **options)
    alphas, coefs, _ = l12_path(backend.make_array(A), backend.make_array(b), together=True, **options)
    assert type(coefs) is type(backend.make_array(A))
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if backend.float64 else {"rtol": 2e-2, "atol": 2e-3}
    np.testing.assert_allclose(alphas, expected[0], **tolerance)
    np.testing.assert_allclose(backend.to_numpy(coefs), expected[1], **tolerance)


def test_a_path_on_tensors_may_be_warm_started():
    torch = pytest.importorskip("torch")
    A, b = problem()
    expected = l12_path(A, b, n_alphas=4, tol=1e-8, solver=NonmonotoneAPG())
    alphas, coefs, _ = l12_path(torch.asarray(A), torch.asarray(b), n_alphas=4, tol=1e-8, together=False)
    np.testing.assert_allclose(alphas, expected[0], rtol=1e-8)
    np.testing.assert_allclose(np.asarray(coefs), expected[1], atol=1e-5)
    assert np.count_nonzero(coefs[:, 0]) == 1
