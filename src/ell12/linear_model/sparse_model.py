"""What the estimators share: from data to problems, and from results to coefficients."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, check_is_fitted, validate_data

from ell12.backend import as_numpy, indices_like, namespace, square_fits
from ell12.checks import check_container, check_entries, check_flags, check_scalars, naming
from ell12.linear_model import fit_problem
from ell12.linear_model.families import Squared
from ell12.linear_model.fit_problem import CentredData, Data, FitProblem
from ell12.linear_model.refit import mix, no_refit, refit, support
from ell12.linear_model.row_fits import StochasticDescent, check_in_memory
from ell12.minimization import DataUnavailable, Result, Run, Status
from ell12.nested_parameters import NestedParameters
from ell12.operators import is_out_of_memory, stored
from ell12.operators.out_of_memory import as_columns
from ell12.path import alpha_grid, falling, first_strength, grid_size, path_results
from ell12.penalties import PenaltyBase, with_strength
from ell12.protocols import Array, ColumnLoss, missing


class SparseLinearModel(NestedParameters, BaseEstimator, ABC):
    """A linear model: the mean of a loss of X and y, plus a penalty of the coefficients.

    A subclass says in ``_problems`` which problems, one for each row of coefficients, a data set makes.
    """

    default_alpha: ClassVar[float] = 1.0
    alpha: float | None = None
    penalty: Any
    loss: Any
    _family: Any  # the loss without its data
    fit_intercept: bool
    standardize: bool = False
    relax: bool = False
    warm_start: bool = False
    tol: float
    max_iter: int
    solver: Any = None
    run: Any = None

    coef_: NDArray[Any]  # for type checkers; under array_api_dispatch of the kind of X
    intercept_: Any  # a float, or one for each row of coefficients
    n_iter_: Any
    penalty_: Any
    results_: tuple[Result, ...]
    _chunks: Any = None  # what `partial_fit` keeps of the rows
    _always_centred: ClassVar[bool] = False  # whether columns are centred where there is no intercept too

    @property
    def stationarity_(self) -> float:
        """The stationarity reached, in units of alpha; of several problems the largest."""
        return max((result.stationarity for result in self.results_), default=math.nan)

    @property
    def converged_(self) -> bool:
        """Whether every problem reached ``tol``."""
        return len(self.results_) > 0 and all(result.converged for result in self.results_)

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
    def _observed(self, X: Any, y: Any, sample_weight: Any, offset: Any = None) -> Data:
        """The data, checked, as `_problems` takes them; what fit sees in them is kept."""

    @abstractmethod
    def _parts(self, data: Data) -> list[tuple[Any, Array]]:
        """The family and the target, or targets, of each problem."""

    def _problems(self, data: Data) -> list[FitProblem]:
        """The problems that the data make: one for each row of coefficients, or one for all rows."""
        parts, intercept = self._parts(data), bool(self.fit_intercept)
        if is_joint(self.penalty) and type(parts[0][0]) is not Squared:
            raise ValueError(f"{type(self.penalty).__name__} is for targets of a regression with loss='squared'")
        columns = CentredData(
            data.X,
            self._weight_of_samples(data.y, data.sample_weight),
            center=intercept or self._always_centred,
            constant=intercept and not parts[0][0].centred,
            standardize=self.standardize,
        )
        return [columns.problem(family, y, data.offset, intercept=intercept) for family, y in parts]

    def _is_single(self, data: Data) -> bool:  # noqa: ARG002
        """Whether y is one target: then coefficients are a vector, and the rest single values."""
        return False

    def _strata(self, y: Array) -> Any:
        """The labels of which each fold has its share, if any."""
        return as_numpy(y) if is_classifier(self) else None

    def _linear_functions(self, X: Any, method: str) -> Array:
        """The fitted linear functions at the rows of X, for one of the methods."""
        check_is_fitted(self)
        check_in_memory(X, self)
        X = as_columns(X)
        if is_out_of_memory(X):
            fit_problem.check_columns(self, X)
        else:
            fit_problem.check_follows(X, self, method)
            check_container(X, "X")
            X = validate_data(self, X, reset=False, **fit_problem.accepted(X))
        return fit_problem.linear_functions(X, self.coef_, self.intercept_)

    def _validate(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, Any]:
        """The data as arrays of one kind and precision, checked: X in one pass, and nowhere again."""
        check_in_memory(X, self)
        for name, values in {"X": X, "y": y, "sample_weight": sample_weight}.items():
            check_container(values, name)
            if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
                raise TypeError(f"{name} must hold numbers, got {values.dtype}")
        with naming("y"):
            if y is not None and not hasattr(y, "__array_function__") and np.ndim(y) == 0:
                raise ValueError(f"y must have a value for each row of X, got {y!r}")
        X = as_columns(X)
        checks |= {"ensure_all_finite": False} | fit_problem.accepted(X)
        check_flags(fit_intercept=self.fit_intercept, standardize=self.standardize, warm_start=self.warm_start)
        # A sum finds infinities; it may overflow.
        with naming("X", "y"), np.errstate(over="ignore", invalid="ignore"):
            X, y = (fit_problem.targets_of_columns if is_out_of_memory(X) else validate_data)(self, X, y, **checks)
            if not is_out_of_memory(X) and not square_fits(stored(X)):
                assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
                check_entries(stored(X), "X")
        if sample_weight is not None:
            with naming("sample_weight"):
                sample_weight = fit_problem.follow(sample_weight, X)
                sample_weight = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
            check_entries(sample_weight, "sample_weight")
        return X, fit_problem.follow(y, X), sample_weight

    def _check_numbers(self) -> None:
        check_scalars(infinite=True, tol=self.tol)
        if not (hasattr(self, "cv") and isinstance(self.relax, str) and self.relax == "auto"):
            check_flags(relax=self.relax)
        if not isinstance(self.run, Run | None):
            raise TypeError(f"run must be a Run or None, got {self.run!r}")

    @property
    def _refit_share(self) -> float:
        """How much of what a refit of the selected features changes is in the coefficients."""
        return vars(self).get("relaxed_", 0.0) if self.relax == "auto" else float(self.relax)

    def _given_penalty(self) -> Any:
        """The penalty with its strength."""
        if self.alpha is not None:
            check_scalars(alpha=self.alpha)
        check_penalty(self.penalty)
        return self._check_shape(with_strength(self.penalty, self.alpha, self.default_alpha))

    def _check_shape(self, penalty: Any) -> Any:
        """The penalty; raise where it does not take as many entries, or rows, as there are features."""
        with naming("penalty"):
            penalty.value(np.zeros((self.n_features_in_, 1) if is_joint(penalty) else self.n_features_in_))
        return penalty

    def _weight_of_samples(self, y: Array, sample_weight: Any) -> Any:  # noqa: ARG002
        """The weights that samples have in a fit; scores have the given ones."""
        return sample_weight

    def _grid(self, problems: list[Any], penalty: Any, alphas: Any, eps: float, factor: float = 1.0) -> Array:
        """The strengths, falling: those given, or as many from the first one at which zero is a solution."""
        if (size := grid_size(alphas, 100)) is None:
            return falling(alphas)
        top = max(first_strength(problem.loss, problem.penalty(penalty)) for problem in problems)
        return alpha_grid(factor * top, size, eps)

    def _solve(
        self, problem: FitProblem, penalty: Any, alphas: Any, x0: Array | None = None, **options: Any
    ) -> list[Result]:
        """A result for each alpha, warm-started."""
        if problem.out_of_memory and min(alphas) == 0 and problem.means.size > problem.loss.b.shape[0]:
            raise ValueError("alpha must be > 0 for more columns out of memory than samples: at 0 all are in use")
        options |= {name: vars(self)[name] for name in ("solver", "tol", "max_iter") if name in vars(self)}
        return path_results(problem.loss, problem.penalty(penalty), alphas, x0, **options)

    def _fit_problems(self, problems: list[FitProblem], penalty: Any, *, single: bool) -> None:
        """Solve at one alpha and keep what was found: one row of coefficients for each problem."""
        self._check_numbers()
        results: list[Result] = []
        for number, (problem, start) in enumerate(zip(problems, self._starts(problems), strict=True)):
            own = None if self.run is None else self.run.numbered(number, len(problems))
            try:
                results += self._solve(problem, penalty, [penalty.alpha], start, run=own)
            except DataUnavailable as error:
                if error.result is not None:
                    error.coef, error.intercept = (part[0] for part in problem.coefficients(error.result.x))
                raise
        results = self._judged(problems, results, penalty)
        self._keep(problems, results, penalty, single=single)
        warn_if_not_converged(self, results)

    def _judged(self, problems: list[FitProblem], results: list[Result], penalty: Any) -> list[Result]:  # noqa: ARG002
        """The results, with what the data say of them beyond their stationarity."""
        return results

    def _starts(self, problems: list[FitProblem]) -> list[Any]:
        """Where to begin: at the last fit, if that is wanted and fits."""
        ends = np.cumsum([0, *(problem.n_rows for problem in problems)]).tolist()
        coef, means = getattr(self, "coef_", None), problems[0].means
        if not self.warm_start or coef is None or math.prod(coef.shape) != ends[-1] * self.n_features_in_:
            return [None] * len(problems)
        xp = namespace(means)
        coef = xp.astype(xp.reshape(fit_problem.follow(coef, means), (ends[-1], -1)), means.dtype)
        levels = xp.reshape(xp.asarray(fit_problem.follow(self.intercept_, means), dtype=means.dtype), (-1,))
        parts = zip(problems, ends, ends[1:], strict=False)
        return [problem.unknown(coef[first:last, :], levels[first:last]) for problem, first, last in parts]

    def _check_chunks(self, what: str, kind: type) -> None:
        """Raise unless the loss is of this kind and columns are taken as they are."""
        self._check_family(what, kind)
        if self.standardize:
            raise ValueError("standardize=True needs all rows at once, in memory; scale the columns before")

    def _check_family(self, what: str, kind: type, error: type[Exception] = ValueError) -> bool:
        if type(self._family) is not kind:
            raise error(f"{what} needs loss={kind.__name__.lower()!r}, got {self.loss!r}")
        return True

    def _step_through(self, families: list[Any], data: Data, *, single: bool = False) -> list[StochasticDescent]:
        """Take the stochastic steps of a chunk, keep where they lead, and return what the next chunk needs.

        Columns are used as they are, for their means are not known yet.
        """
        self._check_numbers()
        if self.relax:
            raise ValueError("relax=True needs all rows at once; stochastic steps over chunks do not have them")
        penalty = self._given_penalty()
        columns = CentredData(data.X, data.sample_weight, center=False, constant=self.fit_intercept)
        problems = [columns.problem(own, b) for own, b in zip(families, data.y, strict=True)]
        descents = self._chunks or [StochasticDescent(problem.loss.start()) for problem in problems]
        if len(descents) != len(problems):
            raise ValueError(f"y must have {len(descents)} columns as in the chunks before, got {len(problems)}")
        for descent, problem in zip(descents, problems, strict=True):
            descent.add(problem, penalty)
        self._keep(problems, descents, penalty, single=single)
        self.results_ = ()
        return descents

    def _final(self, problem: FitProblem, x: Array, penalty: Any, *, warn: bool = False) -> Array:
        """The solution or, with ``relax``, the refit on its support where there is one, or a mean of both."""
        if not self._refit_share:
            return x
        self._check_refit(problem)
        columns, auto = support(problem, x), self.relax == "auto"
        follows_noise = auto and columns.size > problem.loss.b.shape[0] / 2
        found = None if follows_noise else refit(problem, x, penalty, columns)
        if found is None and warn and not auto:
            warnings.warn(no_refit(problem, x), ConvergenceWarning, stacklevel=5)
        return x if found is None else mix(x, found, self._refit_share)

    def _check_refit(self, problem: FitProblem) -> None:
        if missing(problem.loss, ColumnLoss):
            raise ValueError("relax=True needs second derivatives, which a loss of data in chunks does not have")
        if problem.n_classes:
            raise ValueError("relax=True does not take loss='multinomial': such a refit has no unique solution")

    def _keep(self, problems: list[FitProblem], results: list[Any], penalty: Any, *, single: bool) -> None:
        pairs = [
            problem.coefficients(self._final(problem, result.x, penalty, warn=True))
            for problem, result in zip(problems, results, strict=True)
        ]
        xp = namespace(pairs[0][0])
        coef = xp.concat([coef for coef, _ in pairs])
        intercept = xp.astype(xp.concat([intercept for _, intercept in pairs]), coef.dtype)
        n_iter = indices_like(np.array([result.n_iter for result in results]), coef)
        self.n_iter_ = int(n_iter[0]) if single or problems[0].n_targets else n_iter
        self.coef_, self.intercept_ = (coef[0, ...], intercept[0]) if single else (coef, intercept)
        self.penalty_, self.results_ = penalty, tuple(results)


def is_joint(penalty: Any) -> bool:
    """Whether a penalty, or one of a list, takes the coefficients of all targets at once, as a matrix."""
    if isinstance(penalty, list | tuple):
        return any(is_joint(part) for part in penalty)
    return isinstance(penalty, PenaltyBase) and penalty.joint


def check_penalty(penalty: Any) -> None:
    """Raise unless it can be given a strength."""
    names = (
        [] if isinstance(penalty, type) or not is_dataclass(penalty) else [field.name for field in fields(penalty)]
    )
    if "alpha" not in names:
        raise TypeError(f"penalty must be a dataclass with a field alpha, such as L12(), got {penalty!r}")


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
        f" {worst.n_iter} iterations, tol={model.tol:g} was asked for. {worst.message}",
        ConvergenceWarning,
        stacklevel=4,
    )


def keep_arguments(model: Any, arguments: dict[str, Any]) -> None:
    """Keep the arguments of a constructor, its ``locals()``, as they were given: what scikit-learn asks of one."""
    vars(model).update({name: value for name, value in arguments.items() if name != "self"})
