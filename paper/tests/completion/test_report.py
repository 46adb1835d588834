"""Image completion on the page: verdicts both ways, tables, pictures and figures, from rows alone."""

# ruff: noqa: RUF001 (mathematical letters are meant)

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the report needs the extra 'report'")
pytest.importorskip("jinja2", reason="the report needs the extra 'report'")

from paper.tests.made_rows import change_of, completion_rows

from ell12_paper import report
from ell12_paper.claims import image_name
from ell12_paper.completion import study as completion
from ell12_paper.completion import words
from ell12_paper.completion.report import section, verdicts
from ell12_paper.completion.study import IMAGES
from ell12_paper.findings import Kind, Outcome, claims_of
from ell12_paper.rows import rewrite_rows


def outcome(rows, words, setting=""):
    missing = setting == "missing pixels"
    chosen = [v for v in verdicts(rows) if words in f"{v.setting} {v.claim}" and ("missing" in v.claim) is missing]
    assert len(chosen) == 1
    return chosen[0]


# Verdicts

LOWEST, WORSE, SKETCHY = (
    "achieves the lowest RMSE",
    "ARSS-M3F, LMaFit and ER1MP recover worse",
    "SketchyCGM recovers",
)
GAIN = "by about as much as Table III prints"


def test_every_claim_holds_on_rows_like_the_paper():
    found = verdicts(completion_rows())
    assert {v.outcome for v in found} == {Outcome.HOLDS}
    kinds = Counter(claim.source.kind for claim in claims_of(found))
    assert kinds == {Kind.PAPER: 6, Kind.CITED: 1, Kind.OURS: 4}
    assert {v.source.kind for v in found if "missing pixels" in v.claim} == {Kind.OURS}
    assert not any("LMaFit" in v.claim for v in found if "less time" in v.claim or "faster" in v.claim)


def test_a_rival_that_is_ahead_on_one_image_is_named():
    rows = completion_rows(change=change_of("FaNCL", "Sea", rmse_missing=0.5))
    verdict = outcome(rows, LOWEST, "missing pixels")
    assert verdict.outcome is Outcome.FAILS
    assert verdict.reason == "Lowest on camera (Mountain), brick (Windows); not lowest on moon (Sea)."
    assert re.search(r"moon \(Sea\) 1\.\d\d \(best rival: FaNCL 0\.\d\d\)", verdict.numbers)
    assert outcome(rows, LOWEST, "all pixels").outcome is Outcome.HOLDS


def test_a_rival_within_the_spread_leaves_it_open():
    def change(settings, results):
        if settings["method"] == "FaNCL" and settings["image"] == "Windows":
            results["rmse"] = 0.0154 * (1.03 if settings["repeat"] % 2 else 0.97)

    verdict = outcome(completion_rows(change=change), LOWEST, "all pixels")
    assert verdict.outcome is Outcome.OPEN
    assert "open (FaNCL: the difference is within the spread of the repeats) on brick (Windows)" in verdict.reason


def test_an_unfinished_rival_leaves_it_open_but_for_sketchycgm():
    rows = completion_rows(change=change_of("FaNCL", "Sea", is_limited=True))
    assert outcome(rows, LOWEST, "all pixels").outcome is Outcome.OPEN
    assert "FaNCL ended at the limit" in outcome(rows, LOWEST, "all pixels").reason
    rows = completion_rows(change=change_of("SketchyCGM", is_limited=True))
    assert outcome(rows, LOWEST, "all pixels").outcome is Outcome.HOLDS
    assert outcome(rows, SKETCHY, "all pixels").outcome is Outcome.HOLDS


def test_a_factorization_that_recovers_well_is_named():
    verdict = outcome(completion_rows(change=change_of("ER1MP", "Mountain", rmse=0.6)), WORSE, "all pixels")
    assert verdict.outcome is Outcome.FAILS
    assert "not worse for ER1MP on camera (Mountain)." in verdict.reason


def test_sketchycgm_may_be_better():
    rows = completion_rows(change=change_of("SketchyCGM", rmse=0.5, rmse_missing=0.5))
    assert outcome(rows, SKETCHY, "missing pixels").outcome is Outcome.FAILS


def test_the_gain_is_judged_by_the_printed_one():
    verdict = outcome(completion_rows(change=change_of("nuclear norm(block)", rmse=0.82)), GAIN, "all pixels")
    assert verdict.outcome is Outcome.FAILS
    assert verdict.reason == "Less than half the printed gain on camera (Mountain), brick (Windows), moon (Sea)."
    assert "camera -1.74 % (the paper prints -19 % for Mountain)" in verdict.numbers


@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        ("nmAPG", "FaNCL"),
        ("nmAPG(block)", "DCA(block)"),
        ("nmAPG", "nmAPG(full SVD)"),
    ],
)
def test_speed_is_judged_both_ways(fast, slow):
    words = f"{fast} is faster than {slow} on"
    assert outcome(completion_rows(), words, "CPU time").outcome is Outcome.HOLDS
    verdict = outcome(completion_rows(change=change_of(fast, "Sea", cpu_seconds=1000.0)), words, "CPU time")
    assert verdict.outcome is Outcome.FAILS
    assert "slower on moon (Sea)." in verdict.reason
    limited = completion_rows(change=change_of(fast, "Sea", is_limited=True))
    assert outcome(limited, words, "CPU time").outcome is Outcome.OPEN


def test_a_factorization_that_is_slow_is_named():
    rows = completion_rows(change=change_of("ER1MP", "Sea", cpu_seconds=1000.0))
    assert outcome(rows, "ARSS-M3F Factorizations are fast").outcome is Outcome.HOLDS
    verdict = outcome(rows, "ER1MP Factorizations are fast")
    assert (verdict.outcome, "slower on moon (Sea)." in verdict.reason) == (Outcome.FAILS, True)


def test_a_single_repeat_decides_nothing_but_the_gain():
    found = verdicts(completion_rows(n_repeats=1))
    assert {v.outcome for v in found if GAIN not in v.claim} == {Outcome.OPEN}


# Tables, figures and pictures


@pytest.fixture(scope="module")
def whole():
    """The section of rows like the paper."""
    return section(completion_rows())


def only(*studies):
    return lambda settings: settings["study"] in studies


def table(shown, title):
    tables = [t for part in shown.parts for t in part.tables if t.title.startswith(title)]
    return dict(tables[0].rows), tables[0]


def test_printed_figures_of_other_images_stand_apart(whole):
    cells, shown = table(whole, "RMSE x 100 over all pixels")
    assert shown.columns == ("method", "camera (Mountain)", "brick (Windows)", "moon (Sea)")
    assert cells["nmAPG"][0].lines == ()
    cells, shown = table(whole, "As the paper prints it, on its own images: CPU seconds")
    assert shown.columns == ("method", "Mountain", "Windows", "Sea")
    assert [cell.text for cell in cells["FaNCL"]] == ["41.2 ± 0.7", "60.9 ± 1.2", "40.4 ± 1.2"]


def test_best_and_comparable_are_marked(whole):
    rows = completion_rows(change=change_of("nmAPG", "Sea", rmse=0.5), keep=only("table"))
    cells, _ = table(section(rows), "RMSE x 100 over all pixels")
    assert {method for method in cells if cells[method][2].best} == {"nmAPG"}
    cells, _ = table(whole, "RMSE x 100 over all pixels")
    assert {method for method in cells if cells[method][0].best} == {"nmAPG", "nmAPG(block)", "nmAPG(full SVD)"}


def test_limits_are_said_and_never_fastest():
    rows = completion_rows(change=change_of("nmAPG(block)", is_limited=True), keep=only("table"))
    cells, _ = table(section(rows), "CPU seconds")
    assert cells["nmAPG(block)"][0].text.startswith("≥ 1.0")
    assert cells["nmAPG(block)"][0].lines == ("at the limit of 1 min of CPU time",)
    assert not cells["nmAPG(block)"][0].best


def test_the_best_of_the_grid_is_found(whole):
    cells, _ = table(whole, "The best of each method")
    assert cells["nmAPG(block)"][0].lines == ("at 0.3, rank 20",)
    assert cells["ER1MP"][0].lines[0] == "at rank 19"
    assert not any(cells[method][0].best for method in cells)  # one repeat allows no test


def test_centring_compares_with_the_table(whole):
    cells, shown = table(whole, "Effect of centring")
    assert set(cells) == set(completion.CENTRED)
    assert all(cell.lines[0] == "-1.00 %" for row in shown.rows for cell in row[1])


def test_theta_has_its_grid_and_references(whole):
    cells, _ = table(whole, "Log-sum")
    assert len(cells) == len(completion.THETAS) + 1 + 2
    assert cells["nmAPG(block)"][0].text.startswith("1.4")
    assert cells["θ = √α (FaNCL)"][0].lines[-1] == "rank 20"


def test_every_method_has_its_difference_on_every_image(whole):
    clean, *drawn = next(part for part in whole.parts if part.title == "Clean and difference images").figures
    assert [panel.title for panel in clean.panels] == [image_name(image) for image in IMAGES]
    assert [figure.title for figure in drawn] == [f"Differences on {image_name(image)}" for image in IMAGES]
    assert (clean.number, {figure.number for figure in drawn}) == ("Figure 4", {"Figure 3"})
    for figure in drawn:
        assert len(figure.panels) == len(completion.PICTURED)
        assert all('src="data:image/png;base64,' in panel.drawing for panel in figure.panels)


def test_figures_show_every_method(whole):
    drawn = next(part for part in whole.parts if part.title.startswith("The strength")).figures
    legends = [{key.label for key in figure.legend} for figure in drawn]
    by_alpha = {m for m in completion.ALONG_PATH if completion.METHODS[m].parameter == "alpha"}
    assert [len(legend) for legend in legends] == [len(by_alpha), len(by_alpha), len(completion.ALONG_PATH)]
    styles = [(key.series, key.dash) for key in drawn[2].legend]
    assert len(set(styles)) == len(styles)


# Words


def test_stand_ins_and_sizes_are_said(whole):
    words = " ".join(whole.asked)
    for image, shipped in (("Mountain", "camera"), ("Sea", "moon"), ("Windows", "brick")):
        assert f"{shipped} for {image}" in words
    assert "the middle 48 x 48 pixels, where the paper has 512 x 512" in words
    assert "Repeats: 4 (paper: 5)" in words


def test_what_came_out_is_said_of_every_study(whole):
    gain, path, theta, centring, _, _ = whole.found
    assert re.search(r"by -19 % on camera \(printed for Mountain: -19 %\)", gain)
    assert re.search(
        r"lowest at camera \(Mountain\) 2\.0\d by nmAPG\(block\) \(nuclear norm\(block\) 2\.4\d\);", path
    )
    assert re.search(r"moon \(Sea\) 1\.\d\d by AIS-Impute \(nmAPG\(block\) 1\.9\d, nuclear norm", path)
    assert re.search(r"camera \(Mountain\) 2\.1\d at √α, 2\.1\d at θ = 0\.1, l1-2 2\.0\d;", theta)
    assert (
        centring
        == "Taking the mean off first changes the RMSE of l1-2 by "
        + ", ".join(f"-1.00 % on {image_name(image)}" for image in IMAGES)
        + "."
    )


def made_ratings(nuclear, log_sum, l12):
    errors = {"nuclear norm": nuclear, "log-sum, theta = sqrt(alpha)": 2.0, "log-sum, theta chosen": log_sum}
    return errors | {"l1-2": 3.0, "l1-2, weight chosen": l12}


def test_the_best_penalty_is_drawn_from_images_and_from_ratings(monkeypatch):
    rmse = {"as they are": made_ratings(1.1, 0.9, 1.0), "less biases": made_ratings(0.7, 0.9, 0.8)}
    found = {"RMSE": rmse, "splits": 7, "command": "python it.py", "date": "2001-02-03"}
    monkeypatch.setattr(words, "ratings", lambda: found)
    *_, lowest, numbers = section(completion_rows()).found
    assert (
        "for l1-2 on camera (Mountain), brick (Windows), moon (Sea); for log-sum on ratings as they are; "
        in lowest
    )
    assert "for the nuclear norm on ratings less biases, with" in lowest
    assert "mean over 7 random halves (`python it.py`, 2001-02-03)" in numbers
    assert "as they are nuclear norm 1.100, log-sum with theta = sqrt(alpha) 2.000, log-sum with" in numbers
    alone = section(completion_rows(keep=only("centring"))).found
    assert "lowest for log-sum on ratings as they are; for the nuclear norm on ratings less biases" in alone[-2]


def test_the_stored_errors_on_ratings_are_those_of_the_benchmark():
    benchmark = json.loads((Path(__file__).parents[3] / "benchmarks" / "results" / "rivals.json").read_text())
    centers = {"as they are": (None,), "less biases": ("biases", "auto", "mean")}
    stored = words.ratings()
    assert stored["date"] == benchmark["date"][:10]
    for taken_off, kinds in centers.items():
        rows = [row for row in benchmark["rows"] if row["center"] in kinds and "RMSE" in row]
        assert stored["RMSE"][taken_off].keys() == {row["method"] for row in rows}
        for method, mean in stored["RMSE"][taken_off].items():
            values = [row["RMSE"] for row in rows if row["method"] == method]
            assert len(values) == stored["splits"]
            assert mean == pytest.approx(np.mean(values), abs=5e-5 + 1e-12)


def test_the_reasons_come_from_the_rows(whole):
    reasons = " ".join(whole.reasons)
    assert "93 % for the first" in reasons
    assert "rank 20 of 48" in reasons
    assert "A matrix of rank 19 has 1,463 degrees of freedom, more than the 1,152 pixels that are known" in reasons
    swapped = completion_rows(change=change_of("FaNCL", "Mountain", rmse_missing=0.5), keep=only("table"))
    assert "On camera (Mountain) nmAPG and FaNCL change places" in " ".join(section(swapped).reasons)
    assert "Mountain" not in reasons


# Files


def test_the_page_is_whole_and_the_table_of_trials_slim(tmp_path):
    rewrite_rows(tmp_path, completion_rows())
    page = report.report(tmp_path).read_text()
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>").strip())
    assert len(list(root.iter("svg"))) == 3 * 3 + 3
    assert len(list(root.iter("img"))) == 3 * len(completion.PICTURED) + 3
    assert all(len(image.get("alt")) > 20 for image in root.iter("img"))
    lines = list(csv.DictReader(io.StringIO((tmp_path / report.TABLE_OF_TRIALS).read_text())))
    assert len(lines) == len(completion_rows())
    assert not any("pixels" in name for name in lines[0])


@pytest.mark.parametrize(
    "keep",
    [
        lambda s: s["study"] == "table" and s["method"] == "nmAPG" and s["repeat"] == 0 and s["image"] == "Sea",
        lambda s: s["study"] == "table" and s["method"] != "nmAPG",
        lambda s: s["study"] == "path" and s["method"] == "ER1MP",
        lambda s: s["study"] == "theta",
        lambda s: s["study"] == "centring",
        lambda s: s["repeat"] == 0 and s["image"] != "Mountain",
    ],
    ids=["one row", "no nmAPG", "one path", "theta", "centring", "two images"],
)
def test_report_of_part_of_the_rows(keep, tmp_path):
    rewrite_rows(tmp_path, completion_rows(n_repeats=2, keep=keep))
    page = report.report(tmp_path).read_text()
    ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>").strip())
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<[^>]*>", "", page))


def test_results_that_were_not_finite(tmp_path):
    def change(settings, results):
        if settings["method"] == "LMaFit" and settings["image"] == "Sea":
            results |= {"rmse": None, "rmse_missing": None, "objective": None, "stationarity": None}
            results |= {"status": "NOT_FINITE", "is_limited": True, "first_share": None, "rank": 0}

    rows = completion_rows(n_repeats=2, change=change, keep=only("table", "path"))
    assert table(section(rows), "RMSE x 100 over all pixels")[0]["LMaFit"][2].text == "no rows"
    assert outcome(rows, WORSE, "all pixels").outcome is Outcome.OPEN
    rewrite_rows(tmp_path, rows)
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<[^>]*>", "", report.report(tmp_path).read_text()))
