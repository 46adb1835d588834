"""AIC, BIC and EBIC of one path together, and the unshrunk refit of what they choose."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from scipy.stats import norm
from sklearn.base import clone, is_classifier

from ell12.backend import as_numpy, namespace
from ell12.checks import check_word
from ell12.linear_model import L12Classifier, L12CoxRegressor, L12Regressor
from ell12.linear_model.alpha_search import AlphaSearch, entries_in_use, path_coefficients
from ell12.linear_model.criteria import CRITERIA, judge
from ell12.linear_model.fit_problem import FitProblem, as_vector, follow
from ell12.linear_model.sparse_model import warn_if_not_converged
from ell12.minimization import Result
from ell12.operators.centering import column_squares
from ell12.plots import plot_criteria
from ell12.protocols import Array, PiecewisePenalty, missing, with_alpha
from ell12.selection.frames import PRINTED, data_frame


@dataclass(frozen=True, repr=False, eq=False)
class CriteriaPath:
    """The result of `information_criteria`: arrays with an entry for each alpha.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        The strengths, falling.
    coefs : array of shape (n_features, n_alphas) or (n_rows, n_features, n_alphas)
        Coefficients; rows are targets or classes where there are several. Of columns out of memory a sparse array,
        or a list of them.
    intercepts : array of shape (n_alphas,) or (n_rows, n_alphas)
        Intercepts.
    n_selected : array of shape (n_alphas,)
        The number of features with a coefficient that is not zero.
    df : array of shape (n_alphas,)
        Degrees of freedom, the intercepts among them; NaN where the fit is no strict minimum on its support.
    deviance : array of shape (n_alphas,)
        ``-2 log L``, less what is the same for every alpha; of the squared loss ``n log(RSS/n)``.
    aic, bic, ebic : arrays of shape (n_alphas,)
        The criteria; infinite where the degrees of freedom are NaN or more than half the observations.
    n_observations : int
        Samples of positive weight; of survival times the events.
    """

    alphas: Array
    coefs: Any
    intercepts: Array
    n_selected: Array
    df: Array
    deviance: Array
    aic: Array
    bic: Array
    ebic: Array
    n_observations: int
    _model: Any
    _penalty: Any
    _single: bool
    _problems: list[FitProblem]
    _runs: list[list[Result]]

    def best(self, name: str = "ebic") -> int:
        """The number of the strength whose criterion is least; of equals that of the largest alpha."""
        check_word(name, "name", *CRITERIA)
        values = as_numpy(getattr(self, name))
        if not np.isfinite(values).any():
            raise ValueError(
                f"no alpha has a finite {name.upper()}: at each the degrees of freedom exceed half of the"
                f" {self.n_observations} observations, or are not defined"
            )
        return int(np.argmin(values))

    def marginal_fdr(self) -> Array:
        """The share of false features that is expected among those selected, for each alpha.

        False are features independent of the target and of those in the model. The gradient of such a feature j is
        nearly normal around 0, with the variance ``n / (n - k) sum_i s_i^2 x_ij^2`` for the slopes s of the loss
        and k features selected. The feature is selected where its gradient exceeds the slope of the penalty at
        zero, ``alpha w_j``. The sum of these probabilities over all features is the expected number of false ones;
        true ones count too, so that it is cautious. A feature that stands in for a true one, as they correlate, is
        not false in this sense.

        Returns
        -------
        array of shape (n_alphas,)
            From 0 to 1; 0 where nothing is selected. Unpenalised features do not count.

        References
        ----------
        Breheny, doi:10.1093/biostatistics/kxy004; Miller & Breheny, doi:10.1002/bimj.201800096.
        """
        counts = np.zeros((len(self.alphas), 2))
        for problem, path in zip(self._problems, self._runs, strict=True):
            penalty = problem.coefficient_penalty(self._penalty)
            for k, run in enumerate(path):
                own = with_alpha(penalty, float(self.alphas[k]))
                counts[k] += _false_and_selected(problem, own, as_vector(run.x))
        false, selected = counts.T
        return np.minimum(false / np.maximum(selected, 1), 1) * (selected > 0)

    def refit(self, name: str = "ebic") -> Any:
        """The model of the features that a criterion chooses, fitted without a penalty.

        Returns
        -------
        L12Regressor, L12Classifier or L12CoxRegressor
            Fitted: as with ``relax=True`` at the best alpha, from the solution of the path. Where the refit has no
            unique finite solution the penalised coefficients stand, and a ConvergenceWarning says so. With
            ``loss="multinomial"`` it never has a unique one, which is an error.
        """
        best = self.best(name)
        if any(problem.n_classes for problem in self._problems):
            raise ValueError("refit does not take loss='multinomial': such a refit has no unique solution")
        model = copy.copy(self._model)
        penalty = with_alpha(self._penalty, float(self.alphas[best]))
        model.alpha, model.relax = penalty.alpha, True
        model._keep(self._problems, self._results(model, best), penalty, single=self._single)
        return model

    def _results(self, model: Any, best: int) -> list[Result]:
        """How the runs of one strength ended; a warning says where classes leave no finite minimiser."""
        results = [replace(path[best], x=as_vector(path[best].x)) for path in self._runs]
        penalty = with_alpha(self._penalty, float(self.alphas[best]))
        return model._judged(self._problems, results, penalty) if is_classifier(model) else results

    def plot(self, axes: Any = None) -> Any:
        """Draw the criteria and the number of features against alpha."""
        return plot_criteria(self, axes=axes)

    @property
    def table(self) -> Any:
        """A DataFrame with a row for each alpha."""
        names = ("n_selected", "df", "deviance", *CRITERIA)
        columns = {name: as_numpy(getattr(self, name)) for name in names}
        return data_frame({"alpha": as_numpy(self.alphas)} | columns)

    @property
    def _chosen(self) -> Any:
        """What each criterion chooses, a row each."""
        names = [name for name in CRITERIA if np.isfinite(as_numpy(getattr(self, name))).any()]
        rows = self.table.iloc[[self.best(name) for name in names]].drop(columns=list(CRITERIA))
        rows["value"] = [float(as_numpy(getattr(self, name)).min()) for name in names]
        rows.insert(0, "criterion", [name.upper() for name in names])
        return rows

    @property
    def _caption(self) -> str:
        name = type(self._model).__name__
        return f"{name}: the best of {len(self.alphas)} strengths, {self.n_observations:,} observations"

    def __repr__(self) -> str:
        chosen = self._chosen
        rows = "no strength has a finite criterion" if chosen.empty else chosen.to_string(**PRINTED)
        return f"{self._caption}\n{rows}"

    def _repr_html_(self) -> str:
        return f"<p>{self._caption}</p>{self._chosen.to_html(**PRINTED)}"


def information_criteria(
    X: Any,
    y: Any,
    model: Any = None,
    *,
    alphas: Any = 100,
    eps: float | None = None,
    sample_weight: Any = None,
    offset: Any = None,
) -> CriteriaPath:
    """AIC, BIC and EBIC along a path, without folds.

    With the likelihood L, k degrees of freedom and n observations::

        AIC = -2 log L + 2 k,    BIC = -2 log L + k log n,    EBIC = BIC + 2 log C(p, s)

    where the last term is twice the logarithm of the number of models with s of p features. Degrees of freedom are
    those of the penalised fit: ``trace(H (H + P)^-1)`` on the support, with the Hessians of loss and penalty.

    Parameters
    ----------
    X, y
        As in the model's ``fit``.
    model : L12Regressor, L12Classifier or L12CoxRegressor, optional
        Whose options to use, penalty and loss among them; its alpha counts for nothing and it stays as it is.
        `L12Regressor` by default. For several penalties make a path of each: their criteria can be compared.
    alphas : int or array, default 100
        Strengths, or a number of them from the one at which nothing is selected down to ``eps`` times that.
    eps : float, optional
        1e-3 by default, for survival times 1e-2.
    sample_weight : array of shape (n_samples,), optional
        Weights, at least 0.
    offset : array of shape (n_samples,), optional
        For ``loss="poisson"``, as in `L12Regressor.fit`.

    Returns
    -------
    CriteriaPath
        With `CriteriaPath.best`, `CriteriaPath.refit`, `CriteriaPath.plot` and `CriteriaPath.table`.

    See Also
    --------
    L12RegressorCV : Regression with a strength chosen by cross-validation.
    summary : One table of a fitted model.

    Notes
    -----
    AIC aims at prediction and selects the most features. BIC and EBIC aim at the right ones; EBIC, which selects
    the fewest, where there are as many features as samples or more. Classes one against the rest, and several
    targets, have the sums over all rows. Where classes are separated by what costs nothing (see `L12Classifier`),
    coefficients have no end, and a ConvergenceWarning says so. Huber's loss has no likelihood, and
    a joint penalty, such as `ell12.RowsL12`, no criterion: both are errors.

    References
    ----------
    Chen & Chen, doi:10.1093/biomet/asn034 (EBIC); Volinsky & Raftery, doi:10.1111/j.0006-341X.2000.00256.x (n of
    survival times is the number of events).

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import information_criteria
    >>> from ell12.datasets import correlated_design
    >>> problem = correlated_design(0, n_samples=60, n_features=100, n_nonzero=3, noise=0.05)
    >>> path = information_criteria(problem.A, problem.b, alphas=30)
    >>> np.flatnonzero(problem.x), np.flatnonzero(path.refit("ebic").coef_)
    (array([22, 43, 51]), array([22, 43, 51]))
    """
    model = _options(model)
    if offset is not None and not isinstance(model, L12Regressor):
        raise ValueError("offset is for an L12Regressor")
    data = model._observed(X, y, sample_weight, offset)
    model._check_numbers()
    penalty, problems = with_alpha(model.penalty, 1.0), model._problems(data)
    model._check_shape(penalty)
    eps = (1e-2 if isinstance(model, L12CoxRegressor) else 1e-3) if eps is None else eps
    alphas = model._grid(problems, penalty, alphas, eps)
    runs = [model._solve(problem, penalty, alphas, sparse=problem.out_of_memory) for problem in problems]
    judged = judge(model, problems, penalty, runs, alphas, data.sample_weight)
    warn_if_not_converged(model, [run for path in runs for run in path])
    coefs, intercepts, selected = _coefficients(model, problems, penalty, runs)
    values = {"alphas": alphas, "n_selected": selected, "df": judged.freedoms.sum(axis=0)}
    values |= {"deviance": judged.deviances.sum(axis=0)} | {name: judged.criterion(name) for name in CRITERIA}
    path = CriteriaPath(
        **{name: follow(part, data.X) for name, part in values.items()},
        coefs=coefs,
        intercepts=intercepts,
        n_observations=judged.n_observations,
        _model=model,
        _penalty=penalty,
        _single=model._is_single(data),
        _problems=problems,
        _runs=runs,
    )
    for best in {path.best(name) for name in CRITERIA if np.isfinite(values[name]).any()}:
        path._results(model, best)
    return path


def _false_and_selected(problem: FitProblem, penalty: Any, x: Array) -> tuple[float, int]:
    """The expected number of false features, and the number selected."""
    loss, point = problem.loss, problem.loss.point(x)
    n, coef = loss.b.shape[0], x[: x.shape[0] - problem.n_intercepts]
    if missing(penalty, PiecewisePenalty):
        raise ValueError(
            f"a marginal false discovery rate needs separate features: {penalty!r} takes them together"
        )
    below, above = (as_numpy(part) for part in penalty.slopes_at_zero(0 * coef))
    slopes, columns = as_numpy(loss.slope(point)).reshape(n, -1), loss.A.A if problem.n_classes else loss.A
    squares = np.stack([as_numpy(column_squares(columns, slope**2)) for slope in slopes.T], axis=1)
    selected = np.count_nonzero(as_numpy(coef))
    error = np.sqrt(squares.reshape(-1)[: below.size] * n / max(n - 1 - selected, 1))
    varying, penalised = error > 0, above - below > 0
    error = np.where(varying, error, 1)
    chance = norm.sf(above / error) + norm.sf(-below / error)
    return float(chance[varying & penalised].sum()), int(np.count_nonzero(as_numpy(coef)[penalised]))


def _options(model: Any) -> Any:
    """A copy of an unfitted model, or the default."""
    if model is None:
        return L12Regressor()
    if not isinstance(model, L12Regressor | L12Classifier | L12CoxRegressor) or isinstance(model, AlphaSearch):
        raise TypeError(
            f"model must be an L12Regressor, L12Classifier or L12CoxRegressor, got {model!r}: criteria serve"
            " in place of cross-validation"
        )
    return clone(model)


def _coefficients(
    model: Any, problems: list[FitProblem], penalty: Any, runs: list[list[Result]]
) -> tuple[Any, Array, Array]:
    """The coefficients and intercepts of a path as `CriteriaPath` has them, and how many features it selects."""
    far, size = problems[0].out_of_memory, problems[0].means.shape[0]
    used = entries_in_use(runs, size) if far else slice(None)
    pairs = zip(problems, runs, strict=True)
    solutions = [[model._final(problem, as_vector(run.x), penalty) for run in path] for problem, path in pairs]
    coefs, intercepts = path_coefficients(problems, solutions, used)
    xp, selected = namespace(coefs), np.any(as_numpy(coefs) != 0, axis=1).sum(axis=1)
    coefs, intercepts = xp.permute_dims(coefs, (1, 2, 0)), xp.astype(intercepts.T, coefs.dtype)
    single = coefs.shape[0] == 1
    if far:
        where = scipy.sparse.eye_array(size, format="csc", dtype=coefs.dtype)[:, used]
        rows = [where @ scipy.sparse.csc_array(row) for row in coefs]
        return rows[0] if single else rows, intercepts[0] if single else intercepts, selected
    return (coefs[0, ...], intercepts[0, ...], selected) if single else (coefs, intercepts, selected)
