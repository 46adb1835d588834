"""How sure a selection of features is: stability, intervals, criteria, and a table of it all.

With `ell12.linear_model` an importer of scikit-learn.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
