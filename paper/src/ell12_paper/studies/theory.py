"""The paper's propositions, each as a search for a counterexample; `convergence` has what it says of methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ell12.prox import prox_l12, prox_l12_spectral
from ell12_paper.studies import convergence

NAME = "theory"
N_PROBLEMS = {"quick": 100, "paper": 1000}
CLOSED, SPECTRAL, ROWS, SIGNS = "closed form", "spectral", "row-wise", "zero and signs"


def trials(preset: str, seed: int) -> list[dict[str, Any]]:
    """The settings of every trial."""
    count = N_PROBLEMS[preset]
    searches = [{"study": study, "problems": count, "seed": seed} for study in MEASURES]
    return searches + convergence.trials(preset, seed)


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """One trial."""
    if settings["study"] not in MEASURES:
        return convergence.measure(settings)
    random = np.random.default_rng(settings["seed"])
    found = [MEASURES[settings["study"]](random) for _ in range(settings["problems"])]
    return {"worst": float(max(found)), "violations": sum(excess > 1e-12 for excess in found)}


def vector(random: Any) -> tuple[np.ndarray, float]:
    """A vector of up to six entries, often with ties or zeros, and a threshold, perhaps its largest entry."""
    z = random.standard_normal(random.integers(1, 7))
    z = np.round(z, int(random.integers(0, 2))) if random.random() < 0.3 else z
    t = float(np.abs(z).max()) if random.random() < 0.2 else float(random.exponential())
    return z, max(t, 1e-3)


def cost(x: np.ndarray, z: np.ndarray, t: float) -> Any:
    """The objective of the proximal step along the last axis."""
    penalty = np.abs(x).sum(axis=-1) - np.sqrt(np.square(x).sum(axis=-1))
    return 0.5 * np.square(x - z).sum(axis=-1) + t * penalty


def excess(x: np.ndarray, z: np.ndarray, t: float, random: Any) -> float:
    """By how much the best of many directions, each at its best length, is below x, relative to ||z||^2."""
    near = x + 10.0 ** -random.integers(0, 6, (300, 1)) * random.standard_normal((300, len(z)))
    free, some = random.standard_normal((1500, len(z))), random.standard_normal((500, len(z))) > 0
    directions = np.concatenate([[z], np.eye(len(z)) * z, near, free, np.where(some, z, 0)])
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    u = directions[lengths[:, 0] > 0] / lengths[lengths[:, 0] > 0]
    best = np.maximum(u @ z - t * (np.abs(u).sum(axis=1) - 1), 0)[:, None] * u  # the length that is best along u
    lowest = min(float(cost(best, z, t).min(initial=np.inf)), float(cost(0 * z, z, t)))
    return (float(cost(x, z, t)) - lowest) / max(float(z @ z), 1e-12)


def _closed(random: Any) -> float:
    z, t = vector(random)
    return excess(prox_l12(z, t), z, t, random)


def _spectral(random: Any) -> float:
    """Proposition IV.1: a matrix keeps its singular vectors, and its values take the vector's step."""
    Z, t = random.standard_normal((4, 3)), float(random.exponential())
    X = prox_l12_spectral(Z, t)

    def total(Y: np.ndarray) -> float:
        return 0.5 * np.sum((Y - Z) ** 2) + t * (np.linalg.norm(Y, "nuc") - np.linalg.norm(Y))

    near = [X + scale * random.standard_normal(Z.shape) for scale in 10.0 ** random.uniform(-6, 1, 300)]
    return float((total(X) - min(map(total, [Z, 0 * Z, *near]))) / np.sum(Z**2))


def _rows(random: Any) -> float:
    """Proposition IV.3: each row of differences is a step of its own."""
    Z, t = random.standard_normal((5, 2)), float(random.exponential())
    X = prox_l12(Z, t, axis=-1)
    return max(excess(x, z, t, random) for x, z in zip(X, Z, strict=True))


def _signs(random: Any) -> float:
    """Lemmas III.2 and III.4: zero if and only if z is zero, and else no entry against its sign in z."""
    z, t = vector(random)
    x = prox_l12(z, t)
    return float(bool(np.any(x)) != bool(np.any(z))) + float(np.any(x * z < 0))


MEASURES: dict[str, Callable[[Any], float]] = {CLOSED: _closed, SPECTRAL: _spectral, ROWS: _rows, SIGNS: _signs}
