"""The one loop that turns a solver's iterates into a result, and what follows a long run."""

from ell12.minimization.loop import minimize, stationarity
from ell12.minimization.result import DataUnavailable, History, Result, Status
from ell12.minimization.run import Checkpoint, Run

__all__ = ["Checkpoint", "DataUnavailable", "History", "Result", "Run", "Status", "minimize", "stationarity"]
