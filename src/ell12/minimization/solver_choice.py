"""The default solver, and what a solver needs against what it was given."""

from __future__ import annotations

import inspect
from typing import Any

from ell12.backend import is_complex, is_numpy
from ell12.protocols import Array, Factored, Loss, missing, offers


def check_kind(value: Any, name: str, kind: type, example: str) -> None:
    """Raise, with the argument's name, unless the value has all that a protocol names."""
    lacking = missing(value, kind)
    if isinstance(value, type) or lacking:
        lack = "a class, not an object of it" if isinstance(value, type) else f"without {', '.join(lacking)}"
        raise TypeError(f"{name} must be a {kind.__name__} such as {example}, got {value!r}, {lack}")


def unmet(solver: Any, loss: Any, penalty: Any, x: Array) -> str:
    """What a solver needs and these do not have, as words for an error; nothing if it can be used."""
    needs, name = solver.needs, type(solver).__name__
    for role, thing, protocol in (("loss", loss, needs.loss), ("penalty", penalty, needs.penalty)):
        lacking = missing(thing, protocol)
        if lacking:
            what = first_line(protocol)
            return f"{name} needs {what}; the {role} {type(thing).__name__} lacks {', '.join(lacking)}"
    return _unmet_by_x(needs.x, name, loss, x)


def _unmet_by_x(kind: str, name: str, loss: Any, x: Array) -> str:
    """What the unknown is not, though a solver of this name needs it."""
    if kind == "anything":
        return ""
    if (kind == "factors") != offers(x, Factored):
        array = "an array, not factors as BlockAPG(), FactoredAPG() or AlternatingLeastSquares() take"
        return f"{name} needs x to be {'factors' if kind == 'factors' else array}"
    if "vector" in kind and (x.ndim != 1 or is_complex(x)):
        return f"{name} needs x to be a vector of real numbers"
    if "columns" in kind and not is_numpy(x) and getattr(type(loss), "on_host", None) in (None, Loss.on_host):
        return f"{name} needs NumPy arrays, or a loss that can be seen from the host, got {type(x).__name__}"
    if "columns" in kind and not loss.has_columns:
        return f"{name} needs columns at hand, which those of this {type(loss).__name__} are not"
    return ""


def first_line(protocol: type) -> str:
    """The first sentence of a protocol's docstring, as a part of a sentence."""
    sentence = (inspect.getdoc(protocol) or protocol.__name__).split(":")[0].split(".")[0]
    return sentence[0].lower() + sentence[1:]
