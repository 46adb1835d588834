"""The paper's compressed sensing: how long each method needs, and how well x is recovered.

Every method starts at zero and ends by the same rule, when the stationarity falls to ``tol``, or at its limit. The
loss's Lipschitz constant is computed beforehand; its time is part of every method's time.
"""

from __future__ import annotations

import math
import time
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from ell12 import Run, datasets
from ell12.losses import SquaredLoss
from ell12.minimization import minimize
from ell12.penalties import L12
from ell12.solvers import DCA, FISTA, NonmonotoneAPG, SequentialConvex
from ell12_paper.rivals import NumericalAPG
from ell12_paper.studies import size_of

NAME = "compressed-sensing"

# The paper's names. FISTA minimises the convex counterpart (l1); the last is what `minimize` takes by default.
DEFAULT = "WorkingSet"
RHO_ONE = "DCA(rho=1)"  # our addition too
METHODS: dict[str, Any] = {
    "DCA": DCA(),
    RHO_ONE: DCA(penalty_weight=1.0),
    "SCP": SequentialConvex(),
    "nmAPG(numerical)": NumericalAPG(),
    "nmAPG(closed-form)": NonmonotoneAPG(),
    "FISTA": FISTA(),
    DEFAULT: None,
}
SLOW_FROM = 2  # the i from which on SCP and DCA with rho = 1 take seconds
SETUPS = tuple(datasets.COMPRESSED_SENSING_SETUPS)
HISTORY_POINTS = 150
EARLY_CHANGE = 1e-6
WARM_SECONDS = 0.1


def trials(preset: str, seed: int) -> list[dict[str, Any]]:
    """The settings of every trial."""
    size = size_of(NAME, preset)
    return [
        {"setup": setup, "i": i, "alpha": 0.01 * 0.25**i, "n_samples": size.n_samples, "tol": 1e-3}
        | {"method": method, "repeat": repeat, "seed": seed + repeat, "max_cpu_seconds": size.max_cpu_seconds}
        | {"max_iter": getattr(size, "dca_max_iter" if method.startswith("DCA") else "max_iter", None)}
        for repeat, setup, i, method in product(range(size.n_repeats), SETUPS, range(5), METHODS)
        if i < SLOW_FROM or repeat < size.slow_repeats.get(method, size.n_repeats)
    ]


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Run one method on one problem."""
    method = settings["method"]
    return measure_solver(METHODS[method], settings, 0.0 if method == "FISTA" else 1.0)


def measure_solver(make: Any, settings: dict[str, Any], l2_weight: float = 1.0) -> dict[str, Any]:
    """Run a solver, or the one that a function makes for a loss, on the problem of some settings."""
    _warm_up(make, l2_weight, settings["n_samples"])
    drawn = {name: settings[name] for name in ("setup", "n_samples")}
    problem = datasets.compressed_sensing(settings["seed"], **drawn)
    loss = SquaredLoss(problem.A, problem.b)
    wall, cpu = time.perf_counter(), time.process_time()
    loss.lipschitz()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    limit, change = settings["max_cpu_seconds"] - cpu, settings.get("change", 0.0)

    def stop(history: dict[str, list[float]]) -> bool:
        return history["cpu_seconds"][-1] >= limit or is_met(history["objective"], change)

    solver = make(loss) if callable(make) else make
    run = Run(callback=stop, measure={"rmse": problem.relative_error})
    options = {"tol": settings["tol"], "max_iter": settings["max_iter"] or 10**9, "run": run}
    result = minimize(loss, L12(settings["alpha"], l2_weight), solver=solver, **options)
    history = {name: np.array(result.history[name]) for name in ("cpu_seconds", "objective", "rmse")}
    history["cpu_seconds"] += cpu
    return {
        "seconds": wall + result.history["seconds"][-1],
        "cpu_seconds": float(history["cpu_seconds"][-1]),
        "setup_seconds": cpu,
        **{name: getattr(result, name) for name in ("n_iter", "objective", "stationarity")},
        "status": result.status.name,
        "n_nonzero": int(np.count_nonzero(result.x)),
        **({"is_limited": not is_met(history["objective"], change)} if change else {}),
        "rmse": problem.relative_error(result.x),
        "early": early_end(history),
        "history": _thinned(history),
    }


def is_met(objective: Any, change: float) -> bool:
    """Whether the last iteration changed the objective by less than a fraction."""
    return len(objective) > 1 and abs(objective[-1] - objective[-2]) < change * abs(objective[-2])


@cache
def _warm_up(make: Any, l2_weight: float, n_samples: int) -> None:
    """Let the process load and compile, outside any timing, what a solver's first run at this size needs."""
    problem = datasets.compressed_sensing(0, n_samples=n_samples)
    loss, brief = SquaredLoss(problem.A, problem.b), Run(max_seconds=WARM_SECONDS)
    solver = make(loss) if callable(make) else make
    minimize(loss, L12(0.01, l2_weight), solver=solver, max_iter=50, run=brief)


def early_end(history: dict[str, Any]) -> dict[str, Any] | None:
    """Where a rule on the objective's relative change, as is common in papers, would have stopped."""
    objective = history["objective"]
    small = np.flatnonzero(np.abs(np.diff(objective)) < EARLY_CHANGE * np.abs(objective[:-1]))
    if small.size == 0:
        return None
    n_iter = int(small[0]) + 1
    return {"n_iter": n_iter} | {name: float(values[n_iter]) for name, values in history.items()}


def _thinned(history: dict[str, Any]) -> dict[str, list[float]]:
    """At most `HISTORY_POINTS` of the iterations, evenly spaced in their logarithm, the first and last kept."""
    powers = np.linspace(0.0, math.log(len(history["objective"])), HISTORY_POINTS)
    kept = [int(k) - 1 for k in np.unique(np.rint(np.exp(powers)))]
    return {name: [float(f"{values[k]:.10g}") for k in kept] for name, values in history.items()}
