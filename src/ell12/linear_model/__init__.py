"""Estimators in the manner of scikit-learn: sparse linear regression, classification and survival.

The only part of the package that imports scikit-learn.
"""

from ell12.lazy import loader

__getattr__, __dir__, __all__ = loader(__name__, __file__)
