"""Parameters of frozen dataclasses, such as ``penalty__alpha``, inside scikit-learn estimators."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields, is_dataclass, replace
from typing import Any


class NestedParameters:
    """Shows the fields of parameters that are dataclasses in ``get_params``, and sets them in ``set_params``.

    The first base class of an estimator, before scikit-learn's ``BaseEstimator``.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; ``deep`` adds ``name__field`` for each parameter that is a dataclass."""
        found: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        for name, value in list(found.items()):
            if deep and "__" not in name and _has_fields(value):
                found |= {
                    f"{name}__{field.name}": getattr(value, field.name) for field in fields(value) if field.init
                }
        return found

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``name__field`` replaces a dataclass by a copy with another value of that field."""
        plain: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if inner and _has_fields(params.get(name, getattr(self, name, None))):
                nested[name][inner] = value
            else:
                plain[key] = value
        super().set_params(**plain)  # type: ignore[misc]
        for name, changes in nested.items():
            setattr(self, name, replace(getattr(self, name), **changes))
        return self


def _has_fields(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
