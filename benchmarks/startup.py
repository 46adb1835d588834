"""How long `import ell12` and a first small fit take, beyond NumPy, SciPy and scikit-learn.

Every sample is a new process, which reports the processor time of its own steps; medians of 7, after one process
to warm the disk's cache. "Beyond" is what follows `import numpy, scipy, sklearn` in the same process. "From
nothing" is all that a script takes, the interpreter's own start included. The fit is squared loss with l1-2 on
100 x 200. The two kinds of process alternate.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator

from timing import Row, version_of

BASELINE = "numpy + scipy + sklearn"
REPEATS = 7
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


def rows() -> Iterator[Row]:
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
    yield Row("beyond", "and a first fit", ours, fit, fit / base, objective, ending)
    yield Row("from nothing", "import ell12, first fit", ours, everything, everything / base, objective, ending)


def execute(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
