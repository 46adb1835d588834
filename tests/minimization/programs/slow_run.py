"""A run for ever that prints its iterations and their times, slowly enough to be killed in the middle."""

import sys
import time

import ell12


def stop(history):
    print(len(history["objective"]) - 1, time.time(), flush=True)
    time.sleep(0.01)


data = ell12.datasets.compressed_sensing(0, n_samples=50)
ell12.minimize(
    ell12.SquaredLoss(data.A, data.b),
    ell12.L12(0.01),
    solver=ell12.NonmonotoneAPG(),
    tol=0,
    run=ell12.Run(
        callback=stop, checkpoint=ell12.minimization.Checkpoint(sys.argv[1], seconds=float(sys.argv[2]))
    ),
)
