"""The study of image completion: its trials, and what a trial measures."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the photographs ship with scikit-image")

from ell12_paper.studies import image_completion as completion
from ell12_paper.studies.image_completion import METHODS, measure, observed_pixels
from ell12_paper.studies.images import photograph

SMALL = SimpleNamespace(size=48, max_cpu_seconds=60.0, max_iter=400, sketchy_max_iter=5)


def settings(method, image="Windows", study="table", repeat=0, **changed):
    return completion.settings_of(SMALL, 0, study, image, method, repeat, **changed)


@pytest.fixture(scope="module")
def results():
    return {method: measure(settings(method)) for method in METHODS}


def test_every_method_ends_and_beats_the_mean(results):
    image = photograph("Windows", 48)
    known = observed_pixels(settings("nmAPG"))
    spread = float(np.std(image[~known] - image[known].mean()))
    for method, found in results.items():
        assert found["rmse"] > 0
        assert found["cpu_seconds"] >= 0
        if method not in ("LMaFit", "ARSS-M3F"):  # which fit the known pixels alone
            assert found["rmse_missing"] < spread, method


def test_engines_of_one_objective_agree(results):
    objective = results["nmAPG(full SVD)"]["objective"]
    for method in ("nmAPG", "nmAPG(block)", "DCA(block)"):
        assert results[method]["objective"] == pytest.approx(objective, rel=1e-3)
        assert results[method]["rmse"] == pytest.approx(results["nmAPG(full SVD)"]["rmse"], rel=0.02)
    assert results["AIS-Impute"]["objective"] == pytest.approx(
        results["nuclear norm(block)"]["objective"], rel=1e-3
    )


def test_the_nuclear_norm_is_that_of_a_plain_reference(results):
    """Soft-thresholding of the filled-in matrix, many times: an independent minimiser."""
    image, known = photograph("Windows", 48), observed_pixels(settings("nmAPG"))
    alpha = 0.1 * np.abs(image[known]).max()
    X = np.zeros_like(image)
    for _ in range(3000):
        U, s, Vt = np.linalg.svd(np.where(known, image, X), full_matrices=False)
        X = (U * np.maximum(s - alpha, 0)) @ Vt
    found = results["nuclear norm(block)"]
    assert found["alpha"] == alpha
    objective = 0.5 * np.sum((X - image)[known] ** 2) + alpha * np.linalg.norm(X, "nuc")
    assert found["objective"] == pytest.approx(objective, rel=1e-4)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((X - image) ** 2)), rel=1e-2)
    assert found["rmse_missing"] == pytest.approx(np.sqrt(np.mean((X - image)[~known] ** 2)), rel=1e-2)
