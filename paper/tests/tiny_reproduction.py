"""``ell12-paper run`` with few and small experiments; with ``NO_PAGE`` in the environment, without its page."""

import os
import signal
import sys
import types
from pathlib import Path

from ell12_paper import EXPERIMENTS
from ell12_paper.compressed_sensing import study as compressed_sensing
from ell12_paper.prox import study as prox_study

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
for name in EXPERIMENTS.keys() - {"compressed-sensing", "level-curves", "prox"}:
    del EXPERIMENTS[name]
compressed_sensing.PRESETS["quick"] = compressed_sensing.SensingSize(
    40, n_repeats=2, slow_repeats={}, max_cpu_seconds=60.0, max_iter=400, dca_max_iter=4, grid=(0, 2)
)
prox_study.QUICK_POWER = dict.fromkeys(prox_study.CASES, 3)
prox_study.N_REPEATS = dict.fromkeys(prox_study.METHODS, 1)
if "NO_PAGE" in os.environ:
    stand_in = types.ModuleType("ell12_paper.report")
    stand_in.report, stand_in.verdict_lines = (lambda out: Path(out) / "index.html"), (lambda out: ["a verdict"])
    sys.modules["ell12_paper.report"] = stand_in

if __name__ == "__main__":
    from ell12_paper.command import main

    main()
