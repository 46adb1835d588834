"""What a run found, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic

from ell12.backend.kinds import X

History = dict[str, list[float]]


class Status(Enum):
    """How a run ended.

    The value is a sentence for people. `Result.converged` is true for CONVERGED alone.
    """

    CONVERGED = "The stationarity fell to tol."
    MAX_ITER = "The number of iterations reached max_iter before the stationarity fell to tol."
    MAX_SECONDS = "The time reached max_seconds before the stationarity fell to tol."
    RANK_CAPPED = "The rank reached its bound: x is stationary among matrices of that rank, not among all."
    ROUNDING = "Rounding keeps the stationarity above tol: x is as good as the precision of its numbers allows."
    UNBOUNDED = "There is no finite minimiser: x grows without end as tol falls."
    ENDED = "The solver ended by its own rule, such as a number of terms; x is its best iterate."
    STOPPED = "The run was stopped by its caller; x is the best iterate so far."
    NOT_FINITE = "The objective became NaN or infinite; x is the best iterate before that."
    DATA_LOST = "The data could not be reached any more; x is the best iterate before that."


class DataUnavailable(RuntimeError):
    """The data of a loss cannot be reached any more, for example because a cluster is gone.

    Its ``result`` says where `ell12.minimize` had come to, None before the first iterate; ``coef`` and
    ``intercept`` are the same for an estimator that was being fitted. ``results`` are what a path had solved
    before.
    """

    result: Any = None
    results: Any = ()
    coef: Any = None
    intercept: Any = None


@dataclass(frozen=True)
class Result(Generic[X]):
    """The result of a run.

    Attributes
    ----------
    x : array
        The solution: the certified iterate if the run converged or came to where rounding stops it, else the one
        with the lowest objective.
    objective : float
        Loss plus penalty at x.
    stationarity : float
        `stationarity` at x.
    status : Status
        How the run ended.
    n_iter : int
        Number of iterations.
    history : dict of lists
        One entry per iteration, the start included, in each of ``seconds`` (wall), ``cpu_seconds``, ``objective``,
        ``optimality`` (the solver's own estimate, divided by alpha) and every name in ``measure``.
    """

    x: X
    objective: float
    stationarity: float
    status: Status
    n_iter: int
    history: History = field(repr=False)

    @property
    def converged(self) -> bool:
        """Whether the stationarity fell to tol."""
        return self.status is Status.CONVERGED
