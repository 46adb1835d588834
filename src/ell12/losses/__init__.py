"""Losses of a linear prediction: squared, logistic and Huber, over one shared `LinearLoss`.

A loss is pointwise in the prediction ``A x``, so its value and slope need no product with A once a point
carries its prediction. ``scale`` is the only place where a sum becomes a mean.
"""

from ell12.losses.intercept import InterceptSquaredLoss
from ell12.losses.linear import LinearLoss
from ell12.losses.pointwise import HuberLoss, LogisticLoss, SquaredLoss
from ell12.losses.quadratic import QuadraticLoss
from ell12.losses.streaming import StreamedLoss

__all__ = [
    "HuberLoss",
    "InterceptSquaredLoss",
    "LinearLoss",
    "LogisticLoss",
    "QuadraticLoss",
    "SquaredLoss",
    "StreamedLoss",
]
