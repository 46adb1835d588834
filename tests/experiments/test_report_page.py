"""The report's page in a real browser: nothing on the console, nothing cut off, every figure drawn."""

import pytest

pytest.importorskip("matplotlib", reason="the report needs the extra 'report'")
pytest.importorskip("jinja2", reason="the report needs the extra 'report'")

from tests.experiments.browser import CONTRAST, CUT_OFF, FIGURES
from tests.experiments.made_rows import (
    curve_rows,
    extra_rows,
    limit,
    prox_rows,
    sensing_rows,
    strength_rows,
    unfinished,
)

from ell12.experiments.denoising.study import SHOWN
from ell12.experiments.report import report
from ell12.experiments.rows import rewrite_rows


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of rows of every experiment, some of which ended at a limit."""
    folder = tmp_path_factory.mktemp("page")
    rewrite_rows(folder, sensing_rows(change=limit("SCP", 4)) + curve_rows() + prox_rows())
    return report(folder).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_page_opens_and_fits(browser, page, width, scheme):
    assert browser.open(page, width, scheme) == []
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate(CUT_OFF) == []
    figures = browser.evaluate(FIGURES)
    assert len(figures) == 2 * 5 + 5 + 3
    assert all(w > 140 and h > 100 and paths > 5 and texts >= 4 for w, h, paths, texts in figures)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_scheme_and_can_be_read(browser, page, scheme):
    browser.open(page, 1280, scheme)
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    levels = [int(level) for level in background.removeprefix("rgb(").removesuffix(")").split(",")]
    assert (sum(levels) > 600) is (scheme == "light")
    contrast = browser.evaluate(CONTRAST)
    assert 4.5 <= contrast["text"] <= 21  # 21 is black on white, more says that nothing was measured
    assert 3 <= contrast["curve"] <= 21


def test_print_fits_the_paper(browser, page):
    assert browser.open(page, 700, "dark", media="print") == []  # A4 less its margins
    assert browser.evaluate(CUT_OFF) == []
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert 4.5 <= browser.evaluate(CONTRAST)["text"] <= 21


def test_wide_tables_scroll_on_a_phone(browser, page):
    browser.open(page, 390)
    boxes = browser.evaluate("[...document.querySelectorAll('.scroll')].map(e => [e.scrollWidth, e.clientWidth])")
    assert len(boxes) == 2 * 5 + 1
    assert all(inner > outer and outer <= 390 for inner, outer in boxes)
    reached = browser.evaluate(
        "(() => { const e = document.querySelector('.scroll'); e.scrollLeft = 1e6; "
        "const last = e.querySelector('tr td:last-child').getBoundingClientRect();"
        "return last.right - e.getBoundingClientRect().right; })()"
    )
    assert reached <= 0.5


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<p style='width: 2000px'>wide</p>", "ends at"),
        (
            "<div style='width: 99px; overflow: hidden; white-space: nowrap'>words that are too long</div>",
            "hides a part",
        ),
        ("<svg viewBox='0 0 9 9' width='90'><text x='5' y='5'>long words</text></svg>", "leaves its figure"),
    ],
)
def test_the_check_sees_what_is_cut_off(browser, tmp_path, body, fault):
    path = tmp_path / "bad.html"
    path.write_text(f"<!DOCTYPE html><html><body>{body}</body></html>")
    browser.open(path.as_uri(), 390)
    assert any(fault in sentence for sentence in browser.evaluate(CUT_OFF))


@pytest.mark.parametrize(
    "tag", ["<script>console.error('oh')</script>", "<script>oh()</script>", "<img src='no.png'>"]
)
def test_the_check_hears_the_console(browser, tmp_path, tag):
    path = tmp_path / "loud.html"
    path.write_text(f"<!DOCTYPE html><html><body>{tag}</body></html>")
    assert browser.open(path.as_uri(), 1280)


@pytest.fixture(scope="module")
def page_with_images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    change = unfinished("DCA", "strict")
    rewrite_rows(folder, strength_rows(grid=SHOWN, change=change) + extra_rows())
    return report(folder).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_page_with_images_fits(browser, page_with_images, width, scheme):
    assert browser.open(page_with_images, width, scheme) == []
    assert browser.evaluate(CUT_OFF) == []
    assert 4.5 <= browser.evaluate(CONTRAST)["text"] <= 21
    sizes = "e.naturalWidth, e.naturalHeight, e.clientWidth, e.clientHeight"
    images = browser.evaluate(f"[...document.images].map(e => [e.complete, {sizes}])")
    assert len(images) == 2 * 3 * 7
    assert all(done and wide == 3 and high == 2 for done, wide, high, *_ in images)
    assert all(width > 90 and abs(width / height - 1.5) < 0.1 for *_, width, height in images)
