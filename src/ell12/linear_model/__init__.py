"""Estimators in the manner of scikit-learn: sparse linear regression, classification and survival.

The only part of the package that imports scikit-learn.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
