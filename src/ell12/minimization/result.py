"""What a run found, and how it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic

from scipy.sparse import issparse

from ell12.backend import count_true
from ell12.backend.number_types import X
from ell12.protocols import Factored, offers

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


REMEDIES = {
    Status.MAX_ITER: "Raise max_iter or tol, bring the columns to one scale, or raise alpha.",
    Status.ROUNDING: "More iterations will not help: raise alpha or tol, or give data in float64.",
    Status.MAX_SECONDS: "Raise max_seconds or tol.",
    Status.RANK_CAPPED: "Raise max_rank.",
    Status.UNBOUNDED: "Raise alpha.",
    Status.NOT_FINITE: "Rescale the data, or give the solver a smaller step.",
}


@dataclass(frozen=True, repr=False)
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
        `stationarity` at x, exact.
    status : Status
        How the run ended.
    n_iter : int
        Number of iterations.
    tol : float
        The stationarity that was asked for.
    solver : str
        The solver, such as ``"WorkingSet, SupportNewton from 3 on"`` where another one took over.
    history : dict of lists
        One entry per iteration, the start included, in each of ``seconds`` (wall), ``cpu_seconds``, ``objective``,
        ``optimality`` (the solver's own estimate, divided by alpha) and every name in ``measure``.
    """

    x: X
    objective: float
    stationarity: float
    status: Status
    n_iter: int
    tol: float
    solver: str
    history: History

    @property
    def converged(self) -> bool:
        """Whether the stationarity fell to tol."""
        return self.status is Status.CONVERGED

    @property
    def message(self) -> str:
        """One sentence on how the run ended, and one on what to do about it."""
        return " ".join(filter(None, (self.status.value, REMEDIES.get(self.status))))

    @property
    def seconds(self) -> float:
        """The wall time of the solver."""
        return self.history["seconds"][-1]

    def __repr__(self) -> str:
        reached = f"objective {self.objective:.3g}, stationarity {self.stationarity:.2g} (tol {self.tol:.0e})"
        work = f"{self.n_iter} iterations of {self.solver}, {self.seconds:.2g} s"
        return f"Result({self.status.name}: {reached}, {_size(self.x)}, {work})"

    def plot(self, axes: Any = None) -> Any:
        """Draw the stationarity over the iterations, as the solver estimated it; return the axes (matplotlib)."""
        from ell12.plots import plot_run

        return plot_run(self.history["optimality"], self.tol, axes)


def _size(x: Any) -> str:
    """How many entries are not zero, or the rank of a matrix of factors, in words."""
    if offers(x, Factored):
        return f"rank {x.s.shape[0]} of {' x '.join(map(str, x.shape))}"
    if issparse(x):
        return f"{x.nnz} of {x.shape[0]} nonzero"
    return f"{count_true(x != 0)} of {math.prod(x.shape)} nonzero"
