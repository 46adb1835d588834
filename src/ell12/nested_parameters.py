"""``penalty__l2_weight``: parameters of frozen dataclasses inside scikit-learn estimators."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields, is_dataclass, replace
from typing import Any


class NestedParameters:
    """Parameters of frozen dataclasses, such as ``penalty__l2_weight``, for get_params and set_params.

    It stands before `sklearn.base.BaseEstimator` among the bases of an estimator.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with ``deep`` also those of each dataclass among them."""
        found: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        for name, value in list(found.items()):
            if deep and "__" not in name and is_dataclass(value) and not isinstance(value, type):
                own = [field.name for field in fields(value) if field.init]
                found |= {f"{name}__{field}": getattr(value, field) for field in own}
        return found

    def set_params(self, **params: Any) -> Any:
        """Set parameters; a dataclass is replaced by one with other numbers."""
        plain: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in params.items():
            name, _, inner = key.partition("__")
            owner = params.get(name, vars(self).get(name))  # penalty=... and penalty__gamma=... in one call
            if inner and is_dataclass(owner):
                nested[name][inner] = value
            else:
                plain[key] = value
        super().set_params(**plain)  # type: ignore[misc]
        for name, changes in nested.items():
            setattr(self, name, replace(vars(self)[name], **changes))
        return self
