"""Learning with the nonconvex l1-2 regulariser ``||x||_1 - ||x||_2``.

A loss and a penalty make a problem; a solver yields iterates; `minimize` turns them into a result.
Names are loaded when they are first used, so that importing the package costs next to nothing. Which names there
are, and where each lives, stands once: in ``__init__.pyi``, which type checkers read too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ell12.lazy import read_stub

_HOMES = {module.partition(".")[2]: names for module, names in read_stub(__file__).items()}
_MODULES = _HOMES.pop("")
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)  # noqa: PLE0605


def _installed_version() -> str:
    """The version that was installed, which the tags of the repository give."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ell12")
    except PackageNotFoundError:
        return "0+unknown"  # the folder of the source alone is on the path


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _installed_version()
    if name in _HOME_OF:
        return getattr(import_module(f"ell12.{_HOME_OF[name]}"), name)
    if name in _MODULES:
        return import_module(f"ell12.{name}")
    raise AttributeError(f"module 'ell12' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
