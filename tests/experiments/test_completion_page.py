"""The page of image completion in a real browser: nothing cut off, every figure and picture drawn."""

import importlib.util
import shutil
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the report needs the extra 'report'")
pytest.importorskip("jinja2", reason="the report needs the extra 'report'")

from ell12.experiments.completion import PICTURED
from ell12.experiments.report import report
from ell12.experiments.rows import rewrite_rows

PICTURES = """[...document.querySelectorAll("figure img")].map(image => {
  const box = image.getBoundingClientRect();
  return [image.complete, image.naturalWidth, box.width, box.height];
})"""


def neighbour(name):
    """A test module beside this one."""
    spec = importlib.util.spec_from_file_location(f"neighbour_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages():
    return neighbour("test_report_page")


@pytest.fixture(scope="module")
def browser(pages, tmp_path_factory):
    program = next((path for path in map(shutil.which, pages.BROWSERS) if path), None)
    if program is None:
        pytest.skip(f"no browser found (looked for {', '.join(pages.BROWSERS)})")
    opened = pages.Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of made-up rows, some of which ended at a limit."""
    made = neighbour("test_completion_report")
    folder = tmp_path_factory.mktemp("page")
    rewrite_rows(folder, made.completion_rows(n_repeats=2, change=made.change_of("SketchyCGM", is_limited=True)))
    return report(folder).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_page_opens_and_fits(pages, browser, page, width, scheme):
    assert browser.open(page, width, scheme) == []
    assert browser.evaluate(pages.CUT_OFF) == []
    drawings = browser.evaluate(pages.FIGURES)
    assert len(drawings) == 3 * 3 + 3
    assert all(w > 140 and h > 100 and paths > 5 and texts >= 4 for w, h, paths, texts in drawings)
    pictures = browser.evaluate(PICTURES)
    assert len(pictures) == 3 * len(PICTURED)
    assert all(
        done and natural == 48 and w > 100 and h == pytest.approx(w, abs=1) for done, natural, w, h in pictures
    )
    contrast = browser.evaluate(pages.CONTRAST)
    assert 4.5 <= contrast["text"] <= 21
    assert 3 <= contrast["curve"] <= 21


def test_print_fits_the_paper(pages, browser, page):
    assert browser.open(page, 700, "dark", media="print") == []  # A4 less its margins
    assert browser.evaluate(pages.CUT_OFF) == []
