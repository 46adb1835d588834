"""Sparse linear regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from ell12.backend import refuse_masked
from ell12.checks import check_entries, check_word, convert, naming
from ell12.linear_model.chunked import (
    determination,
    is_chunked,
    map_rows,
    note_features,
    regression_problems,
)
from ell12.linear_model.families import FAMILIES, explained_deviance
from ell12.linear_model.fit_problem import Design, FitProblem, check_numpy
from ell12.linear_model.partial import MOST_COLUMNS, Chunks, Descents
from ell12.linear_model.sparse_model import SparseLinearModel, dual_gap
from ell12.losses import QuadraticLoss, SquaredLoss
from ell12.minimization import Result
from ell12.protocols import Array


class L12Regressor(MultiOutputMixin, RegressorMixin, SparseLinearModel):
    """Linear regression under the l1-2 penalty.

    Minimises over the coefficients ``c`` and the intercept ``c_0``::

        1/(2n) sum_i w_i (y_i - x_i'c - c_0)^2 + alpha (||c||_1 - l2_weight ||c||_2 + ridge/2 ||c||_2^2)

    where n is the number of samples. The sample weights w are scaled to the sum n, as in scikit-learn's Lasso.
    Several columns of y are separate problems, each with its own selection of features. With ``shared_support``
    they are one problem over a matrix of coefficients ``C``, with a column ``c_j`` for each feature::

        1/(2n) sum_i w_i ||y_i - C x_i - c_0||^2 + alpha (sum_j ||c_j||_2 - l2_weight ||C||_F + ridge/2 ||C||_F^2)

    which selects a feature for all targets or for none, as scikit-learn's MultiTaskLasso does.

    Two other losses can replace the squares: Huber's, in which outliers count little, and Poisson's, for counts.
    There the logarithm of the expectation is ``x_i'c + c_0``.

    Parameters
    ----------
    alpha : float, default 1.0
        Strength of the penalty, at least 0.
    loss : {"squared", "huber", "poisson"}, default "squared"
        The loss. Poisson's is ``exp(eta_i) - y_i eta_i`` with ``eta_i = x_i'c + c_0 + offset_i``; `predict` then
        returns the means ``exp(eta_i)``, and `score` the share of the deviance explained.
    delta : float, default 1.35
        Where Huber's loss turns from a square to a line, in units of ``scale_``. That is 1.48 times the median
        distance of y from its median (from 0 without an intercept), so the unit of y does not matter. The signal
        is part of this scale: if it is far larger than the noise, outliers need a smaller delta to count little.
    l2_weight : float, default 1.0
        Weight of the subtracted norm, from 0 to 1: 1 is l1-2, 0 the Lasso. The closer it is to 1, the less large
        coefficients are shrunk.
    ridge : float, default 0.0
        Weight of half the squared norm beside the l1 norm, at least 0. It shares weight among features that are
        alike. With ``l2_weight=0`` this is scikit-learn's ElasticNet with ``alpha (1 + ridge)`` for its alpha and
        ``1/(1 + ridge)`` for its l1_ratio.
    fit_intercept : bool, default True
        Whether to fit the intercept ``c_0``, which is not penalised.
    positive : bool, default False
        Allow coefficients ``c >= 0`` only.
    penalty_factors : array of shape (n_features,), optional
        Weights of the features in the l1 norm, used as they are given. A feature of factor 0 is not penalised, and
        enters no norm. A factor between 0 and l2_weight rewards a feature that is selected alone. With ``groups``
        give one factor for each group, in the order of ``np.unique(groups)``.
    bounds : (lower, upper), optional
        Bounds of the coefficients: numbers, or arrays of shape (n_features,), with lower <= 0 <= upper; infinite
        ones do not bind. With ``positive`` lower bounds are 0. Where all bounds are 0 or infinite a fit is as fast
        as without; others are left to `ell12.NonmonotoneAPG`.
    groups : array of shape (n_features,), optional
        Labels. Features with the same label are one group, which is selected as a whole: the norms of groups are
        penalised in place of the moduli, as in `ell12.GroupL12`. Every group has the factor 1 unless
        ``penalty_factors`` are given. Not with ``positive``, ``bounds`` or ``shared_support``.
    relax : bool, default False
        Refit the selected features without a penalty, signs and bounds kept, so that nothing is shrunk. Where
        that has no unique finite solution, the penalised coefficients stay, and a ConvergenceWarning says so.
    shared_support : bool, default False
        Whether several targets share one support. By default each has its own.
    warm_start : bool, default False
        Begin at the coefficients of the last fit rather than at zero.
    tol : float, default 1e-4
        Stop when the largest violation of the first-order condition is at most ``tol * alpha``. If a limit or
        rounding ends a fit earlier, a ConvergenceWarning says what to do.
    max_iter : int, default 10_000
        Stop after this number of iterations at the latest.
    solver : Solver, optional
        Such as `ell12.FISTA`; by default `ell12.WorkingSet`, with groups `ell12.GroupNewton`.
    verbose : int, default 0
        Print a line of progress now and then.
    checkpoint : path, optional
        An ``.npz`` file that keeps the state of the fit, so that a crash costs no more than
        ``checkpoint_seconds``; see `ell12.minimize`. If there are several problems, each has its own file, with
        its number added to the name. For fits to different data, such as folds, put ``{}`` into the name, as in
        ``"fit-{}.npz"``: each has its own file then.
    checkpoint_seconds : float, default 60.0
        How often to write it.
    resume : bool, default False
        Go on from the checkpoint, if there is one.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Coefficients; with ``relax`` those of the refit.
    sparse_coef_ : sparse array of shape (n_targets, n_features)
        The same, sparse.
    intercept_ : float or array of shape (n_targets,)
        The intercept.
    n_iter_ : int or array of shape (n_targets,)
        Iterations; of one run for all targets, an int.
    result_ : Result or list of Result
        How each run went. Its ``x`` is the penalised solution for centred columns. None after stochastic steps.
    dual_gap_ : float or array of shape (n_targets,)
        A bound on how far the objective lies above the minimum, as in scikit-learn's Lasso. It exists only where
        the problem is that of the Lasso or the elastic net: with ``l2_weight=0`` and ``alpha > 0``, all features
        penalised alike, and data in memory (for `partial_fit`, up to 3000 columns). With ``relax`` it is that of
        the penalised solution.
    scale_ : float or array of shape (n_targets,)
        The unit of delta; with ``loss="huber"`` only.
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
    another one. Features should have similar scales.

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

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        loss: str = "squared",
        delta: float = 1.35,
        l2_weight: float = 1.0,
        ridge: float = 0.0,
        fit_intercept: bool = True,
        positive: bool = False,
        penalty_factors: Any = None,
        bounds: Any = None,
        groups: Any = None,
        relax: bool = False,
        shared_support: bool = False,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        solver: Any = None,
        verbose: int = 0,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
        resume: bool = False,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.delta = delta
        self.l2_weight = l2_weight
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.penalty_factors = penalty_factors
        self.bounds = bounds
        self.groups = groups
        self.relax = relax
        self.shared_support = shared_support
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.resume = resume

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> L12Regressor:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples. float32 stays float32; what is sparse is never made dense. A dask array or DataFrame stays
            where it is; see `ell12.distributed.sum_loss`. So do more columns than memory holds: `ell12.Columns`.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Targets; one for ``loss="poisson"``.
        sample_weight : array of shape (n_samples,), optional
            Weights, at least 0.
        offset : array of shape (n_samples,), optional
            A known part of the linear function, such as the logarithm of the time over which was counted; for
            ``loss="poisson"``.
        """
        self._chunks = None
        if is_chunked(X):
            self._check_squared("data in chunks", offset)
            note_features(self, X)
            y = y if hasattr(y, "ndim") else np.asarray(y)
            problems = regression_problems(X, y, sample_weight, self.fit_intercept, self.shared_support)
        else:
            X, y, sample_weight = self._observed(X, y, sample_weight, offset)
            problems = self._problems(X, y, sample_weight)
        self._fit_problems(problems, self.alpha)
        self._squeeze(y)
        return self

    @available_if(lambda model: hasattr(model, "alpha") and model._takes_chunks())
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
        `ell12.linear_model.partial.StochasticDescent`.
        """
        first = self._chunks is None
        X, y, sample_weight = self._validate_regression(X, y, sample_weight, reset=first)
        check_numpy(X, "partial_fit")
        chunks = self._chunks
        if first:
            chunks = Chunks(X.dtype) if X.shape[1] <= MOST_COLUMNS else Descents()
        if isinstance(chunks, Chunks):
            chunks = chunks.with_rows(X, y, sample_weight)
            problems = chunks.problems(self.fit_intercept, y.ndim == 2, self.shared_support)
            self._fit_problems(problems, self.alpha, saved=False)
        else:
            self._dual_gaps = None
            self._step_through(chunks, SquaredLoss, X, self._family.targets(y), sample_weight)
        self._chunks = chunks  # not before: a call that fails leaves no trace
        self._squeeze(y)
        return self

    @property
    def dual_gap_(self) -> Any:
        """The dual gap, where the problem is the Lasso's."""
        if self._dual_gaps is None:
            raise AttributeError(
                f"{type(self).__name__} has a dual_gap_ once it is fitted, and only where the problem is the"
                " Lasso's: l2_weight=0, alpha > 0, all features penalised alike"
            )
        return self._dual_gaps

    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """The fitted mean at the rows of X; a dask array, not computed yet, where X is one."""
        if is_chunked(X):
            if offset is not None:
                raise ValueError("offset needs X in memory, got data in chunks")
            return map_rows(self.predict, X)
        return self._family.mean(self._linear_functions(X, "predict"), offset)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """The coefficient of determination, or of counts the share of the deviance that is explained.

        What is on workers is added up there.
        """
        if is_chunked(X):
            self._check_squared("a score of data in chunks", offset)
            return determination(self.predict, X, y, sample_weight)
        refuse_masked(y, "y")
        refuse_masked(sample_weight, "sample_weight")
        if self.loss == "poisson":
            return explained_deviance(self._linear_functions(X, "score"), y, offset, sample_weight)
        self._family.refuse_offset(offset)
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        tags.target_tags.multi_output = self.loss != "poisson"
        return tags

    def _validate_regression(
        self, X: Any, y: Any, sample_weight: Any, reset: bool = True
    ) -> tuple[Any, Array, Any]:
        if isinstance(y, np.ndarray) and y.dtype.kind not in "biufc":  # objects may be numbers
            with naming("y"):
                y = y.astype(np.float64)
        X, y, sample_weight = self._validate(
            X, y, sample_weight, multi_output=self.loss != "poisson", y_numeric=True, reset=reset
        )
        y = convert(y, X.dtype, "y")
        check_entries(y, "y")
        return X, y, sample_weight

    def _observed(self, X: Any, y: Any, sample_weight: Any, offset: Any = None) -> tuple[Any, Array, Any]:
        X, y, sample_weight = self._validate_regression(X, y, sample_weight)
        return X, self._family.observed(y, sample_weight, offset), sample_weight

    @property
    def _family(self) -> Any:
        check_word(self.loss, "loss", *FAMILIES)
        return FAMILIES[self.loss](self)

    def _judged(self, problems: list[FitProblem], results: list[Result], alpha: float) -> list[Result]:
        """The results; the dual gap is found beside them, where the problem is the Lasso's."""
        options = self._penalty_options()
        plain = all(options.get(name) is None for name in ("weights", "bounds", "groups"))
        known = all(isinstance(problem.loss, SquaredLoss | QuadraticLoss) for problem in problems)
        self._dual_gaps = None
        if plain and known and self._l2_weight == 0 < alpha:
            pairs = zip(problems, results, strict=True)
            gaps = [
                dual_gap(problem.loss, result.x, alpha, self.ridge, positive=options["positive"])
                for problem, result in pairs
            ]
            self._dual_gaps = np.array(gaps)
        return results

    def _takes_chunks(self) -> bool:
        if self.loss != "squared":
            raise AttributeError(f"partial_fit needs loss='squared', got {self.loss!r}")
        return True

    def _check_squared(self, what: str, offset: Any = None) -> None:
        """Raise unless the loss is squared, where no other will do."""
        self._family.refuse_offset(offset)
        if self.loss != "squared":
            raise ValueError(f"{what} needs loss='squared', got {self.loss!r}")

    def _problems(self, X: Any, y: Array, sample_weight: Any) -> list[FitProblem]:
        family = self._family
        constant = self.fit_intercept and family.constant
        return family.problems(Design(X, sample_weight, center=self.fit_intercept, constant=constant), y)

    def _squeeze(self, y: Array) -> None:
        single = y.ndim == 1 or self.loss == "poisson"  # whose second column is the offset
        if single:
            self.coef_, self.intercept_ = self.coef_[0, ...], self.intercept_[0]
        if single or self.shared_support:
            self.n_iter_, self.result_ = int(self.n_iter_[0]), self.result_[0]
            self._dual_gaps = None if self._dual_gaps is None else float(self._dual_gaps[0])
