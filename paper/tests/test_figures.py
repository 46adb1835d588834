"""Figures: which points are drawn on which axes, and images inside the page."""

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")
pytest.importorskip("PIL", reason="another reader of PNG needs the extra 'images'")

from PIL import Image

from ell12_paper.figures import Line, image_panel, line_panel, log_ticks
from ell12_paper.findings import Figure, Key

POINTS = ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, -1.0, 4.0, 5.0, 6.0, 7.0, float("nan")])
LINE = Line(Key("a", 1), *POINTS)


def n_points(logarithmic):
    drawing = line_panel("n", "t", [LINE], "x", "y", logarithmic=logarithmic).drawing
    path = re.search(r'id="n-line2d_\d+">\s*<path d="([^"]*)"[^>]*series-1', drawing)
    return len(re.findall(r"[ML]", path[1]))


@pytest.mark.parametrize(("logarithmic", "expected"), [("", 6), ("x", 5), ("y", 5), ("xy", 4)])
def test_only_what_an_axis_can_show_is_drawn(logarithmic, expected):
    assert n_points(logarithmic) == expected


def test_three_points_are_drawn_as_points_but_a_level_as_a_line():
    three = [Line(Key("a", 1), [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]), Line(Key("b", 2), [1.0, 3.0], [2.0, 2.0])]
    drawing = line_panel("n", "t", three, "x", "y").drawing
    assert not re.search(r'<path d="M[^"]*"[^>]*stroke: var\(--series-1\)', drawing)
    assert len(re.findall(r"<use [^>]*series-1", drawing)) == 3
    assert re.search(r'<path d="M[^"]*"[^>]*stroke: var\(--series-2\)', drawing)


def test_a_logarithmic_axis_has_three_to_seven_ticks_inside():
    random = np.random.default_rng(0)
    for low, decades in zip(10 ** random.uniform(-9, 4, 300), random.uniform(0.02, 12, 300), strict=True):
        ticks = log_ticks(low, low * 10**decades)
        assert 3 <= len(ticks) <= 7
        assert low <= ticks[0] < ticks[-1] <= low * 10**decades


def test_counts_have_whole_ticks():
    lines = [Line(Key("a", 1), [12, 13, 14, 15, 16], [1.0, 2.0, 3.0, 4.0, 5.0])]
    labels = re.findall(r">([\d.]+)</text>", line_panel("n", "t", lines, "lines", "y", logarithmic="").drawing)
    assert "12.5" not in labels
    assert {"12", "14", "16"} <= set(labels)


def test_an_image_is_shown_with_its_grey_levels_and_words():
    values = np.array([[0.0, 0.5, 1.0], [-1.0, 0.2, 2.0]])
    panel = image_panel("the <title>", values, 'what "it" shows')
    element = ElementTree.fromstring(panel.drawing)
    assert (element.tag, element.get("alt"), element.get("width"), element.get("height")) == (
        "img",
        'what "it" shows',
        "3",
        "2",
    )
    content = base64.b64decode(element.get("src").removeprefix("data:image/png;base64,"))
    with Image.open(io.BytesIO(content)) as image:
        assert np.asarray(image).tolist() == [[0, 128, 255], [0, 51, 255]]


def test_a_legend_names_every_curve_of_the_panels_once():
    other = Line(Key("b", 2, "dashed"), [1.0, 2.0], [3.0, 4.0])
    panels = tuple(line_panel(name, "t", lines, "x", "y") for name, lines in (("p", [LINE]), ("q", [LINE, other])))
    assert Figure("f", panels, "c").legend == [LINE.key, other.key]
