"""How long `import ell12` and first fits take, beyond NumPy, SciPy and scikit-learn.

Every sample is a new process, which reports the processor time of its own steps; medians, after one process that
warms the disk's cache and writes Python's. "Beyond" is what follows `import numpy, scipy, sklearn` in the same
process: ell12's names are loaded in that time, and so is all that the fit needs. "From nothing" is all that a
script takes, the interpreter's own start included. The fits are squared loss with l1-2: on 100 x 200 of noise, and
on 500 x 2000, Gaussian columns or such whose neighbours have correlation 0.9, 50 nonzeros, noise of a twentieth,
at some shares of the largest strength. Each is the median of 15 processes, and beside it stands the median of
their own imports: where these take longer than usual, so does the rest. A "second fit" is the same one again, in
the same process; "warm" is the median of nine more, taken in turn with as many whose working sets are solved by
compiled sweeps alone: that is the multiple there. The kinds of process take turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from timing import Row, version_of

BASELINE = "numpy + scipy + sklearn"
REPEATS, REPEATS_FIRST, REPEATS_WARM = 7, 15, 3
SHARES = (0.1, 0.03, 0.01)
Kind = tuple[str, str, float]  # columns, way, share
FIT = """
import numpy as np
generator = np.random.default_rng(0)
A, b = generator.standard_normal((100, 200)), generator.standard_normal(100)
result = ell12.minimize(ell12.SquaredLoss(A, b), ell12.L12(0.1))
"""
STEPS = f"""
import json, time
times = [time.process_time()]
import numpy, scipy, sklearn
times.append(time.process_time())
import ell12
times.append(time.process_time())
ell12.SquaredLoss, ell12.L12, ell12.minimize
times.append(time.process_time())
{FIT}
times.append(time.process_time())
objective = result.objective
elapsed = [end - start for start, end in zip(times, times[1:])]
print(json.dumps([elapsed, float(objective), f"{{result.status.name}} after {{result.n_iter}} iterations"]))
"""
FROM_NOTHING = f"""
import ell12
{FIT}
import time
print(time.process_time())  # since the process began
"""
LARGE = """
import json, statistics, sys, time
begin = time.process_time()
import numpy as np, scipy, sklearn
base = time.process_time() - begin
columns, way, share = sys.argv[1], sys.argv[2], float(sys.argv[3])
generator = np.random.default_rng(0)
n, p = 500, 2000
A = generator.standard_normal((n, p + 50))
if columns == "correlated":
    for k in range(1, p + 50):
        A[:, k] = 0.9 * A[:, k - 1] + (1 - 0.9**2) ** 0.5 * A[:, k]
A = np.ascontiguousarray(A[:, 50:]) / n**0.5
x = np.zeros(p)
x[generator.choice(p, 50, replace=False)] = generator.standard_normal(50)
b = A @ x
b += 0.05 * np.linalg.norm(b) / n**0.5 * generator.standard_normal(n)
alpha = share * np.abs(A.T @ b).max()
def fit():
    if way == "minimize":
        return ell12.minimize(ell12.SquaredLoss(A, b), ell12.L12(alpha))
    return ell12.L12Regressor(alpha=alpha / n).fit(A, b).results_[0]
def seconds():
    begin = time.process_time()
    fit()
    return time.process_time() - begin
begin = time.process_time()
import ell12
result = fit()
first = time.process_time() - begin
"""
FIRST = f"""
{LARGE}
second = seconds()
ending = f"{{result.status.name}} after {{result.n_iter}} iterations, {{np.count_nonzero(result.x)}} nonzeros"
loaded = ", numba loaded" if "numba" in sys.modules else ""
print(json.dumps([base, first, second, float(result.objective), ending + loaded]))
"""
WARM = f"""
{LARGE}
from ell12.solvers import gram_descent
size = gram_descent.COMPILED_FROM
warm = {{True: [], False: []}}
for turn in range(20):
    compiled = turn % 2 == 0
    gram_descent.COMPILED_FROM = 0 if compiled else size
    warm[compiled].append(seconds())
print(json.dumps([statistics.median(warm[way][1:]) for way in (False, True)]))
"""


def rows() -> Iterator[Row]:
    yield from small_rows()
    yield from large_rows()


def small_rows() -> Iterator[Row]:
    execute(STEPS)
    steps, whole = [], []
    for _ in range(REPEATS):
        times, objective, ending = json.loads(execute(STEPS))
        steps.append(times)
        whole.append(float(execute(FROM_NOTHING)))
    base, bare, names, fit = (
        statistics.median(total)
        for total in zip(*((s[0], s[1], s[1] + s[2], sum(s[1:])) for s in steps), strict=True)
    )
    ours, everything = version_of("ell12"), statistics.median(whole)
    lazy = "its names are loaded when first used"
    yield Row("import", "import numpy, scipy, sklearn", version_of("scikit-learn"), base, 1.0, note="the baseline")
    yield Row("beyond", "import ell12", ours, bare, bare / base, note=lazy)
    yield Row("beyond", "and the names for a fit", ours, names, names / base)
    yield Row("beyond", "and a first fit, 100 x 200", ours, fit, fit / base, objective, ending)
    yield Row("from nothing", "import ell12, first fit", ours, everything, everything / base, objective, ending)


def large_rows() -> Iterator[Row]:
    """First and second fits of 500 x 2000, and how warm ones compare with compiled sweeps."""
    kinds = [(c, w, s) for c in ("Gaussian", "correlated") for w in ("minimize", "L12Regressor") for s in SHARES]
    for kind in kinds[:1] + kinds[len(SHARES) : len(SHARES) + 1]:
        execute(FIRST, *map(str, kind))
    firsts, warms = samples_of(FIRST, kinds, REPEATS_FIRST), samples_of(WARM, kinds, REPEATS_WARM)
    ours = version_of("ell12")
    for kind in kinds:
        columns, way, share = kind
        base, first, second = (statistics.median(sample[k] for sample in firsts[kind]) for k in range(3))
        leaps, sweeps = (statistics.median(sample[k] for sample in warms[kind]) for k in range(2))
        objective, ending = firsts[kind][0][3:]
        problem, imports = f"500 x 2000, {columns}, {share:g}", f"imports {1e3 * base:.0f} ms"
        note = f"{ending}; {imports}"
        yield Row(problem, f"{way}, first fit, beyond", ours, first, first / base, objective, note)
        yield Row(problem, f"{way}, second fit", ours, second, second / base)
        note = f"compiled sweeps {1e3 * sweeps:.3g} ms; the multiple is of these"
        yield Row(problem, f"{way}, warm", ours, leaps, leaps / sweeps, note=note)


def samples_of(program: str, kinds: list[Kind], repeats: int) -> dict[Kind, list[Any]]:
    """What a program says of each kind, the kinds taking turns."""
    found: dict[Kind, list[Any]] = {kind: [] for kind in kinds}
    for _ in range(repeats):
        for kind, samples in found.items():
            samples.append(json.loads(execute(program, *map(str, kind))))
    return found


def execute(program: str, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
