"""The search for a strength and a penalty: a path on each fold, scores, and the choice."""

from __future__ import annotations

import copy
import math
import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from ell12.backend import as_numpy, namespace, on_accelerator
from ell12.checks import check_counts, check_word, naming
from ell12.linear_model.criteria import CRITERIA, judge
from ell12.linear_model.families import NoInformation
from ell12.linear_model.fit_problem import Data, FitProblem, as_vector, follow, passes
from ell12.linear_model.refit import mix, refit_path
from ell12.linear_model.sparse_model import SparseLinearModel, check_penalty, is_joint, warn_if_not_converged
from ell12.minimization import Result
from ell12.operators import is_out_of_memory
from ell12.path import grid_size
from ell12.plots import plot_cross_validation
from ell12.protocols import Array, ColumnLoss, missing, with_alpha

# By how many standard errors of the difference a refit must be better than the penalised fit for relax="auto" to
# take it; benchmarks/real_data.py says what 0, 1/4, 1/2, 3/4 and 1 did.
LEAST_GAIN = 0.5


class AlphaSearch(SparseLinearModel):
    """Choose alpha, and one of several penalties: a path on each fold; a subclass scores its predictions."""

    alphas: Any
    eps: float
    cv: Any
    scoring: Any
    selection: str
    n_jobs: int | None
    alpha_: float
    relaxed_: float
    __metadata_request__fit: ClassVar = {"groups": True}  # for a splitter, as scikit-learn's own searches
    _own_scores: ClassVar[tuple[str, ...]] = ()  # words for scoring that scikit-learn does not have
    _weighs_folds = True  # whether rows that a fold leaves out may as well have weight zero

    def plot(self, axes: Any = None) -> Any:
        """Draw the mean error (or score) on the folds left out, with one standard error, against alpha."""
        check_is_fitted(self)
        return plot_cross_validation(self, axes=axes)

    @abstractmethod
    def _score_path(self, coefs: Array, intercepts: Array, data: Data) -> Array:
        """The score, the higher the better, for each alpha; coefs are (n_alphas, n_problems, n_features)."""

    def _search(self, data: Data, groups: Any = None) -> Any:
        """Choose alpha and penalty, fit with them, and keep the scores.

        They are (n_alphas, n_folds), or (n_penalties, n_alphas, n_folds) where ``penalty`` is a list. A
        criterion needs no folds: it is kept with the degrees of freedom.
        """
        for name in ("mse_path_", "scores_", "criterion_path_", "df_path_", "relaxed_"):
            self.__dict__.pop(name, None)  # of a fit with another selection or scoring
        self._check_numbers()
        check_word(self.selection, "selection", "min", "1se", *CRITERIA)
        check_scorer(self)
        penalties, by_criterion = self._penalties(), self.selection in CRITERIA
        folds = [] if by_criterion else self._folds(data, groups)
        problems = self._problems(data)
        shares = self._refit_shares(problems)
        grids = np.stack([self._grid(problems, penalty, self.alphas, self.eps) for penalty in penalties])
        pairs = zip(penalties, grids, strict=True)
        found = [self._scores(problems, penalty, grid, shares, data, folds) for penalty, grid in pairs]
        scores = np.concatenate([part[0] for part in found])
        warn_if_not_converged(self, [result for part in found for result in part[1]])
        informative = ~np.isnan(scores).all(axis=(0, 1))
        judged = scores[..., informative] if informative.any() else scores
        if len(shares) > 1 and not _gains(judged, len(shares)):
            scores, judged, shares = scores[:: len(shares)], judged[:: len(shares)], (0.0,)
        (chosen, best), self.standard_error_ = choose(judged, self.selection)
        which, share = divmod(chosen, len(shares))
        self.relaxed_, scores = shares[share], scores[share :: len(shares)]
        self.alpha_ = float(grids[which, best])
        self._warn_at_the_end(grids[which], best)
        several, kept = isinstance(self.penalty, list | tuple), {"alphas_": grids}
        # From zero, as a plain fit at this alpha would be, so that the result does not depend on the grid.
        penalty = with_alpha(penalties[which], self.alpha_)
        self._fit_problems(problems, penalty, single=self._is_single(data))
        if by_criterion:
            kept |= {"criterion_path_": -scores[..., 0], "df_path_": np.stack([part[2] for part in found])}
        elif is_regressor(self) and self.scoring is None:
            kept["mse_path_"] = -scores
        else:
            kept["scores_"] = scores
        for name, values in kept.items():
            one = not several or (name == "alphas_" and grid_size(self.alphas, 100) is None)
            setattr(self, name, follow(values[0] if one else values, data.X))
        return self

    def _refit_shares(self, problems: list[FitProblem]) -> tuple[float, ...]:
        """The shares of the refit to try: with "auto" several, where folds judge and a refit costs little."""
        loss, first = problems[0].loss, problems[0]
        if self.relax is True:
            self._check_refit(first)
        if self.relax != "auto":
            return (self._refit_share,)
        lacking = missing(loss, ColumnLoss) or first.n_classes or on_accelerator(loss.b) or first.out_of_memory
        return (0.0,) if lacking or self.selection in CRITERIA else (0.0, 0.5, 1.0)

    def _penalties(self) -> list[Any]:
        """The penalties to try, of strength 1."""
        given = list(self.penalty) if isinstance(self.penalty, list | tuple) else [self.penalty]
        if not given:
            raise ValueError("penalty must hold at least one penalty")
        for penalty in given:
            check_penalty(penalty)
            if penalty.alpha is not None:
                raise ValueError(f"alpha is searched by {type(self).__name__}: leave it out of {penalty!r}")
        if len({is_joint(penalty) for penalty in given}) > 1:
            raise ValueError("penalty must not mix joint penalties, such as RowsL12, with others")
        return [self._check_shape(with_alpha(penalty, 1.0)) for penalty in given]

    def _folds(self, data: Data, groups: Any) -> list[Any]:
        """The rows to fit to and to score, for each fold; folds of a number are shuffled, always alike."""
        # This takes longer to load than a fit of middling size.
        from sklearn.model_selection import KFold, StratifiedKFold, check_cv

        strata = self._strata(data.y)
        labels = as_numpy(data.y) if strata is None else strata
        cv: Any = 5 if self.cv is None else self.cv
        with naming("cv"):
            if isinstance(cv, int | np.integer):
                cv = (KFold if strata is None else StratifiedKFold)(cv, shuffle=True, random_state=0)
            folds = check_cv(cv, labels, classifier=strata is not None).split(data.X, labels, groups)
            rows = np.arange(labels.shape[0])
            folds = [(rows[train], rows[test]) for train, test in folds]
        if not folds:
            raise ValueError(f"cv must give at least one fold, got {self.cv!r}")
        return folds

    def _warn_at_the_end(self, grid: Array, best: int) -> None:
        """Warn where a longer grid might have held a better alpha."""
        ends = {len(grid) - 1: ("last", "a smaller eps may find a better one")}
        if self.selection == "min":
            ends[0] = "first", "no feature predicts, or rows are not exchangeable between folds"
        if best in ends and len(grid) > 2 and grid_size(self.alphas, 100) is not None:
            side, advice = ends[best]
            warnings.warn(f"the chosen alpha, {grid[best]:.3g}, is the {side} of the grid: {advice}", stacklevel=4)

    def _path(self, problem: FitProblem, penalty: Any, alphas: Array) -> list[Result]:
        """A result for each alpha; of columns out of memory x, which is as long, is sparse."""
        return self._solve(problem, penalty, alphas, sparse=problem.out_of_memory and not problem.n_targets)

    def _fold_problems(self, data: Data, train: Array) -> list[FitProblem]:
        """The problems of some rows. Of columns out of memory the other rows have weight zero: none is moved."""
        X, _, weight, _ = data
        if not (self._weighs_folds and is_out_of_memory(X)):
            return self._problems(data.rows(train))
        times = np.bincount(train, minlength=X.shape[0]).astype(X.dtype)
        return self._problems(data._replace(sample_weight=times if weight is None else times * weight))

    def _score_fold(self, path: tuple[Array, Array], data: Data, train: Array, test: Array) -> Array:  # noqa: ARG002
        """The scores of the coefficients and intercepts of a path that was fitted to one part of the data."""
        return self._score_path(*path, data.rows(test))

    def _scores(
        self, problems: list[FitProblem], penalty: Any, alphas: Array, shares: Any, data: Data, folds: list[Any]
    ) -> tuple[Array, list[Result], Any]:
        """The scores, (n_shares, n_alphas, n_folds), how runs ended, and of a criterion the degrees of freedom."""
        if self.selection not in CRITERIA:
            return *self._one_by_one((penalty, alphas, shares), data, folds), None
        runs = [self._path(problem, penalty, alphas) for problem in problems]
        with naming(f"selection={self.selection!r}"):
            judged = judge(self, problems, penalty, runs, alphas, data.sample_weight)
        return -judged.criterion(self.selection)[None, :, None], _ends(runs), judged.freedoms.sum(axis=0)

    def _one_by_one(self, tried: Any, data: Data, folds: list[Any]) -> tuple[Array, list[Result]]:
        """The same, a warm-started path for each fold after the other, or in processes of their own."""
        foreign = passes(data.X)
        if foreign and not on_accelerator(data.X):  # seen as NumPy arrays, which have the faster solver
            data = Data(*(None if part is None else as_numpy(part) for part in data))
            foreign = False
        check_counts(least=-math.inf, most=np.iinfo(np.int32).max, n_jobs=self.n_jobs)
        outcomes = Parallel(n_jobs=1 if foreign else self.n_jobs)(
            delayed(_fold)(self, tried, data, train, test) for train, test in folds
        )
        lacking = [str(score) for score, _ in outcomes if isinstance(score, NoInformation)]
        if len(lacking) == len(outcomes):
            raise ValueError(f"no fold can be scored: {lacking[0]}")
        if lacking:
            warnings.warn(f"{len(lacking)} of {len(folds)} folds are left out: {lacking[0]}", stacklevel=6)
        nothing = np.full((len(tried[2]), len(tried[1])), math.nan)
        columns = [nothing if isinstance(score, Exception) else score for score, _ in outcomes]
        return np.stack(columns, axis=2), [result for _, results in outcomes for result in results]


def _fold(model: AlphaSearch, tried: Any, data: Data, train: Array, test: Array) -> tuple[Any, list[Result]]:
    """The scores of a path fitted to one part and judged on the other, and how its runs ended."""
    penalty, alphas, shares = tried
    try:
        problems = model._fold_problems(data, train)
        runs = [model._path(problem, penalty, alphas) for problem in problems]
        used = entries_in_use(runs, data.X.shape[1]) if is_out_of_memory(data.X) else slice(None)
        judged = data._replace(X=data.X.select_columns(used)) if is_out_of_memory(data.X) else data
        solutions = [[as_vector(run.x) for run in path] for path in runs]
        plain = refits = path_coefficients(problems, solutions, used)
        if any(shares):
            most = problems[0].loss.b.shape[0] / 2 if len(shares) > 1 else math.inf
            pairs = zip(problems, solutions, strict=True)
            refits = path_coefficients(problems, [refit_path(p, xs, penalty, most) for p, xs in pairs], used)
        paths = [[mix(*parts, share) for parts in zip(plain, refits, strict=True)] for share in shares]
        scores = np.stack([model._score_fold((path[0], path[1]), judged, train, test) for path in paths])
    except NoInformation as error:
        return error, []
    return scores, _ends(runs)


def _ends(runs: list[list[Result]]) -> list[Result]:
    """How the runs of several paths ended, without their solutions."""
    return [replace(run, x=None, history={}) for path in runs for run in path]


def path_coefficients(problems: list[FitProblem], solutions: list[Any], used: Any) -> tuple[Array, Array]:
    """The coefficients of the columns in use and the intercepts, (n_alphas, n_rows, ...), of paths."""
    pairs = [[p.coefficients(x) for x in path] for p, path in zip(problems, solutions, strict=True)]
    xp = namespace(pairs[0][0][0])
    coefs = xp.concat([xp.stack([coef[:, used] for coef, _ in path]) for path in pairs], axis=1)
    return coefs, xp.concat([xp.stack([level for _, level in path]) for path in pairs], axis=1)


def entries_in_use(runs: list[Any], size: int) -> Array:
    """The entries that some solution of some path uses; at least one."""
    used = np.zeros(size, dtype=bool)
    for run in (run for path in runs for run in path):
        rows = run.x.nonzero()[0]  # of a sparse column too
        used[rows[rows < size]] = True
    return np.flatnonzero(used) if used.any() else np.arange(1)


def _gains(scores: Array, n_shares: int) -> bool:
    """Whether the best scores are better than the best ones without a refit, beyond chance."""
    (which, best), _ = choose(scores, "min")
    (plain, at), _ = choose(scores[::n_shares], "min")
    gain = scores[which, best] - scores[n_shares * plain, at]
    return float(gain.mean()) > LEAST_GAIN * float(np.nan_to_num(standard_error(gain)))


def choose(scores: Array, selection: str) -> tuple[tuple[int, int], float]:
    """Which penalty and alpha to take, and the standard error of the best mean score; NaN for one fold.

    Of equals the first penalty and the largest alpha. "1se" keeps the penalty of the best mean and takes its
    largest alpha within one standard error: strengths are not comparable between penalties.

    Parameters
    ----------
    scores : array of shape (n_penalties, n_alphas, n_folds)
        The higher the better; alphas fall.
    selection : {"min", "1se"}
        The rule.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.linear_model.alpha_search import choose
    >>> scores = np.array([[[0.0, 2.0], [2.0, 4.0], [2.0, 5.0]]])
    >>> choose(scores, "min")[0], choose(scores, "1se")[0]
    ((0, 2), (0, 1))
    """
    means = scores.mean(axis=2)
    if np.isnan(means).all():
        raise ValueError("the scores of every alpha are NaN: scoring must give numbers")
    means = np.where(np.isnan(means), -np.inf, means)
    which, best = (int(k) for k in np.unravel_index(np.argmax(means), means.shape))
    folds = scores.shape[2]
    error = standard_error(scores[which, best])
    if selection == "1se" and folds > 1:
        best = int(np.argmax(means[which] >= means[which, best] - error))
    return (which, best), error


def standard_error(scores: Array) -> float:
    """The standard error of the mean of some scores, of any size; NaN of one score."""
    size = float(np.abs(scores).max()) or 1.0  # so that no square overflows
    return size * float((scores / size).std(ddof=1)) / math.sqrt(scores.size) if scores.size > 1 else math.nan


def check_scorer(model: Any) -> None:
    """Raise, before anything is solved, unless ``scoring`` is None or one score."""
    if model.scoring is None or (isinstance(model.scoring, str) and model.scoring in model._own_scores):
        return
    from sklearn.metrics import get_scorer_names  # which takes longer to load than a fit of middling size

    if not (callable(model.scoring) or (isinstance(model.scoring, str) and model.scoring in get_scorer_names())):
        raise ValueError(f"scoring must be the name of a score, a function or None, got {model.scoring!r}")


def scores_of(model: Any, coefs: Array, intercepts: Array, data: Data) -> Array:
    """What the ``scoring`` of a model says of each alpha; a scorer gets NumPy arrays, whatever X is."""
    from sklearn.metrics import check_scoring

    X, y, weight, _ = data
    model = copy.copy(model)
    scorer = check_scoring(model, scoring=model.scoring)
    if passes(X):  # few scorers take more than NumPy
        coefs, intercepts, X, y = (as_numpy(values) for values in (coefs, intercepts, X, y))
        weight = None if weight is None else as_numpy(weight)
    model.n_features_in_ = X.shape[1]  # of columns out of memory those in use alone
    weights = {} if weight is None else {"sample_weight": weight}
    if is_classifier(model):
        model.classes_ = as_numpy(model.classes_)
        y = model.classes_[y]
    elif y.ndim == 1:  # one target has a vector of coefficients
        coefs, intercepts = coefs[:, 0], intercepts[:, 0]
    scores = []
    for model.coef_, model.intercept_ in zip(coefs, intercepts, strict=True):
        try:
            score = scorer(model, X, y, **weights)
            scores.append(float(score.item() if hasattr(score, "item") else score))
        except NoInformation:
            raise
        except (TypeError, ValueError) as error:
            raise ValueError(f"scoring must give numbers of a model, X and y: {error}") from error
    return np.array(scores)
