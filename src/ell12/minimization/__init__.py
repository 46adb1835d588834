"""The one loop that turns a solver's iterates into a result, and what follows a long run."""

from ell12.minimization.loop import certificate, minimize, stationarity
from ell12.minimization.results import DataUnavailable, History, Result, Status

__all__ = ["DataUnavailable", "History", "Result", "Status", "certificate", "minimize", "stationarity"]
