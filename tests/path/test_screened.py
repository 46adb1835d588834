"""Screened paths: against scikit-learn, against `minimize` strength by strength, and in all units."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression, enet_path, lasso_path

from ell12 import (
    L12,
    MCP,
    Columns,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    SquaredLoss,
    WorkingSet,
    minimize,
    stationarity,
)
from ell12.datasets import correlated_design
from ell12.operators import ArrayOperator
from ell12.path import alpha_grid, alpha_max, l12_path, one_sparse_fit, path_results, screened, squared_loss
from ell12.penalties import WithIntercept
from ell12.protocols import with_alpha

DESIGNS = ("tall", "wide", "duplicate", "constant and zero", "collinear", "one column")


def design(kind, seed=0):
    random = np.random.default_rng(seed)
    rows, columns = {"wide": (30, 60), "one column": (20, 1)}.get(kind, (50, 20))
    A = random.standard_normal((rows, columns))
    if kind == "duplicate":
        A[:, 5], A[:, 6] = A[:, 0], -A[:, 1]
    if kind == "constant and zero":
        A[:, 3], A[:, 7] = 1.0, 0.0
    if kind == "collinear":
        A[:, 4] = A[:, 0] + A[:, 1]
        A[:, 9] = A[:, 2] + 1e-7 * random.standard_normal(rows)
    return A, 3 * A[:, 0] - 2 * A[:, -1] + A[:, columns // 2] + random.standard_normal(rows)


def excess(results, *arguments, **options):
    """How much higher the objectives are than those of `minimize` for every strength, as ratios."""
    plain = path_results(*arguments, solver=WorkingSet(), **options)
    return np.array([ours.objective / other.objective for ours, other in zip(results, plain, strict=True)])


def genotypes(seed, columns=2500):
    """Small whole numbers, and what ten of the columns explain."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 3, (60, columns)).astype(np.int8)
    return X, (X[:, :: columns // 10] - 1.0) @ np.linspace(1, 2, 10) + random.standard_normal(60)


def check_certified(loss, penalty, alphas, results, tol):
    for alpha, result in zip(alphas, results, strict=True):
        there = with_alpha(penalty, alpha)
        measured = stationarity(loss, there, result.x)
        assert result.converged
        assert measured <= tol * (1 + 1e-6)
        assert result.stationarity == pytest.approx(measured, abs=1e-10)
        objective = loss.value(loss.point(result.x)) + there.value(result.x)
        assert result.objective == pytest.approx(objective, rel=1e-12)
        assert {len(column) for column in result.history.values()} == {result.n_iter + 1}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # theirs, where columns are collinear
@pytest.mark.parametrize("kind", DESIGNS)
def test_a_path_of_the_lasso_is_that_of_scikit_learn(kind):
    A, b = design(kind)
    alphas, coefs, results = l12_path(A, b, alphas=20, tol=1e-9, penalty=L12(l2_weight=0.0))
    theirs = lasso_path(A, b, alphas=alphas, tol=1e-14, max_iter=10**5)[1]
    loss = squared_loss(A, b)
    check_certified(loss, L12(1.0, 0.0), alphas, results, 1e-9)
    np.testing.assert_allclose(A @ coefs, A @ theirs, atol=1e-5)
    for k, alpha in enumerate(alphas):
        penalty = L12(alpha, 0.0)
        best = loss.value(loss.point(theirs[:, k])) + penalty.value(theirs[:, k])
        assert results[k].objective <= best * (1 + 1e-10)


@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("l2_weight", [0.5, 1.0])
def test_a_path_is_certified_and_its_minima_are_as_good_as_those_of_one_run_after_the_other(
    kind, l2_weight, monkeypatch
):
    A, b = design(kind)
    loss, penalty = squared_loss(A, b), L12(1.0, l2_weight)
    alphas = alpha_grid(alpha_max(loss, L12(l2_weight=l2_weight)) or 1.0, 20)
    results = path_results(loss, penalty, alphas, tol=1e-6)
    check_certified(loss, penalty, alphas, results, 1e-6)
    assert all(result.n_iter == 1 for result in results)  # nothing was left to another solver
    ratios = excess(results, loss, penalty, alphas, tol=1e-6)
    assert np.mean(ratios) < 1.001
    assert max(ratios) < 1.02


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_a_path_with_a_ridge_is_certified_and_at_zero_that_of_the_elastic_net(l2_weight):
    A, b = design("duplicate")
    loss, penalty, alphas = squared_loss(A, b), L12(1.0, l2_weight, ridge=0.7), alpha_grid(1.0, 20)
    results = path_results(loss, penalty, alphas, tol=1e-9)
    check_certified(loss, penalty, alphas, results, 1e-9)
    assert all(result.n_iter == 1 for result in results)
    if l2_weight == 0:  # theirs is a (r |c|_1 + (1 - r)/2 |c|^2)
        strengths, ratio = 1.7 * alphas, 1 / 1.7
        theirs = enet_path(A, b, l1_ratio=ratio, alphas=strengths, tol=1e-14, max_iter=10**5)[1]
        np.testing.assert_allclose(np.stack([result.x for result in results], axis=1), theirs, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_weights_signs_intercepts_and_sparse_columns(form, positive, intercept):
    A, b = design("tall")
    A = np.where(np.abs(A) > 0.5, A, 0.0)
    if intercept:
        A, b = np.hstack([A, np.ones((len(A), 1))]), b - 4.0
    random = np.random.default_rng(1)
    weights = random.uniform(0.5, 2.0, 20)
    weights[2], weights[0], weights[11] = 0.0, np.inf, 0.0
    penalty = L12(1.0, 0.7, weights=weights, positive=positive)
    penalty = WithIntercept(penalty) if intercept else penalty
    loss = squared_loss(form(A), b, random.uniform(0.0, 2.0, len(b)))
    alphas = alpha_grid(1.0, 20)
    results = path_results(loss, penalty, alphas, tol=1e-7)
    check_certified(loss, penalty, alphas, results, 1e-7)
    assert all(result.n_iter == 1 for result in results)
    assert all(result.x[0] == 0 for result in results)
    assert not positive or min(result.x[:20].min() for result in results) >= 0
    assert not intercept or results[0].x[-1] < -1


@pytest.mark.parametrize("factor", [1e-150, 1e-12, 2.0**40, 1e150])
def test_columns_of_any_scale_take_the_same_steps(factor):
    A, b = design("tall")
    near, far = (tuple(l12_path(c * A, b, alphas=20, tol=1e-8)) for c in (1.0, factor))
    np.testing.assert_allclose(far[0] / factor, near[0], rtol=1e-9)
    np.testing.assert_allclose(far[1] * factor, near[1], atol=1e-6)
    assert all(result.converged and result.n_iter == 1 for result in far[2])
    if factor == 2.0**40:
        np.testing.assert_array_equal(far[1] * factor, near[1])


def test_where_columns_are_many_working_sets_grow_along_the_path(monkeypatch):
    monkeypatch.setattr(screened, "LARGEST", 800)
    data = correlated_design(0, n_samples=60, n_features=900, n_nonzero=10)
    loss = squared_loss(data.A, data.b)
    for l2_weight in (0.0, 1.0):
        penalty = L12(1.0, l2_weight)
        alphas = alpha_grid(alpha_max(loss, penalty), 20, 0.02)
        results = path_results(loss, penalty, alphas)
        check_certified(loss, penalty, alphas, results, 1e-4)
        assert excess(results, loss, penalty, alphas).max() < 1.01


@dataclass(frozen=True, eq=False)
class Counted(ArrayOperator):
    """A matrix that counts the products with its adjoint, and gives some of its columns."""

    matrix: Any
    passes: list[int]

    def __post_init__(self):
        rows, columns = self.matrix.shape
        self._set(input_shape=(columns,), output_shape=(rows,), dtype=self.matrix.dtype, takes_columns=True)

    def select_columns(self, columns):
        return self.matrix[:, columns]

    def _apply(self, x):
        return self.matrix @ x

    def _apply_adjoint(self, y):
        self.passes.append(1 if y.ndim == 1 else y.shape[1])
        return self.matrix.T @ y


@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize(("l2_weight", "eps"), [(0.0, 0.01), (0.0, 0.05), (1.0, 0.05)])
def test_a_path_of_a_hundred_strengths_takes_at_most_25_full_gradients(kind, l2_weight, eps):
    random = np.random.default_rng(4)
    A = random.standard_normal((100, 3000))
    A[:, 1:] = 0.6 * A[:, :-1] + 0.8 * A[:, 1:]  # neighbours are alike
    b = A[:, ::300] @ np.linspace(1, 2, 10) + random.standard_normal(100)

    def loss_of(matrix):
        if kind == "squared":
            return squared_loss(matrix, b)
        return LogisticLoss(matrix, np.where(b > 0, 1.0, -1.0), scale=0.01)

    loss, penalty, passes = loss_of(A), L12(1.0, l2_weight), []
    alphas = alpha_grid(alpha_max(loss, L12(l2_weight=l2_weight)), 100, eps)
    start = one_sparse_fit(loss, L12()) if l2_weight == 1 else None
    results = path_results(loss_of(Counted(A, passes)), penalty, alphas, start)
    assert 4 < len(passes) <= 25
    assert sum(passes) >= 100  # every solution was certified
    check_certified(loss, penalty, alphas, results, 1e-4)
    assert all(result.n_iter == 1 for result in results)
    if l2_weight == 0:  # each problem has one solution
        for k in (30, 99):
            alone = minimize(loss, with_alpha(penalty, alphas[k]), tol=1e-7)
            closer = minimize(loss, with_alpha(penalty, alphas[k]), results[k].x, tol=1e-7)
            np.testing.assert_allclose(closer.x, alone.x, atol=1e-4 * np.abs(alone.x).max())
            assert results[k].objective == pytest.approx(alone.objective, rel=1e-5)


@pytest.mark.parametrize(("kind", "most"), [("squared", 12), ("logistic", 25)])
def test_a_path_over_sparse_data_takes_few_full_gradients(kind, most, monkeypatch):
    random, made = np.random.default_rng(0), []
    X = scipy.sparse.random_array((300, 3000), density=0.03, rng=random, format="csr")
    y = X[:, ::300] @ np.linspace(1, 2, 10) + 0.1 * random.standard_normal(300)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    loss = squared_loss(X, y) if kind == "squared" else LogisticLoss(X, labels, scale=1 / 300)
    make = screened.ScreenedPath
    monkeypatch.setattr(screened, "ScreenedPath", lambda *given: made.append(make(*given)) or made[0])
    alphas = alpha_grid(alpha_max(loss, L12(l2_weight=0.0)), 100, 0.02)
    assert all(result.n_iter == 1 for result in path_results(loss, L12(1.0, 0.0), alphas))
    assert 2 < made[0].n_full_gradients <= most


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_a_path_over_columns_that_are_out_of_memory_is_sparse_and_the_same(l2_weight):
    X, y = genotypes(6)
    columns = Columns(X)
    alphas, coefs, results = l12_path(columns, y, penalty=L12(l2_weight=l2_weight), eps=0.05, tol=1e-6)
    assert columns.reads <= 25
    assert scipy.sparse.issparse(coefs)
    assert coefs.shape == (2500, 100)
    assert all(result.x.shape == (2500, 1) and result.x.nnz == result.x.count_nonzero() for result in results)
    strengths, dense, _ = l12_path(X.astype(float), y, penalty=L12(l2_weight=l2_weight), eps=0.05, tol=1e-6)
    np.testing.assert_allclose(alphas, strengths, rtol=1e-9)
    if l2_weight == 0:  # else the two may end at different minima
        np.testing.assert_allclose(coefs.toarray(), dense, atol=1e-4)
    ratios = excess(results, squared_loss(X.astype(float), y), L12(1.0, l2_weight), alphas, tol=1e-6)
    assert np.mean(ratios) < 1 + 1e-4  # under l1-2 single strengths may end in minima apart
    assert max(ratios) < (1.01 if l2_weight else 1 + 1e-6)
    short, some, _ = l12_path(columns, y, penalty=L12(l2_weight=l2_weight), alphas=alphas[[40, 80]])  # by minimize
    assert some.shape == (2500, 2)
    loss = squared_loss(X.astype(float), y)
    for k, alpha in enumerate(short):
        assert stationarity(loss, L12(alpha, l2_weight), some[:, [k]].toarray()[:, 0]) <= 1e-4


def test_where_all_columns_are_out_of_memory_zero_is_left_in_the_columns_at_hand():
    X, y = genotypes(8)
    columns, labels = Columns(X), np.where(y > 0, 1.0, -1.0)
    loss, penalty = LogisticLoss(columns, labels, scale=1 / 60), L12(1.0, 0.5)
    alphas = alpha_grid(alpha_max(loss, L12(l2_weight=0.5)), 20, 0.3)
    before = columns.reads
    results = path_results(loss, penalty, alphas)
    assert columns.reads - before <= 30  # `minimize` takes several for each
    check_certified(LogisticLoss(X.astype(float), labels, scale=1 / 60), penalty, alphas, results, 1e-4)


def curved(kind, A, b):
    """A loss that is not quadratic, of the mean."""
    scale = 1 / len(b)
    if kind == "huber":
        return HuberLoss(A, b, delta=0.7, scale=scale)
    if kind == "poisson":
        return PoissonLoss(A, np.random.default_rng(3).poisson(np.exp(np.clip(0.3 * b, -2, 2))), scale=scale)
    return LogisticLoss(A, np.where(b > 0.5, 1.0, -1.0), scale=scale)


@pytest.mark.parametrize("kind", ["logistic", "huber", "poisson"])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5])
@pytest.mark.parametrize("columns", ["tall", "wide", "duplicate"])
def test_losses_that_are_not_quadratic_are_followed_by_models(kind, l2_weight, columns):
    A, b = design(columns)
    loss = curved(kind, np.hstack([A, np.ones((len(b), 1))]), b)
    penalty = WithIntercept(L12(1.0, l2_weight))
    alphas = alpha_grid(alpha_max(loss, WithIntercept(L12(l2_weight=l2_weight))), 20, 0.05)
    results = path_results(loss, penalty, alphas, tol=1e-6)
    check_certified(loss, penalty, alphas, results, 1e-6)
    assert sum(result.n_iter > 1 for result in results) <= 2  # a start at zero is left to minimize
    ratios = excess(results, loss, penalty, alphas, tol=1e-6)
    assert ratios.max() < (1 + 1e-9 if l2_weight == 0 else 1.01)


def test_a_path_of_logistic_regression_is_that_of_scikit_learn():
    A, b = design("tall")
    y = np.where(b > 0, 1, -1)
    loss, alphas = LogisticLoss(A, y, scale=1 / len(y)), alpha_grid(0.1, 20, 0.1)
    results = path_results(loss, L12(1.0, 0.0), alphas, tol=1e-8)
    for k in (5, 19):
        theirs = LogisticRegression(
            C=1 / (len(y) * alphas[k]), l1_ratio=1.0, solver="saga", fit_intercept=False, tol=1e-8, max_iter=10**5
        ).fit(A, y)
        np.testing.assert_allclose(results[k].x, theirs.coef_[0], atol=1e-5)


@pytest.mark.parametrize(("kind", "gathered"), [("squared", 10), ("squared", 0.1), ("logistic", 10)])
def test_a_path_ends_with_the_first_solution_of_more_than_the_most_entries(monkeypatch, kind, gathered):
    monkeypatch.setattr(screened, "GATHERED", gathered)  # 0.1: not all columns are at hand
    A, b = design("wide" if gathered < 1 else "tall")
    loss = squared_loss(A, b) if kind == "squared" else LogisticLoss(A, np.where(b > 0, 1, -1), scale=1 / 50)
    alphas = alpha_grid(alpha_max(loss, L12(l2_weight=0.5)), 40, 1e-2)
    whole, part = (path_results(loss, L12(1.0, 0.5), alphas, most_entries=most) for most in (np.inf, 4))
    counts = [np.count_nonzero(result.x) for result in whole]
    assert max(counts) >= 10
    assert len(part) == 1 + next(k for k, count in enumerate(counts) if count > 4)
    for ours, other in zip(part, whole, strict=False):
        np.testing.assert_allclose(ours.x, other.x, atol=1e-3)
    check_certified(loss, L12(1.0, 0.5), alphas[: len(part)], part, 1e-4)


@pytest.mark.parametrize("intercept", [False, True])
def test_strengths_at_which_zero_stays_need_no_solver(monkeypatch, intercept):
    A, b = design("tall")
    y, A = np.where(b > 2, 1, -1), np.column_stack([A, np.ones(50)]) if intercept else A
    loss = LogisticLoss(A, y, scale=1 / 50)
    penalty = WithIntercept(L12(1.0, 0.5)) if intercept else L12(1.0, 0.5)
    top = alpha_max(loss, penalty)
    alphas, calls = alpha_grid(3 * top, 30, 0.1), []
    by_minimize = minimize

    def counted(*given, **options):
        calls.append(given[1].alpha)
        return by_minimize(*given, **options)

    monkeypatch.setattr("ell12.path.paths.minimize", counted)
    results = path_results(loss, penalty, alphas)
    check_certified(loss, penalty, alphas, results, 1e-4)
    zero = [not np.any(result.x[:20]) for result in results]
    assert zero == (alphas >= top * (1 - 1e-3)).tolist()
    assert len(calls) <= 1 + intercept  # where zero is left, and once for the intercept


def test_a_path_of_one_strength_or_of_one_iteration_or_to_alpha_0_is_left_to_minimize():
    A, b = design("tall")
    loss, alphas = squared_loss(A, b).for_run(), alpha_grid(1.0, 20)
    assert screened.screened_path(loss, L12(), alphas, None, 100) is not None
    assert screened.screened_path(loss, L12(), alphas[:1], None, 100) is None
    assert screened.screened_path(loss, L12(), alphas, None, 1) is None
    assert screened.screened_path(loss, L12(), np.append(alphas, 0.0), None, 100) is None
    assert screened.screened_path(loss, MCP(), alphas, None, 100) is None


def test_where_too_many_columns_are_in_use_no_gram_matrix_is_made_of_them(monkeypatch):
    monkeypatch.setattr(screened, "LARGEST", 30)
    A, b = design("wide")
    loss, penalty, start = squared_loss(A, b), L12(1.0, 0.0), np.ones(60)
    alphas = alpha_grid(alpha_max(loss, penalty), 20, 0.3)
    path = screened.screened_path(loss.for_run(), penalty, alphas, start, 100)
    assert path.next_block(alphas, np.full(20, 1e-4)) == []
    np.testing.assert_array_equal(path.x, start)
    results = path_results(loss, penalty, alphas, start)
    check_certified(loss, penalty, alphas, results, 1e-4)
    assert results[0].n_iter > 1  # by the usual solver
    assert results[5].n_iter == 1


def test_a_full_gradient_finds_the_columns_that_the_rule_left_out(monkeypatch):
    monkeypatch.setattr(screened, "GATHERED", 0)
    monkeypatch.setattr(screened.ScreenedPath, "_reach", lambda _, alphas, *__: alphas.size)  # far too hopeful
    random = np.random.default_rng(0)
    A, b = random.standard_normal((60, 400)), random.standard_normal(60)
    alphas = np.abs(A.T @ b).max() * np.geomspace(0.9, 0.2, 20)
    for alpha, result in zip(alphas, path_results(SquaredLoss(A, b), L12(1.0, 0.0), alphas), strict=True):
        assert np.abs(A.T @ (A @ result.x - b)).max() <= (1 + 1e-4) * alpha


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_a_full_gradient_of_columns_out_of_memory_certifies_as_many_strengths_as_it_can_hold(kind, monkeypatch):
    for name, value in (("BLOCK", 10 * 2000), ("LARGEST", 120)):
        monkeypatch.setattr(screened, name, value)
    X, y = genotypes(9, 2000)
    labels = np.where(y > np.median(y), 1.0, -1.0)

    def loss_of(A):
        return squared_loss(A, y) if kind == "squared" else LogisticLoss(A, labels, scale=1 / 60)

    columns, penalty = Columns(X), L12(1.0, 0.0)
    loss = loss_of(columns)
    alphas, before = alpha_grid(alpha_max(loss, L12(l2_weight=0.0)), 100, 0.05), columns.reads
    results = path_results(loss, penalty, alphas)
    assert columns.reads - before <= 13  # ten would do if no column were ever missing
    check_certified(loss_of(X.astype(float)), penalty, alphas, results, 1e-4)


@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss])
def test_few_columns_out_of_memory_are_gathered_once_for_all_strengths(kind):
    X, y = design("tall")
    columns, y = Columns(X), y if kind is SquaredLoss else np.where(y > np.median(y), 1.0, -1.0)
    far, near = (kind(A, y, scale=1 / y.size) for A in (columns, X))
    alphas = alpha_grid(alpha_max(near, L12(l2_weight=0.5)), 40, 0.05)
    results = path_results(far, L12(1.0, 0.5), alphas)
    assert columns.reads <= 4
    for found, expected in zip(results, path_results(near, L12(1.0, 0.5), alphas), strict=True):
        np.testing.assert_allclose(found.x, expected.x, rtol=1e-8, atol=1e-10)
