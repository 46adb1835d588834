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


@pytest.mark.parametrize("name", ["denoise", "deblur", "inpaint", "mri", "restore"])
def test_every_restoration_goes_on_from_its_checkpoint(name, tmp_path):
    image, kernel = noisy(), np.full((3, 3), 1 / 9)
    mask = np.random.default_rng(1).random(image.shape) < 0.6
    restore = {
        "denoise": lambda **options: short.denoise_tv(image, 0.1, **options),
        "deblur": lambda **options: short.deblur_tv(image, kernel, 0.01, **options),
        "inpaint": lambda **options: short.inpaint_tv(image, mask, 0.1, **options),
        "mri": lambda **options: short.reconstruct_mri(np.fft.fft2(image, norm="ortho"), mask, 0.1, **options),
        "restore": lambda **options: short.restore_tv(
            image.reshape(-1), np.eye(1600), 0.1, shape=(40, 40), **options
        ),
    }[name]
    options = {"checkpoint": tmp_path / "run.npz", "tol": 0, "return_result": True}
    first = restore(max_iter=3, **options).result
    again = restore(max_iter=5, resume=True, **options).result
    assert again.n_iter == 5
    assert again.history["objective"][:4] == first.history["objective"]
    assert again.objective <= first.objective
