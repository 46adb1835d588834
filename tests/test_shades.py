"""Figures for dark pages: what was dark is light, what was invisible stays so."""

import sys
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")
from matplotlib.colors import to_rgb  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / "docs" / "images"))
from shades import darken, save  # noqa: E402


@pytest.fixture
def figure():
    plt.switch_backend("Agg")
    figure, axes = plt.subplots()
    axes.plot([0, 1], [0, 1], "o-", color="#0072b2", markeredgecolor="black", label="line")
    axes.imshow([[0.0, 1.0]])
    axes.set_xlabel("words")
    axes.legend(edgecolor="none", framealpha=0.9)
    yield figure
    plt.close(figure)


def lightness(colour):
    return sum(to_rgb(colour)) / 3


def test_dark_words_and_lines_become_light_and_colours_keep_their_hue(figure):
    (axes,) = figure.axes
    line = axes.lines[0]
    darken(figure)
    assert lightness(axes.xaxis.label.get_color()) > 0.8
    assert lightness(line.get_markeredgecolor()) > 0.8
    assert lightness(axes.spines["left"].get_edgecolor()) > 0.8
    red, green, blue = to_rgb(line.get_color())
    assert blue > green > red
    assert lightness(line.get_color()) > lightness("#0072b2")


def test_what_is_invisible_stays_so(figure):
    darken(figure)
    frame = figure.axes[0].get_legend().get_frame()
    assert frame.get_edgecolor()[3] == 0
    assert figure.patch.get_facecolor()[3] == 0


def test_images_keep_their_pixels(figure):
    before = figure.axes[0].images[0].get_array().copy()
    darken(figure)
    assert (figure.axes[0].images[0].get_array() == before).all()


def test_both_shades_are_written(figure, tmp_path):
    save(figure, tmp_path / "picture.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["picture.png", "picture_dark.png"]
