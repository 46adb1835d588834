"""How much memory denoising takes.

A 4096 x 4096 picture and a 256^3 volume, both float32, with the default settings, each in a process of its own.
The note has the most memory that the process held, the image included, less what it had held before the image was
made, as a multiple of the image. The target is at most 12. Several threads need two more images than one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from timing import Row, version_of

BASELINE = "ell12"
CASES = [((4096, 4096), 1), ((4096, 4096), 2), ((256, 256, 256), 1), ((256, 256, 256), 2)]
# What is loaded once, the compiled sweep among it, comes before the first look at the memory.
CHILD = """
import json, resource, sys, time
import numpy as np
import ell12

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

shape, threads = json.loads(sys.argv[1])
solver = ell12.restoration.SmoothedGradient(threads=threads)
ell12.denoise_tv(np.zeros((32,) * (len(shape) - 2) + (128, 128), np.float32), 0.05, solver=solver)
before = peak()
image = np.random.default_rng(0).random(shape, np.float32)
start = time.process_time()
found = ell12.denoise_tv(image, 0.05, solver=solver, return_result=True)
seconds = time.process_time() - start
print(json.dumps([seconds, (peak() - before) / image.nbytes, found.runs[0].n_iter, found.converged]))
"""


def rows() -> Iterator[Row]:
    for shape, threads in CASES:
        command = [sys.executable, "-c", CHILD, json.dumps([shape, threads])]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds, multiple, sweeps, converged = json.loads(output)
        note = f"{multiple:.3g} times the image, {sweeps} sweeps, {'converged' if converged else 'not converged'}"
        threads_used = f"{threads} thread{'s' if threads > 1 else ''}"
        problem = f"{' x '.join(map(str, shape))}, float32, {threads_used}"
        yield Row(problem, "ell12", version_of("ell12"), seconds, None, None, note)
