"""Losses of a linear prediction: squared, logistic, Huber, Poisson, multinomial and Cox's.

They are functions of the prediction ``A x``, so their values and slopes need no product with A once a point
carries its prediction. ``scale`` is the only place where a sum becomes a mean.
"""

from ell12.losses.cox import CoxLoss
from ell12.losses.intercept import InterceptSquaredLoss
from ell12.losses.linear import LinearLoss
from ell12.losses.multinomial import MultinomialLoss
from ell12.losses.pointwise import HuberLoss, LogisticLoss, PoissonLoss, SquaredLoss
from ell12.losses.quadratic import QuadraticLoss
from ell12.losses.streaming import StreamedLoss

__all__ = [
    "CoxLoss",
    "HuberLoss",
    "InterceptSquaredLoss",
    "LinearLoss",
    "LogisticLoss",
    "MultinomialLoss",
    "PoissonLoss",
    "QuadraticLoss",
    "SquaredLoss",
    "StreamedLoss",
]
