"""The paper's first figure: penalties in two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.penalties import L1, L12, CappedL1, LogSum, Lp

NAME = "level-curves"

# Penalty -> its class and its parameters in the picture. Of these the paper gives p alone.
PENALTIES: dict[str, tuple[Any, dict[str, float]]] = {
    "l1": (L1, {}),
    "capped l1": (CappedL1, {"theta": 0.5}),
    "l_p": (Lp, {"p": 0.5}),
    "log-sum": (LogSum, {"theta": 0.1}),
    "l1-2": (L12, {}),
}


def trials(preset: str, seed: int) -> list[dict[str, Any]]:  # noqa: ARG001 (the picture has one size, no chance)
    """One trial per penalty."""
    return [
        {"penalty": penalty, "grid": 81, "limit": 1.0, "parameters": parameters}
        for penalty, (_, parameters) in PENALTIES.items()
    ]


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """The penalty, with strength 1, on a square grid around zero."""
    kind, _ = PENALTIES[settings["penalty"]]
    penalty = kind(1.0, **settings["parameters"])
    axis = np.linspace(-settings["limit"], settings["limit"], settings["grid"])
    values = [[_tidy(penalty.value(np.array([x, y]))) for x in axis] for y in axis]
    return {"axis": [_tidy(x) for x in axis], "values": values}


def _tidy(value: float) -> float:
    return round(float(value), 6) + 0.0  # + 0.0 turns -0.0 into 0.0
