"""The page, its tables and the table of trials are made from rows; those of the documentation from stored ones."""

import csv
import html.parser
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("skimage", reason="the photographs need the extra 'images'")

from ell12_paper import page, provenance
from ell12_paper.claims import by_study, claims_of
from ell12_paper.rows import FILE, read_rows
from ell12_paper.tables import tables
from ell12_paper.trial_runs import RunError

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The stored run at reduced size, with its page."""
    found = tmp_path_factory.mktemp("quick")
    with zipfile.ZipFile(RESULTS / "quick.zip") as archive:
        for name in archive.namelist():
            (found / Path(name).name).write_bytes(archive.read(name))
    page.report(found, found)
    return found


class Reader(html.parser.HTMLParser):
    """Collects what is opened, and raises where an element is closed that is not open."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.references, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.open.append(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.references += [
            value[1:] for key, value in attrs if key in ("href", "xlink:href") and value[:1] == "#"
        ]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_is_sound_and_says_what_was_found(folder):
    reader = Reader()
    text = (folder / page.PAGE).read_text()
    reader.feed(text)
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    assert set(reader.references) <= set(reader.ids)
    assert "http" not in text.replace("http://www.w3.org", "")
    rows = by_study(read_rows(folder)[0])
    shown = "".join(reader.text)
    for claim in claims_of(rows):
        assert claim.text in shown
        assert claim.brief in shown
    for table in tables(rows):
        assert table.title in shown
        assert all(cell.text in shown for _, cells in table.rows for cell in cells)


def test_a_mean_in_a_table_is_that_of_the_rows(folder):
    rows = read_rows(folder)[0]
    wanted = {"setup": "stated", "i": 2, "method": "SCP"}
    times = [
        row["results"]["cpu_seconds"]
        for row in rows
        if row["experiment"] == "compressed-sensing" and wanted.items() <= row["settings"].items()
    ]
    table = next(table for table in tables(by_study(rows)) if table.title == "CPU seconds (stated)")
    cell = dict(table.rows)["SCP"][table.columns.index("i = 2") - 1]
    assert float(cell.text.split(" ±")[0]) == pytest.approx(sum(times) / len(times), rel=5e-3)


def test_every_trial_is_a_line_of_the_table(folder):
    with open(folder / page.TRIALS, newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(read_rows(folder)[0])
    assert {"experiment", "settings.seed", "results.cpu_seconds", "environment.commit"} <= set(lines[0])


def test_nothing_is_reported_of_nothing(tmp_path):
    with pytest.raises(RunError, match="holds no rows"):
        page.report(tmp_path, tmp_path)


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_stored_rows_are_the_published_ones(preset, tmp_path):
    with zipfile.ZipFile(RESULTS / f"{preset}.zip") as archive:
        name = next(name for name in archive.namelist() if name.endswith(FILE))
        (tmp_path / FILE).write_bytes(archive.read(name))
    assert read_rows(tmp_path)[1] == []
    assert provenance.digest(tmp_path / FILE) == page.published()["sha256"][preset]
