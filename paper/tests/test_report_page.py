"""The report's page in a real browser: nothing on the console, nothing cut off, every figure drawn."""

import pytest

pytest.importorskip("matplotlib", reason="the report needs the extra 'report'")
pytest.importorskip("jinja2", reason="the report needs the extra 'report'")

from paper.tests.browser import CONTRAST, CUT_OFF, FIGURES, OPEN, PICTURES
from paper.tests.made_rows import (
    change_of,
    completion_rows,
    curve_rows,
    extra_rows,
    limit,
    prox_rows,
    sensing_rows,
    strength_rows,
    unfinished,
)

from ell12_paper.completion.study import PICTURED
from ell12_paper.denoising.study import METHODS, SHOWN
from ell12_paper.report import report
from ell12_paper.rows import rewrite_rows

N_DRAWINGS = (2 * 5 + 2) + (3 * 3 + 3) + (2 * 2 * 3 + 2 + 2 + 1) + 5 + 3
N_PICTURES = 3 * len(PICTURED) + 3 + 2 * len(METHODS) * len(SHOWN)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of rows of every experiment, some of which ended at a limit."""
    folder = tmp_path_factory.mktemp("page")
    rows = sensing_rows(change=limit("SCP", 4)) + curve_rows() + prox_rows()
    rows += completion_rows(n_repeats=2, change=change_of("SketchyCGM", is_limited=True))
    rows += strength_rows(grid=SHOWN, change=unfinished("DCA", "strict")) + extra_rows()
    rewrite_rows(folder, rows)
    return report(folder).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_page_opens_and_fits(browser, page, width, scheme):
    assert browser.open(page, width, scheme) == []
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollHeight") < 6000
    assert browser.evaluate(CUT_OFF) == []
    browser.evaluate(OPEN)
    assert browser.evaluate(CUT_OFF) == []
    figures = browser.evaluate(FIGURES)
    assert len(figures) == N_DRAWINGS
    assert all(w > 140 and h > 100 and paths > 5 and texts >= 4 for w, h, paths, texts in figures)
    pictures = browser.evaluate(PICTURES)
    assert len(pictures) == N_PICTURES
    assert all(
        done and w > 90 and w / h == pytest.approx(wide / high, 0.05) for done, wide, high, w, h in pictures
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_scheme_and_can_be_read(browser, page, scheme):
    browser.open(page, 1280, scheme)
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    levels = [int(level) for level in background.removeprefix("rgb(").removesuffix(")").split(",")]
    assert (sum(levels) > 600) is (scheme == "light")
    contrast = browser.evaluate(CONTRAST)
    assert 4.5 <= contrast["text"] <= 21  # 21 is black on white, more says that nothing was measured
    assert 3 <= contrast["curve"] <= 21
    negative = "[...document.images].map(image => getComputedStyle(image).filter != 'none')"
    assert sum(browser.evaluate(negative)) == (0 if scheme == "light" else N_PICTURES - 3)  # three are clean


def test_print_fits_the_paper_and_shows_what_is_folded(browser, page):
    assert browser.open(page, 700, "dark", media="print") == []  # A4 less its margins
    assert browser.evaluate(CUT_OFF) == []
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert 4.5 <= browser.evaluate(CONTRAST)["text"] <= 21
    heights = browser.evaluate(
        "[...document.querySelectorAll('table')].map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) > 20


def test_the_first_screen_has_the_claims_and_three_figures(browser, page):
    browser.open(page, 1280)
    tops = "[...document.querySelectorAll('{}')].map(e => e.getBoundingClientRect().top)"
    assert max(browser.evaluate(tops.format(".claims ul:first-of-type summary"))) < 900
    figures = browser.evaluate(tops.format(".headlines svg"))
    assert (len(figures), max(figures) < 900) == (3, True)


def test_a_link_unfolds_its_table_and_the_contents_stay_in_view(browser, page):
    name = "compressed-sensing-table-i-cpu-seconds-stated"
    browser.open("about:blank", 1280)  # within a page a link loads nothing
    browser.open(f"{page}#{name}", 1280)
    place = browser.evaluate(f"document.getElementById('{name}').getBoundingClientRect().top")
    bottom = browser.evaluate("document.querySelector('nav').getBoundingClientRect().bottom")
    assert browser.evaluate("document.querySelector('nav').getBoundingClientRect().top") == 0
    assert bottom <= place < 300


def test_wide_tables_scroll_on_a_phone(browser, page):
    browser.open(page, 390)
    browser.evaluate(OPEN)
    boxes = browser.evaluate("[...document.querySelectorAll('.scroll')].map(e => [e.scrollWidth, e.clientWidth])")
    assert all(outer <= 390 for _, outer in boxes)
    assert all(inner > outer for inner, outer in boxes[: 2 * 5])
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
