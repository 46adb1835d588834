"""ell12 on a GPU against FISTA in PyTorch, the prox against a copy, images and ratings against the processors.

`python benchmarks/gpu.py` needs PyTorch with a CUDA device; CuPy is measured where it is installed. Fits are
Lasso and l1-2 problems of 20,000 x 80,000 single-precision numbers to a stationarity of 1e-4; "passes" counts
products with all of A or its adjoint. FISTA is written in PyTorch as one would write it, with the Lipschitz
constant given, with and without restarts; it checks the stationarity every ten steps. The limit of the prox is
a copy of its array. Times are medians of wall time with the device synchronised.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is first imported

import numpy as np
import torch

import ell12
import study
from ell12 import L12, LogisticLoss, NonmonotoneAPG, SquaredLoss, minimize, stationarity
from ell12.losses import of_prediction

SIZE = (20_000, 80_000, 200)  # rows, columns, nonzeros
TOL, EVERY, STRENGTHS = 1e-4, 10, 50
ENTRIES, ROW_LENGTHS = 2**28, (2, 3, 16, 64, 1000, 100_000)
RATINGS = (100_000, 10_000, 10_000_000)
Row = dict[str, Any]


def seconds(call: Callable[[], Any], repeats: int = 10) -> float:
    """The median wall time of a call that ends on the device, after two that are not timed."""
    times = []
    for _ in range(repeats + 2):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[2:])


def row(what: str, value: float, limit: float | None = None, note: str = "") -> Row:
    """One line; printed at once."""
    ratio = None if limit is None else value / limit
    print(f"{what}: {value:.4g} s {'' if ratio is None else f'{ratio:.3g} times the limit'} {note}", flush=True)
    return {"what": what, "seconds": value, "limit": limit, "ratio": ratio, "note": note}


def kinds() -> dict[str, Callable[[Any], Any]]:
    """What makes arrays of each library out of a tensor on the device."""
    try:
        import cupy
    except ImportError:
        return {"PyTorch": lambda x: x}
    return {"PyTorch": lambda x: x, "CuPy": cupy.asarray}


# Fits


def problem(m: int, n: int, nonzero: int) -> tuple[Any, Any, Any]:
    """A Gaussian design, observations of a sparse x, and their signs, on the device, in single precision."""
    generator = torch.Generator("cuda").manual_seed(1)
    A = torch.randn(m, n, device="cuda", generator=generator) / math.sqrt(m)
    x = torch.zeros(n, device="cuda")
    x[torch.randperm(n, device="cuda", generator=generator)[:nonzero]] = 1.0
    b = A @ x
    noise = torch.randn(m, device="cuda", generator=generator)
    return A, b + 0.005 * noise, torch.where(b + 0.05 * noise > 0, 1.0, -1.0)


def largest_eigenvalue(A: Any) -> float:
    """Of ``A' A``, by the power iteration, with a margin of one in a hundred."""
    v = torch.randn(A.shape[1], device=A.device)
    for _ in range(100):
        v = A.T @ (A @ (v / v.norm()))
    return 1.01 * float(v.norm())


def fista(A: Any, b: Any, alpha: float, lipschitz: float, *, restart: bool) -> tuple[Any, int]:
    """The Lasso; each step makes two passes over A, each check of the stationarity one more."""
    x, p, t, passes = torch.zeros_like(A[0]), torch.zeros_like(b), 1.0, 0
    y, q = x, p
    while True:
        z = y - A.T @ (q - b) / lipschitz
        new = z.sign() * (z.abs() - alpha / lipschitz).clamp(min=0)
        product, passes = A @ new, passes + 2
        if restart and float((y - new) @ (new - x)) > 0:
            t = 1.0
        following = (1 + math.sqrt(1 + 4 * t * t)) / 2
        y, q = (now + (t - 1) / following * (now - old) for now, old in ((new, x), (product, p)))
        x, p, t = new, product, following
        if passes % (2 * EVERY) == 0:
            gradient = A.T @ (p - b)
            off = (gradient.abs() - alpha).clamp(min=0)
            violation = torch.where(x != 0, (gradient + alpha * x.sign()).abs(), off).max() / alpha
            if float(violation) <= TOL:
                return x, passes + passes // (2 * EVERY)


@contextmanager
def counted(size: int) -> Iterator[list[int]]:
    """Count the products with all of A, or its adjoint, that losses make."""
    made, product = [0], of_prediction.product

    def counting(A: Any, x: Any) -> Any:
        made[0] += math.prod(A.shape) == size
        return product(A, x)

    of_prediction.product = counting
    try:
        yield made
    finally:
        of_prediction.product = product


def fit_rows() -> Iterator[Row]:
    """Fits at two strengths, logistic fits and paths."""
    A, b, labels = problem(*SIZE)
    lipschitz, largest = largest_eigenvalue(A), float((A.T @ b).abs().max())
    for share in (0.1, 0.01):
        alpha, name = share * largest, f"to {TOL:g} at {share:g} of the largest alpha"
        loss, lasso = SquaredLoss(A, b), L12(alpha, 0.0)
        for what, restart in (("FISTA in PyTorch, restarted", True), ("FISTA in PyTorch", False)):
            x, passes = fista(A, b, alpha, lipschitz, restart=restart)
            value = loss.value(loss.point(x)) + lasso.value(x)
            note = f"{passes} passes, objective {value:.8g}, stationarity {stationarity(loss, lasso, x):.1e}"
            call = partial(fista, A, b, alpha, lipschitz, restart=restart)
            yield row(f"{what} {name}, Lasso", seconds(call, 3), note=note)
        for library, kind in kinds().items():
            for weight in (0.0, 1.0):
                what = f"fit {name}, l2_weight {weight:g}, {library}"
                yield fit_row(what, SquaredLoss, (kind(A), kind(b)), L12(alpha, weight))
        yield fit_row(f"fit {name}, l2_weight 0, nmAPG", SquaredLoss, (A, b), lasso, solver=NonmonotoneAPG())
    steepest = 0.5 * float((A.T @ labels).abs().max())
    for weight in (0.0, 1.0):
        penalty = L12(0.3 * steepest, weight)
        yield fit_row(f"logistic fit at 0.3, l2_weight {weight:g}", LogisticLoss, (A, labels), penalty)
        call = partial(ell12.l12_path, A, b, alphas=STRENGTHS, eps=0.01, penalty=L12(l2_weight=weight))
        with counted(A.numel()) as made:
            path = call()
        worst = max(result.stationarity for result in path.results)
        name = f"path of {STRENGTHS} strengths to 0.01, l2_weight {weight:g}"
        yield row(name, seconds(call, 1), note=f"{made[0]} passes, worst stationarity {worst:.1e}")


def fit_row(what: str, kind: Any, data: tuple[Any, Any], penalty: Any, **options: Any) -> Row:
    def call() -> Any:
        return minimize(kind(*data), penalty, tol=TOL, **options)

    with counted(math.prod(data[0].shape)) as made:
        result = call()
    note = f"{result.status.name}, {made[0]} passes, objective {result.objective:.8g}, "
    note += f"stationarity {result.stationarity:.1e}, {int((result.x != 0).sum())} nonzero, {result.solver}"
    return row(what, seconds(call, 1 if options else 5), note=note)


# The prox


def prox_rows() -> Iterator[Row]:
    """The prox next to a copy of its array, which reads it and writes it once."""
    z, w = torch.randn(ENTRIES, device="cuda"), torch.rand(ENTRIES, device="cuda")
    for library, kind in kinds().items():
        limit = seconds(z.clone)
        for what, options in (
            ("", {}),
            (", weights", {"weights": kind(w)}),
            (", non-negative", {"positive": True}),
        ):
            call = partial(ell12.prox_l12, kind(z), 1.0, **options)
            yield row(f"prox, vector of {ENTRIES} floats{what}, {library}", seconds(call), limit)
        for length in ROW_LENGTHS:
            rows = kind(z[: ENTRIES // length * length]).reshape(-1, length)
            t = kind(torch.rand(rows.shape[0], device="cuda") + 0.5)
            yield row(
                f"prox, rows of {length}, {library}", seconds(partial(ell12.prox_l12, rows, t, axis=-1)), limit
            )
        columns = kind(z).reshape(2**12, -1)
        call = partial(ell12.prox_l12, columns, kind(torch.ones(columns.shape[1], device="cuda")), axis=0)
        yield row(f"prox, columns of {2**12}, {library}", seconds(call), limit)


# Images and matrices


def image_rows() -> Iterator[Row]:
    """Denoising and completion, on the device and on the processors."""
    generator = np.random.default_rng(0)
    noisy = np.kron(generator.random((64, 64)), np.ones((64, 64))).astype(np.float32)
    noisy += 0.05 * generator.standard_normal(noisy.shape).astype(np.float32)
    factors = generator.standard_normal((2, 2048, 20)).astype(np.float32)
    matrix, mask = factors[0] @ factors[1].T, generator.random((2048, 2048)) < 0.5
    alpha = 0.02 * float(np.linalg.norm(np.where(mask, matrix, 0), 2))

    def denoise(image: Any) -> str:
        return f"{ell12.denoise_tv(image, 0.05, return_result=True).result.n_iter} iterations"

    def complete(values: Any, known: Any) -> str:
        result = ell12.complete_matrix(ell12.Observed.from_mask(values, known), alpha)
        return f"{result.n_iter} iterations, rank {result.x.rank}, objective {result.objective:.7g}"

    def send(where: str, x: Any) -> Any:
        return torch.as_tensor(x, device="cuda") if where == "GPU" else x

    for where in ("GPU", "CPU"):
        image, values, known = (send(where, x) for x in (noisy, matrix, mask))
        call: Callable[[], str] = partial(denoise, image)
        yield row(f"denoise_tv, 4096 x 4096, {where}", seconds(call, 1), note=call())
        call = partial(complete, values, known)
        yield row(f"complete_matrix, 2048 x 2048, half known, {where}", seconds(call, 1), note=call())


def rating_rows() -> Iterator[Row]:
    """Ten million ratings: twenty sweeps of alternating least squares, from the sparse matrix on."""
    users, items, count = RATINGS
    random = np.random.default_rng(0)
    flat = np.unique(random.integers(0, users * items, count))
    entries = np.stack(np.divmod(flat, items))
    left, right = random.standard_normal((users, 10)), random.standard_normal((items, 10))
    values = np.einsum("ij,ij->i", left[entries[0]], right[entries[1]]) / 3 + random.standard_normal(flat.size)
    X = torch.sparse_coo_tensor(torch.as_tensor(entries), torch.as_tensor(values), (users, items)).to("cuda")
    options = {"max_rank": 10, "scale": None, "penalty": ell12.SpectralL12(l2_weight=0.5), "max_iter": 20}
    solver = ell12.completion.AlternatingLeastSquares(10)

    def call() -> Any:
        return ell12.complete_matrix(X, 50.0, center="biases", solver=solver, **options)

    result = call()
    note = f"{result.n_iter} iterations, {result.status.name}, objective {result.objective:.9g}"
    yield row(f"{flat.size:.1e} ratings, {users} x {items}, rank 10", seconds(call, 1), note=note)


def main() -> None:
    rows = []
    for part in (prox_rows, fit_rows, image_rows, rating_rows):
        try:
            rows += list(part())
        except Exception as error:  # one part that fails leaves the others
            rows.append(
                {"what": part.__name__, "seconds": None, "limit": None, "ratio": None, "note": repr(error)[:200]}
            )
            print(rows[-1], flush=True)
        torch.cuda.empty_cache()
    cells = [
        [
            r["what"],
            *("" if r[name] is None else f"{r[name]:.3g}" for name in ("seconds", "limit", "ratio")),
            r["note"],
        ]
        for r in rows
    ]
    where = f"Measured on {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}."
    header = ["what", "seconds", "limit", "times the limit", "note"]
    study.write(
        "gpu", __doc__ or "", {"size": SIZE, "entries": ENTRIES}, rows, [where, study.table(header, cells)]
    )


if __name__ == "__main__":
    main()
