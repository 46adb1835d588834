"""The methods of `rivals.py`: what each is tuned by, how it is fitted to known ratings, and what it predicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import ell12
from ell12.completion import AlternatingLeastSquares, CompletionLoss, FactoredAPG, Observed
from ell12.completion.hidden_entries import largest_strength
from ell12.completion.offsets import Offsets, fit_offsets
from ell12.minimization import Result, Run, minimize
from ell12.penalties import NoPenalty, SpectralL12, SpectralLogSum
from ell12_paper.rivals import (
    ARSSM3F,
    ER1MP,
    AISImpute,
    FaNCL,
    LMaFit,
    SketchyCGM,
)
from timing import load

FALL, LEAST = 0.8, 0.003  # A grid of strengths falls by this factor, down to this share of its first.
TOL, MAX_ITER = 5e-2, 100  # while choosing
LAST_TOL, LAST_MAX_ITER = 1e-3, 1000  # for the last fit
SETTLED = (
    1e-6  # AIS-Impute and FaNCL also end, by their own rule, at a relative change of the objective of this size.
)
RANKS = (1, 2, 3, 4, 6, 8, 12, 16)
BOUNDS = (1, 2, 4, 8, 16, 32)  # on the rank, under a penalty
WEIGHTS = (1.0, 0.75, 0.5, 0.25, 0.0)
THETAS = (10.0, 30.0, 60.0, 100.0, 180.0, 320.0, 600.0)
RIDGES = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
RADII = tuple(100 * 2.0 ** (k / 2) for k in range(16))
SKETCH = 40  # The rank of SketchyCGM's answer, fixed to save time; less biases 80 did as well, 20 worse.
# Ends of grids beyond which there is nothing: no subtracted norm or all of it, no ridge, a rank of one.
NATURAL = {("l2_weight", 0.0), ("l2_weight", 1.0), ("ridge", 0.0), ("rank", 1), ("bound", 1)}


def settled(history: dict[str, list[float]]) -> bool:
    """The published rule of AIS-Impute and FaNCL."""
    objective = history["objective"]
    return len(objective) > 1 and abs(objective[-1] - objective[-2]) <= SETTLED * abs(objective[-2])


@dataclass(frozen=True)
class Problem:
    """Known ratings, and what is taken off them first."""

    known: Observed
    center: str | None

    @cached_property
    def offsets(self) -> Offsets:
        return fit_offsets(self.known, self.center)

    @cached_property
    def biases(self) -> Offsets:
        return fit_offsets(self.known, "biases")

    @cached_property
    def loss(self) -> CompletionLoss:
        return CompletionLoss(self.offsets.subtracted_from(self.known))

    def finish(self, predicted: Any, rows: Any, columns: Any) -> Any:
        """Predictions as they count: one rule for all methods.

        A user or an item without a known rating has the mean and the bias of the other; all is cut to the range.
        """
        seen = np.bincount(self.known.rows, minlength=self.known.shape[0]) > 0
        rated = np.bincount(self.known.columns, minlength=self.known.shape[1]) > 0
        fallback = self.biases.entries(rows, columns)
        predicted = np.where(seen[rows] & rated[columns], predicted, fallback)
        return np.clip(predicted, self.known.values.min(), self.known.values.max())

    def real(self, x: Any, rows: Any, columns: Any) -> Any:
        """What a matrix and the offsets say."""
        return x.entries(rows, columns) + self.offsets.entries(rows, columns)


@dataclass(frozen=True)
class Chain:
    """One parameter in the order in which it is tried; all others are fixed in ``label``."""

    label: dict[str, Any]
    parameter: str
    values: Callable[[Problem], Sequence[float]]
    make: Callable[[float], tuple[Any, Any]]  # penalty and solver
    steps: int = 0  # The most steps of a method whose number of steps is chosen too; 0 runs it to its end.
    warm: bool = True  # whether each begins at the last
    patience: int = 3  # It ends when this many values in a row have brought nothing better.
    last_solver: Any = None  # a rival's, for the last fit; ours minimises the same and chooses in less time
    predictors: tuple[str, ...] = ("real",)

    @property
    def key(self) -> str:
        """What chains share that try the same values in the same way."""
        return f"{self.parameter} {self.make(1.0)} {self.steps}"

    def run(self, problem: Problem, value: float, x0: Any, *, last: bool, **options: Any) -> Result:
        """One fit. The tolerance is a share of the penalty's slope at zero, which for log-sum is alpha / theta."""
        penalty, solver = self.make(value)
        loss = problem.loss
        share = 1.0 / penalty.theta if isinstance(penalty, SpectralLogSum) else 1.0
        tol = 0.0 if self.steps else share * (LAST_TOL if last else TOL)
        solver = self.last_solver if last and self.last_solver is not None else solver
        run = Run(callback=settled) if solver is self.last_solver else None
        options = {"max_iter": self.steps or (LAST_MAX_ITER if last else MAX_ITER), "run": run} | options
        return minimize(loss, penalty, x0 if self.warm else None, solver, tol=tol, **options)


@dataclass(frozen=True)
class Method:
    """A method of the table: a name, who it is from, and its chains."""

    name: str
    group: str
    chains: Callable[[], list[Chain]]
    centers: tuple[str | None, ...] = (None, "biases")


def strengths(l2_weight: float) -> Callable[[Problem], Sequence[float]]:
    """Falling strengths from where the solution is zero, or of rank one where that is free."""
    return lambda problem: falling(largest_strength(problem.loss, l2_weight))


def slopes(theta: float | None) -> Callable[[Problem], Sequence[float]]:
    """Falling slopes at zero of log-sum, from where the prox of the known ratings is zero.

    None is the published theta, the root of alpha, which is then the slope too.
    """

    def values(problem: Problem) -> Sequence[float]:
        size = largest_strength(problem.loss, 0.0)
        return falling(size if theta is None else max(size, ((size + theta) / 2) ** 2 / theta))

    return values


def falling(first: float) -> list[float]:
    return [first * FALL**k for k in range(int(math.log(LEAST) / math.log(FALL)) + 1)]


def l12(solver: Any, l2_weight: float, /, last_solver: Any = None, **label: Any) -> Chain:
    return Chain(
        label, "alpha", strengths(l2_weight), lambda a: (SpectralL12(a, l2_weight), solver),
        last_solver=last_solver,
    )  # fmt: skip


def log_sum(solver: Any, theta: float | None, /, last_solver: Any = None, **label: Any) -> Chain:
    def make(slope: float) -> tuple[Any, Any]:
        scale = slope if theta is None else theta
        return SpectralLogSum(slope * scale, scale), solver

    return Chain(label, "slope", slopes(theta), make, last_solver=last_solver)


def by_rank(make: Callable[[int], Any], steps: int, penalty: Any = None, **label: Any) -> Chain:
    penalty = NoPenalty() if penalty is None else penalty
    predictors = ("levels", "between") if "ridge" in label else ("real",)
    return Chain(
        label, "rank", lambda _: RANKS, lambda r: (penalty, make(int(r))),
        steps=steps, warm=False, patience=5, predictors=predictors,
    )  # fmt: skip


def sketchy() -> list[Chain]:
    return [
        Chain(
            {}, "radius", lambda _: RADII, lambda a: (NoPenalty(), SketchyCGM(a, SKETCH)),
            steps=100, warm=False, patience=3,
        )
    ]  # fmt: skip


def pursuit() -> list[Chain]:
    return [Chain({}, "most", lambda _: (120,), lambda r: (NoPenalty(), ER1MP(int(r))), steps=120, warm=False)]


PAPER, OURS, OTHERS = "the paper's rivals", "ours", "references"
METHODS = {
    method.name: method
    for method in (
        Method("AIS-Impute", PAPER, lambda: [l12(FactoredAPG(), 0.0, last_solver=AISImpute(decay=0.0))]),
        Method("SketchyCGM", PAPER, sketchy),
        Method("ARSS-M3F, least squares", PAPER, lambda: [by_rank(lambda r: ARSSM3F(r, final_steps=80), 400)]),
        Method("LMaFit", PAPER, lambda: [
            by_rank(lambda r, s=s: LMaFit(r, strategy=s), 200, strategy=s) for s in ("fixed", "increasing")
        ]),
        Method("ER1MP", PAPER, pursuit),
        Method("FaNCL, theta = sqrt(alpha)", PAPER, lambda: [log_sum(FactoredAPG(), None, last_solver=FaNCL())]),
        Method("FaNCL, theta chosen", PAPER, lambda: [
            log_sum(FactoredAPG(), t, last_solver=FaNCL(), theta=t) for t in THETAS
        ]),
        Method("nuclear norm", OURS, lambda: [l12(FactoredAPG(), 0.0)]),
        Method("l1-2", OURS, lambda: [l12(FactoredAPG(), 1.0)]),
        Method("l1-2, weight chosen", OURS, lambda: [l12(FactoredAPG(), w, l2_weight=w) for w in WEIGHTS]),
        Method("log-sum, theta = sqrt(alpha)", OURS, lambda: [log_sum(FactoredAPG(), None)]),
        Method("log-sum, theta chosen", OURS, lambda: [log_sum(FactoredAPG(), t, theta=t) for t in THETAS]),
        Method("nuclear norm, rank bounded", OURS, lambda: [
            l12(AlternatingLeastSquares(r), 0.0, bound=r) for r in BOUNDS
        ]),
        Method("l1-2, rank bounded", OURS, lambda: [
            l12(AlternatingLeastSquares(r), 1.0, bound=r) for r in BOUNDS
        ]),
        Method("L12Imputer()", OURS, list, ("auto",)),
        Method("the mean", OTHERS, list, ("mean",)),
        Method("biases alone", OTHERS, list, ("biases",)),
        Method("cmfrec", OTHERS, list),
    )
}  # fmt: skip


# cmfrec is tuned over the rank, the strength, and whether the strength counts once or for each rating.
CMFREC_RANKS = (1, 2, 4, 8)
CMFREC_STRENGTHS = {False: (4, 6, 9, 13), True: (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)}


def cmfrec_grid() -> Iterator[dict[str, Any]]:
    for scaled, values in CMFREC_STRENGTHS.items():
        for rank in CMFREC_RANKS:
            for strength in values:
                yield {"k": rank, "lambda_": strength, "scale_lam": scaled}


def fit_cmfrec(problem: Problem, settings: dict[str, Any]) -> Callable[[Any, Any], Any] | str:
    """Predictions of cmfrec, which has biases of its own, penalised with the factors; or why there are none."""
    peer, reason = load("cmfrec")
    if peer is None:
        return reason
    has = problem.center == "biases"
    model = peer.CMF(
        **settings, user_bias=has, item_bias=has, center=has, nthreads=1, use_float=False, verbose=False,
        random_state=0,
    )  # fmt: skip
    model.fit(problem.known.sparse().tocoo())
    return model.predict


def fit_imputer(problem: Problem) -> tuple[Callable[[Any, Any], Any], dict[str, Any], int]:
    model = ell12.L12Imputer(random_state=0).fit(problem.known.sparse())
    chosen = {"l2_weight": model.penalty_.l2_weight, "bound": model.max_rank_, "center": model.center_}
    return model.predict, chosen | {"alpha": float(model.alpha_)}, model.completion_.x.rank
