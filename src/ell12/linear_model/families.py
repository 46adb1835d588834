"""Losses without their data, as estimators take them for ``loss``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from ell12.backend import as_numpy, namespace, rounding, total
from ell12.checks import check_positive, check_word
from ell12.losses import HuberLoss, LogisticLoss, MultinomialLoss, PoissonLoss, SquaredLoss
from ell12.losses.multinomial import log_softmax, softmax
from ell12.losses.pointwise import exponential, sigmoid
from ell12.protocols import Array


class NoInformation(ValueError):
    """Rows that hold nothing to fit to, or to score: a cross-validation leaves such a fold out."""


class Family:
    """Base class of losses without their data: what estimators take for ``loss``.

    A subclass is a frozen dataclass of numbers with ``loss`` and ``deviance``; the other methods have defaults.

    Attributes
    ----------
    centred : bool
        Whether centring X and y finds the intercept; otherwise it is fitted with the coefficients.
    joint : bool
        Whether one loss takes all classes, as a matrix with a column of ones and zeros for each.
    counts : bool
        Whether targets must be at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from ell12 import L12Regressor, SquaredLoss
    >>> from ell12.linear_model import Family
    >>> @dataclass(frozen=True)
    ... class LeastSquares(Family):
    ...     def loss(self, A, y, *, sample_weight, offset, scale):
    ...         return SquaredLoss(A, y - offset, sample_weight=sample_weight, scale=scale)
    ...
    ...     def deviance(self, y, eta):
    ...         return (y - eta) ** 2
    >>> X = np.arange(12.0).reshape(6, 2) % 5
    >>> L12Regressor(0.1, loss=LeastSquares()).fit(X, X[:, 0]).coef_.round(3)
    array([1., 0.])
    """

    centred: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    counts: ClassVar[bool] = False

    def loss(self, A: Any, y: Array, *, sample_weight: Any, offset: Any, scale: float) -> Any:
        """The loss with its data, an `ell12.protocols.Loss`, times ``scale``.

        ``offset``, a number or an array with one for each row, is added to the linear function ``A x``.
        """
        raise NotImplementedError

    def deviance(self, y: Array, eta: Array) -> Array:
        """How badly the linear function ``eta`` predicts each y; 0 is best."""
        raise NotImplementedError

    def mean(self, eta: Array) -> Array:
        """The expected target where the linear function is ``eta``; of classes the probability."""
        return eta

    def level(self, y: Array, sample_weight: Any, offset: Any) -> Any:  # noqa: ARG002
        """An intercept to begin with: that of the model without features, or 0."""
        return 0.0

    def for_data(self, y: Array, sample_weight: Any, *, intercept: bool) -> Family:  # noqa: ARG002
        """The family with what it takes from all targets, once for all folds."""
        return self

    def shares(self, scores: Array) -> Array:
        """The probability of each class, last axis, from the linear functions."""
        p = self.mean(scores)
        xp = namespace(p)
        if p.ndim == 1 or p.shape[1] == 1:
            p = xp.reshape(p, (-1,))
            return xp.stack([1 - p, p], axis=1)
        return p / xp.sum(p, axis=1, keepdims=True)


@dataclass(frozen=True)
class Squared(Family):
    """Squared residuals: the linear function is the mean."""

    centred: ClassVar[bool] = True

    def loss(self, A: Any, y: Array, *, sample_weight: Any, offset: Any, scale: float) -> Any:
        """A `SquaredLoss`. What an offset leaves of a constant target is rounding, and becomes 0."""
        xp, rest = namespace(y), y - offset
        rest = xp.where(xp.max(xp.abs(rest), axis=0) <= rounding(offset, y), 0, rest)
        return SquaredLoss.of_checked(A, rest, sample_weight=sample_weight, scale=scale)

    def deviance(self, y: Array, eta: Array) -> Array:
        """The square of the residual."""
        return (eta - y) ** 2

    def level(self, y: Array, sample_weight: Any, offset: Any) -> Any:
        """The weighted mean."""
        return weighted_mean(y - offset, sample_weight)


@dataclass(frozen=True)
class Huber(Squared):
    """Huber's loss, in which outliers count little.

    Parameters
    ----------
    delta : float, default 1.35
        The residual, in units of ``scale``, at which the loss turns from a square to a line.
    scale : float, optional
        By default 1.48 times the median distance of y from its median (from 0 without an intercept), so that the
        unit of y does not matter. The signal is part of it: if that is far larger than the noise, give a smaller
        delta.
    """

    delta: float = 1.35
    scale: float | None = None
    centred: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive(self.delta, "delta")
        if self.scale is not None:
            check_positive(self.scale, "scale")

    def loss(self, A: Any, y: Array, *, sample_weight: Any, offset: Any, scale: float) -> Any:
        """A `HuberLoss`."""
        return HuberLoss.of_checked(A, y - offset, sample_weight=sample_weight, scale=scale, delta=self.threshold)

    @property
    def threshold(self) -> float:
        """Delta in units of y."""
        return float(self.delta * (self.scale or 1.0))

    def deviance(self, y: Array, eta: Array) -> Array:
        """Twice Huber's loss: the square of a small residual."""
        xp, delta = namespace(eta), self.threshold
        size = xp.abs(eta - y)
        return xp.where(size <= delta, size**2, delta * (2 * size - delta))

    def level(self, y: Array, sample_weight: Any, offset: Any) -> float:
        """The median."""
        return median(as_numpy(y - offset), None if sample_weight is None else as_numpy(sample_weight))

    def for_data(self, y: Array, sample_weight: Any, *, intercept: bool) -> Huber:
        """With the scale of y."""
        weight = None if sample_weight is None else as_numpy(sample_weight)
        return self if self.scale else replace(self, scale=robust_scale(as_numpy(y), weight, intercept))


@dataclass(frozen=True)
class Poisson(Family):
    """Counts: the linear function is the logarithm of the mean."""

    counts: ClassVar[bool] = True

    def loss(self, A: Any, y: Array, *, sample_weight: Any, offset: Any, scale: float) -> Any:
        """A `PoissonLoss`."""
        known = namespace(y).zeros_like(y) + offset
        return PoissonLoss.of_checked(A, y, sample_weight=sample_weight, scale=scale, offset=known)

    def deviance(self, y: Array, eta: Array) -> Array:
        """Poisson's deviance."""
        xp, positive = namespace(eta), y > 0
        logs = xp.where(positive, y * xp.log(xp.where(positive, y, 1)), 0)
        return 2 * (exponential(eta) - y * eta + logs - y)

    def mean(self, eta: Array) -> Array:
        """The expected count."""
        return exponential(eta)

    def level(self, y: Array, sample_weight: Any, offset: Any) -> float:
        """The logarithm of the counts for each unit of ``exp(offset)``, of all samples together."""
        xp = namespace(y)
        weight = xp.ones_like(y) if sample_weight is None else sample_weight
        offset = xp.zeros_like(y) + offset
        top = xp.max(offset)
        counts, exposure = float(weight @ y), float(weight @ xp.exp(offset - top))
        if counts == 0:
            raise NoInformation("y holds no count above 0 of positive weight: no intercept is finite")
        return float(np.log(counts / exposure)) - float(top)


@dataclass(frozen=True)
class Logistic(Family):
    """Two classes, -1 and 1, by the logistic loss; of several classes each against the rest."""

    def loss(self, A: Any, y: Array, *, sample_weight: Any, offset: Any, scale: float) -> Any:  # noqa: ARG002
        """A `LogisticLoss`."""
        return LogisticLoss.of_checked(A, y, sample_weight=sample_weight, scale=scale)

    def deviance(self, y: Array, eta: Array) -> Array:
        """Twice the logistic loss."""
        xp = namespace(eta)
        return 2 * xp.logaddexp(xp.zeros_like(eta), -y * eta)

    def mean(self, eta: Array) -> Array:
        """The probability of the class 1."""
        return sigmoid(eta)

    def shares(self, scores: Array) -> Array:
        """The probability of each class; the sum of several is scaled to 1."""
        xp = namespace(scores)
        if scores.ndim == 1 or scores.shape[1] == 1:
            scores = xp.reshape(scores, (-1,))
            return xp.stack([sigmoid(-scores), sigmoid(scores)], axis=1)
        return softmax(-xp.logaddexp(xp.zeros_like(scores), -scores))  # of logarithms: no row becomes 0/0


@dataclass(frozen=True)
class Multinomial(Family):
    """Several classes at once: their probabilities are the softmax of the linear functions."""

    joint: ClassVar[bool] = True

    def loss(self, A: Any, y: Array, *, sample_weight: Any, offset: Any, scale: float) -> Any:  # noqa: ARG002
        """A `MultinomialLoss`; y are the shares of the classes."""
        return MultinomialLoss.of_checked(A, y, sample_weight=sample_weight, scale=scale)

    def deviance(self, y: Array, eta: Array) -> Array:
        """Minus twice the logarithm of the probability."""
        return -2 * namespace(eta).sum(y * log_softmax(eta), axis=1)

    def mean(self, eta: Array) -> Array:
        """The probabilities."""
        return softmax(eta)


REGRESSION = {"squared": Squared(), "huber": Huber(), "poisson": Poisson()}
CLASSIFICATION = {"logistic": Logistic(), "multinomial": Multinomial()}


def family_of(loss: Any, words: dict[str, Family]) -> Any:
    """The family that a word stands for, or the given one."""
    if isinstance(loss, str):
        check_word(loss, "loss", *words)
        return words[loss]
    if not isinstance(loss, Family):
        named = ", ".join(repr(word) for word in words)
        raise TypeError(f"loss must be {named} or an object of a subclass of Family, got {loss!r}")
    return loss


def explained_deviance(family: Any, y: Any, eta: Any, sample_weight: Any, offset: Any = 0.0) -> float:
    """The share of the deviance that predictions explain, compared with one intercept for all."""
    y, eta = (np.ravel(np.asarray(as_numpy(values), dtype=float)) for values in (y, eta))
    offset = np.zeros(y.size) if offset is None else np.zeros(y.size) + as_numpy(offset)
    weight = np.ones(y.size) if sample_weight is None else np.asarray(as_numpy(sample_weight), dtype=float)
    alone = offset + family.level(y, weight, offset)
    left, whole = (float(weight @ family.deviance(y, values)) for values in (eta, alone))
    return 1 - left / whole if whole > 0 else float(left == 0)


def weighted_mean(values: Array, weight: Any) -> Array:
    """The mean over the first axis, weighted."""
    if isinstance(values, np.ndarray):
        return np.asarray(np.average(values, axis=0, weights=weight), dtype=values.dtype)
    return namespace(values).mean(values, axis=0) if weight is None else weight @ values / total(weight)


def median(values: Array, weight: Any = None) -> float:
    """The smallest value that has half of all the weight at or below it.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.linear_model.families import median
    >>> median(np.array([5.0, 1.0, 3.0])), median(np.array([5.0, 1.0, 3.0]), np.array([4, 1, 1]))
    (3.0, 5.0)
    """
    return float(np.quantile(values, 0.5, weights=weight, method="inverted_cdf"))


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
    return median(distance, weight) / float(ndtri(0.75)) or float(np.average(distance, weights=weight)) or 1.0
