"""Solvers: each a frozen dataclass of options with a generator of iterates."""

from ell12.lazy import loader

__getattr__, __dir__, __all__ = loader(__name__, __file__)
