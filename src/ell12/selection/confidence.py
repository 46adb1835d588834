"""Confidence intervals after selection: the debiased estimator."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control, norm, t

from ell12.checks import check_counts, check_share, check_word, naming
from ell12.operators import adjoint_product
from ell12.plots import plot_intervals
from ell12.protocols import Array
from ell12.selection.frames import PRINTED, data_frame
from ell12.selection.local_model import LARGEST, LocalColumns, LocalModel, local_model, varying
from ell12.selection.nodewise import LEAST_LENGTH, exact, nodewise, ridge

# "auto" takes the exact inverse where there are at most this share as many features as samples: with residuals,
# intervals are then at most 15 % longer than with a known model of few features; the fits of likelihoods without a
# penalty, the second number, are biased away from zero sooner (benchmarks/results/interval_coverage.md).
EXACT_SHARES = 0.25, 0.1
# A feature of a likelihood is sure, and keeps its coefficient without a penalty, if its first estimate is SURE
# standard errors from zero: of 2, 2.5 and 3 the one whose intervals held most coefficients of classes
# (benchmarks/results/interval_coverage.md).
SURE = 2.5


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Confidence intervals of some coefficients.

    Parameters
    ----------
    features : array of int of shape (n,)
        The numbers of the features.
    names : list of str
        Their names, or numbers.
    coef : array of shape (n,)
        The coefficients of the model.
    estimate, standard_error : arrays of shape (n,)
        The debiased coefficients, and their standard errors.
    lower, upper : arrays of shape (n,)
        The ends of the intervals.
    p_values : array of shape (n,)
        Two-sided, each for the hypothesis that its coefficient is 0.
    level : float
        What share of such intervals holds the true coefficient.
    inverse : str
        The inverse that was taken.
    noise : float
        The standard deviation of the noise, as estimated; NaN for classes, counts and survival times.
    """

    features: Any
    names: list[str]
    coef: Any
    estimate: Any
    standard_error: Any
    lower: Any
    upper: Any
    p_values: Any
    level: float
    inverse: str
    noise: float

    def adjusted(self, method: str = "holm") -> Array:
        """The p values corrected for their number: by Holm's method, or by that of Benjamini and Hochberg ("bh").

        Of the hypotheses below a level Holm's method has a single false one with no more than that probability; of
        those below a level "bh" has no more than that share of false ones in the mean, where the tests are
        independent or depend positively.
        """
        return adjusted_p_values(self.p_values, method)

    @property
    def table(self) -> Any:
        """A DataFrame with a row for each coefficient."""
        columns = ("coef", "estimate", "standard_error", "lower", "upper")
        values = {name: getattr(self, name) for name in columns}
        return data_frame({"feature": self.names} | values | {"p_value": self.p_values})

    def plot(self, axes: Any = None, **options: Any) -> Any:
        """Draw the intervals of the ``n_features`` smallest p values below each other."""
        return plot_intervals(self, axes=axes, **options)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def _caption(self) -> str:
        return f"{100 * self.level:g} % confidence intervals, {self.inverse} inverse"

    def __repr__(self) -> str:
        return f"{self._caption}\n{self.table.to_string(**PRINTED)}"

    def _repr_html_(self) -> str:
        return f"<p>{self._caption}</p>{self.table.to_html(**PRINTED)}"


def confidence_intervals(
    X: Any,
    y: Any,
    model: Any = None,
    *,
    features: Any = None,
    label: Any = None,
    level: float = 0.95,
    inverse: str = "auto",
    variance: str = "model",
    sample_weight: Any = None,
    offset: Any = None,
    n_jobs: int | None = None,
) -> Intervals:
    """Confidence intervals and p values of the coefficients of a sparse model, selected or not.

    What the penalty took from a coefficient is given back, in a direction z_j in which its column differs from all
    others (see `inverse`)::

        estimate_j = c_j + g z_j's / (z_j'H x_j)

    with the model's coefficients c, the slopes s and the curvature H of its loss in the linear functions ``X c``
    (minus the first and the second derivative), and a factor g near 1 (see the notes). The errors of many such
    estimates are nearly normal where few coefficients are not zero: some n^(1/2) / log p, n being the number
    of samples and p that of features.

    Parameters
    ----------
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
        Samples, in memory.
    y : array of shape (n_samples,)
        Targets, labels of two classes, or survival times, as in the model's ``fit``.
    model : L12Regressor, L12Classifier or L12CoxRegressor, or one of these with CV, optional
        The first stage, with any loss. One that is not fitted yet is cloned and fitted to the data; one that is
        must have been fitted to these. It sees the columns in the units they have. By
        default `L12ClassifierCV` if y has two values or holds labels, else `L12RegressorCV`, of the columns
        divided by their standard deviations, so that units of columns are no more than units of intervals.
    features : list of int, of str or of bool, optional
        The features that are asked for, by number, by name or by a mask such as ``model.coef_ != 0``; all by
        default. Fewer take less time.
    label : optional
        For a model of several classes, the class whose coefficients are asked for: against the rest as the model
        has them, or for ``loss="multinomial"`` less their mean over all classes, in log odds.
    level : float, default 0.95
        The share of intervals that hold the true coefficient, between 0 and 1.
    inverse : {"auto", "nodewise", "ridge", "exact"}, default "auto"
        How directions are found. "exact": they are orthogonal to the other columns; for more samples than
        features, and the intervals are those of least squares, or of the fit without a penalty. "nodewise": the
        residuals of a Lasso of each column on the others. "ridge": by a ridge inverse, with intervals that are
        wider by a bound on the bias that is left; fast for many features, and cautious. "auto" is exact where
        features are at most a quarter as many as samples, or of classes, counts and survival times a tenth, and
        the inverse exists, and nodewise elsewhere.
    variance : {"model", "robust"}, default "model"
        "model": noise of one variance, ``sum w_i r_i^2 / (n - k)`` for the residuals r and k coefficients that are
        not zero, with the intercept; for classes, counts and survival times that of the model. "robust": of each
        sample its own ``s_i^2`` (a sandwich, times n / (n - k)), for noise whose variance differs between samples;
        not of survival times and ``loss="multinomial"``.
    sample_weight : array of shape (n_samples,), optional
        Weights, at least 0: a sample of weight 2 has half the variance. Only their ratios count. A number of
        equal samples is not to be given as a weight but as equal rows.
    offset : array of shape (n_samples,), optional
        As in `L12Regressor.fit`.
    n_jobs : int, optional
        Threads for nodewise problems, and processes for the folds of the default model.

    Returns
    -------
    Intervals
        The intervals, in the order of ``features``.

    Warns
    -----
    UserWarning
        Where columns are constant, or depend on others (the same column twice). Their estimates, intervals and p
        values are NaN, as the data do not tell their coefficients. Also where the model separates two classes
        without error: probabilities are then near 0 and 1, and intervals too short.

    See Also
    --------
    StabilitySelection : Which features another sample would select too.
    summary : One table of a fitted model.

    Notes
    -----
    The squared loss and Huber's take quantiles of Student's t with ``n - k`` degrees of freedom, which for an
    exact inverse and the squared loss is the textbook's interval; other losses, read as minus a log-likelihood,
    those of the normal distribution. Huber's noise is ``(E psi^2)^(1/2) / E psi'`` for its derivative psi.
    For survival times a root of the Hessian of the partial likelihood takes the place of the rows.

    For classes and counts the estimate is linear near a fit. Probabilities of a penalised fit are too near each
    other, which makes estimates and intervals too small. So with nodewise directions the features in use whose
    first estimate is more than 2.5 standard errors from zero are fitted without a penalty; and the estimates are
    linear near that fit, where it spreads its predictions more than the model does.

    Nodewise directions are not orthogonal to the columns in use, and the fit has taken up a part of what they
    should find. So where there is noise to estimate the correction is multiplied by ``g = 1 + q / (n - k)`` for q
    coefficients that are not zero (Bellec & Zhang), and its standard error with it. Their root of g is enough for
    directions orthogonal to all columns not in use, which nodewise ones only approach.

    References
    ----------
    Zhang & Zhang, doi:10.1111/rssb.12026; van de Geer, Buehlmann, Ritov & Dezeure, doi:10.1214/14-AOS1221;
    Javanmard & Montanari, JMLR 15 (2014); Bellec & Zhang, doi:10.3150/21-BEJ1348; Buehlmann,
    doi:10.3150/12-BEJSP11 (ridge).

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import confidence_intervals
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((100, 200))
    >>> y = 2 * X[:, 3] - X[:, 5] + random.standard_normal(100)
    >>> found = confidence_intervals(X, y, features=[3, 4, 5])
    >>> bool(found.lower[0] < 2 < found.upper[0]), bool(found.adjusted()[1] > 0.05)
    (True, True)
    """
    check_share(level, "level")
    check_counts(least=-math.inf, n_jobs=n_jobs)
    check_word(inverse, "inverse", "auto", "nodewise", "ridge", "exact")
    check_word(variance, "variance", "model", "robust")
    fit = local_model(X, y, model, label, sample_weight, offset, n_jobs)
    if variance == "robust" and (fit.is_survival or fit.problem.n_classes):
        raise ValueError(
            "variance='robust' is not for survival times, whose samples share the sets at risk, nor for"
            " loss='multinomial'"
        )
    which = chosen(features, fit)
    inverse, final = _inverse_of(fit, inverse)
    if final.freedom < 1:
        raise ValueError(
            f"model has {np.count_nonzero(final.coef)} coefficients that are not zero and {fit.n_samples} samples:"
            " nothing is left to tell the noise from. Raise its alpha"
        )
    if inverse == "nodewise" and not fit.has_noise and not fit.is_survival:
        final = _unshrunken(fit, n_jobs)
    noise = final.noise() if fit.has_noise else math.nan
    if noise <= np.finfo(float).eps * np.abs(final.data.y).max():
        raise ValueError("model fits y without error: there is no noise to tell intervals from")
    columns = final.columns()
    directions = {"exact": exact, "ridge": ridge, "nodewise": lambda c: nodewise(c, n_jobs)}[inverse](columns)
    parts = [
        _debiased(final, columns, part, directions(part), inverse, variance)
        for part in np.array_split(which, max(1, which.size * columns.slope.size // LARGEST))
    ]
    estimate, error, bias = (np.concatenate(values) for values in zip(*parts, strict=True))
    _warn(final, which[np.isnan(estimate)])
    distribution = t(final.freedom) if fit.has_noise else norm()
    reach = distribution.ppf(0.5 + 0.5 * level) * error + bias
    p_values = 2 * distribution.sf(np.maximum(np.abs(estimate) - bias, 0) / error)
    names, ends = [fit.names[j] for j in which], (estimate - reach, estimate + reach)
    return Intervals(which, names, fit.coef[which], estimate, error, *ends, p_values, level, inverse, noise)


def adjusted_p_values(p_values: Array, method: str = "holm") -> Array:
    """P values corrected for their number, in the same order; a NaN is no test, stays NaN and does not count."""
    check_word(method, "method", "holm", "bh")
    adjusted, tests = np.full(p_values.shape, np.nan), np.flatnonzero(~np.isnan(p_values))
    if method == "bh":
        adjusted[tests] = false_discovery_control(p_values[tests])
        return adjusted
    order = tests[np.argsort(p_values[tests], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    return adjusted


def chosen(features: Any, fit: LocalModel) -> Array:
    """The numbers of the features that are asked for."""
    every = np.arange(fit.coef.size)
    if features is None:
        return every
    with naming("features"):
        single = isinstance(features, str | int | np.integer)
        asked = [features] if single else list(features.flat if isinstance(features, np.ndarray) else features)
    known = {name: j for j, name in enumerate(fit.names)}
    try:
        found = np.array([known.get(each, each) if isinstance(each, str) else each for each in asked])
        return every[found if found.size else []]
    except (IndexError, ValueError) as error:
        raise ValueError(
            f"features must hold numbers below {every.size}, a mask or names of columns of X, got {asked!r:.200}"
        ) from error


def _inverse_of(fit: LocalModel, inverse: str) -> tuple[str, LocalModel]:
    """The inverse to take, and the fit to begin with: for the exact one the fit without a penalty."""
    share = EXACT_SHARES[0 if fit.has_noise else 1]
    small = fit.coef.size + fit.intercept <= share * fit.n_samples
    if inverse != "exact" and not (inverse == "auto" and small):
        return "nodewise" if inverse == "auto" else inverse, fit
    found = fit.refitted(np.flatnonzero(varying(fit.problem, fit.coef.size)))
    if found is not None and found.columns().inverse() is not None:
        return "exact", found
    if inverse == "exact":
        raise ValueError(
            "inverse='exact' needs a unique finite fit without a penalty: fewer features than samples, no column"
            " that depends on others, and classes that cannot be separated without error. Try 'nodewise'"
        )
    return "nodewise", fit


def _unshrunken(fit: LocalModel, n_jobs: int | None) -> LocalModel:
    """The fit of a likelihood to the features that are sure, without a penalty, where it is the less shrunken one.

    Probabilities of a penalised fit are too near each other. Then curvatures are too large, and estimates and
    intervals that are linear near it too small. Where hardly a feature is sure, as many of them are alike, the
    penalised fit spreads its predictions more, and stays.
    """
    used, columns = np.flatnonzero(fit.coef), fit.columns()
    estimate, error, _ = _debiased(fit, columns, used, nodewise(columns, n_jobs)(used), "nodewise", "model")
    other = fit.refitted(used[np.abs(estimate) > SURE * error])
    return fit if other is None or other.prediction.std() < fit.prediction.std() else other


def _debiased(
    fit: LocalModel, columns: LocalColumns, which: Array, z: Array, inverse: str, variance: str
) -> tuple[Array, Array, Array]:
    """The estimates of some features, their standard errors, and bounds on their bias; NaN where none exist."""
    product, square = (np.einsum("i,ij,ij->j", columns.curvature, z, part) for part in (columns.take(which), z))
    distinct = square > (LEAST_LENGTH**2) * columns.total  # constant columns are zero
    product = np.where(distinct, product, np.nan)
    steep, n = columns.total / fit.n_samples, fit.n_samples  # 1 for the squared loss
    noise, gain = 1.0, 1.0
    if fit.has_noise:
        noise = fit.noise() * math.sqrt(steep)
        if inverse == "nodewise":  # what of the slopes the fit has taken up is given back
            gain = 1 + np.count_nonzero(fit.coef) / (steep * n - n + fit.freedom)
    error = noise * np.sqrt(square) / np.abs(product)
    if variance == "robust":
        error = np.sqrt(n / fit.freedom * np.einsum("ij,i->j", z**2, columns.slope**2)) / np.abs(product)
    bias, scale = np.zeros(which.size), columns.scale[which]
    if inverse == "ridge":
        # Buehlmann's bound, in which the model's coefficients are off by (log p / n)^0.45.
        others = np.abs(adjoint_product(columns.A, columns.curvature[:, None] * z))
        others[which, np.arange(which.size)] = 0
        size = noise / math.sqrt(steep) * (math.log(columns.size) / n) ** 0.45
        bias = others.max(axis=0) / np.abs(product) * size
    estimate = fit.coef[which] + gain * (z.T @ columns.slope) / product / scale
    return estimate, gain * error / scale, bias / scale


def _warn(fit: LocalModel, lost: Array) -> None:
    """Say which features have no interval and why, and where intervals of classes are not to be trusted."""
    if lost.size:
        more = f" and {lost.size - 10} more" if lost.size > 10 else ""
        warnings.warn(
            f"no interval for the features {', '.join(fit.names[j] for j in lost[:10])}{more}: their columns are"
            " constant, or depend on other columns, so that the data do not tell their coefficients. Their rows"
            " are NaN",
            stacklevel=3,
        )
    if fit.separates():
        warnings.warn(
            "model separates the two classes without error: its probabilities are near 0 and 1, and intervals"
            " from them are not to be trusted. Raise its alpha, or take more samples",
            stacklevel=3,
        )
