"""The proximal operator of l1-2 against SPORCO and SCICO.

`ell12.prox.prox_l12`, `sporco.prox.prox_dl1l2` and `scico.functional.L1MinusL2Norm().prox` on z ~ N(0, 1), for
one vector and for a batch of rows (one problem along the last axis), next to a plain copy of the same array.
SCICO is timed as called and jitted, on JAX arrays made beforehand; it has no axis argument, so its rows go
through vmap. The objective is 1/2 ||x - z||^2 + t (||x||_1 - ||x||_2), summed over the problems in double
precision; the note compares it with the minimum, which is known without x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import study
from ell12.prox import prox_l12
from study import Row, load, median_seconds, version_of

BASELINE = "a copy"
VECTORS = [((10**4,), 0.5), ((10**6,), 0.5)]
ROWS = [((2**20 // length, length), t) for length in (2, 3, 8, 17, 100, 10_000) for t in (0.5, 5.0)]
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}  # relative excess over the minimum that rounding explains

sporco, sporco_missing = load("sporco.prox")
scico, scico_missing = load("scico.functional")


def rows() -> Iterator[Row]:
    for shape, t in VECTORS + ROWS:
        for dtype in ("float64", "float32"):
            z = np.random.default_rng(0).standard_normal(shape).astype(dtype)
            yield from compare(z, t)


def compare(z: np.ndarray, t: float) -> Iterator[Row]:
    """One problem: the copy first, then every method that is there, then those that are not."""
    size = " x ".join(map(str, z.shape)) if z.ndim > 1 else f"{z.size:.0e}".replace("e+0", "e")
    problem = f"{size} {'rows' if z.ndim > 1 else 'vector'}, {z.dtype}, t = {t}"
    calls = {"copy": z.copy, **ours(z, t), **sporco_calls(z, t), **scico_calls(z, t)}
    seconds = median_seconds(calls)
    for method, call in calls.items():
        x = z if method == "copy" else np.asarray(call())
        value = objective(x, z, t)
        note = "the baseline" if method == "copy" else judge(x, z, value, minimum(z, t))
        if "vmap" in method:
            note = f"no axis argument, vmap instead; {note}"
        package = "numpy" if method == "copy" else method.split(",")[0].lower()
        yield Row(
            problem,
            method,
            version_of(package),
            seconds[method],
            seconds[method] / seconds["copy"],
            value,
            note,
        )
    for package, reason in (("SPORCO", sporco_missing), ("SCICO", scico_missing)):
        if reason:
            yield Row(problem, package, version_of(package.lower()), note=reason)


Calls = dict[str, Callable[[], Any]]


def ours(z: np.ndarray, t: float) -> Calls:
    axis = -1 if z.ndim > 1 else None
    return {"ell12": lambda: prox_l12(z, t, axis=axis)}


def sporco_calls(z: np.ndarray, t: float) -> Calls:
    if sporco is None:
        return {}
    axis = -1 if z.ndim > 1 else None
    return {"SPORCO": lambda: sporco.prox_dl1l2(z, t, axis=axis)}


def scico_calls(z: np.ndarray, t: float) -> Calls:
    if scico is None:
        return {}
    import jax

    jax.config.update("jax_enable_x64", True)
    prox, how = scico.L1MinusL2Norm().prox, ""
    if z.ndim > 1:
        prox, how = jax.vmap(prox, in_axes=(0, None)), ", vmap"
    array = jax.numpy.asarray(z.reshape(-1, z.shape[-1]) if z.ndim > 1 else z)
    jitted = jax.jit(lambda v: prox(v, t))
    return {
        f"SCICO{how}": lambda: prox(array, t).block_until_ready(),
        f"SCICO{how}, jitted": lambda: jitted(array).block_until_ready(),
    }


def objective(x: np.ndarray, z: np.ndarray, t: float) -> float:
    x, z = as_problems(x.reshape(z.shape)), as_problems(z)
    return float(0.5 * np.sum((x - z) ** 2) + t * (np.sum(np.abs(x)) - np.sum(np.linalg.norm(x, axis=-1))))


def minimum(z: np.ndarray, t: float) -> float:
    """Return the least value there is, 1/2 ||z||^2 - 1/2 r^2 with r the minimiser's length."""
    z = as_problems(z)
    over = np.abs(z) - t
    top = np.max(over, axis=-1)
    length = np.where(top > 0, np.linalg.norm(np.maximum(over, 0), axis=-1), top)
    return float(0.5 * np.sum(z**2) - 0.5 * np.sum(np.maximum(length + t, 0) ** 2))


def as_problems(z: np.ndarray) -> np.ndarray:
    return z.reshape(-1, z.shape[-1]).astype(np.float64)


def judge(x: np.ndarray, z: np.ndarray, value: float, least: float) -> str:
    excess = (value - least) / abs(least)
    note = (
        "minimum" if abs(excess) <= TOLERANCE[str(z.dtype)] else f"WRONG: {100 * excess:.2g} % above the minimum"
    )
    return note if x.dtype == z.dtype else f"{note}; returns {x.dtype}"


if __name__ == "__main__":
    study.write_rows("prox", __doc__ or "", rows(), BASELINE)
