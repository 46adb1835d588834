"""How long `import ell12`, first fits and first paths take in new processes.

Every sample is a new process, which reports the processor time of its own steps; medians. "beyond" is what
follows `import numpy, scipy, sklearn` in the same process: ell12's names are loaded in that time, and so is all
that the call needs. The data are Gaussian columns with ten nonzeros, and alpha is 0.1 of the largest. A "second
call" is the same one again in the same process. "nothing compiled before" has an empty cache of compiled code.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import study
from study import Row

BASELINE = "numpy + scipy + sklearn"
REPEATS, REPEATS_COLD = 9, 3
PROGRAM = """
import json, sys, time
times = [time.process_time()]
import numpy as np, scipy, sklearn
times.append(time.process_time())
call, n, p = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random = np.random.default_rng(0)
A = random.standard_normal((n, p))
b = A[:, :10].sum(axis=1) + random.standard_normal(n)
alpha = 0.1 * np.abs(A.T @ b).max()
image = random.standard_normal((128, 128)) * 0.1
image[32:96, 32:96] += 1
CALLS = {
    "minimize": lambda: ell12.minimize(ell12.SquaredLoss(A, b), ell12.L12(alpha)),
    "L12Regressor": lambda: ell12.L12Regressor(alpha / n).fit(A, b),
    "l12_path": lambda: ell12.l12_path(A, b),
    "L12RegressorCV": lambda: ell12.L12RegressorCV().fit(A, b),
    "L12Classifier": lambda: ell12.L12Classifier().fit(A, b > 0),
    "denoise_tv": lambda: ell12.denoise_tv(image),
}
for _ in range(2):
    begin = time.process_time()
    import ell12
    if call:
        CALLS[call]()
    times.append(time.process_time() - begin)
print(json.dumps([times[1] - times[0], *times[2:]]))
"""
CASES = [
    ("", 1, 1),
    ("minimize", 100, 200),
    ("L12Regressor", 200, 500),
    ("L12Regressor", 500, 2000),
    ("L12Classifier", 200, 500),
    ("l12_path", 200, 500),
    ("L12RegressorCV", 200, 500),
    ("denoise_tv", 1, 10),
]


def rows() -> Iterator[Row]:
    ours = study.version_of("ell12")
    run(*CASES[-1], None)  # the disk's cache
    for call, n, p in CASES:
        base, first, second = medians(call, n, p, REPEATS, cold=False)
        problem = f"{n} x {p}" if call and call != "denoise_tv" else "128 x 128" * bool(call)
        name = f"ell12.{call}" if call else "import ell12"
        yield Row(
            problem, f"{name}, first, beyond", ours, first, first / base, note=f"imports {1e3 * base:.0f} ms"
        )
        if call:
            yield Row(problem, f"{name}, second call", ours, second, second / base)
    for call, n, p in CASES[-3:]:
        base, first, _ = medians(call, n, p, REPEATS_COLD, cold=True)
        yield Row(f"{n} x {p}", f"ell12.{call}, first, nothing compiled before", ours, first, first / base)


def medians(call: str, n: int, p: int, repeats: int, *, cold: bool) -> list[float]:
    """Import time, first and second call."""
    samples = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            samples.append(run(call, n, p, folder if cold else None))
    return [statistics.median(column) for column in zip(*samples, strict=True)]


def run(call: str, n: int, p: int, cache: str | None) -> list[float]:
    environment = dict(os.environ) | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    command = [sys.executable, "-c", PROGRAM, call, str(n), str(p)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


if __name__ == "__main__":
    study.write_rows("startup", __doc__ or "", rows(), BASELINE)
