"""What the paper prints: its tables, from ``published.json``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def published() -> dict[str, Any]:
    """The printed numbers, by study; means come with their deviations."""
    return json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))


def printed(name: str, method: str, i: int) -> list[float] | None:
    """Mean and deviation that Table I ("cpu_seconds") or II ("rmse_times_100") prints; None for our additions."""
    values = published()["compressed-sensing"][name].get(method)
    return values and values[i]
