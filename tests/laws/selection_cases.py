"""The cases of how sure a selection is."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.laws.case import Answer, Case, Order, Unit
from tests.laws.linear_cases import L2_WEIGHT, TOL, linear

import ell12
from ell12.backend import as_numpy


def _criteria() -> Case:
    """The coefficients of a path, and beside them the refit of what BIC chooses."""

    def solve(A: Any, b: Any, sample_weight: Any = None, tol: float = TOL) -> Answer:
        model = ell12.L12Regressor(l2_weight=L2_WEIGHT, tol=tol)
        path = ell12.information_criteria(A, b, model, alphas=3, eps=0.1, sample_weight=sample_weight)
        return Answer(np.column_stack([as_numpy(path.coefs), as_numpy(path.refit("bic").coef_)]))

    return Case(
        name="information_criteria",
        data=linear,
        solve=solve,
        units=(Unit(("A",), -1), Unit(("b",), 1)),
        orders=(Order({"A": 0, "b": 0, "sample_weight": 0}), Order({"A": 1}, 0)),
        sparse=("A",),
        frames=("A",),
        arrays=("A", "b", "sample_weight"),
        named={"A": "X", "b": "y"},
        single=1e-3,
        loose={"tol": 1e-4},
    )


SELECTION_CASES = [_criteria()]
