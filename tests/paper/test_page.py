"""The page and the table of trials are made from rows; the page of the documentation from stored ones."""

import csv
import html.parser
import math
from pathlib import Path

import pytest

pytest.importorskip("skimage", reason="the photographs need the extra 'images'")

from ell12_paper import page, provenance
from ell12_paper.claims import by_study, claims_of
from ell12_paper.rows import FILE, read_rows
from ell12_paper.studies.images import LIKELY
from ell12_paper.tables import tables
from ell12_paper.trials import printed
from ell12_paper.verify import opened

MOST_WORDS = 6000
RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The page of the stored run at reduced size."""
    found = tmp_path_factory.mktemp("quick")
    page.report(RESULTS / "quick.zip", found)
    return found


@pytest.fixture(scope="module")
def rows():
    with opened(RESULTS / "quick.zip") as run:
        return read_rows(run)[0]


class Reader(html.parser.HTMLParser):
    """Collects what is opened, and raises where an element is closed that is not open."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.references, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.ids += [value for key, value in attrs if key == "id"]
        self.references += [v[1:] for key, v in attrs if key in ("href", "xlink:href") and v[:1] == "#"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"head", "svg"} & set(self.open):
            self.text.append(data)


def test_the_page_is_sound_short_and_says_what_was_found(folder, rows):
    reader = Reader()
    text = (folder / page.PAGE).read_text()
    reader.feed(text)
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    assert set(reader.references) <= set(reader.ids)
    assert "http" not in text.replace("http://www.w3.org", "")
    found, shown = by_study(rows), "".join(reader.text)
    assert len(" ".join(reader.text).split()) <= MOST_WORDS
    assert all(text in shown for text in ("5 repeats (paper 10;", "SCP 3, DCA(rho=1) 3)"))
    for claim in claims_of(found):
        assert claim.text in shown
        assert claim.brief in shown
    for table in tables(found):
        assert table.title in shown
        assert all(cell.text in shown for _, cells in table.rows for cell in cells)


def test_a_mean_in_a_table_is_that_of_the_rows_and_every_trial_is_a_line(folder, rows):
    wanted = {"setup": "stated", "i": 0, "method": "SCP"}
    chosen = [
        r for r in rows if r["experiment"] == "compressed-sensing" and wanted.items() <= r["settings"].items()
    ]
    times = [row["results"]["cpu_seconds"] for row in chosen]
    table = next(table for table in tables(by_study(rows)) if table.title == "CPU seconds (stated)")
    cell = dict(table.rows)["SCP"][table.columns.index("i = 0") - 1]
    assert float(cell.text.split(" ±")[0]) == pytest.approx(sum(times) / len(times), rel=5e-3)
    with open(folder / page.TRIALS, newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(rows)
    assert {"experiment", "settings.seed", "results.cpu_seconds", "environment.commit"} <= set(lines[0])


@pytest.mark.parametrize("name", page.published()["sha256"])
def test_stored_rows_are_the_published_ones_and_hold_no_picture_without_a_licence(name):
    with opened(RESULTS / f"{name}.zip") as run:
        rows, damaged = read_rows(run)
        assert (damaged, provenance.digest(run / FILE)) == ([], page.published()["sha256"][name])
    of_likely = [row["results"] for row in rows if row["settings"].get("image") in LIKELY]
    assert bool(of_likely) == (name == "likely")
    assert not any(results.get(key) for results in of_likely for key in ("clean", "difference"))


def test_the_errors_that_the_text_names_with_the_likely_pictures_are_those_of_the_rows():
    with opened(RESULTS / "likely.zip") as run:
        rows = by_study(read_rows(run)[0])
    said = "\n".join(page.prose("completion", rows)["text"])
    table, path = (rows["completion"].where(study=study) for study in ("table", "path"))

    def above(trials, method):
        """By how many percent the error is above the printed one, by picture."""
        pairs = [(trials.where(image=m).mean("rmse"), printed("rmse_times_100", method, m)[0]) for m in LIKELY]
        return [10_000 * ours / theirs - 100 for ours, theirs in pairs]

    def most(*methods):
        return math.ceil(max(abs(gap) for m in methods for gap in above(table.where(method=m), m)))

    near, log_sum = most("AIS-Impute", "ER1MP"), most("FaNCL")
    ours = above(table.where(method="nmAPG"), "nmAPG")
    grid = [above(path.where(alpha_factor=part), "nmAPG") for part in path.seen("alpha_factor")]
    best = [round(min(gaps)) for gaps in zip(*grid, strict=True)]
    for text in (
        f"the printed errors within {near} %, log-sum within {log_sum} %",
        f"those of l1-2 are {min(ours):.0f} to {max(ours):.0f} % above",
        f"they are {best[0]} and {best[1]} % above, and on Sea the same",
    ):
        assert text in said
    assert best[2] == 0
