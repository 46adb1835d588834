"""The README: its numbers are those of the results, and its links name files that exist."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\]\(([^)]+)\)", TEXT)


@pytest.fixture
def summary(monkeypatch):
    spec = importlib.util.spec_from_file_location("summary", ROOT / "benchmarks" / "summary.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "summary", module)
    spec.loader.exec_module(module)
    return module


def test_the_table_says_what_the_results_say(summary):
    assert summary.with_table(TEXT) == TEXT, "run `python benchmarks/summary.py`"


def test_every_line_of_the_table_has_numbers_and_a_page(summary):
    lines = summary.table().splitlines()[2:]
    assert len(lines) == len(summary.LINES)
    for line in lines:
        page = re.search(r"\[(\w+)\]", line).group(1)
        assert (ROOT / "benchmarks" / "results" / f"{page}.md").exists()


def test_a_changed_result_changes_the_table(summary, monkeypatch):
    slower = [row | {"seconds": 1000 * (row["seconds"] or 0)} for row in summary.read("race")]
    monkeypatch.setattr(summary, "read", lambda name: slower)
    assert summary.race().ours not in TEXT


@pytest.mark.parametrize("link", LINKS)
def test_links_into_the_repository_name_files_that_exist(link):
    assert link.startswith("https://doi.org/") or (ROOT / link.partition("#")[0]).exists()


TIMES = {0.0443: "44 ms", 0.9999: "1.0 s", 1.04: "1.0 s", 10.7: "11 s"}


@pytest.mark.parametrize(("value", "words"), TIMES.items())
def test_times_have_their_usual_unit(summary, value, words):
    assert summary.seconds(value) == words
