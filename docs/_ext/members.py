"""The members of a class in the order in which a reader needs them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from enum import Enum
from importlib import import_module
from inspect import isclass

# What nearly every user calls, in the order of use. The rest follows in the order of the source.
FIRST = (
    *("fit", "partial_fit", "predict", "predict_proba", "transform", "fit_transform", "score"),
    *("value", "prox", "point", "gradient", "iterates", "save", "load", "plot", "to_array", "to_pandas"),
)
# What solvers ask for, which nobody calls by hand: last.
LAST = (
    *("hessian", "hessian_product", "curvature", "violation", "least_slope", "kinks", "slopes_at_zero"),
    *("restrict", "moduli", "rebuild", "directions", "spread", "check_shape"),
)


def shown_members(modules: dict[str, Iterable[str]]) -> dict[str, list[tuple[str, str]]]:
    """The members of every class among the names of these modules, by the full name of the class."""
    found = {}
    for module, names in modules.items():
        things = {name: getattr(import_module(module), name) for name in names}
        found |= {f"{module}.{name}": in_order(thing, name) for name, thing in things.items() if isclass(thing)}
    return found


def in_order(thing: type, name: str) -> list[tuple[str, str]]:
    """Each documented public member of the package's own with its directive."""
    if issubclass(thing, Enum):
        return [("autoattribute", f"{name}.{member}") for member in thing.__members__]
    own = [base for base in thing.__mro__ if base.__module__.startswith("ell12")]
    every = dict.fromkeys(member for base in own for member in vars(base) if _is_shown(thing, member))
    names = sorted(every, key=lambda member: _rank(member, list(every)))
    return [(f"auto{_kind(thing, member)}", f"{name}.{member}") for member in names]


def _rank(member: str, order: list[str]) -> tuple[int, int]:
    if member in FIRST:
        return 0, FIRST.index(member)
    return 1 + (member in LAST), order.index(member)


def _is_shown(thing: type, member: str) -> bool:
    is_request = member.startswith("set_") and member.endswith("_request")
    if member.startswith("_") or is_request or _kind(thing, member) is None:
        return False
    return bool(inspect.getdoc(getattr(thing, member)))


def _kind(thing: type, member: str) -> str | None:
    value = inspect.getattr_static(thing, member)
    if isinstance(value, property) or type(value).__name__ == "cached_property":
        return "property"
    return "method" if callable(getattr(thing, member, None)) else None
