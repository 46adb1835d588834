"""Learning with the nonconvex l1-2 regulariser ``||x||_1 - ||x||_2``.

A loss and a penalty make a problem; a solver yields iterates; `minimize` turns them into a result.
Names are loaded when they are first used. Which names there are, and where each lives, stands in ``__init__.pyi``,
which type checkers read too.
"""

from pkgutil import iter_modules
from typing import Any

import lazy_loader

_load, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
_modules = sorted({module.name for module in iter_modules(__path__)} & set(_names))
__all__ = sorted(set(_names) - set(_modules))  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name != "__version__":
        return _load(name)
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ell12")
    except PackageNotFoundError:
        return "0+unknown"  # the folder of the source alone is on the path
