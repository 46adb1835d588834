"""How strong the penalty of a matrix to be completed should be: where a path begins, and what noise asks for."""

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

POWER_STEPS = 10  # A rank-one fit begins at what this many power steps on the known entries give.
SWEEPS = 30  # It ends after this many sweeps, whose change of the residual is then far below the noise.


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
    v = leading_svd(matrix, v[:, None], passes=POWER_STEPS)[2][:, 0]
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


def noise_alpha(observed: Observed, max_rank: int | None = None, l2_weight: float = 1.0) -> float:
    """The size that pure noise would have: ``sd (sqrt(N/m) + sqrt(N/n))`` with N entries known of m x n.

    That is about the spectral norm of N independent errors of standard deviation sd, anywhere. Here sd is
    what the best matrix of rank one leaves, so that structure counts as noise: a good strength for ratings. A
    bound on the rank keeps noise out by itself, and half of it is better then, for an l2_weight of 1 or more.

    Examples
    --------
    >>> from ell12 import Observed
    >>> from ell12.completion.hidden_entries import noise_alpha
    >>> noise_alpha(Observed([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 0.0, 0.0, 1.0], (2, 2))) > 0
    True
    """
    loss = CompletionLoss(observed)
    residual = loss.residual(loss.point(rank_one_fit(observed)))
    return alpha_of_noise(inner(residual, residual), observed, max_rank, l2_weight)


def alpha_of_noise(square: float, observed: Any, max_rank: int | None, l2_weight: float) -> float:
    """`noise_alpha` where a matrix of rank one leaves this sum of squares."""
    m, n = observed.shape
    size = math.sqrt(observed.n_observed / m) + math.sqrt(observed.n_observed / n)
    deviation = math.sqrt(max(square, 0.0) / observed.n_observed)
    return deviation * size * (1.0 if max_rank is None or l2_weight < 1 else 0.5)


HELD_OUT = 0.1  # The share of the known entries that is hidden.
RATINGS_BELOW = 0.25  # A matrix with a smaller share of known entries is taken for ratings, not for a table.
# Columns of a table whose standard deviations differ by more than this factor, beyond two standard errors, are
# brought to one scale. Of the tables that chose it (benchmarks/tables.py), a photograph just below it is predicted
# 4 to 5 % better unscaled; above it scaling costs 5 % at most and gains up to 56 %.
ONE_UNIT_UP_TO = 3.0
ENOUGH, SPLITS = 10_000, 3  # Of a table fewer entries than this are hidden this many times.
REACH = 1e-2  # The least strength that is tried, as a share of the largest.
RATIO = 1.7  # Between two strengths that are tried.
SETTLED, MOST_STEPS = 3e-4, 100  # A rough fit ends once the error changed by less than this share, twice in a row.
# Subtracting nothing must predict better by this factor to be chosen: it ties the answer to where zero is.
PLAIN_MUST_GAIN = 1.02


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
    of_ratings: bool = False

    @classmethod
    def suited_to(
        cls, observed: Observed, *, center: Any, penalty: Spectral | None, max_rank: Any, scale: Any = None
    ) -> SearchSpace:
        """What was asked for; for each that is "auto" what suits ratings, or a table.

        Of ratings, biases say most as a rule, and how much of the rest is signal differs widely from set to set.
        No bound on the rank is needed for tables, in which much is known. A matrix that is of low rank as it is,
        and no table of measurements, is best left as it is.
        """
        check_offsets(center, scale, "auto")
        if not _is_auto(max_rank):
            check_rank(max_rank)
        are_ratings = is_ratings(observed)
        shapes = [SpectralL12(l2_weight=weight) for weight in ((0.5, 1.0) if are_ratings else (1.0, 0.5))]
        own_units = _is_auto(scale) and not are_ratings and has_own_units(observed)
        return cls(
            (("biases",) if are_ratings else ("columns", None)) if _is_auto(center) else (center,),
            shapes if penalty is None else [penalty],
            ((8, 4, 16) if are_ratings else (None,)) if _is_auto(max_rank) else (max_rank,),
            ("columns" if own_units else None) if _is_auto(scale) else scale,
            are_ratings,
        )

    @property
    def first(self) -> HiddenEntryChoice:
        """What is taken where nothing is hidden."""
        return HiddenEntryChoice(self.centers[0], self.scale, self.penalties[0], self.ranks[0])


def is_ratings(observed: Observed) -> bool:
    """Whether so little is known that the entries are taken for ratings, all in one unit."""
    return observed.fraction < RATINGS_BELOW


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
        self.count = entries.n_observed
        self.fixed = 0.0  # the squared error of unseen rows and columns, which no low-rank matrix changes
        if task.unseen is not None:
            seen = task.unseen.rows_seen, task.unseen.columns_seen
            positions = entries.rows, entries.columns
            both = as_numpy(xp.take(seen[0], positions[0], axis=0) & xp.take(seen[1], positions[1], axis=0))
            unseen, entries = entries.select(~both), entries.select(both)
            error = task.unseen.biases.entries(unseen.rows, unseen.columns) - unseen.values
            error = error if scales is None else error / xp.take(scales, unseen.columns, axis=0)
            self.fixed = norm(error) ** 2
        self.entries = task.offsets.subtracted_from(entries)

    def error(self, x: LowRank) -> float:
        """The root mean square error of a low-rank matrix; in units of the columns' deviations where scaled."""
        entries = self.entries
        error = norm(sums_of_products(x.weighted, x.V, entries.rows, entries.columns) - entries.values)
        return math.sqrt((error**2 + self.fixed) / max(self.count, 1))


@dataclass
class Candidate:
    """A choice with the strengths that were tried: for each the error, and the matrix of each split."""

    choice: HiddenEntryChoice
    tried: dict[float, tuple[float, list[LowRank]]] = field(default_factory=dict, repr=False)
    alpha: float = math.nan

    @property
    def error(self) -> float:
        """The least error."""
        return min((error for error, _ in self.tried.values()), default=math.inf)

    @property
    def price(self) -> float:
        """The error by which it is compared with others."""
        return self.error * (PLAIN_MUST_GAIN if self.choice.center is None else 1.0)

    def nearest(self, alpha: float) -> list[Any]:
        """The matrices of the strength that is nearest."""
        return self.tried[min(self.tried, key=lambda other: abs(math.log(other / alpha)))][1]


class HiddenEntrySearch:
    """Rough fits that are validated on the same hidden entries.

    Parameters
    ----------
    observed : Observed
        The known entries.
    solver : Solver, optional
        Of the rough fits.
    random_state : int or Generator
        Of what is hidden.
    end : float
        When to try no more, by the monotonic clock.
    """

    def __init__(self, observed: Observed, solver: Any, random_state: Any, end: float = math.inf) -> None:
        random = generator(random_state)
        first = observed.split(HELD_OUT, random)
        self.n_hidden = first[1].n_observed
        repeats = 1 if is_ratings(observed) or self.n_hidden >= ENOUGH else SPLITS
        self.splits = [first, *(observed.split(HELD_OUT, random) for _ in range(repeats - 1))]
        self.solver, self.random_state, self.end = solver, random_state, end
        self.growth = math.sqrt(observed.n_observed / first[0].n_observed)  # as noise grows
        self.tasks: dict[str | None, list[tuple[Centred, HiddenEntries]]] = {}

    def best(self, space: SearchSpace) -> Candidate:
        """The choice and strength that predict best, one thing changed at a time."""
        best = self.tried(space.first, None)
        others: dict[str, Sequence[Any]]
        others = {"penalty": space.penalties, "center": space.centers, "max_rank": space.ranks}
        for name, values in others.items():
            for value in values[1:]:
                if time.monotonic() < self.end:
                    changed: dict[str, Any] = {name: value}
                    found = self.tried(replace(best.choice, **changed), best)
                    best = min(best, found, key=lambda candidate: candidate.price)
        return best

    def tried(self, choice: HiddenEntryChoice, last: Candidate | None) -> Candidate:
        """A choice at strengths around the best of the last one."""
        tasks, found = self._tasks(choice), Candidate(choice)
        loss, weight = tasks[0][0].loss, weight_of(choice.penalty)
        most = largest_strength(loss, weight) or 1.0
        starts: list[Any] = [None] * len(tasks)
        if last is None or last.choice.center != choice.center:
            first = noise_alpha(loss.observed, choice.max_rank, weight)
            if choice.center is None:  # the level of all entries is a matrix of rank one
                starts = [rank_one_fit(task.loss.observed) for task, _ in tasks]
        else:
            first, starts = last.alpha, last.nearest(last.alpha)

        def error(alpha: float) -> float:
            if found.tried and time.monotonic() > self.end:
                return math.inf
            penalty = with_alpha(choice.penalty, alpha)
            begin = found.nearest(alpha) if found.tried else starts
            fits = [self._fit(*task, penalty, choice.max_rank, x) for task, x in zip(tasks, begin, strict=True)]
            mean = math.sqrt(np.mean([one**2 for one, _ in fits]))
            found.tried[alpha] = mean, [x for _, x in fits]
            return mean

        limits = {"least": REACH * most, "most": most}
        found.alpha = best_on_log_grid(
            error, min(max(first, REACH * most), most), ratio=RATIO, patience=1, **limits
        )
        return found

    def _fit(
        self, task: Centred, hidden: HiddenEntries, penalty: Any, max_rank: int | None, x: Any
    ) -> tuple[float, LowRank]:
        """A rough fit: it ends when the error on the hidden entries has settled."""
        loss, last, quiet = task.loss, math.inf, 0
        solver = self.solver or default_solver(loss, penalty, max_rank, self.random_state)
        x = loss.start() if x is None else x if max_rank is None else x.truncate(max_rank)
        for iterate in islice(solver.iterates(loss, penalty, loss.point(x)), MOST_STEPS):
            if iterate is None:
                continue
            x = iterate.point.x
            error = hidden.error(x)
            quiet = quiet + 1 if abs(error - last) <= SETTLED * error and iterate.optimality < math.inf else 0
            last = error
            if quiet >= 2:
                break
        return last, x

    def _tasks(self, choice: HiddenEntryChoice) -> list[tuple[Centred, HiddenEntries]]:
        if choice.center not in self.tasks:
            tasks = [(Centred.of(train, choice.center, choice.scale), hidden) for train, hidden in self.splits]
            self.tasks[choice.center] = [(task, HiddenEntries(task, hidden)) for task, hidden in tasks]
        return self.tasks[choice.center]
