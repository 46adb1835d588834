"""Learning with the nonconvex l1-2 regulariser ``||x||_1 - ||x||_2``.

A loss and a penalty make a problem; a solver yields iterates; `minimize` turns them into a result.
Names are loaded when they are first used, so that importing the package costs next to nothing. Which names there
are, and where each lives, stands once: in ``__init__.pyi``, which type checkers read too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def _read_stub() -> dict[str, tuple[str, ...]]:
    """Where the public names live, in the order of the flow; under no name, the modules."""
    with open(f"{__file__.removesuffix('.py')}.pyi", encoding="utf-8") as stub:
        statements = stub.read().partition("__version__")[0].split("from ell12")[1:]
    homes = {}
    for statement in statements:
        module, _, names = statement.partition(" import ")
        pairs = (pair.partition(" as ")[0].strip("() \n") for pair in names.split(","))
        homes[module.removeprefix(".")] = tuple(filter(None, pairs))
    return homes


_HOMES = _read_stub()
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
