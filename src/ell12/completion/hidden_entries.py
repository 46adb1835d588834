"""The strength of a completion: where a path begins, what noise asks for, what hidden entries choose."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from ell12.backend import as_numpy, inner, like, namespace, norm
from ell12.checks import check_numbers, generator
from ell12.completion.least_squares import default_solver
from ell12.completion.low_rank import LowRank, sums_of_products
from ell12.completion.matrix_apg import check_rank
from ell12.completion.observed import Observed
from ell12.completion.offsets import Centred, check_offsets, column_deviations
from ell12.completion.singular_vectors import leading_svd
from ell12.completion.squared_error import CompletionLoss
from ell12.path import best_on_log_grid
from ell12.penalties import Spectral, SpectralL12
from ell12.penalties.spectral import spectral_norm
from ell12.protocols import Array, with_alpha

SWEEPS = 30  # of alternating least squares in a fit of rank one; tests compare it with a general solver to 1e-8


def rank_one_fit(observed: Observed) -> LowRank:
    """The matrix of rank one that is nearest to the known entries, by alternating least squares.

    Examples
    --------
    >>> from ell12 import Observed
    >>> from ell12.completion.hidden_entries import rank_one_fit
    >>> rank_one_fit(Observed([0, 1], [0, 1], [2.0, 2.0], (2, 2))).rank
    1
    """
    xp = namespace(observed.values)
    matrix, known = observed.matrix(), observed.matrix(xp.ones_like(observed.values))
    v = like(np.random.default_rng(0).standard_normal(observed.shape[1]), observed.values)
    v = leading_svd(matrix, v[:, None], passes=SWEEPS)[2][:, 0]
    for _ in range(SWEEPS):
        u = _quotient(matrix @ v, known @ (v * v))
        length = norm(u)
        if length == 0:
            return LowRank.zeros(observed.shape, like=observed.values)
        v = _quotient(matrix.T @ (u / length), known.T @ (u / length) ** 2)
    return LowRank.from_factors((u / length)[:, None], v[:, None])


def _quotient(a: Array, b: Array) -> Array:
    """``a / b``, zero where b is."""
    xp = namespace(a)
    return xp.where(b > 0, a / xp.where(b > 0, b, 1), 0)


def largest_strength(loss: CompletionLoss, l2_weight: float = 1.0) -> float:
    """The alpha at which a path begins: above it the matrix of least rank that is a solution stays one.

    For ``l2_weight < 1`` that is zero, and ``alpha = ||S(O)||_2 / (1 - l2_weight)``. For ``l2_weight >= 1`` a
    matrix of rank one costs nothing: the best of them, X1, is a solution from ``||S(O - X1)||_2`` on.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.completion import CompletionLoss
    >>> from ell12.completion.hidden_entries import largest_strength
    >>> round(largest_strength(CompletionLoss(np.diag([5.0, 3.0]))), 6)
    3.0
    """
    check_numbers(single=True, l2_weight=l2_weight)
    zero = loss.point(loss.start())
    if l2_weight < 1:
        return spectral_norm(loss.gradient(zero)) / (1 - l2_weight)
    single = loss.point(rank_one_fit(loss.observed))
    rounding = 100 * float(namespace(zero.prediction).finfo(zero.prediction.dtype).eps)
    if loss.value(single) <= rounding**2 * loss.value(zero):  # rank one fits all there is to fit
        return 0.0
    return spectral_norm(loss.gradient(single))


def weight_of(penalty: Any) -> float:
    """The weight of the subtracted norm; 0 where nothing is subtracted."""
    return float(penalty.l2_weight) if isinstance(penalty, SpectralL12) else 0.0


def noise_alpha(
    observed: Observed, max_rank: int | None = None, l2_weight: float = 1.0, least: float = 0.0
) -> float:
    """The size that pure noise would have: ``sd (sqrt(N/m) + sqrt(N/n))`` with N entries known of m x n.

    That is about the spectral norm of N independent errors of standard deviation sd, anywhere. Here sd is
    what the best matrix of rank one leaves, so that structure counts as noise: a good strength for ratings. A
    bound on the rank keeps noise out by itself, and half of it is better then, for an l2_weight of 1 or more. The
    noise is taken for at least this share of the entries' size.

    Examples
    --------
    >>> from ell12 import Observed
    >>> from ell12.completion.hidden_entries import noise_alpha
    >>> noise_alpha(Observed([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 0.0, 0.0, 1.0], (2, 2))) > 0
    True
    """
    loss = CompletionLoss(observed)
    residual = loss.residual(loss.point(rank_one_fit(observed)))
    square = max(inner(residual, residual), least**2 * inner(observed.values, observed.values))
    return alpha_of_noise(square, observed, max_rank, l2_weight)


def alpha_of_noise(square: float, observed: Any, max_rank: int | None, l2_weight: float) -> float:
    """`noise_alpha` where a matrix of rank one leaves this sum of squares."""
    m, n = observed.shape
    size = math.sqrt(observed.n_observed / m) + math.sqrt(observed.n_observed / n)
    deviation = math.sqrt(max(square, 0.0) / observed.n_observed)
    return deviation * size * (1.0 if max_rank is None or l2_weight < 1 else 0.5)


HELD_OUT = 0.1  # the share of the known entries that is hidden at a time, here and for intervals
# A table of which fewer entries than ENOUGH are hidden has SPLITS such parts: with a single one the error is 3 %
# larger, up to 35 % on tables of 30 rows (benchmarks/results/completion_search).
ENOUGH, SPLITS = 10_000, 3
# Columns of a table whose standard deviations differ by more than this factor, beyond two standard errors, are
# brought to one scale. Of the tables that chose it (benchmarks/results/tables), a photograph just below it is
# predicted 4 to 5 % better unscaled; above it scaling costs 5 % at most and gains up to 56 %.
ONE_UNIT_UP_TO = 3.0
# The tolerance of fits that are only compared: the errors are those of a third of it, in 0.8 of the time.
ROUGH_TOL = 3e-2
REACH = 1e-2  # The search goes down to this share of the strength that noise asks for.


@dataclass(frozen=True)
class HiddenEntryChoice:
    """All that is fixed of a completion but its strength."""

    center: str | None
    scale: str | None
    penalty: Spectral
    max_rank: int | None


@dataclass(frozen=True)
class SearchSpace:
    """What to choose from, the first of each being what is taken without a search."""

    centers: Sequence[str | None]
    penalties: Sequence[Spectral]
    ranks: Sequence[Any]  # int, or a single None: no bound
    scale: str | None = None

    @classmethod
    def suited_to(
        cls, observed: Observed, *, center: Any, penalty: Spectral | None, max_rank: Any, scale: Any = None
    ) -> SearchSpace:
        """What was asked for; for each that is "auto" what suits ratings, or a table.

        Tables of measurements are centred by columns; a matrix of low rank is best left as it is. Of ratings
        biases say most, and the rank is bounded: without a bound, steps would need singular vectors in number.
        """
        check_offsets(center, scale, "auto")
        if not _is_auto(max_rank):
            check_rank(max_rank)
        is_table = observed.is_table
        weights, ranks, centers = (
            ((1.0, 0.5), (None,), ("columns", None)) if is_table else ((0.5,), (8, 4, 16), ("biases",))
        )
        own_units = _is_auto(scale) and is_table and has_own_units(observed)
        return cls(
            centers if _is_auto(center) else (center,),
            [SpectralL12(l2_weight=weight) for weight in weights] if penalty is None else [penalty],
            ranks if _is_auto(max_rank) else (max_rank,),
            ("columns" if own_units else None) if _is_auto(scale) else scale,
        )

    @property
    def first(self) -> HiddenEntryChoice:
        """What is taken where nothing is hidden."""
        return HiddenEntryChoice(self.centers[0], self.scale, self.penalties[0], self.ranks[0])


def has_own_units(observed: Observed) -> bool:
    """Whether the columns of a table differ so much in scale that they are taken for different units."""
    deviations, counts = (as_numpy(numbers) for numbers in column_deviations(observed))
    counts, deviations = counts[deviations > 0], deviations[deviations > 0]
    if deviations.size < 2:
        return False
    errors = np.sqrt(2 / counts)  # two standard errors of the logarithm of a deviation
    logs = np.log(deviations)
    return bool(np.max(logs - errors) - np.min(logs + errors) > math.log(ONE_UNIT_UP_TO))


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


class HiddenEntries:
    """Entries that were hidden from a task, as its low-rank matrix should have them.

    Parameters
    ----------
    task : Centred
        What is fitted.
    entries : Observed
        What was hidden.
    """

    def __init__(self, task: Centred, entries: Observed) -> None:
        xp, scales = namespace(entries.values), task.offsets.scales
        if scales is not None:  # nothing can be predicted in a column whose unit is not known
            entries = entries.select(as_numpy(~xp.isnan(xp.take(scales, entries.columns, axis=0))))
        self.entries = task.offsets.subtracted_from(entries)

    def error(self, x: LowRank) -> float:
        """The root mean square error of a low-rank matrix; in units of the columns' deviations where scaled."""
        entries = self.entries
        error = norm(sums_of_products(x.weighted, x.V, entries.rows, entries.columns) - entries.values)
        return error / math.sqrt(max(entries.n_observed, 1))


@dataclass
class Candidate:
    """A choice, and the strengths that were tried: for each the error, and the matrix of each split."""

    choice: HiddenEntryChoice
    alpha: float  # where the search begins, then the best
    starts: list[Any]
    tried: dict[float, tuple[float, list[LowRank]]] = field(default_factory=dict, repr=False)

    @property
    def error(self) -> float:
        """The least error."""
        return min(error for error, _ in self.tried.values())

    def nearest(self, alpha: float) -> list[Any]:
        """The matrices of the strength that is nearest; where to start before there are any."""
        if not self.tried:
            return self.starts
        return self.tried[min(self.tried, key=lambda other: abs(math.log(other / alpha)))][1]


class HiddenEntrySearch:
    """Rough fits that are compared on the same hidden entries.

    Parameters
    ----------
    observed : Observed
        The known entries.
    solver : Solver, optional
        Of the rough fits.
    random_state : int or Generator
        Of what is hidden.
    max_iter : int
        The most iterations of a fit.
    end : float
        When to try no more, by the monotonic clock.
    """

    def __init__(
        self, observed: Observed, solver: Any, random_state: Any, max_iter: int = 1000, end: float = math.inf
    ) -> None:
        random = generator(random_state)
        first = observed.split(HELD_OUT, random)
        self.n_hidden = first[1].n_observed
        repeats = SPLITS if observed.is_table and self.n_hidden < ENOUGH else 1
        self.splits = [first, *(observed.split(HELD_OUT, random) for _ in range(repeats - 1))]
        self.solver, self.random_state, self.max_iter, self.end = solver, random_state, max_iter, end
        self.growth = math.sqrt(observed.n_observed / first[0].n_observed)  # as noise grows
        self.tasks: dict[str | None, list[tuple[Centred, HiddenEntries]]] = {}

    def best(self, space: SearchSpace) -> Candidate:
        """The choice and strength that predict best, one thing changed at a time.

        The centre is chosen first, at the strength that noise asks for.
        """
        begun = [self._begun(replace(space.first, center=center)) for center in space.centers]
        best = self._searched(min(begun, key=lambda candidate: candidate.error))
        others: dict[str, Sequence[Any]] = {"penalty": space.penalties, "max_rank": space.ranks}
        for name, values in others.items():
            for value in values[1:]:
                if time.monotonic() < self.end:
                    changed: dict[str, Any] = {name: value}
                    other = Candidate(replace(best.choice, **changed), best.alpha, best.nearest(best.alpha))
                    best = min(best, self._searched(other), key=lambda candidate: candidate.error)
        return best

    def _begun(self, choice: HiddenEntryChoice) -> Candidate:
        """A choice at the strength that noise asks for."""
        tasks = [(Centred.of(train, choice.center, choice.scale), hidden) for train, hidden in self.splits]
        self.tasks[choice.center] = [(task, HiddenEntries(task, hidden)) for task, hidden in tasks]
        starts: list[Any] = [None] * len(tasks)
        if choice.center is None:  # the level of all entries is a matrix of rank one
            starts = [rank_one_fit(task.loss.observed) for task, _ in tasks]
        first = noise_alpha(tasks[0][0].loss.observed, choice.max_rank, weight_of(choice.penalty), REACH)
        found = Candidate(choice, first or 1.0, starts)
        self._tried(found, found.alpha)
        return found

    def _searched(self, found: Candidate) -> Candidate:
        """A candidate with the best strength near the one where it begins."""
        least = REACH * found.alpha
        found.alpha = best_on_log_grid(lambda alpha: self._tried(found, alpha), found.alpha, least=least)
        return found

    def _tried(self, found: Candidate, alpha: float) -> float:
        """The error at a strength; infinite once the time is over."""
        if alpha not in found.tried:
            if found.tried and time.monotonic() > self.end:
                return math.inf
            penalty, tasks = with_alpha(found.choice.penalty, alpha), self.tasks[found.choice.center]
            rank, starts = found.choice.max_rank, found.nearest(alpha)
            fits = [self._fit(task.loss, penalty, rank, x) for (task, _), x in zip(tasks, starts, strict=True)]
            errors = [hidden.error(x) for (_, hidden), x in zip(tasks, fits, strict=True)]
            found.tried[alpha] = math.sqrt(np.mean(np.square(errors))), fits
        return found.tried[alpha][0]

    def _fit(self, loss: CompletionLoss, penalty: Any, max_rank: int | None, x: LowRank | None) -> LowRank:
        """The matrix where the violation is at most `ROUGH_TOL` by the solver's own estimate."""
        solver = self.solver or default_solver(loss, penalty, max_rank, self.random_state)
        x = loss.start() if x is None else x if max_rank is None else x.truncate(max_rank)
        for iterate in islice(solver.iterates(loss, penalty, loss.point(x)), self.max_iter):
            if iterate is not None:
                x = iterate.point.x
                if iterate.optimality <= ROUGH_TOL * penalty.alpha:
                    break
        return x
