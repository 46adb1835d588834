"""The report: the page, the table of trials and the Markdown tables, from rows alone."""

import csv
import io
import json
import re
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib", reason="the report needs the extra 'report'")
pytest.importorskip("jinja2", reason="the report needs the extra 'report'")

from paper.tests.made_rows import ENVIRONMENT, curve_rows, limit, prox_rows, sensing_rows

from ell12_paper import findings, report
from ell12_paper.compressed_sensing.claims import OURS
from ell12_paper.rows import FILE, rewrite_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with rows of every experiment, and its report."""
    path = tmp_path_factory.mktemp("report")
    rewrite_rows(path, sensing_rows() + curve_rows() + prox_rows())
    (path / "run.json").write_text(json.dumps({"preset": "quick", "seed": 3}))
    report.report(path)
    return path


def test_page_is_well_formed_and_needs_nothing_else(folder):
    page = (folder / report.PAGE).read_text()
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>").strip())
    assert not re.findall(r"https?:", page)
    assert not list(root.iter("script"))
    outside = [e.get(name) for e in root.iter() for name in ("href", "src") if e.get(name)]
    files = {link.partition("#")[0] for link in outside if not link.startswith(("#", "data:"))}
    assert files == {report.TABLE_OF_TRIALS, report.TABLES}
    targets = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(targets) == len(set(targets))
    assert {link[1:] for link in outside if link.startswith("#")} <= set(targets)
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(targets)


def test_page_has_every_figure_with_words_for_it(folder):
    page = (folder / report.PAGE).read_text()
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>").strip())
    drawings = list(root.iter("svg"))
    assert len(drawings) == 2 * 5 + 5 + 3 + 2
    assert all(svg.find("title").text and len(svg.find("desc").text) > 20 for svg in drawings)
    assert all(list(svg.iter("path")) for svg in drawings)
    styles = "".join(e.get("style") or "" for svg in drawings for e in svg.iter())
    assert not re.findall(r"#[0-9a-f]{6}", styles)  # the page's variables, which follow light and dark


def test_page_says_what_was_run_and_shows_text_as_text(folder):
    page = (folder / report.PAGE).read_text()
    assert "preset quick, seed 3" in page
    assert "A &lt;fast&gt; CPU &amp; more" in page
    n_rows = len((folder / FILE).read_text().splitlines())
    assert f"{n_rows}, {round(1.5 * n_rows) // 60} min" in page
    assert page.count('<div class="verdict">') == 18 + 1 + 2


def test_every_verdict_stands_once_and_numbers_are_the_papers(folder):
    page = (folder / report.PAGE).read_text()
    for claim in ("DCA is the slowest", "l1-2 recovers with a lower RMSE than l1 at every i"):
        assert page.count(claim) == 1
    assert page.count("Table I itself has SCP slower") == 2  # once in each setup
    shown = set(re.findall(r'<a class="self" href="#[^"]*">([^<]*)</a>', page))
    assert shown == {"Table I", "Table II", "Figure 1", "Figure 2", "Ours"}


def test_a_table_links_to_its_rows(folder):
    page = (folder / report.PAGE).read_text()
    lines = list(csv.DictReader(io.StringIO((folder / report.TABLE_OF_TRIALS).read_text())))
    for name, chosen in [
        ("cpu-seconds-calibrated", [x["setup"] == "calibrated" for x in lines]),
        ("time-of-one-proximal-step", [x["experiment"] == "prox" for x in lines]),
    ]:
        first, last = re.search(rf'{name}">.*?results\.csv#row=(\d+)-(\d+)"', page).groups()
        assert [int(first) <= line <= int(last) for line in range(2, len(lines) + 2)] == chosen


def test_csv_has_one_line_per_trial(folder):
    lines = list(csv.DictReader(io.StringIO((folder / report.TABLE_OF_TRIALS).read_text())))
    assert len(lines) == len((folder / FILE).read_text().splitlines())
    scp = [x for x in lines if (x["method"], x["i"], x["setup"], x["repeat"]) == ("SCP", "4", "stated", "0")]
    expected = next(
        row for row in sensing_rows() if row["settings"]["method"] == "SCP" and row["settings"]["i"] == 4
    )
    assert float(scp[0]["cpu_seconds"]) == expected["results"]["cpu_seconds"]
    assert float(scp[0]["early.objective"]) == expected["results"]["early"]["objective"]
    assert scp[0]["environment.cpu"] == ENVIRONMENT["cpu"]
    assert not any("history" in name or name == "values" for name in scp[0])


def test_markdown_has_every_table(folder):
    text = (folder / report.TABLES).read_text()
    assert len(re.findall(r"^### ", text, re.MULTILINE)) == 2 * 5 + 2 + 1
    assert "### Table II: RMSE x 100 (calibrated)" in text
    summary = text.partition("\n## ")[0]
    assert "| does not hold | DCA is the slowest | Section V-A on Table I, also Section II-A |" in summary
    assert "- Run: preset quick, seed 3" in summary
    assert re.search(r"^\| SCP \| 8\.\S+ ± \S+ \|", text, re.MULTILINE)
    assert re.search(r"^\| WorkingSet \| \*\*0\.5\S+ ± \S+\*\* \|", text, re.MULTILINE)
    assert (
        "- **holds** (the paper, Section V-A, Figure 2 and Table I): nmAPG(closed-form) is faster than SCP" in text
    )
    widths = {}
    for line in text.splitlines():
        if line.startswith("|"):
            widths.setdefault(len(re.findall(r"(?<!\\)\|", line)), []).append(line)
    assert set(widths) == {5 + 2, 4 + 2, 3 + 1}


def test_verdict_lines_are_those_of_the_page(folder):
    lines = report.verdict_lines(folder)
    assert lines[0] == "The paper claims: 9 hold, 1 does not hold."
    heads = [line for line in lines if line.startswith("  ") and line[2] != " "]
    assert len(heads) == 7 + 1 + 2 + 1
    assert "  DOES NOT HOLD: DCA is the slowest (Section V-A on Table I, also Section II-A)" in heads


THE_PAPER = findings.Source(findings.Kind.PAPER, "Table I")


def verdict_of(outcome, claim="a", source=THE_PAPER):
    return findings.Verdict(claim, outcome, "", "", source=source)


def test_claims_are_counted_by_kind_and_hold_in_part_where_settings_differ():
    holds, in_part, fails, is_open = findings.Outcome
    for found, expected in [
        ((holds, holds), holds), ((holds, fails), in_part), ((holds, is_open), in_part),
        ((fails, is_open), fails), ((is_open, is_open), is_open),
    ]:  # fmt: skip
        (claim,) = findings.claims_of(map(verdict_of, found))
        assert claim.outcome is expected
    others = findings.Source(findings.Kind.CITED)
    claims = findings.claims_of([verdict_of(holds), verdict_of(holds, "b"), verdict_of(fails, "a", others)])
    assert findings.tally(claims) == {findings.Kind.PAPER: {holds: 2}, findings.Kind.CITED: {fails: 1}}


def test_report_twice_is_the_same_and_leaves_nothing_behind(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    report.report(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "rows",
    [
        curve_rows(),
        prox_rows(),
        sensing_rows(n_repeats=1),
        sensing_rows(n_repeats=2, methods=[OURS]),
        sensing_rows(n_repeats=2, methods=["FISTA"], setups=["calibrated"]),
        sensing_rows(n_repeats=2, change=limit(OURS, 4)),
        sensing_rows()[:3],
        [row for row in prox_rows() if row["settings"]["method"] == "numerical"],
        prox_rows()[:8],
        [row for row in curve_rows() if row["settings"]["penalty"] == "l1"],
    ],
    ids=[
        "curves", "prox", "single repeat", "one method", "FISTA", "limit", "three rows", "one prox", "one d", "l1",
    ],
)  # fmt: skip
def test_report_of_part_of_the_rows(rows, tmp_path):
    rewrite_rows(tmp_path, rows)
    page = report.report(tmp_path).read_text()
    ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>").strip())
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<[^>]*>", "", page))
    assert report.verdict_lines(tmp_path)


def test_damaged_rows_are_told_of(tmp_path):
    rewrite_rows(tmp_path, prox_rows())
    with (tmp_path / FILE).open("a") as file:
        file.write('{"key": "half a ro')
    assert "is cut off; it was left out" in report.report(tmp_path).read_text()


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_nothing_to_report_is_a_clear_error(tmp_path, make):
    path = tmp_path / "empty"
    make(path)
    with pytest.raises(FileNotFoundError, match=r"empty holds no rows to report: run `ell12-paper run"):
        report.report(path)
    with pytest.raises(FileNotFoundError, match="holds no rows"):
        report.verdict_lines(path)
