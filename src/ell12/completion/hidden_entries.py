"""The strength of a completion: where a path begins, what noise asks for, what hidden entries choose."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from typing import Any

import numpy as np

from ell12.backend import as_numpy, inner, namespace, norm
from ell12.checks import check_counts, check_word, generator
from ell12.completion.least_squares import AlternatingLeastSquares
from ell12.completion.low_rank import LowRank, sums_of_products
from ell12.completion.matrix_apg import BlockAPG, FactoredAPG
from ell12.completion.observed import Observed, has_segments
from ell12.completion.offsets import Centred, Sides, quotient
from ell12.completion.singular_vectors import SPARE, WarmBlock
from ell12.completion.squared_error import CompletionLoss
from ell12.path import best_on_log_grid
from ell12.penalties import Spectral, SpectralL12
from ell12.penalties.spectral import spectral_norm
from ell12.protocols import with_alpha

CENTERS, SCALES = ("mean", "columns", "biases"), ("columns",)
HELD_OUT = 0.1  # the share of the known entries that is hidden at a time, here and for intervals
# Tables have this many such parts. With a single one the error is 4 % larger (at worst 38 %) where half of the
# entries is missing, and the same where less is (benchmarks/results/completion_search).
SPLITS = 3
# Columns of a table whose standard deviations differ by more than this factor, beyond two standard errors, are
# brought to one scale. Of the tables that chose it (benchmarks/results/tables), a photograph just below it is
# predicted 4 to 5 % better unscaled; above it scaling costs 5 % at most and gains up to 56 %.
ONE_UNIT_UP_TO = 3.0
# The tolerance of fits that are only compared: the errors are those of a third of it, in 0.8 of the time.
ROUGH_TOL = 3e-2


def rank_one_fit(observed: Observed, tol: float | None = None) -> LowRank:
    """The matrix of rank one that is nearest to the known entries, by alternating least squares.

    It ends where a sweep explains less than a share ``tol`` more of the squared entries; by default half of the
    digits.

    Examples
    --------
    >>> from ell12 import Observed
    >>> from ell12.completion.hidden_entries import rank_one_fit
    >>> rank_one_fit(Observed([0, 1], [0, 1], [2.0, 2.0], (2, 2))).rank
    1
    """
    values, matrix = observed.values, observed.matrix()
    xp, known = namespace(values), observed.matrix(values * 0 + 1)
    v = WarmBlock(LowRank.zeros(observed.shape, like=values), rng=0)(matrix)[2][:, 0]
    least = (math.sqrt(float(xp.finfo(values.dtype).eps)) if tol is None else tol) * inner(values, values)
    explained, last = 0.0, -math.inf
    while explained - last > least:
        u = quotient(matrix @ v, known @ (v * v))
        right = matrix.T @ u
        v = quotient(right, known.T @ (u * u))
        explained, last = inner(v, right), explained
    return LowRank.from_factors(u[:, None], v[:, None])


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
    zero = loss.point(loss.start())
    if l2_weight < 1:
        return spectral_norm(loss.gradient(zero)) / (1 - l2_weight)
    single = loss.point(rank_one_fit(loss.observed))
    rounding = 100 * float(namespace(zero.prediction).finfo(zero.prediction.dtype).eps)
    if loss.value(single) <= rounding**2 * loss.value(zero):  # rank one fits all there is to fit
        return 0.0
    return spectral_norm(loss.gradient(single))


def noise_alpha(observed: Observed, least: float = 0.0) -> float:
    """The size that pure noise would have: ``sd (sqrt(N/m) + sqrt(N/n))`` with N entries known of m x n.

    That is about the spectral norm of N independent errors of standard deviation sd, anywhere. Here sd is what the
    best matrix of rank one leaves, so that structure counts as noise: a good strength for ratings. The noise is
    taken for at least the share ``least`` of the entries' size.

    Examples
    --------
    >>> from ell12 import Observed
    >>> from ell12.completion.hidden_entries import noise_alpha
    >>> noise_alpha(Observed([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 0.0, 0.0, 1.0], (2, 2))) > 0
    True
    """
    loss = CompletionLoss(observed)
    residual = loss.residual(loss.point(rank_one_fit(observed, tol=ROUGH_TOL**2)))
    square = max(inner(residual, residual), least**2 * inner(observed.values, observed.values))
    return alpha_of_noise(square, observed)


def alpha_of_noise(square: float, observed: Any) -> float:
    """`noise_alpha` where a matrix of rank one leaves this sum of squares."""
    m, n = observed.shape
    return math.sqrt(square) * (1 / math.sqrt(m) + 1 / math.sqrt(n))


@dataclass(frozen=True)
class Candidate:
    """What is fixed of a completion, with its strength, fitted to what is left of each split.

    ``tasks`` pairs the centred entries of each split with those that are hidden, as the low-rank matrix should
    have them; they are the same for all strengths.
    """

    center: str | None
    scale: str | None
    penalty: Spectral
    max_rank: int | None
    tasks: Sequence[tuple[Centred, Observed]] = ()
    alpha: float = math.nan
    fits: Sequence[LowRank] = ()
    error: float = math.inf


SearchSpace = dict[str, Sequence[Any]]


def search_space(observed: Observed, *, center: Any, penalty: Any, max_rank: Any, scale: Any) -> SearchSpace:
    """What to choose from: what was asked for, and for each that is "auto" what suits ratings, or a table.

    Tables of measurements are centred by columns; a matrix of low rank is best left as it is. Of ratings biases
    say most, and the rank is bounded: without a bound, steps would need singular vectors in number.
    """
    for name, value, words in (("center", center, CENTERS), ("scale", scale, SCALES)):
        if value is not None:
            check_word(value, name, "auto", *words)
    is_auto = isinstance(max_rank, str) and max_rank == "auto"
    check_counts(least=1, max_rank=None if is_auto else max_rank)
    is_table = observed.is_table
    weights, ranks, centers = (
        ((1.0, 0.5), (None,), ("columns", None)) if is_table else ((0.5,), (8, 4, 16), ("biases",))
    )
    if scale == "auto":
        scale = "columns" if is_table and has_own_units(observed) else None
    return {
        "center": centers if center == "auto" else (center,),
        "scale": (scale,),
        "penalty": [SpectralL12(l2_weight=weight) for weight in weights] if penalty is None else [penalty],
        "max_rank": ranks if is_auto else (max_rank,),
    }


def first_choice(space: SearchSpace) -> Candidate:
    """What is taken where nothing is hidden."""
    return Candidate(**{name: values[0] for name, values in space.items()})


def has_own_units(observed: Observed) -> bool:
    """Whether the columns of a table differ so much in scale that they are taken for different units."""
    sides = Sides(observed)
    deviations, counts = map(as_numpy, (sides.column_moments(observed.values)[2], sides.counts[1]))
    counts, deviations = counts[deviations > 0], deviations[deviations > 0]
    if deviations.size < 2:
        return False
    errors = np.sqrt(2 / counts)  # two standard errors of the logarithm of a deviation
    logs = np.log(deviations)
    return bool(np.max(logs - errors) - np.min(logs + errors) > math.log(ONE_UNIT_UP_TO))


def hidden_from(task: Centred, entries: Observed) -> Observed:
    """Entries that were hidden from a task, as its low-rank matrix should have them."""
    xp, scales = namespace(entries.values), task.offsets.scales
    if scales is not None:  # nothing can be predicted in a column whose unit is not known
        entries = entries.select(as_numpy(~xp.isnan(xp.take(scales, entries.columns, axis=0))))
    return task.offsets.subtracted_from(entries)


def hidden_error(x: LowRank, hidden: Observed) -> float:
    """The root mean square error of a low-rank matrix; in units of the columns' deviations where scaled."""
    miss = norm(sums_of_products(x.weighted, x.V, hidden.rows, hidden.columns) - hidden.values)
    return miss / math.sqrt(max(hidden.n_observed, 1))


ERROR = attrgetter("error")


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

    def __init__(self, observed: Observed, solver: Any, random_state: Any, max_iter: int, end: float) -> None:
        random = generator(random_state)
        self.splits = [observed.split(HELD_OUT, random) for _ in range(SPLITS if observed.is_table else 1)]
        self.n_hidden = self.splits[0][1].n_observed
        self.solver, self.random_state, self.max_iter, self.end = solver, random_state, max_iter, end

    def best(self, space: SearchSpace) -> Candidate:
        """The choice and strength that predict best, one thing changed at a time.

        The centre is chosen first, at the strength that noise asks for.
        """
        begun = [self._begun(replace(first_choice(space), center=center)) for center in space["center"]]
        best = self._searched(min(begun, key=ERROR))
        for name in ("penalty", "max_rank"):
            for value in space[name][1:]:
                if time.monotonic() < self.end:
                    other = self._searched(replace(best, **{name: value}))
                    best = min(best, other, key=ERROR)
        return best

    def _begun(self, choice: Candidate) -> Candidate:
        """A choice at the strength that noise asks for."""
        fitted = [(Centred.of(train, choice.center, choice.scale), hidden) for train, hidden in self.splits]
        tasks = [(task, hidden_from(task, hidden)) for task, hidden in fitted]
        alpha = noise_alpha(tasks[0][0].loss.observed, least=ROUGH_TOL) or 1.0
        return self._fitted(replace(choice, tasks=tasks, fits=[task.loss.start() for task, _ in tasks]), alpha)

    def _searched(self, begun: Candidate) -> Candidate:
        """A candidate at the best strength, found from the one where it begins."""
        tried: list[Candidate] = []

        def score(alpha: float) -> float:
            if tried and time.monotonic() > self.end:
                return math.inf
            nearest = min(tried or [begun], key=lambda other: abs(math.log(other.alpha / alpha)))
            tried.append(self._fitted(nearest, alpha))
            return tried[-1].error

        alpha = best_on_log_grid(score, begun.alpha, least=ROUGH_TOL * begun.alpha, gain=ROUGH_TOL**2)
        return replace(min(tried, key=ERROR), alpha=alpha)

    def _fitted(self, near: Candidate, alpha: float) -> Candidate:
        """A candidate fitted at a strength, from the matrices of another one."""
        penalty, pairs = with_alpha(near.penalty, alpha), zip(near.tasks, near.fits, strict=True)
        fits = [self._fit(task.loss, penalty, near.max_rank, x) for (task, _), x in pairs]
        errors = [hidden_error(x, hidden) for x, (_, hidden) in zip(fits, near.tasks, strict=True)]
        return replace(near, alpha=alpha, fits=fits, error=norm(np.array(errors)) / math.sqrt(len(errors)))

    def _fit(self, loss: CompletionLoss, penalty: Any, max_rank: int | None, x: LowRank) -> LowRank:
        """The matrix where the violation is at most `ROUGH_TOL` by the solver's own estimate."""
        solver = self.solver or default_solver(loss, penalty, max_rank, self.random_state)
        x = x.truncate(max_rank)
        iterates = filter(None, islice(solver.iterates(loss, penalty, loss.point(x)), self.max_iter))
        for iterate in iterates:
            x = iterate.point.x
            if iterate.optimality <= ROUGH_TOL * penalty.alpha:
                break
        return x


def default_solver(loss: Any, penalty: Spectral, max_rank: int | None, random_state: Any) -> Any:
    """The solver that suits the problem."""
    observed = loss.observed
    if not has_segments(observed.values) or observed.suits_dense:
        return BlockAPG(max_rank, random_state)
    # A step on factors multiplies with SPARE columns more than the rank, a sweep with as many as its square.
    if max_rank is not None and max_rank <= SPARE and isinstance(penalty, SpectralL12) and penalty.strength:
        return AlternatingLeastSquares(max_rank, random_state=random_state)
    return FactoredAPG(max_rank, random_state)
