"""The models that the study of prediction compares: chosen by cross-validation, 5 folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegressionCV, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold

from ell12 import L1, L12, L12ClassifierCV, L12Regressor, L12RegressorCV

# Strengths of all grids: as many as LassoCV and L12RegressorCV take by default, down to the same share.
N_ALPHAS, EPS = 100, 1e-3
# Of scikit-learn's coordinate descent: by default it stops at 1000 iterations, on spectra far from a solution.
MAX_ITER = 20_000
# The gamma of MCP: skglm's default and ncvreg's.
GAMMA = 3.0
RIDGE_ALPHAS = np.logspace(-3, 6, 46)
L1_RATIOS = [0.1, 0.5, 0.9]
WEIGHTS = ("l1-2", "l1-2, l2_weight 0", "l1-2, l2_weight 0.5", "l1-2, l2_weight 1")
CHOSEN = "l1-2, l2_weight chosen of 0, 0.5, 1"


class MCPRegressorCV(RegressorMixin, BaseEstimator):
    """skglm's path of MCP, its strength chosen on the same grid and the same folds as LassoCV's.

    The path is solved on centred data, as scikit-learn's are.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> MCPRegressorCV:
        alphas = np.max(np.abs(X.T @ (y - y.mean()))) / len(y) * np.geomspace(1, EPS, N_ALPHAS)
        errors = []
        for train, test in KFold(5).split(X):
            coefs, intercepts = mcp_path(X[train], y[train], alphas)
            errors.append(np.mean((y[test, None] - X[test] @ coefs - intercepts) ** 2, axis=0))
        best = int(np.argmin(np.mean(errors, axis=0)))
        coefs, intercepts = mcp_path(X, y, alphas[: best + 1])
        self.coef_, self.intercept_ = coefs[:, -1], intercepts[-1]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X @ self.coef_ + self.intercept_


def mcp_path(X: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and intercepts by skglm, a column for each strength."""
    from skglm.estimators import MCPRegression

    mean, height = X.mean(axis=0), y.mean()
    model = MCPRegression(gamma=GAMMA, fit_intercept=False)
    coefs = model.path(np.asfortranarray(X - mean), y - height, alphas)[1]
    return coefs, height - mean @ coefs


class L1LogisticCV(ClassifierMixin, BaseEstimator):
    """LogisticRegressionCV with the l1 norm on our grid; liblinear, which of its solvers is the fastest here.

    liblinear shrinks the intercept too; at a scale of 100 hardly so.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> L1LogisticCV:
        ones = y == y[0]
        first = np.max(np.abs(X.T @ (ones - np.mean(ones))))
        self.model_ = LogisticRegressionCV(
            Cs=1 / (first * np.geomspace(1, EPS, N_ALPHAS // 2)),
            l1_ratios=(1.0,),
            solver="liblinear",
            intercept_scaling=100.0,
            scoring="neg_log_loss",
            use_legacy_attributes=False,
            max_iter=1000,
        ).fit(X, y)
        self.coef_, self.classes_ = self.model_.coef_, self.model_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(X)


class AbessClassifierCV(ClassifierMixin, BaseEstimator):
    """abess for two classes, with its cross-validation by the loss."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> AbessClassifierCV:
        from abess.linear import LogisticRegression

        self.classes_, codes = np.unique(y, return_inverse=True)
        self.model_ = LogisticRegression(cv=5, cv_score="test_loss").fit(X, codes)
        self.coef_ = self.model_.coef_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(X)


def abess_regressor() -> Any:
    from abess.linear import LinearRegression

    return LinearRegression(cv=5)


REGRESSORS: dict[str, Callable[[], Any]] = {
    "l1-2": L12RegressorCV,
    "l1-2, l2_weight 0.5": lambda: L12RegressorCV(penalty=L12(l2_weight=0.5)),
    "l1-2, l2_weight 0": lambda: L12RegressorCV(penalty=L1()),
    "l1-2, relax": lambda: L12RegressorCV(relax=True),
    "l1-2, bic": lambda: L12RegressorCV(selection="bic"),
    "Lasso": lambda: LassoCV(max_iter=MAX_ITER),
    "elastic net": lambda: ElasticNetCV(l1_ratio=L1_RATIOS, max_iter=MAX_ITER),
    "ridge": lambda: RidgeCV(alphas=RIDGE_ALPHAS),
    "MCP": MCPRegressorCV,
    "abess": abess_regressor,
}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "l1-2": L12ClassifierCV,
    "l1-2, l2_weight 1": lambda: L12ClassifierCV(penalty=L12()),
    "l1-2, l2_weight 0": lambda: L12ClassifierCV(penalty=L1()),
    "l1 (LogisticRegressionCV)": L1LogisticCV,
    "l2 (LogisticRegressionCV)": lambda: LogisticRegressionCV(
        Cs=np.logspace(-6, 3, 46),
        l1_ratios=(0.0,),
        scoring="neg_log_loss",
        use_legacy_attributes=False,
        max_iter=1000,
    ),
    "abess": AbessClassifierCV,
}


def derived(models: dict[str, tuple[Any, float]], X: np.ndarray, y: np.ndarray) -> dict[str, tuple[Any, float]]:
    """Two more out of fitted models: the l2_weight of the lowest cross-validated error, and the 1se rule."""
    weights = [pair for name, pair in models.items() if name in WEIGHTS]
    if len(weights) < len(WEIGHTS) - 1:
        return {}
    seconds = sum(pair[1] for pair in weights)
    if hasattr(weights[0][0], "mse_path_"):
        best = min(weights, key=lambda pair: pair[0].mse_path_.mean(axis=1).min())
        return {CHOSEN: (best[0], seconds), "l1-2, 1se": _one_se(*models["l1-2"], X, y)}
    best = max(weights, key=lambda pair: pair[0].scores_.mean(axis=1).max())
    return {CHOSEN: (best[0], seconds)}


def _one_se(model: Any, seconds: float, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    means = model.mse_path_.mean(axis=1)
    best = int(np.argmin(means))
    error = model.mse_path_[best].std(ddof=1) / np.sqrt(model.mse_path_.shape[1])
    alpha = model.alphas_[np.argmax(means <= means[best] + error)]
    return L12Regressor(alpha=alpha).fit(X, y), seconds


def compile_all(makers: dict[str, Callable[[], Any]]) -> None:
    """Compile what is compiled at a first call, so that no fit is timed with it."""
    X = np.random.default_rng(0).standard_normal((40, 8))
    y = X[:, 0] + X[:, 1] if makers.keys() <= REGRESSORS.keys() else X[:, 0] + X[:, 2] ** 2 > 0.5
    for make in makers.values():
        make().fit(X, y)


def regression_error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Mean squared error."""
    return float(np.mean((model.predict(X) - y) ** 2))


def classification_error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Logarithmic loss, with probabilities kept a millionth away from 0 and 1."""
    probabilities = np.clip(model.predict_proba(X), 1e-6, 1 - 1e-6)
    return float(log_loss(y, probabilities / probabilities.sum(axis=1, keepdims=True), labels=model.classes_))


def abess_path(X: np.ndarray, y: np.ndarray, sizes: list[int]) -> np.ndarray:
    """The best subsets of these sizes, a column for each."""
    from abess.linear import LinearRegression

    models = [LinearRegression(support_size=[size], fit_intercept=False).fit(X, y) for size in sizes]
    return np.column_stack([model.coef_ for model in models])
