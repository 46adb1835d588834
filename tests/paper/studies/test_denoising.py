"""What the denoising study measures: images, rules and strengths."""

import numpy as np
import pytest
from scipy.ndimage import convolve

pytest.importorskip("skimage", reason="the photographs need the extra 'images'")

from ell12.restoration import TotalVariationL12, deblur_tv, denoise_tv
from ell12_paper.studies import beyond, denoising
from ell12_paper.studies.denoising import ACCURATE, DCA, METHODS, OURS
from ell12_paper.studies.images import photograph


def trial(method, **settings):
    shared = {"study": "strengths", "setup": "standard deviation", "image": "Mountain", "i": 4, "alpha": 0.08}
    shared |= {"noise": 0.05, "repeat": 0, "method": method, "size": 24, "seed": 1}
    return shared | {"max_iter": 600, "max_cpu_seconds": 60.0} | settings


@pytest.fixture(scope="module")
def measured():
    return {method: denoising.measure(trial(method)) for method in METHODS}


def test_every_method_ends_by_its_rule(measured):
    for results in measured.values():
        assert results["status"] == "CONVERGED"
        loose, strict = results["rules"]["loose"], results["rules"]["strict"]
        assert 0 < loose["n_iter"] <= strict["n_iter"] == results["n_iter"]
        assert 0 < loose["cpu_seconds"] <= strict["cpu_seconds"] == results["cpu_seconds"]
        assert results["rmse"] < 0.8 * results["rmse_noisy"]
    assert measured[DCA]["rules"]["loose"]["n_iter"] < measured[DCA]["rules"]["strict"]["n_iter"]
    objective = [9.0, 5.0, 5.0, 4.0, 3.9999, 3.9998]  # two small changes in a row
    assert [denoising.is_met(objective[:k], 1e-3) for k in range(1, 7)] == [False] * 5 + [True]
    assert not denoising.is_met([5.0, 5.0, 5.0], 1e-3)  # a solver's first iterate may be its start


def test_the_objectives_and_the_difference_are_those_of_the_problem(measured):
    clean = photograph("Mountain", 24)
    noisy = clean + 0.05 * np.random.default_rng(1).standard_normal(clean.shape)
    penalty = TotalVariationL12(0.08, l2_weight=1.0, smoothing=0.01)
    x = denoise_tv(noisy, 0.08, penalty=TotalVariationL12(l2_weight=1.0, smoothing=0.01))
    fit = 0.5 * np.sum((x - noisy) ** 2)
    rows, columns = np.diff(x, axis=0, append=x[-1:]), np.diff(x, axis=1, append=x[:, -1:])
    true = 0.08 * np.sum(abs(rows) + abs(columns) - np.hypot(rows, columns))
    found = measured[OURS]
    assert found["objective"] == pytest.approx(fit + true, rel=1e-6)
    assert found["smoothed_objective"] == pytest.approx(fit + penalty.value(x), rel=1e-6)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((x - clean) ** 2)), rel=1e-6)
    levels = np.array([list(bytes.fromhex(row)) for row in found["difference"]])
    np.testing.assert_allclose(levels / 255 * denoising.DARKEST, abs(x - clean).clip(0, 0.25), atol=6e-4)
    # DCA minimises the true objective, the others the smoothed one.
    assert min(measured, key=lambda method: measured[method]["objective"]) == DCA


def test_a_run_ends_at_its_limits():
    cut = denoising.measure(trial(ACCURATE, max_iter=5))
    assert (cut["status"], cut["n_iter"]) == ("MAX_ITER", 5)
    assert cut["rules"] == {"loose": None, "strict": None}
    assert denoising.measure(trial(OURS, max_iter=3))["rules"]["strict"] is None
    timed = denoising.measure(trial(DCA, max_cpu_seconds=0.0))
    assert (timed["status"], timed["n_iter"]) == ("STOPPED", 1)


@pytest.mark.parametrize(("study", "image"), [(beyond.WEIGHTS, "Discs"), (beyond.BLUR, "Rectangles")])
def test_weights_are_measured_at_their_best_strength(study, image):
    settings = {"study": study, "image": image, "l2_weight": 0.5, "repeat": 0, "seed": 4, "size": 24}
    results = beyond.measure(settings)
    clean, kernel = beyond.image_of(settings), beyond.blur_kernel()
    noise = np.random.default_rng(4).standard_normal(clean.shape)
    if study == beyond.BLUR:
        given = convolve(clean, kernel, mode="wrap") + 0.01 * noise
        penalty = TotalVariationL12(l2_weight=0.5, smoothing=0.01, boundary="periodic")
        best = deblur_tv(given, kernel, results["alpha"], penalty=penalty)
    else:
        given = clean + 0.05 * noise
        best = denoise_tv(given, results["alpha"], penalty=TotalVariationL12(smoothing=0.01))
    assert results["psnr"] == pytest.approx(-10 * np.log10(np.mean((best - clean) ** 2)), abs=1e-3)
    assert results["psnr_given"] == pytest.approx(-10 * np.log10(np.mean((given - clean) ** 2)), abs=1e-9)
    assert results["psnr"] == max(psnr for _, psnr in results["tried"]) > results["psnr_given"] + 2
