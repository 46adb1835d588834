"""The page of image completion in a real browser: nothing cut off, every figure and picture drawn."""

import pytest

pytest.importorskip("matplotlib", reason="the report needs the extra 'report'")
pytest.importorskip("jinja2", reason="the report needs the extra 'report'")

from tests.experiments.browser import CONTRAST, CUT_OFF, FIGURES
from tests.experiments.made_rows import change_of, completion_rows

from ell12.experiments.completion.study import PICTURED
from ell12.experiments.report import report
from ell12.experiments.rows import rewrite_rows

PICTURES = """[...document.querySelectorAll("figure img")].map(image => {
  const box = image.getBoundingClientRect();
  return [image.complete, image.naturalWidth, box.width, box.height];
})"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of made-up rows, some of which ended at a limit."""
    folder = tmp_path_factory.mktemp("page")
    rewrite_rows(folder, completion_rows(n_repeats=2, change=change_of("SketchyCGM", is_limited=True)))
    return report(folder).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_page_opens_and_fits(browser, page, width, scheme):
    assert browser.open(page, width, scheme) == []
    assert browser.evaluate(CUT_OFF) == []
    drawings = browser.evaluate(FIGURES)
    assert len(drawings) == 3 * 3 + 3
    assert all(w > 140 and h > 100 and paths > 5 and texts >= 4 for w, h, paths, texts in drawings)
    pictures = browser.evaluate(PICTURES)
    assert len(pictures) == 3 * len(PICTURED)
    assert all(
        done and natural == 48 and w > 100 and h == pytest.approx(w, abs=1) for done, natural, w, h in pictures
    )
    contrast = browser.evaluate(CONTRAST)
    assert 4.5 <= contrast["text"] <= 21
    assert 3 <= contrast["curve"] <= 21


def test_print_fits_the_paper(browser, page):
    assert browser.open(page, 700, "dark", media="print") == []  # A4 less its margins
    assert browser.evaluate(CUT_OFF) == []
