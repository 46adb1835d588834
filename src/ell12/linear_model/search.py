"""The search for a strength: a path on each fold, scores, and the choice between the strengths."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ell12.backend import as_numpy, namespace, on_accelerator, take
from ell12.checks import check_flags, check_word, naming
from ell12.linear_model.choice import check_scorer, choose
from ell12.linear_model.criteria import CRITERIA, judge
from ell12.linear_model.fit_problem import FitProblem, as_vector, follow, passes
from ell12.linear_model.sparse_model import SparseLinearModel, warn_if_not_converged
from ell12.minimization import Result
from ell12.operators import is_far
from ell12.path import alpha_grid, falling, grid_size
from ell12.path.side_by_side import SIDE_BY_SIDE, FoldColumns, solve_folds
from ell12.plots import plot_cross_validation
from ell12.protocols import Array


class AlphaSearch(SparseLinearModel):
    """Choose alpha: a path on each fold, the same alphas for all; a subclass scores the path's predictions."""

    alphas: Any
    n_alphas: int
    eps: float
    cv: Any
    scoring: Any
    selection: str
    n_jobs: int | None
    together: bool | None
    l2_weight: Any
    l2_weight_: float
    df_path_: Any
    _after_fold: Any = None  # what is called after each fold, for commands that show progress
    _weighs_folds = True  # whether rows that a fold leaves out may as well have weight zero

    def plot(self, axes: Any = None) -> Any:
        """Draw the mean error (or score) on the folds left out, with one standard error, against alpha."""
        check_is_fitted(self)
        return plot_cross_validation(self, axes=axes)

    @abstractmethod
    def _score_path(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        """The score, the higher the better, for each alpha; coefs are (n_alphas, n_problems, n_features)."""

    def _search(self, X: Any, y: Array, sample_weight: Any) -> Array | None:
        """Choose ``alpha_`` and ``l2_weight_``, fit with them, and return the scores.

        They are (n_alphas, n_folds), or (n_l2_weights, n_alphas, n_folds) where ``l2_weight`` is a list. A
        criterion needs no folds: it is kept with the degrees of freedom, and None is returned.
        """
        for name in ("mse_path_", "scores_", "criterion_path_", "df_path_"):
            self.__dict__.pop(name, None)  # of a fit with another selection or scoring
        self._check_numbers()
        check_word(self.selection, "selection", "min", "1se", *CRITERIA)
        check_scorer(self)
        by_criterion = self.selection in CRITERIA
        folds = [] if by_criterion else self._folds(X, y)
        problems, data = self._problems(X, y, sample_weight), (X, y, sample_weight)
        parts = [self._with_l2_weight(weight) for weight in self._l2_weights()]
        grids = np.stack([part._grid(problems) for part in parts])
        found = [part._scores(problems, data, folds, alphas) for part, alphas in zip(parts, grids, strict=True)]
        scores = np.stack([score for score, _ in found])
        (which, best), self.standard_error_ = choose(scores, self.selection)
        self.l2_weight_, self.alpha_ = parts[which].l2_weight_, float(grids[which, best])
        warn_if_not_converged(self, [result for _, results in found for result in results])
        several, automatic = self._has_several_weights(), grid_size(self.alphas, 1) is not None
        self.alphas_ = follow(grids if several and automatic else grids[0], X)
        # From zero, as a plain fit at this alpha would be, so that the result does not depend on the grid.
        self._fit_problems(problems, self.alpha_)
        if by_criterion:
            freedoms = np.stack([part.df_path_ for part in parts])
            self.criterion_path_, self.df_path_ = (
                follow(values if several else values[0], X) for values in (-scores[..., 0], freedoms)
            )
            return None
        return follow(scores if several else scores[0], X)

    def _l2_weights(self) -> list[Any]:
        with naming("l2_weight"):
            weights: list[Any] = list(self.l2_weight) if self._has_several_weights() else [self.l2_weight]
        if not weights:
            raise ValueError("l2_weight must hold at least one number")
        return weights

    def _has_several_weights(self) -> bool:
        return np.ndim(self.l2_weight) > 0

    @property
    def _l2_weight(self) -> float:
        return self.__dict__.get("l2_weight_", self.l2_weight)

    def _with_l2_weight(self, weight: Any) -> Any:
        """The same model for one of the weights of the subtracted norm."""
        part = copy.copy(self)
        part.l2_weight_ = float(weight)
        return part

    def _grid(self, problems: list[FitProblem]) -> Array:
        """The strengths to try, falling."""
        size = grid_size(self.alphas, self.n_alphas)
        return falling(self.alphas) if size is None else alpha_grid(self._first_strength(problems), size, self.eps)

    def _folds(self, X: Any, y: Array) -> list[Any]:
        from sklearn.model_selection import check_cv  # which takes longer to load than a fit of middling size

        labels = as_numpy(y) if self._strata(y) is None else self._strata(y)
        with naming("cv"):
            folds = list(check_cv(self.cv, labels, classifier=self._strata(y) is not None).split(X, labels))
        if not folds:
            raise ValueError(f"cv must give at least one fold, got {self.cv!r}")
        return folds

    def _path(self, problem: FitProblem, alphas: Array) -> list[Result]:
        """A result for each alpha; of columns out of memory x, which is as long, is sparse."""
        return self._solve(problem, alphas, sparse=problem.is_far and not problem.n_targets)

    def _fold_problems(self, data: tuple[Any, ...], train: Array) -> list[FitProblem]:
        """The problems of some rows. Of columns out of memory the other rows have weight zero: none is moved."""
        X, y, weight = data
        if not (self._weighs_folds and is_far(X)):
            return self._problems(*(_rows(values, train) for values in data))
        times = np.bincount(np.arange(X.shape[0])[train], minlength=X.shape[0]).astype(X.dtype)
        return self._problems(X, y, times if weight is None else times * weight)

    def _score_fold(self, path: tuple[Array, Array], data: tuple[Any, ...], train: Array, test: Array) -> Array:  # noqa: ARG002
        """The scores of the coefficients and intercepts of a path that was fitted to one part of the data."""
        return self._score_path(*path, *(_rows(values, test) for values in data))

    def _scores(
        self, problems: list[FitProblem], data: tuple[Any, ...], folds: list[Any], alphas: Array
    ) -> tuple[Array, list[Result]]:
        """The scores of each alpha and fold, and how the runs ended."""
        if self.selection in CRITERIA:
            runs = [self._path(problem, alphas) for problem in problems]
            with naming(f"selection={self.selection!r}"):
                judged = judge(self, problems, runs, alphas, data[2])
            self.df_path_ = judged.freedoms.sum(axis=0)
            return -judged.criterion(self.selection)[:, None], [
                replace(run, x=None, history={}) for path in runs for run in path
            ]
        if self._takes_columns(data[0], problems, alphas):
            return self._side_by_side(problems, data, folds, alphas)
        return self._one_by_one(data, folds, alphas)

    def _takes_columns(self, X: Any, problems: list[FitProblem], alphas: Array) -> bool:
        """Whether the folds are solved side by side."""
        check_flags(optional=True, together=self.together)
        obstacles = {
            "solver": self.solver is not None,
            "shared_support": any(problem.n_targets for problem in problems),
            "such a loss": any(type(problem.loss) not in SIDE_BY_SIDE for problem in problems),
            "an alpha of 0": alphas[-1] == 0,
            "groups": self.groups is not None,
            "bounds": self.bounds is not None,
            "relax": self.relax,
            "columns out of memory": is_far(X),
        }
        named = " and ".join(name for name, there in obstacles.items() if there)
        if self.together and named:
            raise ValueError(f"together=True solves without {named}; give together=False")
        return on_accelerator(X) and not named if self.together is None else self.together

    def _side_by_side(
        self, problems: list[FitProblem], data: tuple[Any, ...], folds: list[Any], alphas: Array
    ) -> tuple[Array, list[Result]]:
        """The scores of each alpha and fold, and how the runs ended: the folds as columns of one problem."""
        weight = self._weight_of_samples(*data[1:])
        columns = FoldColumns(problems, folds, weight, self.fit_intercept)
        options = self._penalty_options() | {"l2_weight": self._l2_weight, "intercept": problems[0].constant != 0}
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
    problems = model._fold_problems((X, y, sample_weight), train)
    runs = [model._path(problem, alphas) for problem in problems]
    X, coefs, intercepts = _coefficients(model, problems, runs, X)
    scores = model._score_fold((coefs, intercepts), (X, y, sample_weight), train, test)
    if model._after_fold is not None:
        model._after_fold()
    return scores, [replace(result, x=None, history={}) for results in runs for result in results]


def _coefficients(model: AlphaSearch, problems: list[FitProblem], runs: list[Any], X: Any) -> tuple[Any, ...]:
    """X, the coefficients and the intercepts of paths; of columns out of memory those in use alone."""
    used = _used(runs, X.shape[1]) if is_far(X) else slice(None)

    def of(problem: FitProblem, x: Array) -> tuple[Array, Array]:
        coef, level = problem.coefficients(model._final(problem, x))
        return coef[:, used], level

    pairs = [[of(problem, as_vector(run.x)) for run in path] for problem, path in zip(problems, runs, strict=True)]
    xp = namespace(pairs[0][0][0])
    coefs = xp.concat([xp.stack([coef for coef, _ in path]) for path in pairs], axis=1)
    intercepts = xp.concat([xp.stack([level for _, level in path]) for path in pairs], axis=1)
    return (X.select_columns(used) if is_far(X) else X), coefs, intercepts


def _used(runs: list[Any], size: int) -> Array:
    """The entries that some solution of some path uses; at least one."""
    used = np.zeros(size, dtype=bool)
    for run in (run for path in runs for run in path):
        rows = run.x.nonzero()[0]  # of a sparse column too
        used[rows[rows < size]] = True
    return np.flatnonzero(used) if used.any() else np.arange(1)


def _rows(values: Any, which: Array) -> Any:
    """Some rows of an array of any kind, if there is one."""
    if values is None:
        return None
    if is_far(values):
        return values[which]
    return take(values, np.arange(values.shape[0])[which], 0) if passes(values) else _safe_indexing(values, which)
