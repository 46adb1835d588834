"""Whole fits on a GPU, beside FISTA written out in PyTorch and in JAX: the rows that `gpu.py --fits` measures.

Every method is given A and b on the device, in single precision, and is timed until the stationarity is 1e-4: the
median of some runs after a first one, in which code is compiled. FISTA is given the Lipschitz constant: the power
iteration for it is not counted. It looks at its stationarity after every ten steps. ell12 begins with its loss, so
that checking A for NaN is timed. Reads are products with all of A or its adjoint, of a vector or a matrix. The
observations have little noise, so that a hundredth of the largest strength makes sense: then some hundred columns
are in use beside the 200 of the model.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import torch

import ell12
from ell12 import L12, LogisticLoss, NonmonotoneAPG, SquaredLoss, minimize, stationarity
from ell12.losses import of_prediction as prediction

TOL, EVERY, LEVEL, STRENGTHS = 1e-4, 10, 0.005, 50
Row = dict[str, Any]


def problem(m: int, n: int, nonzero: int, seed: int, where: str = "cuda") -> tuple[Any, Any, Any]:
    """A Gaussian design, observations of a sparse x, and labels that these make likely."""
    generator = torch.Generator(where).manual_seed(seed)
    A = torch.randn(m, n, device=where, generator=generator)
    A /= math.sqrt(m)
    x = torch.zeros(n, device=where)
    x[torch.randperm(n, device=where, generator=generator)[:nonzero]] = 1.0
    clean = A @ x
    b = clean + LEVEL * torch.randn(m, device=where, generator=generator)
    labels = clean / clean.std() + torch.randn(m, device=where, generator=generator)
    return A, b, torch.sign(labels)


def largest_eigenvalue(A: Any, steps: int = 100) -> float:
    """Of ``A' A``, by the power iteration, with a margin of one in a hundred."""
    v = torch.randn(A.shape[1], device=A.device, generator=torch.Generator(A.device).manual_seed(0))
    for _ in range(steps):
        v = A.T @ (A @ (v / v.norm()))
    return 1.01 * float(v.norm())


def violation(x: Any, gradient: Any, alpha: float) -> Any:
    """The largest violation of the Lasso's first-order condition, divided by alpha."""
    off = gradient.abs() - alpha
    return torch.where(x != 0, (gradient + alpha * x.sign()).abs(), off.clamp(min=0)).max() / alpha


def fista(A: Any, b: Any, alpha: float, lipschitz: float, restart: bool = False) -> tuple[Any, int]:
    """The Lasso, as one would write it; every step reads A twice, every look once more."""
    x, p, t, reads = torch.zeros_like(A[0]), torch.zeros_like(b), 1.0, 0
    y, q = x, p
    while True:
        z = y - A.T @ (q - b) / lipschitz
        new = z.sign() * (z.abs() - alpha / lipschitz).clamp(min=0)
        image, reads = A @ new, reads + 2
        if restart and float((y - new) @ (new - x)) > 0:
            t = 1.0
        following = (1 + math.sqrt(1 + 4 * t * t)) / 2
        y, q = (now + (t - 1) / following * (now - old) for now, old in ((new, x), (image, p)))
        x, p, t = new, image, following
        if reads % (2 * EVERY) == 0 and float(violation(x, A.T @ (p - b), alpha)) <= TOL:
            return x, reads + reads // (2 * EVERY)


def jax_fista(A: Any, b: Any, alpha: float, lipschitz: float) -> tuple[Any, int]:
    """The same in JAX: the steps between two looks are one compiled call."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_default_matmul_precision", "highest")
    A, b = (jax.dlpack.from_dlpack(part) for part in (A, b))
    steps, look = _jax_parts(jax, jnp)
    x, p = jnp.zeros(A.shape[1], A.dtype), jnp.zeros_like(b)
    state, reads = (x, p, x, p, jnp.float32(1.0)), 0
    while True:
        state, reads = steps(A, b, alpha, lipschitz, state), reads + 2 * EVERY + 1
        if float(look(A, b, alpha, state)) <= TOL:
            return torch.from_dlpack(state[0]), reads


_compiled: list[Any] = []


def _jax_parts(jax: Any, jnp: Any) -> Any:
    def step(_: int, carried: Any) -> Any:
        A, b, alpha, lipschitz, (x, p, y, q, t) = carried
        z = y - A.T @ (q - b) / lipschitz
        new = jnp.sign(z) * jnp.maximum(jnp.abs(z) - alpha / lipschitz, 0)
        image, following = A @ new, (1 + jnp.sqrt(1 + 4 * t * t)) / 2
        beta = (t - 1) / following
        return A, b, alpha, lipschitz, (new, image, new + beta * (new - x), image + beta * (image - p), following)

    def steps(*carried: Any) -> Any:
        return jax.lax.fori_loop(0, EVERY, step, carried)[-1]

    def look(A: Any, b: Any, alpha: Any, state: Any) -> Any:
        x, gradient = state[0], A.T @ (state[1] - b)
        off = jnp.maximum(jnp.abs(gradient) - alpha, 0)
        return jnp.max(jnp.where(x != 0, jnp.abs(gradient + alpha * jnp.sign(x)), off)) / alpha

    if not _compiled:
        _compiled.extend((jax.jit(steps), jax.jit(look)))
    return _compiled


@contextmanager
def counted(size: int) -> Iterator[list[int]]:
    """Count the products with all of A, or its adjoint, that losses make."""
    made, product = [0], prediction.product

    def counting(A: Any, x: Any) -> Any:
        made[0] += math.prod(A.shape) == size
        return product(A, x)

    prediction.product = counting
    try:
        yield made
    finally:
        prediction.product = product


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median time of a call after a first one, and what it returns."""
    times, result = [], call()
    for _ in range(repeats):
        _wait()
        begin = time.perf_counter()
        result = call()
        _wait()
        times.append(time.perf_counter() - begin)
    return statistics.median(times), result


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def fit_rows(m: int, n: int, nonzero: int, seed: int, repeats: int = 5, where: str = "cuda") -> list[Row]:
    """All rows."""
    A, b, labels = problem(m, n, nonzero, seed, where)
    date, rows = datetime.now(UTC).isoformat(timespec="minutes"), []

    def add(what: str, elapsed: float, note: str, base: float | None = None) -> None:
        gain = "" if base is None else f"{base / elapsed:.1f} times as fast as FISTA in PyTorch; "
        row = {"what": what, "seconds": elapsed, "limit": None, "ratio": None, "note": gain + note}
        print(f"{what}  {elapsed:.4f}  {gain}{note}", flush=True)
        rows.append(row | {"fits": date, "date": date})

    kinds = _kinds()
    lipschitz, top = largest_eigenvalue(A), float((A.T @ b).abs().max())
    for fraction in (0.1, 0.01):
        alpha, name = fraction * top, f"to {TOL:g} at {fraction:g} of the largest strength"
        base = _rival_rows(add, A, b, alpha, lipschitz, name, repeats)
        for library, kind in kinds.items():
            data = kind(A), kind(b)
            for weight in (0.0, 1.0):
                what = f"fit {name}, l2_weight {weight:g}, {library}"
                _fit_row(add, what, SquaredLoss, data, L12(alpha, weight), base, repeats)
        options = {"solver": NonmonotoneAPG()}
        _fit_row(add, f"fit {name}, l2_weight 0, nmAPG", SquaredLoss, (A, b), L12(alpha, 0.0), base, 1, **options)
        what = f"fit to 1e-06 at {fraction:g} of the largest strength, l2_weight 0, PyTorch"
        _fit_row(add, what, SquaredLoss, (A, b), L12(alpha, 0.0), None, 1, tol=1e-6)
    steepest = 0.5 * float((A.T @ labels).abs().max())
    for fraction in (0.3, 0.2):
        for weight in (0.0, 1.0):
            penalty, what = L12(fraction * steepest, weight), f"logistic fit at {fraction:g}, l2_weight {weight:g}"
            _fit_row(add, f"{what}, PyTorch", LogisticLoss, (A, labels), penalty, None, repeats)
        penalty, what = L12(fraction * steepest, 0.0), f"logistic fit at {fraction:g}, l2_weight 0, nmAPG"
        _fit_row(add, what, LogisticLoss, (A, labels), penalty, None, 1, solver=NonmonotoneAPG())
    _path_rows(add, A, b)
    return rows


def _kinds() -> dict[str, Callable[[Any], Any]]:
    kinds: dict[str, Callable[[Any], Any]] = {"PyTorch": lambda x: x}
    try:
        import cupy

        cupy.zeros(1)
    except Exception:  # not installed, or without a device
        return kinds
    return kinds | {"CuPy": cupy.asarray}


def _rival_rows(
    add: Callable[..., None], A: Any, b: Any, alpha: float, lipschitz: float, name: str, repeats: int
) -> float:
    """The rows of FISTA; the time of the one in PyTorch."""
    loss, penalty = SquaredLoss(A, b), L12(alpha, 0.0)
    methods: dict[str, Callable[[], Any]] = {
        "FISTA in PyTorch": lambda: fista(A, b, alpha, lipschitz),
        "FISTA in PyTorch, restarted": lambda: fista(A, b, alpha, lipschitz, restart=True),
        "FISTA in JAX": lambda: jax_fista(A, b, alpha, lipschitz),
    }
    first = math.nan
    for method, call in methods.items():
        try:
            elapsed, (x, reads) = timed(call, min(repeats, 3))
        except ImportError:
            continue
        value = loss.value(loss.point(x)) + penalty.value(x)
        reached, size = stationarity(loss, penalty, x), int((x != 0).sum())
        note = f"{reads} reads of A, objective {value:.8g}, stationarity {reached:.1e}, {size} columns"
        add(f"{method} {name}, Lasso", elapsed, note, None if math.isnan(first) else first)
        first = elapsed if math.isnan(first) else first
    return first


def _fit_row(
    add: Callable[..., None],
    what: str,
    kind: Any,
    data: tuple[Any, Any],
    penalty: Any,
    base: float | None,
    repeats: int,
    **options: Any,
) -> None:
    call = lambda: minimize(kind(*data), penalty, **{"tol": TOL} | options)  # noqa: E731
    with counted(math.prod(data[0].shape)) as made:
        result = call()
        reads = made[0]
    elapsed, result = timed(call, repeats)
    note = f"{result.status.name}, {reads} reads of A, objective {result.objective:.8g}, "
    size = int((result.x != 0).sum())
    add(what, elapsed, note + f"stationarity {result.stationarity:.1e}, {size} columns", base)


def _path_rows(add: Callable[..., None], A: Any, b: Any) -> None:
    """A path as it is by default, strength after strength, and all strengths side by side."""
    for weight in (0.0, 1.0):
        penalty = ell12.L12(l2_weight=weight)
        call = partial(ell12.l12_path, A, b, alphas=STRENGTHS, eps=0.01, penalty=penalty)
        with counted(math.prod(A.shape)) as made:
            call()
            reads = made[0]
        elapsed, (alphas, _, results) = timed(call, 2)
        worst = max(result.stationarity for result in results)
        good = sum(result.converged for result in results)
        value = sum(result.objective for result in results)
        note = f"{reads} reads of A, {good} of {len(alphas)} converged, worst stationarity {worst:.1e}, "
        name = f"path of {STRENGTHS} strengths to 0.01, l2_weight {weight:g}"
        add(name, elapsed, note + f"sum of objectives {value:.8g}")


if __name__ == "__main__":
    import sys

    numbers = [int(argument) for argument in sys.argv[1:]] or [20_000, 80_000, 200, 1]
    fit_rows(*numbers, where="cuda" if torch.cuda.is_available() else "cpu", repeats=3 if len(numbers) == 4 else 1)
