"""What the denoising study measures: images, rules, strengths and radial lines."""

import itertools
import math
import time

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the photographs need the extra 'images'")

from ell12 import datasets
from ell12.restoration import TotalVariationL12, deblur_tv, denoise_tv
from ell12_paper.studies import beyond as extras
from ell12_paper.studies import denoising
from ell12_paper.studies.denoising import ACCURATE, ALTMIN, DCA, METHODS, OURS
from ell12_paper.studies.images import photograph


def trial(method, **settings):
    shared = {"study": "strengths", "setup": "standard deviation", "image": "Mountain", "i": 4, "alpha": 0.08}
    shared |= {"noise": 0.05, "repeat": 0, "method": method, "size": 24, "seed": 1}
    return shared | {"max_iter": 600, "max_cpu_seconds": 60.0} | settings


@pytest.fixture(scope="module")
def measured():
    return {method: denoising.measure(trial(method)) for method in METHODS}


def noisy_image():
    clean = photograph("Mountain", 24)
    return clean, clean + 0.05 * np.random.default_rng(1).standard_normal(clean.shape)


def test_the_paper_preset_has_the_papers_size():
    trials = [s for s in denoising.trials("paper", 3) if s["study"] == "strengths"]
    papers = [s for s in trials if s["setup"] == "standard deviation" and s["method"] in (DCA, ALTMIN)]
    assert len(papers) == 5 * 3 * 64 * 2
    added = [s for s in trials if s["setup"] == "variance" or s["method"] == ACCURATE]
    assert {s["i"] for s in added} == {1, 2, 4, 8, 16, 32, 64}
    assert len(added) == 5 * 3 * 7 * (len(METHODS) + 1)
    assert {s["size"] for s in trials} == {512}
    assert {s["seed"] for s in trials} == set(range(3, 8))
    assert sorted({round(s["alpha"], 9) for s in trials}) == [round(0.02 * i, 9) for i in range(1, 65)]
    assert {s["setup"]: round(s["noise"] ** 2, 9) for s in trials} == {
        "standard deviation": 0.0025,
        "variance": 0.05,
    }


def test_every_method_ends_by_its_rule(measured):
    for results in measured.values():
        assert results["status"] == "CONVERGED"
        loose, strict = results["rules"]["loose"], results["rules"]["strict"]
        assert 0 < loose["n_iter"] <= strict["n_iter"] == results["n_iter"]
        assert 0 < loose["cpu_seconds"] <= strict["cpu_seconds"] == results["cpu_seconds"]
        assert results["rmse"] < 0.8 * results["rmse_noisy"]
    assert measured[DCA]["rules"]["loose"]["n_iter"] < measured[DCA]["rules"]["strict"]["n_iter"]


def test_the_objectives_are_those_of_the_problem(measured):
    clean, noisy = noisy_image()
    penalty = TotalVariationL12(0.08, l2_weight=1.0, smoothing=0.01)
    x = denoise_tv(noisy, 0.08, penalty=TotalVariationL12(l2_weight=1.0, smoothing=0.01))
    fit = 0.5 * np.sum((x - noisy) ** 2)
    rows, columns = np.diff(x, axis=0, append=x[-1:]), np.diff(x, axis=1, append=x[:, -1:])
    true = 0.08 * np.sum(abs(rows) + abs(columns) - np.hypot(rows, columns))
    assert measured[OURS]["objective"] == pytest.approx(fit + true, rel=1e-6)
    assert measured[OURS]["smoothed_objective"] == pytest.approx(fit + penalty.value(x), rel=1e-6)
    assert measured[OURS]["rmse"] == pytest.approx(np.sqrt(np.mean((x - clean) ** 2)), rel=1e-6)
    # DCA minimises the true objective, the others the smoothed one.
    assert min(measured, key=lambda method: measured[method]["objective"]) == DCA


def test_a_run_ends_at_its_limits():
    cut = denoising.measure(trial(ACCURATE, max_iter=5))
    assert (cut["status"], cut["n_iter"]) == ("MAX_ITER", 5)
    assert cut["rules"] == {"loose": None, "strict": None}
    assert denoising.measure(trial(OURS, max_iter=3))["rules"]["strict"] is None
    timed = denoising.measure(trial(DCA, max_cpu_seconds=0.0))
    assert (timed["status"], timed["n_iter"]) == ("STOPPED", 1)


def test_a_busy_machine_does_not_cut_a_run_off(monkeypatch):
    clock = itertools.count(step=1000.0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert denoising.measure(trial(ALTMIN))["status"] == "CONVERGED"


def test_a_rule_needs_two_small_changes_in_a_row():
    objective = [9.0, 5.0, 5.0, 4.0, 3.9999, 3.9998]
    assert [denoising._is_met(objective[:k], 1e-3) for k in range(1, 7)] == [False] * 5 + [True]
    assert not denoising._is_met(objective, 1e-5)
    assert not denoising._is_met([5.0, 5.0, 5.0], 1e-3)  # a solver's first iterate may be its start


def test_difference_images_are_kept_for_the_first_image_at_the_papers_alphas():
    assert denoising.measure(trial(OURS, image="Sea"))["difference"] == []
    assert denoising.measure(trial(OURS, i=3, alpha=0.06))["difference"] == []
    assert denoising.measure(trial(OURS, repeat=1))["difference"] == []
    rows = denoising.measure(trial(OURS))["difference"]
    clean, noisy = noisy_image()
    restored = denoise_tv(noisy, 0.08, penalty=TotalVariationL12(l2_weight=1.0, smoothing=0.01))
    levels = np.array([list(bytes.fromhex(row)) for row in rows])
    np.testing.assert_allclose(levels / 255 * denoising.DARKEST, abs(restored - clean).clip(0, 0.25), atol=6e-4)


def test_the_search_finds_the_best_strength():
    found = extras.best_strength(lambda alpha: 30 - math.log2(alpha / 5) ** 2, 0.3)
    assert abs(math.log2(found["alpha"] / 5)) <= 0.26
    assert found["psnr"] == max(psnr for _, psnr in found["tried"])
    assert [alpha for alpha, _ in found["tried"]] == sorted(alpha for alpha, _ in found["tried"])


@pytest.mark.parametrize("image", ["Sea", "Discs"])
def test_weights_are_measured_at_their_best_strength(image):
    settings = {"study": extras.WEIGHTS, "image": image, "l2_weight": 0.5, "repeat": 0, "seed": 4, "size": 32}
    results = extras.measure(settings)
    clean = extras.image_of(settings)
    noisy = clean + 0.05 * np.random.default_rng(4).standard_normal(clean.shape)
    found = [denoise_tv(noisy, a, penalty=TotalVariationL12(smoothing=0.01)) for a, _ in results["tried"]]
    psnr = [-10 * np.log10(np.mean((x - clean) ** 2)) for x in found]
    np.testing.assert_allclose(psnr, [value for _, value in results["tried"]], rtol=1e-6)
    assert results["psnr"] == pytest.approx(max(psnr))
    assert results["psnr"] > results["psnr_given"] + 2


def test_blur_is_undone():
    settings = {"study": extras.BLUR, "image": "Rectangles", "l2_weight": 0.5, "repeat": 0, "seed": 0, "size": 32}
    results = extras.measure(settings)
    assert results["psnr"] > results["psnr_given"] + 2
    clean, kernel = extras.image_of(settings), extras.blur_kernel()
    from scipy.ndimage import convolve

    blurred = convolve(clean, kernel, mode="wrap") + 0.01 * np.random.default_rng(0).standard_normal(clean.shape)
    penalty = TotalVariationL12(l2_weight=0.5, smoothing=0.01, boundary="periodic")
    sharp = deblur_tv(blurred, kernel, results["alpha"], penalty=penalty)
    assert results["psnr"] == pytest.approx(-10 * np.log10(np.mean((sharp - clean) ** 2)), abs=1e-3)


@pytest.mark.parametrize(("lines", "recovered"), [(30, True), (2, False)])
def test_the_phantom_needs_lines_enough(lines, recovered):
    settings = {"study": extras.LINES, "lines": lines, "l2_weight": 0.5, "bounds": "not negative", "size": 32}
    results = extras.measure(settings | {"growth": 1.03, "max_iter": 300})
    assert (results["relative_error"] <= extras.RECOVERED) == recovered
    assert results["measured"] == pytest.approx(datasets.radial_lines(32, lines).mean())
