"""Solvers: each a frozen dataclass of options with a generator of iterates."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
