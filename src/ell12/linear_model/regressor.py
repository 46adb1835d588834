"""Sparse linear regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from ell12.backend import inner, max_abs, namespace, refuse_masked
from ell12.checks import check_entries, convert, naming
from ell12.linear_model import row_fits
from ell12.linear_model.families import REGRESSION, Squared, explained_deviance, family_of
from ell12.linear_model.fit_problem import Data, FitProblem, check_numpy, follow
from ell12.linear_model.sparse_model import SparseLinearModel, is_joint, keep_arguments
from ell12.losses import QuadraticLoss, SquaredLoss
from ell12.minimization import Result
from ell12.penalties import L12, RowsL12
from ell12.protocols import Array
from ell12.solvers.newton import LARGEST


class L12Regressor(MultiOutputMixin, RegressorMixin, SparseLinearModel):
    """Linear regression with the l1-2 penalty, or another one.

    Minimises over the coefficients ``c`` and the intercept ``c_0``::

        1/(2n) sum_i w_i (y_i - x_i'c - c_0)^2 + alpha (||c||_1 - l2_weight ||c||_2 + ridge/2 ||c||_2^2)

    where n is the number of samples. The sample weights w are scaled to the sum n, as in scikit-learn's Lasso.
    ``penalty`` replaces the second term, ``loss`` the first. Several columns of y are separate problems, each with
    its own selection of features; with ``penalty=RowsL12()`` a feature is selected for all of them or for none, as
    in scikit-learn's MultiTaskLasso.

    Parameters
    ----------
    alpha : float, optional
        Regularisation strength, at least 0; by default that of ``penalty``, or 1.
    penalty : Penalty, default L12()
        `ell12.L12` (weights, signs, ridge), `ell12.L1` (the Lasso), `ell12.GroupL12`, `ell12.RowsL12`,
        `ell12.MCP` or any other penalty of vectors.
    loss : {"squared", "huber", "poisson"} or Family, default "squared"
        `ell12.linear_model.Huber` and `ell12.linear_model.Poisson` say more, and take parameters. With Poisson's
        loss the logarithm of the mean is linear.
    fit_intercept : bool, default True
        Whether to fit the intercept ``c_0``, which is not penalised.
    standardize : bool, default False
        Whether to divide columns by their standard deviations. The penalty then sees the same coefficients in
        whatever units the columns are; ``coef_`` is in the units of X. X must be in memory. Give True for a table
        whose columns have units of their own: on such tables predictions were far better then, or as good.
    relax : bool, default False
        Refit the selected features without a penalty, signs kept, so that nothing is shrunk. Where that has no
        unique finite solution, the penalised coefficients stay, and a ConvergenceWarning says so.
    warm_start : bool, default False
        Begin at the coefficients of the last fit rather than at zero.
    solver : Solver, optional
        Such as `ell12.FISTA`; by default `ell12.WorkingSet` where the penalty allows it.
    tol : float, default 1e-4
        Stop when the largest violation of the first-order condition is at most ``tol * alpha``. If a limit or
        rounding ends a fit earlier, a ConvergenceWarning says what to do.
    max_iter : int, default 10_000
        Most iterations.
    run : Run, optional
        Time limit, callback, checkpoint, lines of progress; see `ell12.Run`.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Coefficients; with ``relax`` those of the refit.
    sparse_coef_ : sparse array of shape (n_targets, n_features)
        The same, sparse.
    intercept_ : float or array of shape (n_targets,)
        The intercept.
    penalty_ : Penalty
        The penalty used, with its strength.
    n_iter_ : int or array of shape (n_targets,)
        Iterations; of one run for all targets, an int.
    stationarity_, converged_ : float, bool
        The stationarity reached, and whether every problem reached ``tol``.
    results_ : tuple of Result
        How each problem was solved. ``x`` is the penalised solution for centred columns. Empty after stochastic
        steps.
    dual_gap_ : float or array of shape (n_targets,)
        A bound on how far the objective lies above the minimum, as in scikit-learn's Lasso. It exists where the
        problem is that of the Lasso or the elastic net: ``L1()`` without weights, ``alpha > 0``, squared loss,
        data in memory. With ``relax`` it is that of the penalised solution.
    scale_ : float or array of shape (n_targets,)
        The scale of Huber's loss.
    n_features_in_, feature_names_in_
        What fit has seen.

    See Also
    --------
    L12RegressorCV : Regression with a strength chosen by cross-validation.
    L12Classifier : Classification with a strength of your own choice.
    l12_path : Solutions for many strengths.

    Notes
    -----
    The problem is not convex for ``l2_weight > 0``. A fit is a stationary point, and ``warm_start`` may lead to
    another one. Features should have similar scales, or ``standardize=True``.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12Regressor
    >>> from ell12.datasets import correlated_design
    >>> problem = correlated_design(0, n_samples=60, n_features=100, n_nonzero=3, noise=0.0)
    >>> model = L12Regressor(alpha=0.01).fit(problem.A, problem.b)
    >>> np.flatnonzero(problem.x), np.flatnonzero(model.coef_)
    (array([22, 43, 51]), array([22, 43, 51]))
    """

    _dual_gaps: Any = None  # where the problem is the Lasso's
    _families: Any = None  # of each target

    def __init__(
        self,
        alpha: float | None = None,
        *,
        penalty: Any = L12(),  # noqa: B008
        loss: Any = "squared",
        fit_intercept: bool = True,
        standardize: bool = False,
        relax: bool = False,
        warm_start: bool = False,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        run: Any = None,
    ) -> None:
        keep_arguments(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> L12Regressor:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples. float32 stays float32; what is sparse is never made dense. A dask array or DataFrame stays
            where it is; see `ell12.distributed`. More columns than memory holds: `ell12.Columns`.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Targets; counts, at least 0, for Poisson's loss.
        sample_weight : array of shape (n_samples,), optional
            Weights, at least 0.
        offset : array of shape (n_samples,), optional
            A known part of the linear function, such as the logarithm of the time in which events were counted.
            Give it to `predict` and `score` as well.
        """
        self._chunks = None
        if row_fits.is_chunked(X) and offset is None:
            self._check_chunks("data in chunks", Squared)
            row_fits.check_features(self, X, reset=True)
            problems = row_fits.regression_problems(
                X, y, sample_weight, self.fit_intercept, is_joint(self.penalty)
            )
            self._fit_problems(problems, self._given_penalty(), single=np.ndim(y) == 1)
            return self
        data = self._observed(X, y, sample_weight, offset)
        self._fit_problems(self._problems(data), self._given_penalty(), single=self._is_single(data))
        return self

    @available_if(lambda model: row_fits.can_step(model, Squared))
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> L12Regressor:
        """Fit to a chunk of rows and to all that came before it.

        With up to 3000 columns the rows' means and products are kept, so that after every chunk the model is that
        of a fit to all rows at once. With more, each chunk makes stochastic proximal steps, and the model is that
        of a fit only in the limit of many chunks, or of many passes over them; columns should then have means near
        zero. A call after `fit` begins anew.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, but in memory and of NumPy or sparse.

        Notes
        -----
        The steps are described, with what theory says of them, at
        `ell12.linear_model.row_fits.StochasticDescent`.
        """
        first = self._chunks is None
        X, y, sample_weight = self._validate_regression(X, y, sample_weight, reset=first)
        check_numpy(X, "partial_fit")
        self._check_chunks("partial_fit", Squared)
        single, chunks = y.ndim == 1, self._chunks
        if X.shape[1] <= LARGEST:
            chunks = row_fits.with_rows(chunks, X, y, sample_weight)
            problems = row_fits.moment_problems(chunks, X, self.fit_intercept, is_joint(self.penalty))
            self._fit_problems(problems, self._given_penalty(), single=single)
        else:
            targets = self._targets(y)
            chunks = self._step_through([Squared()] * len(targets), Data(X, targets, sample_weight), single=single)
            self._dual_gaps = None
        self._chunks = chunks  # not before: a call that fails leaves no trace
        return self

    @property
    def dual_gap_(self) -> Any:
        """The dual gap, where the problem is the Lasso's."""
        if self._dual_gaps is None:
            raise AttributeError(
                f"{type(self).__name__} has a dual_gap_ once it is fitted, and only where the problem is the"
                " Lasso's: penalty=L1() without weights, alpha > 0, loss='squared'; use stationarity_"
            )
        return self._dual_gaps if np.ndim(self.n_iter_) else float(self._dual_gaps[0])

    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """The fitted mean at the rows of X; a dask array, not computed yet, where X is one."""
        if row_fits.is_chunked(X) and offset is None:
            return row_fits.map_rows(self.predict, X)
        return self._family.mean(self._shifted(self._linear_functions(X, "predict"), offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """The coefficient of determination; of other losses than squared and Huber's, explained deviance.

        What is on workers is added up there.
        """
        if row_fits.is_chunked(X) and offset is None:
            self._check_family("a score of data in chunks", Squared)
            return row_fits.score_rows(self, X, y, sample_weight)
        refuse_masked(y, "y")
        refuse_masked(sample_weight, "sample_weight")
        if isinstance(self._family, Squared) and offset is None:
            return super().score(X, y, sample_weight)
        eta = self._shifted(self._linear_functions(X, "score"), offset)
        return explained_deviance(self._family, y, eta, sample_weight, offset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._family.counts
        tags.target_tags.multi_output = not self._family.counts
        return tags

    def _shifted(self, eta: Array, offset: Any) -> Array:
        """The linear functions with the offset."""
        if offset is None:
            return eta
        offset = as_offset(offset, eta)
        return eta + (offset if eta.ndim == 1 else offset[:, None])

    def _validate_regression(
        self, X: Any, y: Any, sample_weight: Any, reset: bool = True
    ) -> tuple[Any, Array, Any]:
        if isinstance(y, np.ndarray) and y.dtype.kind not in "biufc":  # objects may be numbers
            with naming("y"):
                y = y.astype(np.float64)
        checks = {"multi_output": not self._family.counts, "y_numeric": True, "reset": reset}
        X, y, sample_weight = self._validate(X, y, sample_weight, **checks)
        y = convert(y, X.dtype, "y")
        check_entries(y, "y")
        return X, y, sample_weight

    def _observed(self, X: Any, y: Any, sample_weight: Any, offset: Any = None) -> Data:
        family = self._family
        X, y, sample_weight = self._validate_regression(X, y, sample_weight)
        if family.counts and bool(namespace(y).any(y < 0)):
            raise ValueError(f"y must hold counts for loss={self.loss!r}, some values are negative")
        offset = None if offset is None else as_offset(offset, y)
        intercept, shift = bool(self.fit_intercept), 0.0 if offset is None else offset
        if y.ndim == 2 and offset is not None:
            raise ValueError("offset needs one target")
        families = [family.for_data(b - shift, sample_weight, intercept=intercept) for b in _columns(y)]
        self._families = families
        if hasattr(families[0], "scale"):
            self.scale_ = families[0].scale if y.ndim == 1 else np.array([own.scale for own in families])
        return Data(X, y, sample_weight, offset)

    @property
    def _family(self) -> Any:
        return family_of(self.loss, REGRESSION)

    def _is_single(self, data: Data) -> bool:
        return data.y.ndim == 1

    def _targets(self, y: Array) -> list[Array]:
        """Those that make a problem each: the columns of y, or all of y for a joint penalty."""
        if is_joint(self.penalty):
            return [y if y.ndim == 2 else y[:, None]]
        return _columns(y)

    def _judged(self, problems: list[FitProblem], results: list[Result], penalty: Any) -> list[Result]:
        """The results; the dual gap is kept with them, where the problem is the Lasso's."""
        known = all(isinstance(problem.loss, SquaredLoss | QuadraticLoss) for problem in problems)
        lasso = isinstance(penalty, L12 | RowsL12) and penalty.l2_weight == 0 and penalty.weights is None
        if not (known and lasso and isinstance(penalty.positive, bool) and penalty.alpha > 0):
            self._dual_gaps = None
            return results
        pairs = zip(problems, results, strict=True)
        self._dual_gaps = np.array([dual_gap(problem.loss, result.x, penalty) for problem, result in pairs])
        return results

    def _parts(self, data: Data) -> list[tuple[Any, Array]]:
        return list(zip(self._families, self._targets(data.y), strict=False))  # of a joint problem the first


def dual_gap(loss: Any, x: Array, penalty: Any) -> float:
    """The gap of ``loss + alpha (||x||_1 + ridge/2 ||x||^2)`` at x, as scikit-learn's ElasticNet has it.

    With the residual r and the gradient g of the loss the dual point is ``s r``, s so small that it is feasible:
    ``s = min(1, alpha / max_j |g_j + alpha ridge x_j|)``. Norms of rows stand for magnitudes where x is a matrix.

    Parameters
    ----------
    loss : SquaredLoss or QuadraticLoss
        Its value is half the square of the residual.
    x : array of shape (n,) or (n, n_targets)
        Any point.
    penalty : L1 or RowsL12
        With ``l2_weight=0``, alpha above 0 and no weights.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L1, SquaredLoss
    >>> from ell12.linear_model.regressor import dual_gap
    >>> loss = SquaredLoss(np.eye(2), [3.0, 0.5])
    >>> dual_gap(loss, np.array([2.0, 0.0]), L1(1.0)), dual_gap(loss, np.zeros(2), L1(1.0))
    (0.0, 2.055...)
    """
    alpha, ridge = penalty.alpha, penalty.ridge
    point = loss.point(x)
    gradient, square = loss.gradient(point), 2 * loss.value(point)
    xp, pull = namespace(x), -gradient - alpha * ridge * x
    if penalty.positive:
        pull = xp.where(pull > 0, pull, 0)
    sizes, magnitudes = (xp.linalg.vector_norm(v, axis=1) if v.ndim == 2 else v for v in (pull, x))
    steepest = max_abs(sizes)
    scale = alpha / steepest if steepest > alpha else 1.0
    shrunk = square + alpha * ridge * inner(x, x)
    along = square - inner(gradient, x)  # the residual times the observations
    total = float(xp.sum(xp.abs(magnitudes)))
    return 0.5 * shrunk + alpha * total + 0.5 * scale**2 * shrunk - scale * along


def _columns(y: Array) -> list[Array]:
    return [y] if y.ndim == 1 else [y[:, k] for k in range(y.shape[1])]


def as_offset(offset: Any, y: Array) -> Array:
    """The offset as an array of the kind of y, one finite number for each row."""
    with naming("offset"):
        offset = namespace(y).asarray(follow(offset, y))
        if tuple(offset.shape) != (y.shape[0],):
            raise ValueError(f"offset must have shape ({y.shape[0]},), one for each sample; got {offset.shape}")
        offset = convert(offset, y.dtype, "offset")
    check_entries(offset, "offset")
    return offset
