"""Losses of a linear prediction: squared, logistic, Huber, Poisson, multinomial, Cox's, of counts and impulses.

They are functions of the prediction ``A x``, so their values and slopes need no product with A once a point
carries its prediction. ``scale`` alone makes a mean of a sum.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
