"""The photographs of the studies: the stand-ins, or those of a folder."""

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the photographs need the extra 'images'")

from PIL import Image as image

from ell12_paper.studies import denoising, image_completion, images


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
    first = [s for s in image_completion.trials("quick", 0) if (s["study"], s["repeat"]) == ("table", 0)]
    asked = [s | {"max_iter": 2} for s in first if s["method"] == "AIS-Impute"]
    found = {s["image"]: image_completion.measure(s) for s in asked}
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
