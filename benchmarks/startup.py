"""How long `import ell12` and a first small fit take, beyond NumPy, SciPy and scikit-learn.

Every sample is a new process, which reports the times of its own steps; medians of 7 after one to warm the disk's
cache. "Beyond" is what follows `import numpy, scipy, sklearn` in the same process. "From nothing" is a script's
whole wait, the interpreter's own start included. The fit is squared loss with l1-2 on 100 x 200. The two kinds of
process alternate.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
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
times = [time.perf_counter()]
import numpy, scipy, sklearn
times.append(time.perf_counter())
import ell12
times.append(time.perf_counter())
{FIT}
times.append(time.perf_counter())
objective = result.history["objective"][-1]
print(json.dumps([[end - start for start, end in zip(times, times[1:])], float(objective)]))
"""
FROM_NOTHING = f"import ell12\n{FIT}"


def rows() -> Iterator[Row]:
    execute(STEPS)
    steps, whole, objective = [], [], None
    for _ in range(REPEATS):
        times, objective = json.loads(execute(STEPS))
        steps.append(times)
        start = time.perf_counter()
        execute(FROM_NOTHING)
        whole.append(time.perf_counter() - start)
    ours = version_of("ell12")
    base = statistics.median(s[0] for s in steps)
    beyond = statistics.median(s[1] for s in steps)
    fitted = statistics.median(s[1] + s[2] for s in steps)
    everything = statistics.median(whole)
    yield Row(
        "import", "import numpy, scipy, sklearn", version_of("scikit-learn"), base, 1.0, note="the baseline"
    )
    yield Row("beyond", "import ell12", ours, beyond, beyond / base)
    yield Row("beyond", "import ell12, first fit", ours, fitted, fitted / base, objective)
    yield Row("from nothing", "import ell12, first fit", ours, everything, everything / base, objective)


def execute(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
