"""The documentation's page of the reproduction is what its command writes from the stored rows."""

import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs the extra 'report'")

from ell12_paper import provenance
from ell12_paper.archive import opened
from ell12_paper.rows import read_rows

SCRIPT = Path(__file__).parents[2] / "docs" / "reproduction.py"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def pages(script):
    return script["pages"]()


def test_the_pages_on_disk_are_what_the_stored_rows_give(pages):
    assert {path.name for path in pages} == {"reproduction.md", "quick.md", "paper_size.md"}
    for path, text in pages.items():
        assert path.read_text() == text, f"{path.name} is stale: `make results` writes it again"


def test_no_number_is_typed_by_hand(script):
    for words in (script["INTRODUCTION"], script["END"]):
        assert re.findall(r"\d", words.replace("ell12", "")) == []


@pytest.mark.parametrize("name", ["quick", "paper"])
def test_stored_rows_are_whole_and_name_where_they_come_from(name):
    with opened(SCRIPT.parent / "results" / f"{name}.zip") as folder:
        rows, damaged = read_rows(folder)
        known = provenance.read(folder)
        assert provenance.is_sealed(folder)
        assert known["files"] == {file: provenance.digest(folder / file) for file in provenance.MEASURED}
    assert damaged == []
    assert len(rows) > 50
    for row in rows:
        assert {"date", "cpu", "ell12", "commit"} <= {n for n, value in row["environment"].items() if value}
    assert all(run["command"].startswith("ell12-paper run") and run["commit"] for run in known["runs"])
    assert known["runs"][0]["rows_before"] == 0


def test_a_run_is_stored_without_its_page(script, tmp_path, monkeypatch):
    results = SCRIPT.parent / "results"
    monkeypatch.setitem(script["store"].__globals__, "RESULTS", tmp_path)
    script["store"](results / "quick.zip")
    assert (tmp_path / "quick.zip").read_bytes() == (results / "quick.zip").read_bytes()
