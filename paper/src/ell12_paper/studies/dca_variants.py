"""The choices that the paper leaves open, each measured against the paper's own method.

The paper names DCA's inner solver (ADMM, split Bregman) and neither its penalty, nor how accurately it solves, nor
where it begins; nor when a method stops. A trial here is one of compressed sensing or of denoising with other
options of the same solver, or with the rule and the steps of code that the first author published before.
"""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from ell12.datasets import COMPRESSED_SENSING_SETUPS
from ell12.solvers import DCA, FISTA, NonmonotoneAPG, SequentialConvex
from ell12_paper.rivals import TotalVariationDCA
from ell12_paper.studies import compressed_sensing as sensing
from ell12_paper.studies import denoising, size_of
from ell12_paper.studies.images import names

NAME = "dca-variants"
SENSING, DENOISING, EARLIER = "compressed sensing", "denoising", "the author's earlier code"
SETUP, READING = "calibrated", denoising.PAPER_READING  # the ones that come closest to the printed errors

REFERENCE = "nmAPG(closed-form)"
LONG: dict[str, Any] = {"inner_max_iter": 20_000}
ACCURATE: dict[str, Any] = {"inner_tol": 1e-3, **LONG}
# How DCA is set up -> the solver for a strength alpha.
SENSING_VARIANTS: dict[str, Callable[[float], Any]] = {
    REFERENCE: lambda _: NonmonotoneAPG(),
    "ρ = L/100, our default": lambda _: DCA(),
    "ρ = L/100, accurate": lambda _: DCA(**ACCURATE),
    "ρ = L/100, accurate, from zero": lambda _: DCA(**ACCURATE, warm_start=False),
    "ρ = 100 α": lambda alpha: DCA(100 * alpha),
    "ρ = 0.1": lambda _: DCA(0.1),
    "ρ = 1": lambda _: DCA(1.0),
    "ρ = 1, accurate": lambda _: DCA(1.0, **ACCURATE),
    "FISTA inside": lambda _: DCA(inner=FISTA(), **LONG),
    "FISTA inside, accurate, from zero": lambda _: DCA(inner=FISTA(), **ACCURATE, warm_start=False),
}
# The author's earlier code ends every method when an iteration changes the objective by less than 1e-4 of it, and
# has these steps.
CHANGE = 1e-4
EARLIER_STEPS: dict[str, Callable[[Any], Any]] = {
    REFERENCE: lambda _: NonmonotoneAPG(),
    "SCP": lambda loss: SequentialConvex(step=1 / (1.15 * loss.lipschitz())),
    "FISTA": lambda loss: FISTA(step=1 / (1.5 * loss.lipschitz())),
}
_FROM_START: dict[str, Any] = {"warm_start": False, "inner_max_iter": 5000}
DENOISING_VARIANTS: dict[str, Any] = {
    denoising.ALTMIN: denoising.SOLVERS[denoising.ALTMIN],
    denoising.ACCURATE: denoising.SOLVERS[denoising.ACCURATE],
    "to 1e-4 by cosine transforms, our default": TotalVariationDCA(),
    "to 1e-6 by cosine transforms": TotalVariationDCA(inner_tol=1e-6, inner_max_iter=5000),
    "to 1e-6 by cosine transforms, from the start": TotalVariationDCA(inner_tol=1e-6, **_FROM_START),
    "to 1e-4 by conjugate gradients": TotalVariationDCA(inner="cg"),
    "to 1e-6 by conjugate gradients": TotalVariationDCA(inner="cg", inner_tol=1e-6, inner_max_iter=5000),
    "to 1e-6 by conjugate gradients, from the start": TotalVariationDCA(inner="cg", inner_tol=1e-6, **_FROM_START),
}


def trials(preset: str, seed: int) -> list[dict[str, Any]]:
    """The settings of every trial."""
    size = size_of(NAME, preset)
    found = []
    for repeat, i, method in product(range(size.n_repeats), size.grid, SENSING_VARIANTS):
        problem = {"study": SENSING, "setup": SETUP, "i": i, "alpha": 0.01 * 0.25**i, "n_samples": size.n_samples}
        found.append(problem | {"tol": 1e-3} | _common(size, seed, repeat, method))
    order = product(range(size.n_repeats_earlier), COMPRESSED_SENSING_SETUPS, range(5), EARLIER_STEPS)
    for repeat, setup, i, method in order:
        problem = {"study": EARLIER, "setup": setup, "i": i, "alpha": 0.01 * 0.25**i, "n_samples": size.n_samples}
        limits = {"max_iter": 10**6, "max_cpu_seconds": size.max_cpu_seconds}
        problem |= {"tol": 0.0, "change": CHANGE, "method": method, "repeat": repeat, "seed": seed + repeat}
        found.append(problem | limits)
    image = {"study": DENOISING, "setup": READING, "noise": denoising.READINGS[READING], "size": size.size}
    image |= {"image": names()[0]}
    for i, method in product(size.image_grid, DENOISING_VARIANTS):
        found.append(image | {"i": i, "alpha": 0.02 * i} | _common(size, seed, 0, method))
    return found


def _common(size: Any, seed: int, repeat: int, method: str) -> dict[str, Any]:
    limits = {"max_iter": size.max_iter, "max_cpu_seconds": size.max_cpu_seconds}
    if method in (REFERENCE, denoising.ALTMIN, denoising.ACCURATE):  # a step of DCA holds thousands of theirs
        limits["max_iter"] = 1000 * size.max_iter
    return {"repeat": repeat, "seed": seed + repeat, "method": method} | limits


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Run one variant on one problem."""
    method = settings["method"]
    if settings["study"] == SENSING:
        results = sensing.measure_solver(SENSING_VARIANTS[method](settings["alpha"]), settings)
        del results["history"]
    elif settings["study"] == EARLIER:
        results = sensing.measure_solver(EARLIER_STEPS[method], settings, float(method != "FISTA"))
        del results["history"], results["early"]
    else:
        results = denoising.measure_solver(DENOISING_VARIANTS[method], settings)
        del results["difference"]
    return results
