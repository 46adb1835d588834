"""What users give is checked once, where it comes in, and not at every step."""

import sys
from collections import Counter

import numpy as np
import pytest
from tests.restoration import short

import ell12

CHECKS = {"as_floating", "as_operator", "check_numbers", "check_weights", "check_entries"}
IMAGE = 0.1 * np.random.default_rng(0).standard_normal((64, 64)) + np.kron(np.eye(2), np.ones((32, 32)))
MASK = np.random.default_rng(1).random((64, 64)) < 0.6
CALLS = {
    "denoise": lambda: short.denoise_tv(IMAGE, 0.1),
    "deblur": lambda: short.deblur_tv(IMAGE, np.full((3, 3), 1 / 9), 0.01),
    "inpaint": lambda: short.inpaint_tv(IMAGE, MASK, 0.1),
    "mri": lambda: short.reconstruct_mri(np.fft.fft2(IMAGE, norm="ortho"), MASK, sigma=0.1),
    "restore": lambda: short.restore_tv(IMAGE[:8, :8].reshape(-1), np.eye(64), 0.1, shape=(8, 8)),
    "dca": lambda: short.denoise_tv(IMAGE, 0.1, solver=ell12.restoration.TotalVariationDCA()),
    "admm": lambda: short.denoise_tv(IMAGE, 0.1, solver=ell12.restoration.GrowingADMM()),
    "cg": lambda: short.denoise_tv(IMAGE, 0.1, solver=ell12.restoration.AlternatingMinimization()),
}


def count_checks(call):
    """How often each check of the package is called."""
    counts = Counter()

    def profile(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_name in CHECKS and "ell12" in code.co_filename:
            counts[code.co_name] += 1

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counts


@pytest.mark.parametrize("name", CALLS)
def test_a_restoration_checks_its_data_a_handful_of_times(name):
    counts = count_checks(CALLS[name])
    assert counts["as_floating"] >= 1  # the counter works
    assert max(counts.values()) <= 6, counts


@pytest.mark.parametrize("call", [ell12.denoise_tv, lambda image: short.inpaint_tv(image, MASK)])
def test_the_search_for_a_strength_checks_little_more(call):
    counts = count_checks(lambda: call(IMAGE))
    assert sum(counts.values()) <= 40, counts  # some ten runs
