"""Data by seed, and ratings from files: nothing is downloaded."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
