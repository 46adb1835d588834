"""The paper's denoising: AltMin against DCA over its grid of strengths; then what the paper does not show.

The paper's runs and its grid are the study "strengths". `beyond` measures the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np

from ell12.minimization import Result, Run
from ell12.restoration import AlternatingMinimization, TotalVariationL12, denoise_tv
from ell12_paper.rivals import TotalVariationDCA
from ell12_paper.studies import beyond, size_of
from ell12_paper.studies.beyond import quality
from ell12_paper.studies.images import may_be_shown, names, photograph

NAME = "denoising"
STRENGTHS = "strengths"

# The paper adds noise from N(0, 0.05). How that can be read -> the standard deviation of the noise.
READINGS = {"standard deviation": 0.05, "variance": math.sqrt(0.05)}
PAPER_READING = "standard deviation"  # the usual one: measured at every strength
DCA, ALTMIN, ACCURATE, OURS = "DCA", "AltMin", "AltMin(accurate)", "accelerated gradient"
# The paper runs "a few" steps of conjugate gradients in each iteration. AltMin takes at most five, the accurate
# one as many as it needs.
SOLVERS: dict[str, Any] = {
    DCA: TotalVariationDCA(),
    ALTMIN: AlternatingMinimization(cg_max_iter=5),
    ACCURATE: AlternatingMinimization(cg_tol=1e-4),
    OURS: None,
}
METHODS = tuple(SOLVERS)
# Two rules of when a run is finished: two iterations in a row change the objective by less than this fraction.
RULES = {"loose": 1e-3, "strict": 1e-4}
L2_WEIGHT, SMOOTHING = 1.0, 0.01  # the paper's; its mu = 100 alpha is a smoothing of 0.01
SHOWN = tuple(2**k for k in range(7))  # the paper's difference images: alpha = 0.02 to 1.28
DIFFERENCE_SIZE, DARKEST = 128, 0.25  # pixels a side, and the difference that is drawn black


def trials(preset: str, seed: int) -> list[dict[str, Any]]:
    """The settings of every trial."""
    size = size_of(NAME, preset)
    order = product(range(size.n_repeats), READINGS, names(), size.grid, METHODS)
    return [
        {"study": STRENGTHS, "setup": reading, "image": image, "i": i, "alpha": 0.02 * i}
        | {"noise": READINGS[reading]}
        | {"method": method, "size": size.size, "repeat": repeat, "seed": seed + repeat}
        | {"max_iter": size.dca_max_iter if method == DCA else size.max_iter}
        | {"max_cpu_seconds": size.max_cpu_seconds}
        for repeat, reading, image, i, method in order
        if i in SHOWN or (reading == PAPER_READING and method != ACCURATE)
    ] + beyond.trials(preset, seed)


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """One trial of any of the studies."""
    if settings["study"] != STRENGTHS:
        return beyond.measure(settings)
    return measure_solver(SOLVERS[settings["method"]], settings)


def measure_solver(solver: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Run a solver on the noisy image of some settings."""
    clean, alpha = photograph(settings["image"], settings["size"]), settings["alpha"]
    noisy = clean + settings["noise"] * np.random.default_rng(settings["seed"]).standard_normal(clean.shape)
    _warm_up(solver, settings["size"])
    limits = (settings["max_iter"], settings["max_cpu_seconds"])
    run = _run(solver, noisy, alpha, limits, lambda x: quality(x, clean)["rmse"])
    met = {rule: _at_rule(run, solver, change) for rule, change in RULES.items()}
    penalty = TotalVariationL12(alpha, L2_WEIGHT, smoothing=SMOOTHING)
    fit = 0.5 * float(np.sum((run.x - noisy) ** 2))
    shown = settings["image"] == names()[0] and settings["repeat"] == 0 and may_be_shown(settings["image"])
    return {
        "status": "CONVERGED" if met["strict"] else run.status.name,
        "n_iter": run.n_iter,
        "cpu_seconds": run.history["cpu_seconds"][-1],
        "objective": fit + penalty.true_value(run.x),
        "smoothed_objective": fit + penalty.value(run.x),
        **quality(run.x, clean),
        "rmse_noisy": quality(noisy, clean)["rmse"],
        "rules": met,
        "difference": difference_rows(run.x - clean) if shown and settings["i"] in SHOWN else [],
    }


def _run(
    solver: Any, noisy: np.ndarray, alpha: float, limits: tuple[int, float], error: Callable[[np.ndarray], float]
) -> Result:
    """A run to the strictest of the rules or a limit. Our method ends by its default rule instead."""
    max_iter, max_cpu_seconds = limits

    def stop(history: dict[str, list[float]]) -> bool:
        finished = solver != SOLVERS[OURS] and is_met(history["objective"], min(RULES.values()))
        return finished or history["cpu_seconds"][-1] >= max_cpu_seconds

    options: dict[str, Any] = {} if solver == SOLVERS[OURS] else {"tol": 0.0}
    smoothing = 0.0 if isinstance(solver, TotalVariationDCA) else SMOOTHING  # DCA works on the true penalty
    options |= {"penalty": TotalVariationL12(l2_weight=L2_WEIGHT, smoothing=smoothing), "solver": solver}
    options |= {"max_iter": max_iter, "run": Run(callback=stop, measure={"rmse": error}), "return_result": True}
    return denoise_tv(noisy, alpha, **options).result


def is_met(objective: Sequence[float], change: float) -> bool:
    """Whether the last two iterations changed the objective by less than a fraction; the first is not counted."""
    steps = pairwise(objective[-3:])
    return len(objective) > 3 and all(abs(new - old) <= change * abs(new) for old, new in steps)


def _at_rule(run: Result, solver: Any, change: float) -> dict[str, Any] | None:
    """Where a rule would have ended a run; None if it was never met."""
    history = run.history
    ends = range(1, run.n_iter + 1)
    met = [k for k in ends if is_met(history["objective"][: k + 1], change)]
    if solver == SOLVERS[OURS]:
        met = [run.n_iter] if run.converged else []
    return {"n_iter": met[0]} | {name: history[name][met[0]] for name in ("cpu_seconds", "rmse")} if met else None


@cache
def _warm_up(solver: Any, size: int) -> None:
    """Let the process load and compile, outside any timing, what a solver's first run needs."""
    image = np.random.default_rng(0).random((size, size))
    _run(solver, image, 0.1, (2, math.inf), lambda _: 0.0)


def difference_rows(difference: np.ndarray) -> list[str]:
    """The modulus of an image, averaged to few pixels of 8 bits, 255 for `DARKEST`; one text for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12_paper.studies.denoising import difference_rows
    >>> difference_rows(np.array([[0.0, -0.125], [0.25, 1.0]]))
    ['0080', 'ffff']
    """
    block = max(1, min(difference.shape) // DIFFERENCE_SIZE)
    rows, columns = (size // block for size in difference.shape)
    blocks = np.abs(difference)[: rows * block, : columns * block].reshape(rows, block, columns, block)
    levels = np.rint(np.clip(blocks.mean(axis=(1, 3)) / DARKEST, 0, 1) * 255)
    return [row.tobytes().hex() for row in levels.astype(np.uint8)]
