"""What the estimators share: one fit from problems to coefficients, and how it tells of its progress."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, check_is_fitted, validate_data

from ell12.backend import (
    all_finite,
    as_numpy,
    indices_like,
    inner,
    max_abs,
    namespace,
    refuse_gradient,
    refuse_masked,
    square_fits,
)
from ell12.checks import check_entries, check_flags, check_l2_weight, check_scalars, naming
from ell12.linear_model.chunked import check_in_memory
from ell12.linear_model.fit_problem import (
    FitProblem,
    check_columns,
    check_follows,
    floating_dtypes,
    follow,
    linear_functions,
    targets_of_columns,
)
from ell12.linear_model.partial import Descents
from ell12.linear_model.refit import no_refit, refit
from ell12.linear_model.restrictions import penalty_of, penalty_options, signs
from ell12.losses import LinearLoss
from ell12.minimization import DataUnavailable, Result, Status
from ell12.minimization.progress import progress_lines
from ell12.minimization.run import collected
from ell12.operators import is_far, stored
from ell12.operators.sources import as_columns
from ell12.path import first_strength, path_results
from ell12.protocols import Array, ColumnLoss, missing


class SparseLinearModel(BaseEstimator, ABC):
    """A linear model under ``alpha (||c||_1 - l2_weight ||c||_2 + ridge/2 ||c||_2^2)``.

    A subclass says in ``_problems`` which problems, one for each row of coefficients, a data set makes.
    """

    l2_weight: float
    ridge: float
    fit_intercept: bool
    positive: bool
    penalty_factors: Any
    bounds: Any
    groups: Any
    relax: bool
    warm_start: bool
    tol: float
    max_iter: int
    solver: Any
    verbose: int
    checkpoint: Any = None
    checkpoint_seconds: float = 60.0
    resume: bool = False

    alpha: float
    coef_: NDArray[Any]  # for type checkers; under array_api_dispatch of the kind of X
    intercept_: Any  # a float, or one for each row of coefficients
    n_iter_: Any
    result_: Any
    _chunks: Any = None  # what `partial_fit` keeps of the rows

    @property
    def penalty(self) -> str:
        """The convex part of the penalty, "l1": how scikit-learn's SelectFromModel knows that zeros are exact."""
        return "l1"

    @property
    def sparse_coef_(self) -> Any:
        """The coefficients as a sparse array."""
        check_is_fitted(self)
        return scipy.sparse.csr_array(np.atleast_2d(as_numpy(self.coef_)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags

    @abstractmethod
    def _observed(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Any]:
        """The data, checked, as `_problems` takes them; what fit sees in them is kept."""

    @abstractmethod
    def _problems(self, X: Any, y: Array, sample_weight: Any) -> list[FitProblem]:
        """The problems that the data make, one for each row of coefficients."""

    def _strata(self, y: Array) -> Any:
        """The labels of which each fold has its share, if any."""
        return as_numpy(y) if is_classifier(self) else None

    def _linear_functions(self, X: Any, method: str) -> Array:
        """The fitted linear functions at the rows of X, for one of the methods."""
        check_is_fitted(self)
        check_in_memory(X, self)
        X = as_columns(X)
        if is_far(X):
            check_columns(self, X)
            return linear_functions(X, self.coef_, self.intercept_)
        check_follows(X, self, method)
        refuse_masked(X, "X")
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=floating_dtypes(X), reset=False)
        return linear_functions(X, self.coef_, self.intercept_)

    def _validate(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, Any]:
        """The data as arrays of one kind and precision, checked: X in one pass, and nowhere again."""
        check_in_memory(X, self)
        X = as_columns(X)
        for name, values in {"X": X, "y": y, "sample_weight": sample_weight}.items():
            refuse_masked(values, name)
            refuse_gradient(values, name)
        checks |= {"accept_sparse": ("csr", "csc"), "dtype": floating_dtypes(X), "ensure_all_finite": False}
        check_flags(fit_intercept=self.fit_intercept, positive=self.positive, warm_start=self.warm_start)
        # Infinities are looked for by a sum, which may overflow.
        with naming("X", "y"), np.errstate(over="ignore", invalid="ignore"):
            X, y = (targets_of_columns if is_far(X) else validate_data)(self, X, y, **checks)
            if not is_far(X) and not square_fits(stored(X)):
                assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
                check_entries(stored(X), "X")
        if sample_weight is not None:
            with naming("sample_weight"):
                sample_weight = follow(sample_weight, X)
                sample_weight = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
            if not all_finite(sample_weight):
                raise ValueError("sample_weight must hold finite numbers >= 0 only")
        return X, follow(y, X), sample_weight

    def _check_numbers(self) -> None:
        if hasattr(self, "alpha"):
            check_scalars(alpha=self.alpha)
        for weight in self._l2_weights():
            check_l2_weight(weight)
        check_scalars(ridge=self.ridge)
        check_scalars(infinite=True, tol=self.tol)
        check_flags(verbose=0 if self.verbose is None else self.verbose, relax=self.relax)

    def _l2_weights(self) -> list[Any]:
        """All the weights of the subtracted norm that are to be tried."""
        return [self.l2_weight]

    @property
    def _l2_weight(self) -> float:
        """The weight of the subtracted norm in the fit that goes on."""
        return self.l2_weight

    def _weight_of_samples(self, y: Array, sample_weight: Any) -> Any:  # noqa: ARG002
        """The weights that samples have in a fit; scores have the given ones."""
        return sample_weight

    def _penalty_options(self) -> dict[str, Any]:
        return penalty_options(self)

    def _first_strength(self, problems: list[FitProblem]) -> float:
        return max(first_strength(problem.loss, self._penalty(problem)) for problem in problems)

    def _penalty(self, problem: FitProblem) -> Any:
        """The penalty of a problem at a strength of 1."""
        return penalty_of(self, self._l2_weight, problem)

    def _solve(self, problem: FitProblem, alphas: Any, x0: Array | None = None, **options: Any) -> list[Result]:
        """A result for each alpha, warm-started."""
        if problem.is_far and min(alphas) == 0 and problem.means.size > problem.loss.b.shape[0]:
            raise ValueError("alpha must be > 0 for more columns out of memory than samples: at 0 all are in use")
        return path_results(
            problem.loss,
            self._penalty(problem),
            alphas,
            x0,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            **collected({"stop": self._progress()} | options),
        )

    def _progress(self) -> Any:
        """What tells of the progress of a run, if that is wanted."""
        return progress_lines(type(self).__name__) if self.verbose else None

    def _fit_problems(self, problems: list[FitProblem], alpha: float, *, saved: bool = True) -> None:
        """Solve at one alpha and keep what was found: one row of coefficients for each problem."""
        self._check_numbers()
        starts = self._starts(problems)
        results: list[Result] = []
        for number, (problem, start) in enumerate(zip(problems, starts, strict=True)):
            options = self._checkpoint_options(number, len(problems)) if saved else {}
            try:
                results.extend(self._solve(problem, [alpha], start, **options))
            except DataUnavailable as error:
                if error.result is not None:
                    error.coef, error.intercept = (part[0] for part in problem.coefficients(error.result.x))
                raise
        results = self._judged(problems, results, alpha)
        self._keep(problems, results)
        warn_if_not_converged(self, results)

    def _judged(self, problems: list[FitProblem], results: list[Result], alpha: float) -> list[Result]:  # noqa: ARG002
        """The results, with what the data say of them beyond their stationarity."""
        return results

    def _checkpoint_options(self, number: int, count: int) -> dict[str, Any]:
        """The file that follows a problem's run: of several problems each has its own, by its number."""
        if self.checkpoint is None:
            return {"resume": self.resume}
        path = Path(self.checkpoint)
        if count > 1:
            path = path.with_name(f"{path.stem}-{number}{path.suffix}")
        return {"checkpoint": path, "checkpoint_seconds": self.checkpoint_seconds, "resume": self.resume}

    def _starts(self, problems: list[FitProblem]) -> list[Any]:
        """Where to begin: at the last fit, if that is wanted and fits."""
        coef = getattr(self, "coef_", None)
        rows = [problem.n_rows for problem in problems]
        if not self.warm_start or coef is None or math.prod(coef.shape) != sum(rows) * self.n_features_in_:
            return [None] * len(problems)
        means = problems[0].means
        coef, levels = (follow(values, means) for values in (coef, self.intercept_))
        xp = namespace(means)
        coef = xp.astype(xp.reshape(coef, (sum(rows), -1)), means.dtype)
        levels = xp.reshape(xp.asarray(levels, dtype=means.dtype), (-1,))
        ends = np.cumsum([0, *rows]).tolist()
        return [
            problem.unknown(coef[first:last, :], levels[first:last])
            for problem, first, last in zip(problems, ends, ends[1:], strict=False)
        ]

    def _step_through(
        self, descents: Descents, kind: type[LinearLoss], X: Any, targets: list[Array], sample_weight: Any
    ) -> None:
        """Take the stochastic steps of a chunk, and keep where they lead."""
        self._check_numbers()
        if self.relax:
            raise ValueError("relax=True needs all rows at once; stochastic steps over chunks do not have them")
        descents.add(kind, X, targets, sample_weight, self.fit_intercept, self._penalty, self.alpha)
        self.coef_, self.intercept_ = descents.coefficients()
        self.n_iter_ = np.array([part.n_steps for part in descents.parts])
        self.result_ = [None] * len(descents.parts)

    def _final(self, problem: FitProblem, x: Array, *, warn: bool = False) -> Array:
        """The solution itself or, with ``relax``, the refit on its support where there is one."""
        if not self.relax:
            return x
        if missing(problem.loss, ColumnLoss):
            raise ValueError("relax=True needs second derivatives, which a loss of data in chunks does not have")
        if problem.n_classes:
            raise ValueError("relax=True does not take multinomial=True: such a refit has no unique solution")
        found = refit(problem, x, signs(self, self.n_features_in_))
        if found is None and warn:
            warnings.warn(no_refit(problem, x), ConvergenceWarning, stacklevel=5)
        return x if found is None else found

    def _squeeze(self, y: Array) -> None:
        """Where y is one target, coefficients are a vector, and the rest single values."""

    def _keep(self, problems: list[FitProblem], results: list[Result]) -> None:
        pairs = [
            problem.coefficients(self._final(problem, result.x, warn=True))
            for problem, result in zip(problems, results, strict=True)
        ]
        xp = namespace(pairs[0][0])
        self.coef_ = xp.concat([coef for coef, _ in pairs])
        self.intercept_ = xp.astype(xp.concat([intercept for _, intercept in pairs]), self.coef_.dtype)
        self.n_iter_ = indices_like(np.array([result.n_iter for result in results]), self.coef_)
        self.result_ = results


def warn_if_not_converged(model: SparseLinearModel, results: list[Result], count: int | None = None) -> None:
    """Issue one ConvergenceWarning for all the results that did not reach tol, and have not been warned of yet.

    They are some of ``count``, or all there are.
    """
    count = len(results) if count is None else count
    failed = [result for result in results if not result.converged and result.status is not Status.UNBOUNDED]
    if not failed:
        return
    worst = max(failed, key=lambda result: result.stationarity)
    share = "" if count == 1 else f" in {len(failed)} of {count} problems"
    warnings.warn(
        f"{type(model).__name__} did not converge{share}: it reached stationarity {worst.stationarity:.2g} in"
        f" {worst.n_iter} iterations, tol={model.tol:g} was asked for. {worst.status.value} {_remedy(worst)}",
        ConvergenceWarning,
        stacklevel=4,
    )


def _remedy(result: Result) -> str:
    """What to do about a run that did not reach tol."""
    if result.status is Status.ROUNDING:
        return "More iterations will not help: raise alpha or tol, or give X in float64 if it is in float32."
    scale = "bring the columns of X to one scale (StandardScaler, MaxAbsScaler)"
    return f"Raise max_iter or tol, {scale}, or raise alpha."


def dual_gap(loss: Any, x: Array, alpha: float, ridge: float = 0.0, *, positive: bool = False) -> float:
    """The gap of ``loss + alpha (||x||_1 + ridge/2 ||x||^2)`` at x, as scikit-learn's ElasticNet has it.

    With the residual r and the gradient g of the loss the dual point is ``s r``, s so small that it is feasible:
    ``s = min(1, alpha / max_j |g_j + alpha ridge x_j|)``. Norms of rows stand for moduli where x is a matrix.

    Parameters
    ----------
    loss : SquaredLoss or QuadraticLoss
        Its value is half the square of the residual.
    x : array of shape (n,) or (n, n_targets)
        Anywhere.
    alpha, ridge : float
        Strength, above 0, and the weight of half the squared norm.
    positive : bool, default False
        Whether only ``x >= 0`` is allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SquaredLoss
    >>> from ell12.linear_model.sparse_model import dual_gap
    >>> loss = SquaredLoss(np.eye(2), [3.0, 0.5])
    >>> dual_gap(loss, np.array([2.0, 0.0]), 1.0), dual_gap(loss, np.zeros(2), 1.0)
    (0.0, 2.055...)
    """
    point = loss.point(x)
    gradient, square = loss.gradient(point), 2 * loss.value(point)
    xp, pull = namespace(x), -gradient - alpha * ridge * x
    if positive:
        pull = xp.where(pull > 0, pull, 0)
    sizes, moduli = (xp.linalg.vector_norm(v, axis=1) if v.ndim == 2 else v for v in (pull, x))
    steepest = max_abs(sizes)
    scale = alpha / steepest if steepest > alpha else 1.0
    shrunk = square + alpha * ridge * inner(x, x)
    along = square - inner(gradient, x)  # the residual times the observations
    total = float(xp.sum(xp.abs(moduli)))
    return 0.5 * shrunk + alpha * total + 0.5 * scale**2 * shrunk - scale * along
