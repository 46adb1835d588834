"""Losses of a linear prediction: squared, logistic, Huber, Poisson, multinomial, Cox's, of counts and impulses.

They are functions of the prediction ``A x``, so their values and slopes need no product with A once a point
carries its prediction. ``scale`` is the only place where a sum becomes a mean.
"""

from ell12.losses.counts_and_impulses import AbsoluteLoss, KullbackLeiblerLoss
from ell12.losses.cox import CoxLoss
from ell12.losses.intercept import InterceptSquaredLoss
from ell12.losses.linear import LinearLoss
from ell12.losses.multinomial import MultinomialLoss
from ell12.losses.pointwise import HuberLoss, LogisticLoss, PoissonLoss, SquaredLoss
from ell12.losses.quadratic import QuadraticLoss
from ell12.losses.streaming import StreamedLoss

__all__ = [
    "AbsoluteLoss",
    "CoxLoss",
    "HuberLoss",
    "InterceptSquaredLoss",
    "KullbackLeiblerLoss",
    "LinearLoss",
    "LogisticLoss",
    "MultinomialLoss",
    "PoissonLoss",
    "QuadraticLoss",
    "SquaredLoss",
    "StreamedLoss",
]
