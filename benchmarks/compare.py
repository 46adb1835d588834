"""Two versions of ell12 side by side: ``python benchmarks/compare.py OTHER/src``, OTHER being another checkout.

For changes that must not cost time. The problems are those of `newton.py`, and a path; each seed is solved by one
process for each version, the versions taking turns. Times are medians of processor time over the seeds, in one
thread. The table goes to benchmarks/results/compare.md.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEEDS = range(100, 107)
ALPHAS = [0.01 * 0.25**i for i in range(5)]


def solve(seed: int) -> dict[str, tuple[float, float]]:
    """Seconds and objective of every row, in this process."""
    import ell12

    found = {}

    def timed(name, run, *arguments, **options):
        begin = time.process_time()
        objective = run(*arguments, **options)
        found[name] = (time.process_time() - begin, objective)

    def objective(*problem, **options):
        return ell12.minimize(*problem, **options).objective

    def path(l2_weight):
        _, _, results = ell12.l12_path(data.A, data.b, alphas=50, eps=0.01, penalty=ell12.L12(l2_weight=l2_weight))
        return sum(result.objective for result in results)

    data = ell12.datasets.compressed_sensing(seed)
    objective(ell12.SquaredLoss(data.A, data.b), ell12.L12(0.1))  # loads what is compiled
    for alpha in ALPHAS:
        for solver in (ell12.WorkingSet(), ell12.solvers.SupportNewton(), ell12.NonmonotoneAPG()):
            if isinstance(solver, ell12.NonmonotoneAPG) and alpha < ALPHAS[1]:
                continue  # which would take minutes
            problem = ell12.SquaredLoss(data.A, data.b), ell12.L12(alpha)
            name = f"{type(solver).__name__}, alpha = {alpha:.3g}"
            timed(name, objective, *problem, solver=solver, tol=1e-6, max_iter=10**6)
    for l2_weight in (1.0, 0.0):
        timed(f"path of 50 strengths, l2_weight = {l2_weight:g}", path, l2_weight)
    return found


def run(source: str, seed: int) -> dict[str, tuple[float, float]]:
    """The same by another process with the sources of one version."""
    environment = os.environ | {"PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--seed", str(seed)]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def main(other: str) -> None:
    """Take turns and write the table."""
    sources = {"other": other, "this": str(HERE.parent / "src")}
    runs = {version: [] for version in sources}
    for number, seed in enumerate(SEEDS):
        for version in sorted(sources, reverse=bool(number % 2)):
            runs[version].append(run(sources[version], seed))
    lines = [f"# Two versions side by side\n\n{__doc__.split(chr(10), 2)[2].strip()}\n"]
    lines += [
        "| problem | other | this | this / other | largest difference of objectives |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in runs["this"][0]:
        old, new = ([found[name] for found in runs[version]] for version in ("other", "this"))
        before, after = (statistics.median(seconds for seconds, _ in rows) for rows in (old, new))
        worst = max((b[1] - a[1]) / abs(a[1]) for a, b in zip(old, new, strict=True))
        lines.append(f"| {name} | {before:.3f} s | {after:.3f} s | {after / before:.2f} | {worst:.1e} |")
    (HERE / "results" / "compare.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    if sys.argv[1] == "--seed":
        print(json.dumps(solve(int(sys.argv[2]))))
    else:
        main(sys.argv[1])
