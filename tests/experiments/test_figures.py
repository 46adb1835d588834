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

from ell12.experiments.figures import Line, image_panel, line_panel
from ell12.experiments.findings import Figure, Key

LINE = Line(Key("a", 1), [0.0, 1.0, 2.0, 3.0], [1.0, -1.0, 4.0, float("nan")])


def n_points(logarithmic):
    drawing = line_panel("n", "t", [LINE], "x", "y", logarithmic=logarithmic).drawing
    path = re.search(r'id="n-line2d_\d+">\s*<path d="([^"]*)"[^>]*series-1', drawing)
    return len(re.findall(r"[ML]", path[1]))


@pytest.mark.parametrize(("logarithmic", "expected"), [("", 3), ("x", 2), ("y", 2), ("xy", 1)])
def test_only_what_an_axis_can_show_is_drawn(logarithmic, expected):
    if expected == 1:  # a single point is no line
        assert "nan" not in line_panel("n", "t", [LINE], "x", "y", logarithmic=logarithmic).drawing
    else:
        assert n_points(logarithmic) == expected


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
