"""Completion at one strength, weight, rank and kind of offsets: the engines by name, and what comes out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from ell12.backend import namespace
from ell12.completion.gpu_entries import has_segments
from ell12.completion.least_squares import AlternatingLeastSquares
from ell12.completion.low_rank import LowRank, as_indices
from ell12.completion.matrix_apg import BlockAPG, FactoredAPG, FullSVD
from ell12.completion.observed import Observed
from ell12.completion.offsets import Offsets, fit_offsets, rows_and_columns_seen
from ell12.completion.squared_error import CompletionLoss
from ell12.minimization import Result, minimize
from ell12.minimization.run import collected
from ell12.penalties import Spectral, SpectralL12
from ell12.protocols import Array, Solver, offers

LARGEST_ALTERNATING_RANK = 30  # Beyond this rank, sweeps cost more than steps on factors: they grow by its square.
ENGINES = ("auto", "block", "factored", "als", "full")


@dataclass(frozen=True, eq=False)
class Strangers:
    """What predicts a row or a column of which nothing was known, where nothing was taken off before.

    A low-rank matrix is zero there, and zero is no guess: the mean and the bias of the other side are.
    """

    biases: Offsets
    rows_seen: Array
    columns_seen: Array

    def entries(self, values: Array, rows: Array, columns: Array) -> Array:
        """Values at pairs of row and column, those of strangers by biases."""
        xp = namespace(values)
        seen = xp.take(self.rows_seen, rows, axis=0) & xp.take(self.columns_seen, columns, axis=0)
        return xp.where(seen, values, self.biases.entries(rows, columns))

    def for_rows(self, observed: Observed) -> Strangers:
        """The same for other rows, which are seen where they have a known entry."""
        return Strangers(self.biases.for_rows(observed), rows_and_columns_seen(observed)[0], self.columns_seen)

    def matrix(self, X: Array) -> Array:
        """A dense matrix, its strangers by biases."""
        xp = namespace(X)
        seen = self.rows_seen[:, None] & self.columns_seen[None, :]
        return xp.where(seen, X, self.biases.add_to(xp.zeros_like(X)))


@dataclass(frozen=True, eq=False)
class Task:
    """Known entries with offsets taken off: what completions at all strengths, weights and ranks share."""

    observed: Observed
    center: str | None
    scale: str | None
    offsets: Offsets
    loss: CompletionLoss
    strangers: Strangers | None

    @classmethod
    def of(cls, observed: Observed, center: str | None, scale: str | None = None) -> Task:
        """Find the offsets and take them off."""
        offsets = fit_offsets(observed, center, scale)
        untouched = center is None and scale is None
        loss = CompletionLoss(observed if untouched else offsets.taken_off(observed))
        strangers = None
        if center is None:
            strangers = Strangers(fit_offsets(observed, "biases", scale), *rows_and_columns_seen(observed))
        return cls(observed, center, scale, offsets, loss, strangers)


@dataclass(frozen=True)
class Completion(Result[LowRank]):
    """The result of `complete_matrix`: a `Result` whose x is a `LowRank`, and the offsets.

    Attributes
    ----------
    offsets : Offsets
        What was taken off before, and the scale of the columns: nothing where ``center`` and ``scale`` are None.
    alpha, l2_weight, max_rank, center, scale
        What was used, given or chosen; l2_weight is NaN for another penalty than l1-2.
    search : Search or None
        What hidden entries said of other choices, where alpha was "holdout".
    """

    offsets: Offsets = field(default_factory=Offsets)
    alpha: float = math.nan
    l2_weight: float = math.nan
    max_rank: int | None = None
    center: str | None = None
    scale: str | None = None
    search: Any = field(default=None, repr=False)
    strangers: Strangers | None = field(default=None, repr=False)

    def predict(self, rows: Any, columns: Any) -> Array:
        """The completed matrix at pairs of row and column."""
        (m, n), U = self.x.shape, self.x.U
        rows, columns = as_indices(rows, U, m, "rows"), as_indices(columns, U, n, "columns")
        values = self.offsets.put_on(self.x.entries(rows, columns), rows, columns)
        return values if self.strangers is None else self.strangers.entries(values, rows, columns)

    def to_array(self) -> Array:
        """The completed matrix, dense; known entries are fitted, not copied.

        Of columns with units of their own, one without any known entry is NaN, with a warning.
        """
        self.offsets.warn_of_unknown_units()
        X = self.offsets.add_to(self.x.to_array())
        return X if self.strangers is None else self.strangers.matrix(X)


def solve_completion(
    task: Task,
    penalty: Spectral,
    *,
    max_rank: int | None = None,
    engine: str | Solver = "auto",
    x0: LowRank | None = None,
    random_state: Any = 0,
    **options: Any,
) -> Completion:
    """Minimise the penalised error; options are those of `minimize`."""
    solver = choose_engine(engine, task.loss, penalty, max_rank, random_state)
    result = minimize(task.loss, penalty, x0, solver, **collected(options))
    parts = {part.name: getattr(result, part.name) for part in fields(Result)}
    return Completion(
        **parts,
        offsets=task.offsets,
        alpha=penalty.strength,
        l2_weight=penalty.l2_weight if isinstance(penalty, SpectralL12) else math.nan,
        max_rank=max_rank,
        center=task.center,
        scale=task.scale,
        strangers=task.strangers,
    )


def choose_engine(
    engine: str | Solver, loss: CompletionLoss, penalty: Spectral, max_rank: int | None, random_state: Any
) -> Solver:
    """The solver of this name, or the one that suits the problem."""
    if not isinstance(engine, str) and offers(engine, Solver):
        return engine
    if not isinstance(engine, str) or engine not in ENGINES:
        raise ValueError(f"engine must be a solver or one of {', '.join(ENGINES)}; got {engine!r}")
    if engine == "auto":
        engine = _suitable(loss, penalty, max_rank)
    if engine == "full":
        return FullSVD(max_rank)
    if engine == "als":
        return AlternatingLeastSquares(max_rank or min(10, *loss.observed.shape), random_state=random_state)
    return (BlockAPG if engine == "block" else FactoredAPG)(max_rank, random_state)


def _suitable(loss: CompletionLoss, penalty: Spectral, max_rank: int | None) -> str:
    if not has_segments(loss.observed.values) or loss.observed.suits_dense:
        return "block"
    small = max_rank is not None and max_rank <= LARGEST_ALTERNATING_RANK
    return "als" if small and isinstance(penalty, SpectralL12) and penalty.strength > 0 else "factored"
