"""Names that are loaded when they are first used: what a first fit does not need is not paid for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def read_stub(file: str) -> dict[str, tuple[str, ...]]:
    """Where the names of a package live, by module, as the ``__init__.pyi`` beside its ``__init__.py`` says.

    Type checkers read the same stub. Each of its statements is ``from module import name as name, ...``.
    """
    with open(f"{file.removesuffix('.py')}.pyi", encoding="utf-8") as stub:
        statements = stub.read().partition("\n__")[0].split("\nfrom ")[1:]
    homes: dict[str, tuple[str, ...]] = {}
    for statement in statements:
        module, _, names = statement.partition(" import ")
        pairs = (pair.partition(" as ")[0].strip("() \n") for pair in names.split(","))
        homes[module] = *homes.get(module, ()), *filter(None, pairs)
    return homes


def loader(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package with such a stub."""
    home_of = {name: module for module, names in read_stub(file).items() for name in names}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home_of[name]), name)

    names = sorted(home_of)
    return load, lambda: names, names
