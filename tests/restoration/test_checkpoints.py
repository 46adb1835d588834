"""Restorations that are interrupted go on where they were."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.restoration import short

SLOW_DENOISING = Path(__file__).parent / "programs" / "slow_denoising.py"


def noisy(shape=(40, 40)):
    clean = np.zeros(shape)
    clean[10:30, 8:25] = 1
    return clean + 0.1 * np.random.default_rng(0).standard_normal(shape)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill -9")
def test_a_killed_restoration_is_resumed_to_the_same_image(tmp_path):
    path, image = tmp_path / "run.npz", tmp_path / "image.npy"
    np.save(image, noisy())
    command = [sys.executable, str(SLOW_DENOISING), str(image), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(15):  # by then the run has settled on one of several local minima
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    options = {"l2_weight": 0.5, "tol": 1e-4, "return_result": True}
    whole = short.denoise_tv(noisy(), 0.1, **options)
    again = short.denoise_tv(noisy(), 0.1, checkpoint=path, resume=True, **options)
    assert again.converged
    assert again.result.n_iter > 13
    assert again.result.history["seconds"][1] != whole.result.history["seconds"][1]
    assert np.sqrt(np.mean((again.image - whole.image) ** 2)) < 1e-3
    assert again.result.objective == pytest.approx(whole.result.objective, rel=1e-7)
