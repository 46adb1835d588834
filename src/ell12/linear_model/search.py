"""The search for a strength: a path on each fold, scores, and the choice between the strengths."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ell12.backend import as_numpy, namespace, on_accelerator, take
from ell12.checks import check_flags, check_word, naming
from ell12.linear_model.arrays import follow, passes
from ell12.linear_model.folds import FoldColumns, solve_folds
from ell12.linear_model.problems import FitProblem
from ell12.linear_model.sparse_model import SparseLinearModel, warn_if_not_converged
from ell12.minimization import Result
from ell12.path import alpha_grid, falling
from ell12.plots import plot_cross_validation
from ell12.protocols import Array


class AlphaSearch(SparseLinearModel):
    """Choose alpha: a path on each fold, the same alphas for all; a subclass scores the path's predictions."""

    alphas: Any
    n_alphas: int
    eps: float
    cv: Any
    selection: str
    n_jobs: int | None
    together: bool | None

    def plot(self, axes: Any = None) -> Any:
        """Draw the cross-validation: `ell12.plot_cross_validation` of this model."""
        check_is_fitted(self)
        return plot_cross_validation(self, axes=axes)

    @abstractmethod
    def _score_path(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        """The score, the higher the better, for each alpha; coefs are (n_alphas, n_problems, n_features)."""

    def _search(self, X: Any, y: Array, sample_weight: Any) -> Array:
        """Set ``alphas_`` and ``alpha_``, fit at that, and return the scores, (n_alphas, n_folds)."""
        self._check_numbers()
        check_word(self.selection, "selection", "min", "1se")
        problems = self._problems(X, y, sample_weight)
        if self.alphas is None:
            alphas = alpha_grid(self._alpha_max(problems), self.n_alphas, self.eps)
        else:
            alphas = falling(self.alphas)
        labels = as_numpy(y)
        with naming("cv"):
            folds = list(check_cv(self.cv, labels, classifier=is_classifier(self)).split(X, labels))
        if not folds:
            raise ValueError(f"cv must give at least one fold, got {self.cv!r}")
        data = (X, y, sample_weight)
        if self._takes_columns(X, problems, alphas):
            scores, results = self._side_by_side(problems, data, folds, alphas)
        else:
            scores, results = self._one_by_one(data, folds, alphas)
        self.alphas_, self.alpha_ = follow(alphas, X), float(alphas[_select(scores, self.selection)])
        warn_if_not_converged(self, results)
        # From zero, as a plain fit at this alpha would be, so that the result does not depend on the grid.
        self._fit_problems(problems, self.alpha_)
        return follow(scores, X)

    def _takes_columns(self, X: Any, problems: list[FitProblem], alphas: Array) -> bool:
        """Whether the folds are solved side by side."""
        check_flags(optional=True, together=self.together)
        obstacles = {
            "solver": self.solver is not None,
            "shared_support": any(problem.n_targets for problem in problems),
            "an alpha of 0": alphas[-1] == 0,
        }
        named = " and ".join(name for name, there in obstacles.items() if there)
        if self.together and named:
            raise ValueError(f"together=True solves without {named}; give together=False")
        return on_accelerator(X) and not named if self.together is None else self.together

    def _side_by_side(
        self, problems: list[FitProblem], data: tuple[Any, ...], folds: list[Any], alphas: Array
    ) -> tuple[Array, list[Result]]:
        """The scores of each alpha and fold, and how the runs ended: the folds as columns of one problem."""
        columns = FoldColumns(problems, folds, data[2], self.fit_intercept)
        options = self._penalty_options() | {"l2_weight": self.l2_weight, "intercept": problems[0].constant != 0}
        limits = {"tol": self.tol, "max_iter": self.max_iter, "stop": self._progress()}
        scores, results = [], []
        paths = solve_folds(columns, alphas, options, limits)
        for (_, test), (coefs, intercepts, runs) in zip(folds, paths, strict=True):
            scores.append(self._score_path(coefs, intercepts, *(_rows(values, test) for values in data)))
            results += [replace(run, x=None, history={}) for run in runs]
        return np.stack(scores, axis=1), results

    def _one_by_one(self, data: tuple[Any, ...], folds: list[Any], alphas: Array) -> tuple[Array, list[Result]]:
        """The same, a warm-started path for each fold after the other, or in processes of their own."""
        foreign = passes(data[0])
        if foreign and not on_accelerator(data[0]):  # seen as NumPy arrays, which have the faster solver
            data = tuple(None if part is None else as_numpy(part) for part in data)
            foreign = False
        outcomes = Parallel(n_jobs=1 if foreign else self.n_jobs)(
            delayed(_fold)(self, *data, alphas, train, test) for train, test in folds
        )
        scores = np.stack([score for score, _ in outcomes], axis=1)
        return scores, [result for _, results in outcomes for result in results]


def _fold(
    model: AlphaSearch, X: Any, y: Array, sample_weight: Any, alphas: Array, train: Array, test: Array
) -> tuple[Array, list[Result]]:
    """The scores of a path fitted to one part and judged on the other, and how its runs ended."""
    problems = model._problems(*(_rows(values, train) for values in (X, y, sample_weight)))
    runs = [model._solve(problem, alphas) for problem in problems]
    pairs = [
        [problem.coefficients(result.x) for result in results]
        for problem, results in zip(problems, runs, strict=True)
    ]
    xp = namespace(pairs[0][0][0])
    coefs = xp.concat([xp.stack([coef for coef, _ in path]) for path in pairs], axis=1)
    intercepts = xp.concat([xp.stack([level for _, level in path]) for path in pairs], axis=1)
    scores = model._score_path(coefs, intercepts, *(_rows(values, test) for values in (X, y, sample_weight)))
    return scores, [replace(result, x=None, history={}) for results in runs for result in results]


def _rows(values: Any, which: Array) -> Any:
    """Some rows of an array of any kind, if there is one."""
    if values is None:
        return None
    return take(values, np.arange(values.shape[0])[which], 0) if passes(values) else _safe_indexing(values, which)


def _select(scores: Array, selection: str) -> int:
    """Which alpha to take; of equals the largest."""
    means = scores.mean(axis=1)
    if np.isnan(means).all():
        raise ValueError("the scores of every alpha are NaN: scoring must give numbers")
    means = np.where(np.isnan(means), -np.inf, means)
    best = int(np.argmax(means))
    n_folds = scores.shape[1]
    if selection == "min" or n_folds < 2:
        return best
    error = scores[best].std(ddof=1) / np.sqrt(n_folds)
    return int(np.argmax(means >= means[best] - error))
