"""Blurs and masks as files: blurs that people have are taken, photographs are not."""

import sys

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'report'")
pytest.importorskip("PIL", reason="image files need the extra 'images'")
pytest.importorskip("skimage", reason="photographs need the extra 'images'")

from PIL import Image
from skimage import data

from ell12 import cli, datasets
from ell12.commands import CommandError
from ell12.commands.given_images import read_kernels, read_mask
from ell12.commands.image_files import Picture, write_image
from ell12.restoration import deblur_tv


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["ell12", *map(str, arguments)])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return raised.value.code or 0


def gaussian(size, width):
    line = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * width**2))
    return np.outer(line, line)


def disc(size, radius):
    rows, columns = np.mgrid[:size, :size] - size // 2
    return (rows**2 + columns**2 <= radius**2).astype(float)


def track(size):
    """The way of a shaken camera: a thin curve."""
    kernel = np.zeros((size, size))
    for t in np.linspace(-1, 1, 10 * size):
        kernel[int(size / 2 * (1 + 0.9 * t)), int(size / 2 * (1 + 0.8 * np.sin(2 * t)))] += 1
    return kernel


BLURS = {
    "small": gaussian(7, 1.5),
    "Gaussian of 64 pixels": gaussian(64, 5),
    "Gaussian on black": gaussian(512, 20),
    "cropped Gaussian": gaussian(61, 20),
    "box": np.ones((9, 9)),
    "large box": np.ones((65, 65)),
    "line": np.ones((1, 200)),
    "disc": disc(41, 20),
    "large disc": disc(129, 64),
    "disc on black": disc(512, 60),
    "shaken camera": track(101),
    "telescope": np.abs(np.fft.fftshift(np.fft.fft2(disc(256, 30)))) ** 2,
}


@pytest.mark.parametrize("name", BLURS)
def test_blurs_that_people_have_are_taken(tmp_path, name):
    pixels = np.rint(255 * BLURS[name] / BLURS[name].max()).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "kernel.png")
    (kernel,) = read_kernels(tmp_path / "kernel.png")
    assert kernel.sum() == pytest.approx(1, abs=1e-5)
    whole = np.zeros_like(pixels, dtype=float)  # what was cut off are zeros, and the centre is the centre
    corner = [n // 2 - m // 2 for n, m in zip(pixels.shape, kernel.shape, strict=True)]
    whole[corner[0] : corner[0] + kernel.shape[0], corner[1] : corner[1] + kernel.shape[1]] = kernel
    np.testing.assert_allclose(whole, pixels / pixels.sum(), atol=1e-7)


@pytest.mark.parametrize("name", ["camera", "coins", "moon", "text", "page", "brick"])
@pytest.mark.parametrize("step", [1, 5])
def test_a_photograph_is_no_blur(tmp_path, name, step):
    Image.fromarray(getattr(data, name)()[::step, ::step]).save(tmp_path / "photo.png")
    with pytest.raises(CommandError, match=r"photo\.png is no blur but looks like a photograph: its"):
        read_kernels(tmp_path / "photo.png")


def test_a_photograph_as_kernel_is_refused_by_the_command(tmp_path, monkeypatch, capsys):
    photograph = np.stack([datasets.photographs()["Mountain"]] * 3, axis=-1)
    write_image(tmp_path / "photo.jpg", Picture((255 * photograph).astype(np.uint8), -1), photograph)
    arguments = (tmp_path / "photo.jpg", tmp_path / "out.jpg", "--kernel", tmp_path / "photo.jpg")
    assert call(monkeypatch, "deblur", *arguments) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out.jpg").exists()


def test_a_blur_on_a_black_background_may_be_larger_than_the_image(tmp_path, monkeypatch):
    values = np.random.default_rng(0).random((20, 26))
    np.save(tmp_path / "in.npy", values)
    kernel = np.zeros((64, 64))
    kernel[31:34, 30:35] = [[1, 2, 3, 2, 1], [0, 3, 4, 1, 0], [1, 1, 1, 1, 1]]
    np.save(tmp_path / "kernel.npy", kernel)
    options = ("--kernel", tmp_path / "kernel.npy", "--alpha", "0.1", "--max-iter", "9")
    assert call(monkeypatch, "deblur", tmp_path / "in.npy", tmp_path / "out.npy", *options) == 0
    small = kernel[31:34, 30:35] / kernel.sum()
    expected = deblur_tv(values, small, 0.1, max_iter=9, return_result=True).image
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)


def test_a_blur_with_colours_undoes_each_by_its_own(tmp_path, monkeypatch, capsys):
    values = np.random.default_rng(0).random((20, 26, 3))
    kernels = np.stack([gaussian(5, 0.6), gaussian(5, 1.0), gaussian(5, 1.4)], axis=-1)
    np.save(tmp_path / "in.npy", values)
    pixels = np.rint(255 * kernels).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "kernel.png")
    options = ("--kernel", tmp_path / "kernel.png", "--alpha", "0.1", "--max-iter", "9")
    colours = (*options, "--channels", "-1")
    assert call(monkeypatch, "deblur", tmp_path / "in.npy", tmp_path / "out.npy", *colours) == 0
    blurs = [pixels[..., k] / pixels[..., k].sum() for k in range(3)]
    settings = {"max_iter": 9, "return_result": True}
    each = [deblur_tv(values[..., k], blurs[k], 0.1, **settings).image for k in range(3)]
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), np.stack(each, axis=-1), atol=1e-4)
    np.save(tmp_path / "grey.npy", values[..., 0])
    assert call(monkeypatch, "deblur", tmp_path / "grey.npy", tmp_path / "no.npy", *options) == 1
    assert "kernel has 3 different colours" in capsys.readouterr().err


def test_grey_that_was_saved_as_colours_is_one_blur(tmp_path):
    pixels = np.rint(255 * gaussian(17, 3)).astype(np.uint8)
    Image.fromarray(np.stack([pixels] * 3, axis=-1)).save(tmp_path / "kernel.jpg", quality=90)
    assert len(read_kernels(tmp_path / "kernel.jpg")) == 1


@pytest.mark.parametrize("white", [1, 255])
def test_a_mask_of_ones_is_as_good_as_one_of_white(tmp_path, white):
    known = np.random.default_rng(0).random((8, 9)) < 0.5
    Image.fromarray((white * known).astype(np.uint8)).save(tmp_path / "mask.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.png"), known)
