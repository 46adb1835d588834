"""Low-rank matrix completion: the engines side by side, and alternating least squares with cmfrec.

Photograph: scikit-image's camera, 512 x 512, half of the pixels known; the block of singular vectors against a
full decomposition each step, to stationarity 1e-4. Target: five times faster at the same rank and objective.
Ratings: synthetic, 6,000 x 3,500 with 500,000 known and 10 % of them hidden; cmfrec with biases, in double
precision, one thread, both of rank 10 and at the strength that predicts the hidden entries best of a few; the
column of objectives holds the RMSE on them. Target: at most 1.2 times cmfrec's time at no higher error. Sweeps:
alternating least squares of rank 10 at growing numbers of known entries, with the peak memory of a process of its
own. Targets: below 1.5 s and 2 GB at ten million, growth linear. Equal objective: the time until a method is
within 1e-4 of the lowest objective that any reached. Times are processor time; a run of seconds is timed once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import coo_array

import ell12
from timing import CLOCK, Row, load, version_of

BASELINE = "the first method of the problem"
SMALL = os.environ.get("ELL12_SMALL_BENCHMARK") == "1"  # to try the script
IMAGE = 96 if SMALL else 512
ALPHAS = (1.0, 0.3, 0.1)
RATINGS = (600, 350, 20_000) if SMALL else (6_000, 3_500, 500_000)
STRENGTHS = (5.0, 10.0, 15.0, 20.0)
SIZES = (10**4, 10**5) if SMALL else (10**5, 10**6, 10**7)


def rows() -> Iterator[Row]:
    yield from photograph()
    yield from ratings()
    yield from sweeps()
    yield from equal_objective()


def photograph() -> Iterator[Row]:
    loss = known_half_of_camera()
    for alpha in ALPHAS:
        base = None
        for solver in (ell12.completion.BlockAPG(), ell12.completion.FullSVD()):
            seconds, result = timed(loss, ell12.SpectralL12(alpha), solver)
            base = base or seconds
            note = f"rank {result.x.rank}, {result.n_iter} steps, {result.status.name}"
            name = type(solver).__name__
            yield row(f"camera, alpha = {alpha:g}", name, seconds, base, result.objective, note)


def ratings() -> Iterator[Row]:
    m, n, count = RATINGS
    problem = f"ratings {m} x {n}, {count} known"
    train, test = synthetic_ratings(m, n, count).split(0.1, 0)
    ours = min((fit_ours(train, test, alpha) for alpha in STRENGTHS), key=lambda fit: fit[1])
    peer, reason = load("cmfrec")
    theirs = (
        None if peer is None else min((fit_cmfrec(peer, train, test, a) for a in STRENGTHS), key=lambda f: f[1])
    )
    base = ours[0] if theirs is None else theirs[0]
    if theirs is None:
        yield Row(problem, "cmfrec", version_of("cmfrec"), note=reason)
    else:
        yield Row(problem, "cmfrec", version_of("cmfrec"), theirs[0], 1.0, theirs[1], f"{theirs[2]}; RMSE hidden")
    yield row(problem, "AlternatingLeastSquares", ours[0], base, ours[1], f"{ours[2]}; RMSE hidden")
    begin = CLOCK()
    model = ell12.L12Imputer(random_state=0).fit(train.sparse())
    seconds = CLOCK() - begin
    note = f"center {model.center_}, rank {model.max_rank_}, chosen on hidden entries of its own; RMSE hidden"
    yield row(problem, "L12Imputer()", seconds, base, error(model.predict(test.rows, test.columns), test), note)


def fit_ours(train: Any, test: Any, alpha: float) -> tuple[float, float, str]:
    begin = CLOCK()
    settings = {"penalty": ell12.SpectralL12(l2_weight=1.0), "max_rank": 10, "center": "biases", "scale": None}
    fit = ell12.complete_matrix(
        train, alpha, **settings, solver=ell12.completion.AlternatingLeastSquares(10), tol=1e-2, max_iter=30
    )
    seconds = CLOCK() - begin
    low, high = train.values.min(), train.values.max()
    predicted = np.clip(fit.predict(test.rows, test.columns), low, high)
    return seconds, error(predicted, test), f"alpha {alpha:g}, {fit.n_iter} sweeps"


def fit_cmfrec(peer: Any, train: Any, test: Any, strength: float) -> tuple[float, float, str]:
    begin = CLOCK()
    model = peer.CMF(k=10, lambda_=strength, nthreads=1, use_float=False, verbose=False, random_state=0)
    model.fit(coo_array((train.values, (train.rows, train.columns)), shape=train.shape))
    seconds = CLOCK() - begin
    low, high = train.values.min(), train.values.max()
    predicted = np.clip(model.predict(test.rows, test.columns), low, high)
    return seconds, error(predicted, test), f"lambda {strength:g}"


def error(predicted: np.ndarray, test: Any) -> float:
    return float(np.sqrt(np.mean((predicted - test.values) ** 2)))


def sweeps() -> Iterator[Row]:
    """One process for each size, so that its peak memory is its own."""
    base = None
    for count in SIZES:
        code = f"import completion; completion.measure_sweeps({count})"
        command = [sys.executable, "-c", code]
        folder = os.path.dirname(__file__)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        problem, method = f"a sweep, {count} known of 100,000 x 10,000", "AlternatingLeastSquares"
        if done.returncode != 0:
            yield Row(problem, method, version_of("ell12"), note=done.stderr[-200:])
            continue
        seconds, memory = map(float, done.stdout.split())
        base = base or seconds
        note = f"{seconds / count * 1e9:.0f} ns an entry, peak memory {memory:.2f} GB"
        yield row(problem, method, seconds, base, None, note)


def measure_sweeps(count: int) -> None:
    """Print the median processor time of a sweep, and the peak memory in GB."""
    import resource

    random = np.random.default_rng(0)
    flat = np.unique(random.integers(0, 10**9, count))
    places = (flat // 10**4).astype(np.int32), (flat % 10**4).astype(np.int32)
    del flat
    truth = ell12.LowRank.from_factors(random.standard_normal((10**5, 5)), random.standard_normal((10**4, 5)))
    values = truth.entries(*places) + random.standard_normal(places[0].size)
    loss = ell12.completion.CompletionLoss(ell12.Observed(*places, values, (10**5, 10**4)))
    solver = ell12.completion.AlternatingLeastSquares(10)
    iterates = solver.iterates(loss, ell12.SpectralL12(20.0), loss.point(loss.start()))
    times = []
    for _ in range(6):
        begin = CLOCK()
        next(iterates)
        times.append(CLOCK() - begin)
    print(np.median(times[1:]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def equal_objective() -> Iterator[Row]:
    """NmAPG, FaNCL and SCP on the log-sum penalty, nmAPG and SCP on l1-2: time until within 1e-4 of the best."""
    loss = known_half_of_camera()
    for penalty in (ell12.SpectralL12(1.0), ell12.penalties.SpectralLogSum(1.0, 1.0)):
        runs = {type(s).__name__: timed(loss, penalty, s)[1] for s in rivals(penalty)}
        best = min(run.objective for run in runs.values())
        base = None
        for name, run in runs.items():
            reached = np.flatnonzero(np.array(run.history["objective"]) <= best * (1 + 1e-4))
            seconds = run.history["cpu_seconds"][reached[0]] if reached.size else None
            base = base or seconds
            note = f"{reached[0]} steps" if reached.size else "never within 1e-4 of the lowest objective"
            yield row(f"camera, {penalty}", name, seconds, base, run.objective, note)


def rivals(penalty: Any) -> list[Any]:
    solvers = [ell12.completion.BlockAPG()]
    baselines, _ = load("ell12_paper.rivals")
    if baselines is not None:
        solvers += [baselines.MatrixDCA()]
        solvers += [baselines.FaNCL()] * isinstance(penalty, ell12.penalties.SpectralLogSum)
    return solvers


def timed(loss: Any, penalty: Any, solver: Any) -> tuple[float, Any]:
    begin = CLOCK()
    result = ell12.minimize(loss, penalty, solver=solver, tol=1e-4, max_iter=1000)
    return CLOCK() - begin, result


def row(problem: str, method: str, seconds: float | None, base: float | None, objective: Any, note: str) -> Row:
    multiple = seconds / base if seconds and base else None
    return Row(problem, method, version_of("ell12"), seconds, multiple, objective, note)


def known_half_of_camera() -> Any:
    from skimage import data

    image = data.camera()[:IMAGE, :IMAGE] / 255
    known = np.random.default_rng(0).random(image.shape) < 0.5
    return ell12.completion.CompletionLoss(ell12.Observed.from_mask(image, known))


def synthetic_ratings(m: int, n: int, count: int) -> Any:
    """Users and items of power-law popularity, with biases, five directions of falling strength, and noise."""
    random = np.random.default_rng(0)
    shares = [random.pareto(a, size) + 0.2 for a, size in ((1.2, m), (1.0, n))]
    draws = [random.choice(w.size, 3 * count, p=w / w.sum()) for w in shares]
    flat = random.permutation(np.unique(draws[0] * n + draws[1]))[:count]
    users, items = np.divmod(flat, n)
    strength = 0.7 ** np.arange(5)
    W, H = (random.standard_normal((size, 5)) * np.sqrt(0.5 * strength) for size in (m, n))
    values = 3.6 + random.normal(0, 0.4, m)[users] + random.normal(0, 0.5, n)[items]
    values += np.sum(W[users] * H[items], axis=1) + random.normal(0, 0.85, flat.size)
    return ell12.Observed(users, items, np.clip(np.round(values), 1, 5), (m, n))
