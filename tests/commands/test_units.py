"""The command line, too, gives the same picture in any units and any way round."""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("typer", reason="the command line needs the extra 'report'")
pytest.importorskip("PIL", reason="image files need the extra 'images'")

from ell12 import cli
from ell12.commands.image_files import Picture, read_image, write_image

RNG = np.random.default_rng(0)
PIXELS = np.full((18, 23), 90.0)
PIXELS[4:12, 6:17] = 180
PIXELS = np.rint(PIXELS + 15 * RNG.standard_normal(PIXELS.shape))
MASK, BLUR = RNG.random(PIXELS.shape) < 0.7, np.outer([1, 2, 1], [2, 3, 2])
COMMANDS = {"denoise": [], "deblur": ["--kernel", "blur.npy"], "inpaint": ["--mask", "mask.npy"]}


def restored(command, name, pixels, turn=lambda x: x):
    """What the command makes of a file with these pixels."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        np.save("mask.npy", turn(MASK).astype(np.uint8))
        np.save("blur.npy", turn(BLUR).astype(float))
        picture = Picture(np.ascontiguousarray(turn(pixels)))
        write_image(Path(name), picture, picture.values())
        patch.setattr(sys, "argv", ["ell12", command, name, f"out-{name}", *COMMANDS[command]])
        with pytest.raises(SystemExit) as raised:
            cli.main()
        assert not raised.value.code
        return read_image(Path(f"out-{name}")).pixels.astype(float)


@pytest.mark.parametrize("command", COMMANDS)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(st.floats(-6, 6), st.floats(-3, 3))
def test_an_array_in_other_units_is_restored_alike(command, exponent, shift):
    unit = 10.0**exponent
    expected = restored(command, "image.npy", PIXELS)
    found = restored(command, "image.npy", unit * (PIXELS + 100 * shift))
    np.testing.assert_allclose(found / unit - 100 * shift, expected, atol=1e-4)  # of 255


@pytest.mark.parametrize("command", COMMANDS)
def test_eight_bits_sixteen_and_twelve_give_the_same_picture(command):
    eight = restored(command, "image.png", PIXELS.astype(np.uint8))
    sixteen = restored(command, "image.png", (257 * PIXELS).astype(np.uint16))
    twelve = restored(command, "image.tif", (16 * PIXELS).astype(np.uint16))
    assert np.abs(eight - sixteen / 257).max() < 0.51  # half a step of eight bits
    np.testing.assert_allclose(twelve / 16, sixteen / 257, atol=0.04)  # half a step of twelve bits


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("turn", [np.flipud, np.fliplr, np.rot90, np.transpose], ids=lambda turn: turn.__name__)
def test_a_turned_file_gives_the_turned_picture(command, turn):
    expected = restored(command, "image.npy", PIXELS)
    np.testing.assert_allclose(restored(command, "image.npy", PIXELS, turn), turn(expected), atol=1e-6)
