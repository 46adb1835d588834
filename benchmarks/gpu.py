"""ell12 on a GPU.

`python benchmarks/gpu.py [FOLDER]` on a machine with PyTorch and a CUDA device (CuPy is measured where it is
installed) writes gpu.json and gpu.md there, by default into benchmarks/results; `make bench` does not.
`python benchmarks/gpu.py --try-folds` prints the rows of the cross-validation at a small size, on the processors
where there is no GPU, and writes nothing; `--try-prox` does the same for those of the prox.
`python benchmarks/gpu.py --ratings [FOLDER]` measures the rows of the ratings alone and puts them in place of the
old ones, with their date; `--prox` does so for the prox, `--fits` for the fits and paths of gpu_fits.py, `--dask`
for a worker of Dask. Limit of an iteration is the time to read A twice, at the speed this device adds up a large
array. Limit of the prox is a copy of its array, measured beside it.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is first imported; the estimators then let tensors pass

import numpy as np
import sklearn
import torch
from threadpoolctl import threadpool_limits

import ell12
import gpu_fits
from ell12 import L12, NonmonotoneAPG, SquaredLoss, minimize
from ell12.linear_model.alpha_search import _fold
from ell12.path.columnwise import ColumnsL12, ColumnwiseAPG
from gpu_prox import Row, prox_rows, row, seconds

SAMPLES, FEATURES, NONZERO = 20_000, 80_000, 200
PROBLEMS = 50
RATINGS = 100_000, 10_000, 10_000_000  # users, items, ratings
RANK, SWEEPS = 10, 20
FOLDS, ALPHAS = 5, 30
FITS_SEED = 1  # nothing was chosen on the problem of this seed


def bytes_per_second() -> float:
    """How fast the device reads: the sum of 8 GiB."""
    x = torch.ones(2**31, device="cuda")
    return x.numel() * 4 / seconds(x.sum)


def problem() -> tuple[Any, Any, Any]:
    """A Gaussian design and observations of a sparse x, on the device, in single precision."""
    generator = torch.Generator("cuda").manual_seed(0)
    A = torch.randn(SAMPLES, FEATURES, device="cuda", generator=generator)
    A /= math.sqrt(SAMPLES)
    x = torch.zeros(FEATURES, device="cuda")
    x[torch.randperm(FEATURES, device="cuda", generator=generator)[:NONZERO]] = 1.0
    b = A @ x
    return A, b + 0.05 * torch.randn(SAMPLES, device="cuda", generator=generator), x


def iteration(loss: Any, penalty: Any, solver: Any, count: int = 30) -> float:
    """The median time of an iteration, the first few left out."""
    start = loss.point(loss.start())
    loss.lipschitz()
    iterates = solver.iterates(loss, penalty, start)
    return seconds(lambda: next(iterates), count)


def iteration_rows(A: Any, b: Any, alpha: float, speed: float) -> list[Row]:
    limit = 2 * 4 * A.numel() / speed
    one = iteration(SquaredLoss(A, b), L12(alpha), NonmonotoneAPG())
    rows = [row(f"nmAPG iteration, {SAMPLES} x {FEATURES}, PyTorch", one, limit)]
    try:
        import cupy

        loss = SquaredLoss(cupy.asarray(A), cupy.asarray(b))
        rows.append(row("the same, CuPy", iteration(loss, L12(alpha), NonmonotoneAPG()), limit))
    except ImportError:
        pass
    B = torch.stack([b] * PROBLEMS, dim=1)
    alphas = alpha * np.geomspace(1, 0.1, PROBLEMS)
    many = iteration(SquaredLoss(A, B), ColumnsL12(alphas), ColumnwiseAPG(), 10)
    gain = PROBLEMS * one / many
    rows.append(
        row(f"an iteration of {PROBLEMS} problems at once", many, None, f"{gain:.1f} times the throughput")
    )
    return rows


def fit_rows(A: Any, b: Any, alpha: float) -> list[Row]:
    """A whole fit from the data on, on the device and on the processors."""
    rows, objectives = [], []
    for where, data in (("GPU", (A, b)), ("CPU", (A.cpu().numpy(), b.cpu().numpy()))):
        begin = time.perf_counter()
        result = minimize(SquaredLoss(*data), L12(alpha), solver=NonmonotoneAPG(), tol=1e-3, max_iter=1000)
        elapsed = time.perf_counter() - begin
        objectives.append(result.objective)
        note = f"{result.status.name}, {result.n_iter} steps, objective {result.objective:.9g}"
        name = f"whole fit on the {where}" + (f", {os.cpu_count()} cores" if where == "CPU" else "")
        rows.append(row(name, elapsed, None, note))
    difference = abs(objectives[0] / objectives[1] - 1)
    gain = rows[1]["seconds"] / rows[0]["seconds"]
    rows.append(row("CPU time over GPU time", gain, None, f"objectives differ by {difference:.1e} relative"))
    return rows


def fold_rows(samples: int, features: int, where: str) -> list[Row]:
    """The search of a cross-validation: the folds as columns of one problem, and one after the other."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((samples, features), dtype=np.float32)
    coef = np.where(np.arange(features) < 30, 1.0, 0.0).astype(np.float32)
    y = X @ coef + 2 * generator.standard_normal(samples, dtype=np.float32) + 3
    kinds: dict[str, Callable[[Any], Any]] = {"PyTorch": lambda x: torch.as_tensor(x, device=where)}
    try:
        import cupy

        kinds["CuPy"] = cupy.asarray
    except ImportError:
        pass
    rows = []
    for library, kind in kinds.items():
        data, lines, scores = (kind(X), kind(y)), [], []
        for what, together in (("as columns of one problem", True), ("one after the other", False)):
            _search(data, together)  # and what is compiled or planned once
            elapsed, values = _search(data, together)
            scores.append(values)
            lines.append((f"{FOLDS} folds x {ALPHAS} alphas, {samples} x {features}, {library}, {what}", elapsed))
        worst = float(np.max(np.abs(scores[0] / scores[1] - 1)))
        gain = lines[1][1] / lines[0][1]
        notes = [f"{gain:.1f} times as fast, errors differ by {worst:.1e} relative", ""]
        rows += [row(*line, None, note) for line, note in zip(lines, notes, strict=True)]
    return rows


def _search(data: tuple[Any, Any], together: bool) -> tuple[float, Any]:
    """How long the paths of all folds take, the fit at the alpha chosen left out, and the errors they have."""
    model = ell12.L12RegressorCV(alphas=ALPHAS, eps=0.03, cv=FOLDS, tol=1e-3)
    if not together:
        model.solver = NonmonotoneAPG()
    X, y, _ = model._validate_regression(*data, None)
    problems = model._problems(X, y, None)
    alphas = ell12.path.alpha_grid(model._alpha_max(problems), ALPHAS, model.eps)
    rows = np.arange(X.shape[0])
    folds = [(rows[rows % FOLDS != k], rows[rows % FOLDS == k]) for k in range(FOLDS)]
    begin = time.perf_counter()
    if together:
        scores, _ = model._side_by_side(problems, (X, y, None), folds, alphas)
    else:
        parts = [_fold(model, X, y, None, alphas, train, test) for train, test in folds]
        scores = np.stack([part for part, _ in parts], axis=1)
    return time.perf_counter() - begin, -scores  # the scores are on the host: the device has ended


def image_rows() -> list[Row]:
    """Denoising and completion of large images, on the device and on the processors."""
    generator = np.random.default_rng(0)
    clean = np.kron(generator.random((64, 64)), np.ones((64, 64))).astype(np.float32)
    noisy = clean + 0.05 * generator.standard_normal(clean.shape).astype(np.float32)
    factors = generator.standard_normal((2, 2048, 20)).astype(np.float32)
    matrix, mask = factors[0] @ factors[1].T, generator.random((2048, 2048)) < 0.5
    alpha = 0.02 * float(np.linalg.norm(np.where(mask, matrix, 0), 2))

    def denoise(image: Any) -> str:
        restored = ell12.denoise_tv(image, 0.05, return_result=True)
        return f"{restored.result.n_iter} steps"

    def complete(values: Any, known: Any) -> str:
        result = ell12.complete_matrix(ell12.Observed.from_mask(values, known), alpha)
        return f"{result.n_iter} steps, rank {result.x.rank}, objective {result.objective:.7g}"

    rows = []
    for what, call, data in (
        ("denoise_tv, 4096 x 4096", denoise, (noisy,)),
        ("complete_matrix, 2048 x 2048, half known", complete, (matrix, mask)),
    ):
        for where, kind in (("GPU", lambda x: torch.as_tensor(x, device="cuda")), ("CPU", np.asarray)):
            arrays = [kind(x) for x in data]
            note = call(*arrays)  # and what is compiled or planned once
            rows.append(row(f"{what}, {where}", seconds(partial(call, *arrays), 1), None, note))
    return rows


def rating_rows(size: tuple[int, int, int] = RATINGS) -> list[Row]:
    """Synthetic ratings, as in completion.py, on the device and on the processors: a sweep, and a whole fit.

    The fit takes biases off and stops at a tolerance of 1e-3; what is compiled or planned once is left out.
    """
    from completion import synthetic_ratings

    observed = synthetic_ratings(*size)
    kinds, rows = _sparse_kinds(observed), []
    alpha = ell12.complete_matrix(observed, "noise", **_settings(1), max_iter=1).alpha
    name = f"{size[2]:.0e} ratings, {size[0]} x {size[1]}, rank {RANK}"
    for where, make, threads in kinds:
        _fit(make(), alpha, threads, sweeps=2)
        whole, sweep, result = _fit(make(), alpha, threads, SWEEPS)
        note = f"{result.n_iter} sweeps, {result.status.name}, objective {result.objective:.9g}"
        rows.append(row(f"{name}, {where}: a sweep", sweep))
        rows.append(row(f"the same, {where}: in all", whole, None, note))
    return rows


def _settings(threads: int) -> dict[str, Any]:
    solver = ell12.completion.AlternatingLeastSquares(RANK, n_threads=threads)
    choices = {"max_rank": RANK, "l2_weight": 0.5, "center": "biases", "scale": None}
    return choices | {"solver": solver, "tol": 1e-3}


def _sparse_kinds(observed: Any) -> list[tuple[str, Callable[[], Any], int]]:
    """Names, ratings of a kind, and threads."""
    places = np.stack([observed.rows, observed.columns]).astype(np.int64)

    def tensor(dtype: Any) -> Any:
        X = torch.sparse_coo_tensor(torch.as_tensor(places), torch.as_tensor(observed.values), observed.shape)
        X = X.to("cuda", dtype)
        return lambda: X

    kinds = [("PyTorch", tensor(torch.float64), 1), ("PyTorch in single precision", tensor(torch.float32), 1)]
    try:
        from cupyx.scipy import sparse

        X = sparse.coo_matrix(observed.sparse().tocoo())
        kinds.append(("CuPy", lambda: X, 1))
    except ImportError:
        pass
    csr = observed.sparse()
    cores = os.cpu_count() or 1
    return [*kinds, ("one thread", lambda: csr, 1), (f"{cores} threads", lambda: csr, cores)]


def _fit(X: Any, alpha: float, threads: int, sweeps: int) -> tuple[float, float, Any]:
    """Seconds in all, from the sparse matrix on, those of a sweep, and the completion."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    with threadpool_limits(threads):  # those of BLAS
        result = ell12.complete_matrix(X, alpha, **_settings(threads), max_iter=sweeps)
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - begin
    return elapsed, statistics.median(np.diff(result.history["seconds"])[1:] if sweeps > 2 else [0.0]), result


def dask_rows(rows: int = 100_000, columns: int = 2000, blocks: int = 4) -> list[Row]:
    """A pass of the logistic loss over CuPy chunks that a worker of Dask keeps on the GPU."""
    import dask.array as da
    from dask.delayed import delayed
    from distributed import Client, LocalCluster

    from ell12.distributed import rows_loss

    random = np.random.default_rng(9)
    y = np.sign(random.standard_normal(rows * blocks)).astype(np.float32)
    x = 0.01 * random.standard_normal(columns).astype(np.float32)
    one = {
        "n_workers": 1,
        "threads_per_worker": 1,
        "env": {"CUDA_VISIBLE_DEVICES": "0"},
        "dashboard_address": None,
    }
    with LocalCluster(**one) as cluster, Client(cluster):
        chunks = [delayed(random_chunk)(seed, rows, columns) for seed in range(blocks)]
        X = da.concatenate([da.from_delayed(chunk, (rows, columns), np.float32) for chunk in chunks])
        loss = rows_loss(ell12.LogisticLoss, X, y, scale=1 / len(y), persist=True)
        places = iter(np.linspace(1, 2, 50))
        value = seconds(lambda: loss.gradient(loss.point(next(places).astype(np.float32) * x)), 9)
    name = f"a pass of the logistic loss over {rows * blocks} x {columns} floats"
    return [row(f"{name}, {blocks} chunks of CuPy on Dask's worker", value, None, "one worker, one GPU")]


def random_chunk(seed: int, rows: int, columns: int) -> Any:
    """Gaussian numbers, made on the worker's GPU."""
    import cupy

    return cupy.random.default_rng(seed).standard_normal((rows, columns), dtype=cupy.float32)


def measure_again(folder: Path, part: str) -> None:
    """Put newly measured rows of a part in place of the old ones, with their date."""
    result = json.loads((folder / "gpu.json").read_text())
    date = {"date": datetime.now(UTC).isoformat(timespec="minutes"), "part": part}
    new = [line | date for line in AGAIN[part]()]
    places = [place for place, line in enumerate(result["rows"]) if _part(line) == part]
    first = places[0] if places else len(result["rows"])
    before, after = (
        [line for line in lines if _part(line) != part]
        for lines in (result["rows"][:first], result["rows"][first:])
    )
    write(folder, result | {"rows": before + new + after})


def _part(line: Row) -> str:
    """What a line belongs to."""
    return line.get("part", "fits" if "fits" in line else "")


def whole_fits() -> list[Row]:
    return gpu_fits.fit_rows(SAMPLES, FEATURES, NONZERO, FITS_SEED)


# What `--NAME` measures alone.
AGAIN: dict[str, Callable[[], list[Row]]] = {
    "prox": prox_rows,
    "fits": whole_fits,
    "ratings": rating_rows,
    "dask": dask_rows,
}


def write(folder: Path, result: dict[str, Any]) -> None:
    """Both files."""
    folder.mkdir(exist_ok=True)
    (folder / "gpu.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / "gpu.md").write_text(render(result))


def render(result: dict[str, Any]) -> str:
    """The Markdown page."""
    lines = [
        "# ell12 on a GPU",
        "",
        f"Measured {result['date']} on {result['device']}: `python benchmarks/gpu.py`.",
    ]
    lines += [f"The device reads {result['bytes_per_second'] / 1e12:.2f} TB/s.", ""]
    lines += ["| what | seconds | limit | times the limit | note |", "| --- | ---: | ---: | ---: | --- |"]
    for line in result["rows"]:
        numbers = ["" if line[name] is None else f"{line[name]:.3g}" for name in ("seconds", "limit", "ratio")]
        date = [f"measured {line['date']}"] if "date" in line else []
        note = "; ".join(part for part in [line["note"], *date] if part)
        lines.append("| " + " | ".join([line["what"], *numbers, note]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    sklearn.set_config(array_api_dispatch=True)
    if sys.argv[1:] == ["--try-folds"]:
        fold_rows(400, 300, "cuda" if torch.cuda.is_available() else "cpu")
        return
    if sys.argv[1:] == ["--try-prox"]:
        prox_rows(2**20)
        return
    paths = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    folder = Path(paths[0]) if paths else Path(__file__).parent / "results"
    parts = [part for part in AGAIN if f"--{part}" in sys.argv]
    for part in parts:
        measure_again(folder, part)
    if parts:
        return
    speed = bytes_per_second()
    rows = [line | {"part": "prox"} for line in prox_rows()]
    torch.cuda.empty_cache()
    A, b, _ = problem()
    alpha = 0.1 * float((A.T @ b).abs().max())
    rows += iteration_rows(A, b, alpha, speed)
    rows += fit_rows(A, b, alpha)
    del A, b
    torch.cuda.empty_cache()
    rows += whole_fits()
    torch.cuda.empty_cache()
    rows += fold_rows(10_000, 20_000, "cuda")
    rows += image_rows()
    rows += [line | {"part": "ratings"} for line in rating_rows()]
    result = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "bytes_per_second": speed,
        "rows": rows,
    }
    write(folder, result)


if __name__ == "__main__":
    main()
