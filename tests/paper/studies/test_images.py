"""The study of image completion, and the photographs of a folder in the place of the stand-ins."""

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the photographs need the extra 'images'")

from types import SimpleNamespace

from PIL import Image as image

from ell12_paper.studies import denoising, images
from ell12_paper.studies import image_completion as completion
from ell12_paper.studies.image_completion import METHODS, measure, observed_pixels
from ell12_paper.studies.images import photograph


def test_a_folder_stands_for_them_and_rows_hold_no_copy_of_a_picture_without_a_licence(tmp_path, monkeypatch):
    ramp = np.tile(np.arange(0, 256, 8, dtype=np.uint8), (32, 1))
    for name in ("testimage", "own"):
        image.fromarray(ramp).save(tmp_path / f"{name}.png")
    (tmp_path / "notes.txt").write_text("no picture")
    monkeypatch.setenv(images.FOLDER, str(tmp_path))
    assert images.names() == ("testimage", "own")
    enlarged = images.photograph("own", images.SIDE)
    np.testing.assert_allclose(enlarged[0, 8:504:16], enlarged[-1, 8:504:16])
    assert np.all(np.diff(enlarged[0]) >= 0)
    first = [s for s in completion.trials("quick", 0) if (s["study"], s["repeat"]) == ("table", 0)]
    asked = [s | {"max_iter": 2} for s in first if s["method"] == "AIS-Impute"]
    found = {s["image"]: measure(s) for s in asked}
    kept = {name: [results[key] is not None for key in ("clean", "difference")] for name, results in found.items()}
    assert kept == {"testimage": [False, False], "own": [True, True]}


def test_denoising_and_deblurring_take_the_pictures_of_a_folder(tmp_path, monkeypatch):
    shapes = {"re4": (24, 32), "re7": (32, 24), "testimage": (32, 32)}
    for number, (name, shape) in enumerate(shapes.items()):
        pixels = np.random.default_rng(number).integers(0, 256, shape).astype(np.uint8)
        image.fromarray(pixels).save(tmp_path / f"{name}.png")
    monkeypatch.setenv(images.FOLDER, str(tmp_path))
    planned = [s for s in denoising.trials("quick", 0) if s.get("i", 4) == 4 and s.get("l2_weight", 0.5) == 0.5]
    pictures = {(s["study"], s["image"]) for s in planned if s["image"] not in ("Rectangles", "Discs")}
    assert pictures == {("strengths", name) for name in shapes} | {
        ("l2-weight", "testimage"), ("l2-weight", "re7"), ("deblurring", "testimage")
    }  # fmt: skip
    for settings in planned:
        found = denoising.measure(settings | {"size": 32})
        if settings["study"] == "strengths":
            assert found["rmse_noisy"] == pytest.approx(settings["noise"], rel=0.1)
            assert found["difference"] == []  # no copy of what has no licence
        else:
            assert found["psnr_given"] <= found["psnr"]


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
    for method in ("nmAPG", "nmAPG(block)", "DCA(block)"):
        assert results[method]["rmse"] == pytest.approx(results["nmAPG(full SVD)"]["rmse"], rel=0.02)
    objective = {name: found["objective"] for name, found in results.items()}
    nonconvex = [objective[name] for name in ("nmAPG", "nmAPG(block)", "DCA(block)")]
    assert nonconvex == pytest.approx([objective["nmAPG(full SVD)"]] * 3, rel=1e-3)
    assert objective["AIS-Impute"] == pytest.approx(objective["nuclear norm(block)"], rel=1e-3)


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
