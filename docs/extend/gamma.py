"""A loss of one's own: Gamma regression, whose gradient has no Lipschitz constant."""

# [loss]
from dataclasses import dataclass

import numpy as np

from ell12.linear_model import Family
from ell12.losses import LinearLoss
from ell12.protocols import ColumnLoss, Loss, Point


class GammaLoss(Loss):
    """``sum_i b_i exp(-(A x)_i) + (A x)_i``: amounts b > 0 whose logarithms of expectation are ``A x``."""

    def __init__(self, A, b):
        self.A, self.b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)

    def point(self, x):
        """``x`` with its prediction: the only product with A."""
        return Point(x, self.A @ x)

    def start(self):
        """Zeros of the shape of x."""
        return np.zeros(self.A.shape[1])

    @np.errstate(over="ignore")  # an infinite value makes a solver shorten its step
    def value(self, point):
        """The loss, from the prediction alone."""
        return float(np.sum(self.b * np.exp(-point.prediction) + point.prediction))

    @np.errstate(over="ignore")
    def gradient(self, point):
        """The gradient: the only product with the adjoint of A."""
        return self.A.T @ (1 - self.b * np.exp(-point.prediction))

    @np.errstate(over="ignore", invalid="ignore")
    def divergence(self, point, base):
        """``f(point) - f(base) - <gradient(base), point - base>``, without the cancellation."""
        move = point.prediction - base.prediction
        return float(np.sum(self.b * np.exp(-base.prediction) * (np.expm1(-move) + move)))


# [columns]
class ColumnGammaLoss(GammaLoss, ColumnLoss):
    """The same with columns and second derivatives: what working sets and Newton's method ask for."""

    def restrict(self, columns):
        """The same loss in some entries of x."""
        return ColumnGammaLoss(self.A[:, columns], self.b)

    def point_within(self, x, columns):
        """The point of an x that is zero but for some entries: a product with their columns alone."""
        return Point(x, self.A[:, columns] @ x[columns])

    def hessian(self, point, columns, others=None):
        """``A_S' diag(b exp(-A x)) A_T``, T being S where none is named."""
        right = self.A[:, columns if others is None else others]
        return self.A[:, columns].T @ ((self.b * np.exp(-point.prediction))[:, None] * right)

    def hessian_product(self, point, columns):
        """The same as a map."""
        A, ratio = self.A[:, columns], self.b * np.exp(-point.prediction)
        return lambda v: A.T @ (ratio * (A @ v))


# [family]
class RowwiseGammaLoss(LinearLoss):
    """The same as a sum over rows, with weights: a function of each prediction and its two derivatives."""

    second_bound = np.inf  # of the second derivative

    def _pointwise(self, prediction):
        return self.b * np.exp(-prediction) + prediction

    def _slope(self, prediction):
        return 1 - self.b * np.exp(-prediction)

    def _second(self, prediction):
        return self.b * np.exp(-prediction)


@dataclass(frozen=True)
class Gamma(Family):
    """The loss without its data, for estimators."""

    def loss(self, A, y, *, sample_weight, offset, scale):
        """The loss with its data."""
        return RowwiseGammaLoss(A, y * np.exp(-offset), sample_weight=sample_weight, scale=scale)

    def mean(self, eta):
        """The expected amount."""
        return np.exp(eta)

    def deviance(self, y, eta):
        """How badly eta predicts each amount: what cross-validation compares."""
        return 2 * (y * np.exp(-eta) - 1 - np.log(y) + eta)

    def level(self, y, sample_weight, offset):
        """The intercept without features: where a fit begins, and what its score is compared with."""
        return np.log(np.average(y * np.exp(-offset), weights=sample_weight))


# [end]
def amounts(seed=0, shape=(200, 500)):
    """Amounts that depend on five of many features."""
    random = np.random.default_rng(seed)
    A = random.standard_normal(shape) / 3
    x = np.zeros(shape[1])
    x[:5] = [1.5, -1.0, 1.0, -0.5, 0.5]
    return A, random.gamma(2.0, np.exp(A @ x) / 2), x


if __name__ == "__main__":
    from ell12 import L12, minimize

    A, b, _ = amounts()
    for loss in (GammaLoss(A, b), ColumnGammaLoss(A, b)):
        result = minimize(loss, L12(10.0, 0.5))
        print(type(loss).__name__, result.status.name, result.n_iter, "iterations, objective", result.objective)
