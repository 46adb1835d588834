"""The one loop that turns a solver's iterates into a result, and what follows a long run."""

from ell12.minimization.loop import (
    Result,
    Status,
    minimize,
    stationarity,
)

__all__ = [
    "Result",
    "Status",
    "minimize",
    "stationarity",
]
