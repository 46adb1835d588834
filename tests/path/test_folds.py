"""Cross-validation with the folds side by side, as the columns of one problem: what is done on a GPU."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from ell12 import L1, L12, L12ClassifierCV, L12RegressorCV, NonmonotoneAPG
from ell12.linear_model.alpha_search import AlphaSearch
from ell12.linear_model.fit_problem import Data
from ell12.path import side_by_side as folds
from ell12.path.side_by_side import FoldColumns

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((60, 20)) + 0.5 * RANDOM.standard_normal(20)
Y = np.stack([X[:, 1] - 2 * X[:, 4], X[:, 2] + X[:, 1]], axis=1) + 0.3 * RANDOM.standard_normal((60, 2)) + 5
WEIGHT = RANDOM.uniform(0.5, 2, 60)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.6]))]
FACTORS = np.where(np.arange(20) == 7, 0.0, np.linspace(0.8, 1.5, 20))
GRID = {"alphas": 4, "eps": 0.1, "tol": 1e-8}

REGRESSIONS = {
    "plain": ({}, Y[:, 0]),
    "convex": ({"penalty": L1()}, Y[:, 0]),
    "without intercept": ({"fit_intercept": False}, Y[:, 1]),
    "positive, with a ridge": ({"penalty": L12(positive=True, ridge=0.7)}, Y[:, 1]),
    "weights": ({"penalty": L12(l2_weight=0.5, weights=FACTORS, positive=True)}, Y[:, 0]),
    "two targets": ({"penalty": L12(l2_weight=0.5)}, Y),
}
CLASSIFICATIONS = {
    "two classes": ({}, LABELS == "c"),
    "three classes": ({"penalty": L12(l2_weight=0.5, weights=FACTORS)}, LABELS),
    "without intercept": ({"fit_intercept": False, "penalty": L12(None, 0.5, positive=True)}, LABELS == "a"),
}
CASES = {f"regression, {name}": (L12RegressorCV, *case) for name, case in REGRESSIONS.items()}
CASES |= {f"classification, {name}": (L12ClassifierCV, *case) for name, case in CLASSIFICATIONS.items()}


def scores_of(model):
    return model.mse_path_ if hasattr(model, "mse_path_") else model.scores_


@pytest.fixture
def both_ways(monkeypatch):
    """A model with a path for each fold, which is the oracle, and with the folds side by side."""

    def fit(kind, options, X, y, weight=None, solver=None):
        found = []
        for together in (False, True):
            monkeypatch.setattr(AlphaSearch, "_takes_columns", lambda *_, answer=together: answer)
            model = kind(**(GRID | options))
            model.solver = solver
            found.append(model.fit(X, y, weight))
        return found

    return fit


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_folds_side_by_side_score_as_one_after_the_other(monkeypatch, both_ways, case, weight):
    # Several strengths at once, or another solver, may end at another stationary point.
    monkeypatch.setattr(folds, "COLUMNS", 1)
    alone, together = both_ways(case[0], case[1], X, case[2], weight, solver=NonmonotoneAPG())
    assert together.alpha_ == alone.alpha_
    np.testing.assert_array_equal(together.alphas_, alone.alphas_)
    np.testing.assert_allclose(scores_of(together), scores_of(alone), rtol=1e-6)
    np.testing.assert_allclose(together.coef_, alone.coef_, atol=1e-6)


@pytest.mark.parametrize(("columns", "work"), [(1, 2**27), (1000, 2**27), (40, 1), (40, 16 * 80 * 12)])
def test_blocks_of_any_size_give_the_same(monkeypatch, both_ways, columns, work):
    monkeypatch.setattr(folds, "COLUMNS", columns)
    monkeypatch.setattr(folds, "WIDEST", work // 16)
    alone, together = both_ways(L12RegressorCV, {"penalty": L1()}, X, Y)
    np.testing.assert_allclose(together.mse_path_, alone.mse_path_, rtol=1e-6)


def test_a_grid_beyond_the_memory_is_cut_into_folds_and_strengths(monkeypatch):
    model = L12RegressorCV()
    parts = [(np.arange(60) != k, np.arange(60) == k) for k in range(7)]
    problems = model._problems(model._observed(X, Y, None))
    columns = FoldColumns(problems, parts, None, True)  # 7 folds of 2 targets
    assert list(columns.blocks(30)) == [(range(7), 5)]  # 75 columns at most
    monkeypatch.setattr(folds, "WIDEST", 80 * 12)  # room for 12 columns
    assert list(columns.blocks(30)) == [(range(6), 1), (range(6, 7), 1)]
    monkeypatch.setattr(folds, "WIDEST", 1)  # X itself is 1200 entries, room for none
    assert list(columns.blocks(30)) == [(range(k, k + 1), 1) for k in range(7)]


def test_rows_may_be_named_by_masks_or_several_times_or_not_at_all(both_ways):
    random = np.random.default_rng(1)
    drawn = [(random.integers(0, 50, 70), np.arange(50, 60)), (np.arange(60) < 30, np.arange(60) >= 40)]
    alone, together = both_ways(L12RegressorCV, {"cv": drawn}, X, Y[:, 0])
    np.testing.assert_allclose(together.mse_path_, alone.mse_path_, rtol=1e-6)


@pytest.mark.parametrize(("kind", "y"), [(L12RegressorCV, Y[:, 0]), (L12ClassifierCV, LABELS == "c")])
def test_sparse_columns_stay_sparse(both_ways, kind, y):
    thin = scipy.sparse.csr_array(np.where(np.abs(X) > 1.5, X, 0))
    alone, together = both_ways(kind, {"penalty": L1()}, thin, y, WEIGHT)
    np.testing.assert_allclose(scores_of(together), scores_of(alone), rtol=1e-6)


def test_single_precision_converges_where_it_can(both_ways):
    alone, together = both_ways(
        L12RegressorCV, {"alphas": 10, "tol": 1e-4}, X.astype(np.float32), Y.astype(np.float32)
    )
    assert together.coef_.dtype == np.float32
    np.testing.assert_allclose(together.mse_path_, alone.mse_path_, rtol=2e-3)


def test_a_scorer_and_the_one_standard_error_rule(both_ways):
    alone, together = both_ways(L12ClassifierCV, {"scoring": "accuracy", "selection": "1se"}, X, LABELS, WEIGHT)
    np.testing.assert_allclose(together.scores_, alone.scores_)
    assert together.alpha_ == alone.alpha_


def test_what_does_not_converge_is_reported(monkeypatch):
    monkeypatch.setattr(AlphaSearch, "_takes_columns", lambda *_: True)
    full = folds.minimize
    monkeypatch.setattr(folds, "minimize", lambda *given, **options: full(*given, **options | {"max_iter": 3}))
    with pytest.warns(ConvergenceWarning, match="in 20 of 20 problems"):
        L12RegressorCV(**GRID).fit(X, Y[:, 0])


def test_rows_of_data():
    part = Data(X, Y[:, 0]).rows(np.arange(3))
    assert part.X.shape == (3, 20)
    assert part.sample_weight is None
