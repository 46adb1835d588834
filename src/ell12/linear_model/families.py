"""The losses of a regression: how each is made of targets, and what its linear function means."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ell12.backend import as_numpy, indices_like, like, namespace
from ell12.checks import check_entries, check_positive, convert
from ell12.linear_model.fit_problem import Design, FitProblem, centered_target, follow
from ell12.losses import HuberLoss, LogisticLoss, MultinomialLoss, PoissonLoss, SquaredLoss
from ell12.losses.pointwise import exponential
from ell12.minimization import Result, Status
from ell12.protocols import Array

# The median of the absolute values of normal numbers is 0.6745 of their standard deviation.
NORMAL_MEDIAN = 0.6745


class Squared:
    """The squared loss: the linear function is the mean."""

    constant = False  # whether x holds the intercept; else centring finds it

    def __init__(self, model: Any) -> None:
        self.model = model

    def observed(self, y: Array, sample_weight: Any, offset: Any) -> Array:  # noqa: ARG002
        """The targets, with all that belongs to a row, checked; what the loss finds out of them is kept."""
        self.refuse_offset(offset)
        return y

    def refuse_offset(self, offset: Any) -> None:
        """Raise where an offset is given."""
        if offset is not None:
            raise ValueError(f"offset is for loss='poisson'; the loss is {self.model.loss!r}")

    def targets(self, y: Array) -> list[Array]:
        """Those that make a problem each: the columns of y, or all of y."""
        whole = y.ndim == 1 or self.model.shared_support
        return [y] if whole else [y[:, k] for k in range(y.shape[1])]

    def problems(self, design: Design, y: Array) -> list[FitProblem]:
        """The problem of each target."""
        centers = self.model.fit_intercept
        targets = [centered_target(design, b) if centers else (b, 0.0) for b in self.targets(y)]
        return [design.problem(SquaredLoss, b, level) for b, level in targets]

    def scored(self, y: Array) -> Array:
        """What a scorer compares predictions with."""
        return y

    def mean(self, eta: Array, offset: Any) -> Array:
        """The expected target where the linear function is eta."""
        self.refuse_offset(offset)
        return eta

    def errors(self, eta: Array, y: Array) -> Array:
        """How far predictions, (n_samples, n_alphas, n_targets), are from the targets."""
        return (eta - namespace(y).reshape(y, (y.shape[0], 1, -1))) ** 2


class Huber(Squared):
    """Huber's loss, whose threshold is ``delta`` times a scale of each target."""

    constant = True

    def observed(self, y: Array, sample_weight: Any, offset: Any) -> Array:
        """The targets; the scale of each is found once, for all folds."""
        self.refuse_offset(offset)
        check_positive(self.model.delta, "delta")
        if self.model.shared_support:
            raise ValueError("shared_support needs loss='squared'")
        weight = None if sample_weight is None else as_numpy(sample_weight)
        found = [robust_scale(as_numpy(b), weight, self.model.fit_intercept) for b in self.targets(y)]
        self.model.scale_ = found[0] if y.ndim == 1 else np.array(found)
        return y

    def problems(self, design: Design, y: Array) -> list[FitProblem]:
        """The problem of each target, less its median."""
        weight, made = design.sample_weight, []
        for b, delta in zip(self.targets(y), self._deltas, strict=True):
            values = as_numpy(b)
            level = (
                median(values, None if weight is None else as_numpy(weight)) if self.model.fit_intercept else 0.0
            )
            made.append(design.problem(HuberLoss, b - level, level, delta=delta))
        return made

    def errors(self, eta: Array, y: Array) -> Array:
        """Twice Huber's loss: the square of a small residual."""
        xp, delta = namespace(eta), like(np.array(self._deltas), eta)
        size = xp.abs(eta - xp.reshape(y, (y.shape[0], 1, -1)))
        return xp.where(size <= delta, size**2, delta * (2 * size - delta))

    @property
    def _deltas(self) -> list[float]:
        return [float(self.model.delta * scale) for scale in np.atleast_1d(self.model.scale_)]


class Poisson(Squared):
    """Poisson's loss: the linear function is the logarithm of the mean. y is counts and offsets, two columns."""

    constant = True

    def observed(self, y: Array, sample_weight: Any, offset: Any) -> Array:  # noqa: ARG002
        """The targets beside the offset."""
        xp = namespace(y)
        if bool(xp.any(y < 0)):
            raise ValueError("y must hold counts for loss='poisson', some values are negative")
        if self.model.shared_support:
            raise ValueError("shared_support needs loss='squared'")
        known = xp.zeros_like(y) if offset is None else as_offset(offset, y)
        return xp.stack([y, known], axis=1)

    def problems(self, design: Design, y: Array) -> list[FitProblem]:
        """The one problem. With an intercept it begins at the rate of all."""
        counts, offset = y[:, 0], y[:, 1]
        level = rate(counts, offset, design.sample_weight) if self.model.fit_intercept else 0.0
        return [design.problem(PoissonLoss, counts, level, offset=offset + level)]

    def scored(self, y: Array) -> Array:
        """The counts."""
        return y[:, 0]

    def mean(self, eta: Array, offset: Any) -> Array:
        """The expected counts."""
        return exponential(eta if offset is None else eta + as_offset(offset, eta))

    def errors(self, eta: Array, y: Array) -> Array:
        """The deviance of each count."""
        return deviances(eta + y[:, 1][:, None, None], y[:, 0][:, None, None])


FAMILIES = {"squared": Squared, "huber": Huber, "poisson": Poisson}


def deviances(eta: Array, y: Array) -> Array:
    """Poisson's deviance of each count where the logarithm of the expected one is eta: 0 if they are equal."""
    xp = namespace(eta)
    positive = y > 0
    logs = xp.where(positive, y * xp.log(xp.where(positive, y, 1)), 0)
    return 2 * (exponential(eta) - y * eta + logs - y)


def rate(y: Array, offset: Array, weight: Any) -> float:
    """The logarithm of the counts for each unit of ``exp(offset)``, of all samples together."""
    xp = namespace(y)
    weight = xp.ones_like(y) if weight is None else weight
    top = xp.max(offset)
    counts, exposure = float(weight @ y), float(weight @ xp.exp(offset - top))
    if counts == 0:
        raise ValueError("y holds no count above 0 of positive weight: no intercept is finite")
    return float(np.log(counts / exposure)) - float(top)


def explained_deviance(eta: Array, y: Any, offset: Any, weight: Any) -> float:
    """D^2: the share of Poisson's deviance that predictions explain, beside one rate for all."""
    eta, y = (np.ravel(np.asarray(as_numpy(values), dtype=float)) for values in (eta, y))
    known = np.zeros(y.size) if offset is None else as_offset(as_numpy(offset), y)
    weights = np.ones(y.size) if weight is None else np.asarray(as_numpy(weight), dtype=float)
    left, alone = (float(weights @ deviances(logs + known, y)) for logs in (eta, rate(y, known, weights)))
    return 1 - left / alone if alone > 0 else float(left == 0)


def as_offset(offset: Any, y: Array) -> Array:
    """The offset as an array of the kind of y, one finite number for each row."""
    offset = follow(offset, y)
    offset = convert(namespace(y).asarray(offset), y.dtype, "offset")
    if tuple(offset.shape) != (y.shape[0],):
        raise ValueError(f"offset must have shape ({y.shape[0]},), one number for each sample; got {offset.shape}")
    check_entries(offset, "offset")
    return offset


def median(values: Array, weight: Any = None) -> float:
    """The smallest value that has half of all the weight at or below it.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.linear_model.families import median
    >>> median(np.array([5.0, 1.0, 3.0])), median(np.array([5.0, 1.0, 3.0]), np.array([4, 1, 1]))
    (3.0, 5.0)
    """
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(np.ones(values.size) if weight is None else weight[order], dtype=np.float64)
    return float(values[order[np.searchsorted(summed, summed[-1] / 2)]])


def robust_scale(y: Array, weight: Any, centers: bool) -> float:
    """The median of the distances from the median, or from 0, as the standard deviation of normal numbers.

    Where more than half of the targets are equal the mean of the distances stands in; where all are, 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.linear_model.families import robust_scale
    >>> round(robust_scale(np.array([0.0, 1.0, 2.0, 3.0, 1e6]), None, True), 4)
    1.4826
    """
    distance = np.abs(y - median(y, weight)) if centers else np.abs(y)
    return median(distance, weight) / NORMAL_MEDIAN or float(np.average(distance, weights=weight)) or 1.0


# What separates the classes where the penalty has no say, and what to do about it.
NO_PENALTY = "at alpha=0 nothing bounds the coefficients of features that separate the classes. Raise alpha"
FREE = "features of penalty factor 0 separate the classes. Raise their factors"
ALONE = (
    "one feature, or group, separates the classes, and alone it costs nothing at this l2_weight."
    " Give a ridge, or a smaller l2_weight"
)


def endless(coef: Array, alpha: float, l2_weight: float, options: dict[str, Any]) -> tuple[Array, str]:
    """Which coefficients may grow without end at no cost, and why.

    All at alpha 0; those of factor 0; and without a ridge, where ``l2_weight`` is at least its factor, the only
    feature or group that is used.

    Parameters
    ----------
    coef : array of shape (n_features,)
        Where a fit ended.
    alpha, l2_weight : float
        Of its penalty.
    options : dict
        Further arguments of `ell12.path.l12_penalty`.
    """
    if alpha == 0:
        return coef != 0, NO_PENALTY
    number = np.arange(coef.size) if options.get("groups") is None else np.asarray(options["groups"])
    weights = np.ones(number.max(initial=-1) + 1) if options["weights"] is None else as_numpy(options["weights"])
    weight = weights[number]
    free, used = weight == 0, np.unique(number[(coef != 0) & (weight > 0)])
    if options["ridge"] == 0 and used.size == 1 and weights[used[0]] <= l2_weight:
        return (coef != 0) & (free | (number == used[0])), ALONE
    return free & (coef != 0), FREE


def separates(problem: FitProblem, x: Array, which: Array) -> bool:
    """Whether the given entries of x are a direction in which no margin falls and some grow.

    An intercept puts a threshold between two classes wherever there is one; of several classes at once the
    intercepts are among the entries. Samples of weight 0 have no say.
    """
    loss = problem.loss
    part = namespace(x).where(indices_like(which, x), x, 0)
    score, sign = as_numpy(loss.point(part).prediction), as_numpy(loss.b)
    if loss.sample_weight is not None:
        counts = as_numpy(loss.sample_weight).reshape(-1) > 0
        score, sign = score[counts], sign[counts]
    if problem.n_classes:
        margins = (np.sum(sign * score, axis=1, keepdims=True) - score)[sign == 0]
        return bool((margins >= 0).all() and (margins > 0).any())
    if not problem.constant:
        return bool((sign * score >= 0).all() and (score != 0).any())
    low, high = score[sign < 0], score[sign > 0]
    return bool(low.max() <= high.min() and low.min() < high.max())


def admit_separation(
    model: Any, problems: list[FitProblem], results: list[Result], alpha: float, l2_weight: float
) -> list[Result]:
    """The results, those that have no finite minimiser saying so; one warning for all of them."""
    options, judged, reasons = model._penalty_options(), [], []
    for problem, result in zip(problems, results, strict=True):
        reason = None
        if isinstance(problem.loss, LogisticLoss | MultinomialLoss):  # not where rows are on workers
            reason = _reason(problem, result.x, alpha, l2_weight, problem.structure(options))
        reasons += [] if reason is None else [reason]
        judged.append(result if reason is None else replace(result, status=Status.UNBOUNDED))
    if reasons:
        share = "" if len(results) == 1 else f" in {len(reasons)} of {len(results)} problems"
        warnings.warn(
            f"{type(model).__name__} has no finite minimiser{share}: {reasons[0]}. The coefficients found are"
            f" large because tol={model.tol:g} is small; a smaller tol makes them larger.",
            ConvergenceWarning,
            stacklevel=5,
        )
    return judged


def _reason(problem: FitProblem, x: Array, alpha: float, l2_weight: float, options: dict[str, Any]) -> str | None:
    """Why the coefficients grow without end, or None."""
    size = x.shape[0] - problem.n_intercepts
    coef = as_numpy(x)[:size]
    which, reason = endless(coef, alpha, l2_weight, options)
    if not which.any():
        return None
    every = np.full(x.shape[0], problem.n_classes > 0)
    every[:size] = which
    return reason if separates(problem, x, every) else None
