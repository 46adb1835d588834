"""Where methods end and what a step costs: what the paper says of it, and which answers are global minima."""

from __future__ import annotations

import math
from itertools import pairwise, product
from statistics import median
from typing import Any

import numpy as np

from ell12 import Run, TotalVariationL12, certify, datasets
from ell12.completion import CompletionLoss, FactoredAPG, Observed
from ell12.losses import SquaredLoss
from ell12.minimization import minimize
from ell12.penalties import L12, SpectralL12
from ell12.restoration import GrowingADMM, denoise_tv
from ell12.solvers import DCA, NonmonotoneAPG, SequentialConvex

CONVERGENCE, ADMM, GLOBAL, MATRIX = "convergence", "ADMM", "global minima", "matrix step"
ETA = 0.8  # nmAPG's memory
# How frequencies of the dictionary are drawn -> whether one serves a whole row, as in the paper's source, so that
# neighbouring columns are alike.
DRAWS = {"one draw per entry": False, "one draw per row": True}
SOLVERS: dict[str, Any] = {"DCA": DCA(), "SCP": SequentialConvex(), "nmAPG": NonmonotoneAPG(), "the default": None}
# Repeats of nmAPG's runs and of the searches for global minima; the side of a matrix, its known entries, its rank.
SIZES = {"quick": (1, 2, 1000, 50_000, 20), "paper": (3, 20, 4000, 400_000, 20)}


def trials(preset: str, seed: int) -> list[dict[str, Any]]:
    """The settings of every trial."""
    runs, searches, side, known, rank = SIZES[preset]
    found: list[dict[str, Any]] = [
        {"study": CONVERGENCE, "setup": setup, "i": i, "repeat": repeat, "seed": seed + repeat}
        for repeat, setup, i in product(range(runs), datasets.COMPRESSED_SENSING_SETUPS, (0, 2))
    ]
    for threshold in (0.01, 0.1, 1.0, None):  # None: the weight grows, and with it the threshold falls
        found.append({"study": ADMM, "threshold": threshold, "alpha": 0.05, "max_iter": 400, "seed": seed})
    for repeat, draws, nonzero, part in product(range(searches), DRAWS, (5, 10), (0.1, 0.03)):
        problem = {"study": GLOBAL, "draws": draws, "nonzero": nonzero, "part": part, "max_nodes": 300}
        found.append(problem | {"repeat": repeat, "seed": seed + repeat})
    base = {"side": side, "known": known, "rank": rank}
    for varied, factor, repeat in product(base, (1, 2, 4), range(3)):
        settings = {"study": MATRIX, "varied": varied, "repeat": repeat, "seed": seed + repeat}
        found.append(settings | base | {varied: factor * base[varied]})
    return found


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """One trial."""
    return {CONVERGENCE: _critical, ADMM: _admm, GLOBAL: _global, MATRIX: _matrix}[settings["study"]](settings)


def _critical(settings: dict[str, Any]) -> dict[str, Any]:
    """How stationary nmAPG ends, and whether the running average of its objective ever rises."""
    problem = datasets.compressed_sensing(settings["seed"], setup=settings["setup"], n_samples=100)
    penalty = L12(0.01 * 0.25 ** settings["i"])
    loss, solver = SquaredLoss(problem.A, problem.b), NonmonotoneAPG(eta=ETA)
    result = minimize(loss, penalty, solver=solver, tol=1e-8, max_iter=10**5)
    objective = result.history["objective"]
    average, q, averages = objective[0], 1.0, [objective[0]]
    for value in objective[1:]:
        q_next = ETA * q + 1
        average, q = (ETA * q * average + value) / q_next, q_next
        averages.append(average)
    rises = [after / before - 1 for before, after in pairwise(averages)]
    return {"stationarity": result.stationarity, "n_iter": result.n_iter, "largest_rise": float(max(rises))}


def _admm(settings: dict[str, Any]) -> dict[str, Any]:
    """How far ADMM on the row-wise penalty still moves the image in each of its last hundred steps."""
    clean = datasets.phantom(64)
    noisy = clean + 0.05 * np.random.default_rng(settings["seed"]).standard_normal(clean.shape)
    growth = 1.05 if settings["threshold"] is None else math.nextafter(1, 2)  # that is, no growth
    solver = GrowingADMM(growth, first_threshold=settings["threshold"])
    last, moves = noisy, []

    def move(x: Any) -> float:
        nonlocal last
        moves.append(float(np.linalg.norm(x - last) / np.linalg.norm(x)))
        last = x.copy()
        return moves[-1]

    options: dict[str, Any] = {"penalty": TotalVariationL12(l2_weight=1.0, smoothing=0.0), "solver": solver}
    options |= {"tol": 0.0, "max_iter": settings["max_iter"], "run": Run(measure={"move": move})}
    result = denoise_tv(noisy, settings["alpha"], return_result=True, **options).result
    return {"objective": result.objective, "least_move": min(moves[-100:])}


def _global(settings: dict[str, Any]) -> dict[str, Any]:
    """How far each method ends above the best value known, and whether that is proved to be the minimum."""
    problem = datasets.compressed_sensing(
        settings["seed"],
        n_samples=64,
        nonzero=settings["nonzero"] / 256,
        one_draw_per_row=DRAWS[settings["draws"]],
    )
    A = problem.A / np.linalg.norm(problem.A, axis=0)
    b = A @ problem.x + 0.01 * np.random.default_rng(settings["seed"]).standard_normal(64)
    loss, penalty = SquaredLoss(A, b), L12(settings["part"] * float(np.abs(A.T @ b).max()))
    ends = {n: minimize(loss, penalty, solver=s, tol=1e-6, max_iter=10**5) for n, s in SOLVERS.items()}
    start = min(ends.values(), key=lambda end: end.objective).x
    limits: dict[str, Any] = {"max_nodes": settings["max_nodes"], "max_seconds": 60.0}
    found = certify(loss, penalty, start, random_state=settings["seed"], **limits)
    excess = {name: float(end.objective / found.objective - 1) for name, end in ends.items()}
    return {"proved": found.proved, "nodes": found.nodes, "objective": found.objective, "excess": excess}


def _matrix(settings: dict[str, Any]) -> dict[str, Any]:
    """The CPU time of a step of nmAPG on a square matrix, held at one rank."""
    side, known, rank = settings["side"], settings["known"], settings["rank"]
    random = np.random.default_rng(settings["seed"])
    rows, columns = random.integers(0, side, (2, known))
    rows, columns = np.unravel_index(np.unique(rows * side + columns), (side, side))
    U, V = random.standard_normal((2, side, rank))
    values = np.einsum("ij,ij->i", U[rows], V[columns]) + random.standard_normal(len(rows))
    loss = CompletionLoss(Observed(rows, columns, values, (side, side)))
    solver = FactoredAPG(max_rank=rank)
    result = minimize(loss, SpectralL12(1e-3), solver=solver, tol=0.0, max_iter=8)
    times = [after - before for before, after in pairwise(result.history["cpu_seconds"])]
    return {"seconds": median(times[2:]), "rank": result.x.rank}
