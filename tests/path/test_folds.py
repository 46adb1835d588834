"""Cross-validation with the folds side by side, as the columns of one problem."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ell12 import FISTA, L12ClassifierCV, L12RegressorCV, NonmonotoneAPG
from ell12.linear_model.search import _rows
from ell12.path import side_by_side as folds
from ell12.path.side_by_side import FoldColumns, solve_folds

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((60, 20)) + 0.5 * RANDOM.standard_normal(20)
Y = np.stack([X[:, 1] - 2 * X[:, 4], X[:, 2] + X[:, 1]], axis=1) + 0.3 * RANDOM.standard_normal((60, 2)) + 5
WEIGHT = RANDOM.uniform(0.5, 2, 60)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.6]))]
FACTORS = np.where(np.arange(20) == 7, 0.0, np.linspace(0.8, 1.5, 20))
GRID = {"n_alphas": 4, "eps": 0.1, "tol": 1e-8}

REGRESSIONS = {
    "plain": ({}, Y[:, 0]),
    "convex": ({"l2_weight": 0.0}, Y[:, 0]),
    "without intercept": ({"fit_intercept": False}, Y[:, 1]),
    "positive": ({"positive": True}, Y[:, 1]),
    "penalty factors": ({"penalty_factors": FACTORS, "positive": True, "l2_weight": 0.5}, Y[:, 0]),
    "two targets": ({"l2_weight": 0.5}, Y),
}
CLASSIFICATIONS = {
    "two classes": ({}, LABELS == "c"),
    "three classes": ({"penalty_factors": FACTORS}, LABELS),
    "without intercept": ({"fit_intercept": False, "positive": True}, LABELS == "a"),
}
CASES = {f"regression, {name}": (L12RegressorCV, *case) for name, case in REGRESSIONS.items()}
CASES |= {f"classification, {name}": (L12ClassifierCV, *case) for name, case in CLASSIFICATIONS.items()}


def scores_of(model):
    return model.mse_path_ if hasattr(model, "mse_path_") else model.scores_


def both_ways(model, X, y, weight=None):
    """The model with a path for each fold, which is the oracle, and with the folds side by side."""
    return [clone(model).set_params(together=together).fit(X, y, weight) for together in (False, True)]


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_folds_side_by_side_score_as_one_after_the_other(monkeypatch, case, weight):
    kind, options, y = case
    # Several strengths at once, or another solver, may end at another stationary point.
    monkeypatch.setattr(folds, "COLUMNS", 1)
    alone = kind(**GRID, **options, together=False, solver=NonmonotoneAPG()).fit(X, y, weight)
    together = kind(**GRID, **options, together=True).fit(X, y, weight)
    assert together.alpha_ == alone.alpha_
    np.testing.assert_array_equal(together.alphas_, alone.alphas_)
    np.testing.assert_allclose(scores_of(together), scores_of(alone), rtol=1e-6)
    np.testing.assert_allclose(together.coef_, alone.coef_, atol=1e-6)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_each_column_is_the_fit_to_its_fold(case):
    kind, options, y = case
    model = kind(**GRID, **options)
    if kind is L12RegressorCV:
        _, y, _ = model._observed(X, y, None)
    else:
        _, y, _ = model._observed(X, y, None)
    parts = [(np.flatnonzero(np.arange(60) % 3 != k), np.flatnonzero(np.arange(60) % 3 == k)) for k in range(3)]
    problems, alphas = model._problems(X, y, WEIGHT), np.array([0.3, 0.1, 0.05])
    columns = FoldColumns(problems, parts, WEIGHT, model.fit_intercept)
    chosen = model._penalty_options() | {"l2_weight": model.l2_weight, "intercept": problems[0].constant != 0}
    paths = list(solve_folds(columns, alphas, chosen, {"tol": 1e-10, "max_iter": 20_000}))
    for (train, _), (coefs, intercepts, results) in zip(parts, paths, strict=True):
        assert len(results) == 3 * len(problems)
        assert all(result.converged for result in results)
        alone = model._problems(*(_rows(values, train) for values in (X, y, WEIGHT)))
        for k, problem in enumerate(alone):
            model.set_params(solver=NonmonotoneAPG(), tol=1e-10)
            for a, run in enumerate(model._solve(problem, alphas)):
                coef, intercept = problem.coefficients(run.x)
                np.testing.assert_allclose(coefs[a, k], coef[0], atol=1e-6)
                assert intercepts[a, k] == pytest.approx(intercept[0], abs=1e-6)


@pytest.mark.parametrize(("columns", "work"), [(1, 2**27), (1000, 2**27), (40, 1), (40, 16 * 80 * 12)])
def test_blocks_of_any_size_give_the_same(monkeypatch, columns, work):
    model = L12RegressorCV(**GRID, l2_weight=0.0)
    alone = clone(model).fit(X, Y)
    monkeypatch.setattr(folds, "COLUMNS", columns)
    monkeypatch.setattr(folds, "WORK", work)
    np.testing.assert_allclose(model.set_params(together=True).fit(X, Y).mse_path_, alone.mse_path_, rtol=1e-6)


def test_a_grid_beyond_the_memory_is_cut_into_folds_and_strengths(monkeypatch):
    model = L12RegressorCV()
    parts = [(np.arange(60) != k, np.arange(60) == k) for k in range(7)]
    columns = FoldColumns(model._problems(X, Y, None), parts, None, True)  # 7 folds of 2 targets
    assert list(columns.blocks(30)) == [(range(7), 5)]  # 75 columns at most
    monkeypatch.setattr(folds, "WORK", 16 * 80 * 12)  # room for 12 columns
    assert list(columns.blocks(30)) == [(range(6), 1), (range(6, 7), 1)]
    monkeypatch.setattr(folds, "WORK", 1)  # X itself is 1200 entries, room for none
    assert list(columns.blocks(30)) == [(range(k, k + 1), 1) for k in range(7)]


def test_rows_may_be_named_by_masks_or_several_times_or_not_at_all():
    random = np.random.default_rng(1)
    drawn = [(random.integers(0, 50, 70), np.arange(50, 60)), (np.arange(60) < 30, np.arange(60) >= 40)]
    alone, together = both_ways(L12RegressorCV(**GRID, cv=drawn), X, Y[:, 0])
    np.testing.assert_allclose(together.mse_path_, alone.mse_path_, rtol=1e-6)


@pytest.mark.parametrize(("kind", "y"), [(L12RegressorCV, Y[:, 0]), (L12ClassifierCV, LABELS == "c")])
def test_sparse_columns_stay_sparse(kind, y):
    thin = scipy.sparse.csr_array(np.where(np.abs(X) > 1.5, X, 0))
    alone, together = both_ways(kind(**GRID, l2_weight=0.0), thin, y, WEIGHT)
    np.testing.assert_allclose(scores_of(together), scores_of(alone), rtol=1e-6)


def test_single_precision_converges_where_it_can():
    alone, together = both_ways(L12RegressorCV(n_alphas=10), X.astype(np.float32), Y.astype(np.float32))
    assert together.coef_.dtype == np.float32
    np.testing.assert_allclose(together.mse_path_, alone.mse_path_, rtol=2e-3)


def test_a_scorer_and_the_one_standard_error_rule():
    model = L12ClassifierCV(**GRID, scoring="accuracy", selection="1se")
    alone, together = both_ways(model, X, LABELS, WEIGHT)
    np.testing.assert_allclose(together.scores_, alone.scores_)
    assert together.alpha_ == alone.alpha_


def test_what_does_not_converge_is_told():
    with (
        pytest.warns(ConvergenceWarning, match="in 20 of 20 problems"),
        pytest.warns(ConvergenceWarning, match="did not converge: it reached"),
    ):
        L12RegressorCV(**GRID, max_iter=3, together=True).fit(X, Y[:, 0])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"solver": FISTA()}, "solver"),
        ({"shared_support": True}, "shared_support"),
        ({"alphas": [1.0, 0.0]}, "an alpha of 0"),
    ],
)
def test_what_the_columns_cannot_do_is_named(options, named):
    with pytest.raises(ValueError, match=f"together=True solves without {named}"):
        L12RegressorCV(together=True, **options).fit(X, Y)
    with pytest.raises(ValueError, match="together must be True, False or None"):
        L12RegressorCV(together="yes").fit(X, Y)


def test_folds_without_weight_are_named():
    weight = np.where(np.arange(60) < 12, 0.0, 1.0)  # the first of five folds leaves these out
    for together in (False, True):
        with pytest.raises(ValueError, match="sums to zero on the samples that a fold leaves out"):
            L12RegressorCV(**GRID, together=together).fit(X, Y, weight)
        with pytest.raises(ValueError, match="sums to zero"):
            L12RegressorCV(**GRID, together=together, cv=2).fit(X, Y, np.where(np.arange(60) < 30, 0.0, 1.0))
