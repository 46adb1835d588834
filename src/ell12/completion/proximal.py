"""nmAPG for matrices of low rank: with a warm block of singular vectors, on factors, with full decompositions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ell12.backend import count_true, inner, namespace
from ell12.completion.forms import DenseForm, Estimate, FactoredForm, Terms, combined
from ell12.completion.leading import FullTriplets, WarmBlock
from ell12.completion.loss import CompletionLoss
from ell12.completion.low_rank import LowRank
from ell12.penalties import Spectral
from ell12.protocols import Iterate, Point

ETA, DELTA = 0.8, 1e-4  # nmAPG's memory of the running average, and its least descent


class Step(NamedTuple):
    """Where a proximal step led."""

    estimate: Estimate
    objective: float
    distance: float
    capped: bool
    is_full: bool  # the block had no vector to spare, so that directions may be missing

    def iterate(self) -> Iterate:
        """The step as the loop wants it; one that may miss directions is never taken for optimal.

        A distance that rounding alone may have made, in single precision above all, counts as none.
        """
        x = self.estimate.x
        rounding = 4 * float(namespace(x.s).finfo(x.s.dtype).eps) * x.norm()
        optimality = math.inf if self.is_full else max(self.distance - rounding, 0.0)
        return Iterate(self.estimate.point, self.objective, optimality, capped=self.capped)


class MatrixStep:
    """``Y -> prox(Y - S(Y - O) + slope, 1)`` for a combination Y of estimates; the Lipschitz constant is 1."""

    def __init__(self, loss: Any, form: Any, triplets: Any, max_rank: int | None = None) -> None:
        self.loss, self.form, self.triplets, self.max_rank = loss, form, triplets, max_rank

    def __call__(self, terms: Terms, penalty: Any, slope: LowRank | None = None) -> Step:
        """The step from a combination of estimates."""
        y = self.form.combine(terms)
        U, s, V = self.triplets(self.form.target(y, slope))
        allowed = s.shape[0] if self.max_rank is None else min(self.max_rank, s.shape[0])
        s = penalty.prox_values(s[:allowed], 1.0)
        rank = count_true(s > 0)
        self.triplets.keep(rank)
        new = self.form.estimate(LowRank(U[:, :rank], s[:rank], V[:, :rank]))
        value = self.loss.value(new.point) + penalty.value_of(new.x.s)
        return Step(new, value, self.form.distance(new, y), rank == self.max_rank, self.triplets.is_full)


def nonmonotone(take_step: Callable[[Terms], Step], x: Estimate, value: float, restart: bool) -> Iterator[Iterate]:
    """The iterates of nmAPG (Li & Lin, NIPS 2015) from an estimate of this objective.

    With ``restart`` the momentum begins anew where it leads uphill (O'Donoghue & Candès,
    doi:10.1007/s10208-013-9150-3); what makes nmAPG converge does not depend on the momentum.
    """
    previous = z = x
    t_previous, t = 0.0, 1.0
    average, q = value, 1.0
    while True:
        momentum, pull = (t_previous - 1) / t, t_previous / t
        terms = [(1 + momentum, x), (-momentum, previous)]
        if z is not x:  # after an accepted step it is
            terms = [(1 + momentum - pull, x), (-momentum, previous), (pull, z)]
        step = take_step(terms)
        z = step.estimate
        if not step.objective <= average - DELTA * step.distance**2:
            plain = take_step([(1.0, x)])
            if not step.objective <= plain.objective:
                step = plain
        uphill = restart and turns_back(step.estimate, terms, x)
        x, previous = step.estimate, x
        t_previous, t = (0.0, 1.0) if uphill else (t, (1 + math.sqrt(1 + 4 * t * t)) / 2)
        q_previous, q = q, ETA * q + 1
        average = (ETA * q_previous * average + step.objective) / q
        yield step.iterate()


@dataclass(frozen=True)
class BlockAPG:
    """nmAPG on dense matrices, the prox from a warm block of singular vectors.

    The engine where a quarter or more of the entries is known. The block holds a few vectors more than the prox
    keeps, all carried from step to step, so that one pass of subspace iteration a step is enough.

    Parameters
    ----------
    max_rank : int, optional
        The largest rank allowed.
    random_state : int or Generator, optional
        Of the block's first columns; 0 by default, so that runs repeat.
    """

    max_rank: int | None = None
    random_state: Any = 0

    def __post_init__(self) -> None:
        check_rank(self.max_rank)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        return _run(
            loss, penalty, start, DenseForm(loss), WarmBlock(start.x, rng=self.random_state), self.max_rank
        )


@dataclass(frozen=True)
class FactoredAPG:
    """nmAPG on factors beside a sparse residual: the paper's structure, where little of a large matrix is known.

    A step costs products of the known entries and of the factors with a few vectors; no dense matrix is made.

    Parameters
    ----------
    max_rank, random_state
        As in `BlockAPG`.
    """

    max_rank: int | None = None
    random_state: Any = 0

    def __post_init__(self) -> None:
        check_rank(self.max_rank)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        block = WarmBlock(start.x, rng=self.random_state)
        return _run(loss, penalty, start, FactoredForm(loss), block, self.max_rank)


@dataclass(frozen=True)
class FullSVD:
    """nmAPG on dense matrices with a full decomposition each step: the paper's method, and the others' reference.

    Parameters
    ----------
    max_rank : int, optional
        The largest rank allowed.
    """

    max_rank: int | None = None

    def __post_init__(self) -> None:
        check_rank(self.max_rank)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        return _run(loss, penalty, start, DenseForm(loss), FullTriplets(), self.max_rank, restart=False)


def _run(
    loss: CompletionLoss,
    penalty: Any,
    start: Point,
    form: Any,
    triplets: Any,
    max_rank: int | None,
    restart: bool = True,
) -> Iterator[Iterate]:
    check_problem(loss, penalty)
    step = MatrixStep(loss, form, triplets, max_rank)
    x = start.x if max_rank is None else start.x.truncate(max_rank)
    first = form.estimate(x)
    value = loss.value(first.point) + penalty.value(x)
    return nonmonotone(lambda terms: step(terms, penalty), first, value, restart)


def turns_back(new: Estimate, terms: Terms, x: Estimate) -> bool:
    """Whether the step from an extrapolated point goes against the move from x, seen at the known entries."""
    y = combined([(c, e.prediction) for c, e in terms])
    return inner(y - new.prediction, new.prediction - x.prediction) > 0


def check_problem(loss: Any, penalty: Any) -> None:
    """Raise unless the loss is one of a matrix and the penalty one of its singular values."""
    if not isinstance(loss, CompletionLoss):
        raise TypeError(f"this solver needs a CompletionLoss, got {type(loss).__name__}")
    if not isinstance(penalty, Spectral):
        raise TypeError(f"this solver needs a penalty of singular values such as SpectralL12, got {penalty!r}")


def check_rank(max_rank: Any, name: str = "max_rank") -> None:
    """Raise unless the bound on the rank is None or a positive integer."""
    if max_rank is None:
        return
    if isinstance(max_rank, bool) or not hasattr(max_rank, "__index__") or max_rank < 1:
        raise ValueError(f"{name} must be an integer >= 1 or None, got {max_rank!r}")
