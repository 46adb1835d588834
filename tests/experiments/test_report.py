"""The report: verdicts both ways, marking, and the three files, from rows alone."""

import csv
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the report needs the extra 'report'")
pytest.importorskip("jinja2", reason="the report needs the extra 'report'")

from ell12.experiments import level_curves, report
from ell12.experiments.compressed_sensing_claims import METHODS, OURS
from ell12.experiments.compressed_sensing_report import section as sensing_section
from ell12.experiments.compressed_sensing_report import verdicts as sensing_verdicts
from ell12.experiments.prox_study_report import verdicts as prox_verdicts
from ell12.experiments.report import Outcome
from ell12.experiments.rows import FILE, make_row, rewrite_rows

ENVIRONMENT = {"python": "3.11.0", "numpy": "2.0", "scipy": "1.13", "ell12": "0.1", "cpu": "A <fast> CPU & more"}
ENVIRONMENT |= {"date": "2024-05-01T10:00:00+00:00", "trial_seconds": 1.5}
# As the paper has it: the closed form fastest, l1 less accurate, SCP at a larger objective.
SECONDS = {"DCA": 5.0, "SCP": 8.0, "nmAPG(numerical)": 2.0, OURS: 1.0, "FISTA": 3.0, "DCA(rho=1)": 20.0}
RMSE = {"FISTA": 0.09}
OBJECTIVE = {"SCP": 1.2, "FISTA": 1.5}


def sensing_rows(n_repeats=4, methods=METHODS, setups=("stated", "calibrated"), change=None):
    """Rows of compressed sensing as the paper claims them; change(settings, results) makes them differ."""
    rows = []
    for setup in setups:
        for i in range(5):
            for repeat in range(n_repeats):
                random = np.random.default_rng([i, repeat])
                for method in methods:
                    settings = {
                        "setup": setup,
                        "i": i,
                        "alpha": 0.01 * 0.25**i,
                        "repeat": repeat,
                        "method": method,
                    }
                    settings |= {
                        "n_samples": 50,
                        "seed": repeat,
                        "tol": 1e-3,
                        "max_seconds": 60.0,
                        "max_iter": None,
                    }
                    results = sensing_results(method, i, 1 + 0.02 * random.random())
                    if change:
                        change(settings, results)
                    rows.append(make_row("compressed-sensing", settings, results, ENVIRONMENT))
    return rows


def sensing_results(method, i, noise):
    seconds, objective = SECONDS.get(method, 0.5) * 2**i * noise, OBJECTIVE.get(method, 1.0) * noise
    path = {
        "cpu_seconds": [0.0, 0.5 * seconds, seconds],
        "objective": [9.0, 2.0, objective],
        "rmse": [1.0, 0.5, 0.1],
    }
    return {
        "seconds": seconds,
        "cpu_seconds": seconds,
        "setup_seconds": 0.01,
        "n_iter": 100,
        "status": "CONVERGED",
        "objective": objective,
        "stationarity": 9e-4,
        "rmse": RMSE.get(method, 0.05) * noise,
        "n_nonzero": 10,
        "early": {"cpu_seconds": 0.5 * seconds, "objective": 1.1 * objective, "rmse": 0.2, "n_iter": 50},
        "history": path,
    }


def curve_rows():
    trials = level_curves.trials("quick", 0)
    measured = [settings | {"grid": 21} for settings in trials]
    return [make_row("level-curves", s, level_curves.measure(s), ENVIRONMENT) for s in measured]


def prox_rows(power=1.0, slowdown=10.0):
    rows = []
    for d in (10**k for k in range(2, 7)):
        for method, factor in (("closed-form", 1.0), ("numerical", slowdown)):
            for case, threshold in (("t = 1", 1.0), ("t near max|z|", 4.0)):
                for repeat in range(2):
                    settings = {"d": d, "method": method, "case": case, "threshold": threshold, "repeat": repeat}
                    results = {
                        "seconds": 1e-8 * factor * d**power,
                        "n_iter": 7,
                        "value": 1.0,
                        "copy_seconds": 1e-10 * d,
                    }
                    rows.append(make_row("prox", settings | {"seed": repeat}, results, ENVIRONMENT))
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with rows of every experiment, and its report."""
    path = tmp_path_factory.mktemp("report")
    rewrite_rows(path, sensing_rows() + curve_rows() + prox_rows())
    (path / "run.json").write_text(json.dumps({"preset": "quick", "seed": 3}))
    report.report(path)
    return path


def outcome(rows, words, setting="stated"):
    chosen = [v for v in sensing_verdicts(rows) if words in v.claim and v.setting == setting]
    assert len(chosen) == 1
    return chosen[0]


# Verdicts


def test_every_claim_holds_on_rows_like_the_paper():
    verdicts = sensing_verdicts(sensing_rows())
    assert len(verdicts) == 14
    assert {v.outcome for v in verdicts} == {Outcome.HOLDS}


SPEED = ["faster than nmAPG(numerical)", "faster than SCP", "faster than DCA", "faster than FISTA"]


@pytest.mark.parametrize("words", SPEED)
def test_slower_at_one_i_does_not_hold(words):
    def slow(settings, results):
        if settings["method"] == OURS and settings["i"] == 3 and settings["setup"] == "stated":
            results["cpu_seconds"] *= 100

    rows = sensing_rows(change=slow)
    verdict = outcome(rows, words)
    assert verdict.outcome is Outcome.FAILS
    assert "slower at i = 3." in verdict.reason
    assert outcome(rows, words, "calibrated").outcome is Outcome.HOLDS


def test_difference_within_the_spread_is_not_decidable():
    def mixed(settings, results):
        if settings["method"] == "DCA" and settings["i"] == 2:
            results["cpu_seconds"] = 4.0 * (1.5 if settings["repeat"] % 2 else 0.7)

    verdict = outcome(sensing_rows(change=mixed), "faster than DCA")
    assert verdict.outcome is Outcome.OPEN
    assert "within the spread of the repeats" in verdict.reason


def limit(method, i):
    def change(settings, results):
        if settings["method"] == method and settings["i"] == i:
            results["status"] = "MAX_SECONDS"

    return change


def test_rival_at_its_limit_takes_at_least_that_long():
    verdict = outcome(sensing_rows(change=limit("SCP", 4)), "faster than SCP")
    assert verdict.outcome is Outcome.HOLDS
    assert re.search(r"≥ 8\S*\.$", verdict.numbers)


def test_own_method_at_its_limit_proves_nothing():
    verdict = outcome(sensing_rows(change=limit(OURS, 4)), "faster than SCP")
    assert verdict.outcome is Outcome.OPEN
    assert f"{OURS} ended at its limit" in verdict.reason
    assert re.search(r"≤ 8\S*\.$", verdict.numbers)


def test_rival_at_its_limit_is_not_proved_faster():
    def change(settings, results):
        limit("DCA", 0)(settings, results)
        if settings["method"] == "DCA" and settings["i"] == 0:
            results["cpu_seconds"] /= 100

    assert outcome(sensing_rows(change=change), "faster than DCA").outcome is Outcome.OPEN


def test_less_accurate_than_l1_does_not_hold():
    def change(settings, results):
        if settings["method"] == "FISTA" and settings["i"] == 0:
            results["rmse"] /= 4

    verdict = outcome(sensing_rows(change=change), "lower RMSE")
    assert verdict.outcome is Outcome.FAILS
    assert verdict.reason == "Lower at i = 1 to 4; higher at i = 0."


def test_unfinished_runs_leave_the_accuracy_open():
    assert outcome(sensing_rows(change=limit("FISTA", 1)), "lower RMSE").outcome is Outcome.OPEN


STATIONARITY, EARLY = "at the same stationarity", "at a relative change"


def test_equal_objectives_do_not_count_as_larger():
    def change(settings, results):
        if settings["method"] == "SCP":
            results["objective"] *= 1.0000001 / 1.2  # always larger, but by nothing that matters

    rows = sensing_rows(change=change)
    assert outcome(rows, STATIONARITY).outcome is Outcome.FAILS
    assert outcome(rows, EARLY).outcome is Outcome.HOLDS


def test_early_rule_is_judged_by_the_early_objectives():
    def change(settings, results):
        if settings["method"] == "SCP":
            results["early"]["objective"] /= 1.2

    rows = sensing_rows(change=change)
    assert outcome(rows, STATIONARITY).outcome is Outcome.HOLDS
    assert outcome(rows, EARLY).outcome is Outcome.FAILS


def test_larger_objective_of_an_unfinished_run_is_not_decidable():
    verdict = outcome(sensing_rows(change=limit("SCP", 2)), STATIONARITY)
    assert verdict.outcome is Outcome.OPEN
    assert "open (a method ended at its limit) at i = 2" in verdict.reason


def test_run_that_converged_before_the_early_rule_counts_with_its_end():
    def change(settings, results):
        results["early"] = None

    assert outcome(sensing_rows(change=change), EARLY).outcome is Outcome.HOLDS


def test_early_rule_never_met_is_not_decidable():
    def change(settings, results):
        limit("SCP", 1)(settings, results)
        if results["status"] != "CONVERGED":
            results["early"] = None

    assert outcome(sensing_rows(change=change), EARLY).outcome is Outcome.OPEN


def test_single_repeat_is_not_decidable():
    rows = sensing_rows(n_repeats=1)
    assert outcome(rows, "faster than SCP").outcome is Outcome.OPEN
    assert "a single repeat allows no test" in outcome(rows, "faster than SCP").reason


def test_missing_method_is_not_decidable():
    rows = sensing_rows(methods=[OURS, "SCP"])
    assert outcome(rows, "faster than DCA").outcome is Outcome.OPEN
    assert outcome(rows, "faster than SCP").outcome is Outcome.HOLDS


def test_linear_time_of_the_prox():
    assert [v.outcome for v in prox_verdicts(prox_rows())] == [Outcome.HOLDS, Outcome.HOLDS]
    assert [v.outcome for v in prox_verdicts(prox_rows(power=1.6))] == [Outcome.FAILS, Outcome.HOLDS]
    assert prox_verdicts(prox_rows(power=1.2))[0].outcome is Outcome.OPEN
    assert prox_verdicts(prox_rows(slowdown=0.5))[1].outcome is Outcome.FAILS


def test_level_curves_are_measured():
    from ell12.experiments.level_curves_report import verdicts

    rows = curve_rows()
    assert verdicts(rows)[0].outcome is Outcome.HOLDS
    flat = [[1.0] * 21] * 21
    ours = next(row for row in rows if row["settings"]["penalty"] == "l1-2")
    ours["results"]["values"] = flat
    assert verdicts(rows)[0].outcome is Outcome.FAILS
    assert verdicts([row for row in rows if row is not ours])[0].outcome is Outcome.OPEN


# Tables


def table(rows, title):
    tables = [t for part in sensing_section(rows).parts for t in part.tables if t.title.startswith(title)]
    return dict(tables[0].rows), tables[0]


def test_best_and_comparable_are_marked():
    def change(settings, results):
        if settings["method"] == "PG(Barzilai-Borwein)":
            results["cpu_seconds"] = (
                SECONDS[OURS] * 2 ** settings["i"] * (1.03 if settings["repeat"] % 2 else 0.98)
            )

    cells, _ = table(sensing_rows(setups=["stated"], change=change), "CPU seconds")
    assert {method for method in cells if cells[method][0].best} == {OURS, "PG(Barzilai-Borwein)"}
    cells, _ = table(sensing_rows(setups=["stated"]), "CPU seconds")
    assert {method for method in cells if cells[method][0].best} == {"PG(Barzilai-Borwein)"}


def test_printed_figures_stand_beside_ours():
    cells, _ = table(sensing_rows(setups=["stated"]), "CPU seconds")
    assert cells["SCP"][4].lines == ("paper 335.6 ± 28.3",)
    assert cells["DCA(rho=1)"][4].lines == ()
    cells, _ = table(sensing_rows(setups=["stated"]), "RMSE x 100")
    assert cells[OURS][3].lines == ("paper 4.00 ± 0.38",)
    assert cells[OURS][3].text.startswith("5.0")


def test_limit_is_said_and_never_marked():
    def change(settings, results):
        if settings["method"] == "PG(Barzilai-Borwein)" and settings["i"] == 4 and settings["repeat"] == 0:
            results["status"] = "MAX_ITER"

    cells, _ = table(sensing_rows(setups=["stated"], change=change), "CPU seconds")
    cell = cells["PG(Barzilai-Borwein)"][4]
    assert cell.text.startswith("≥ ")
    assert cell.lines == ("limit 1 of 4",)
    assert not cell.best
    assert cells[OURS][4].best


def test_ratios_at_the_last_i():
    def exact(settings, results):
        results["cpu_seconds"] = SECONDS.get(settings["method"], 0.5) * (1 + settings["repeat"])

    rows = sensing_rows(setups=["stated"], change=exact)
    cells, _ = table(rows, "CPU time as a multiple")
    assert (cells["DCA"][4].text, cells["DCA"][4].lines) == ("5", ("paper 16.6",))
    assert (cells["SCP"][4].text, cells["SCP"][4].lines) == ("8", ("paper 28.7",))
    assert f"DCA / {OURS}: 5 (paper 17); SCP / {OURS}: 8 (paper 29)" in " ".join(sensing_section(rows).found)


def test_setup_that_comes_closer_is_named():
    printed = report.paper()["compressed-sensing"]["rmse_times_100"][OURS]

    def change(settings, results):
        if settings["setup"] == "stated" and settings["method"] == OURS:
            results["rmse"] = 0.0101 * printed[settings["i"]][0]

    assert "“stated” comes closer to the paper" in sensing_section(sensing_rows(change=change)).found[0]


# Files


def test_page_is_well_formed_and_needs_nothing_else(folder):
    page = (folder / report.PAGE).read_text()
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>").strip())
    assert not re.findall(r"https?:", page)
    assert not list(root.iter("script"))
    outside = [e.get(name) for e in root.iter() for name in ("href", "src") if e.get(name)]
    assert all(link.startswith(("#", "data:")) for link in outside)
    targets = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(targets) == len(set(targets))
    assert {link[1:] for link in outside if link.startswith("#")} <= set(targets)
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(targets)


def test_page_has_every_figure_with_words_for_it(folder):
    page = (folder / report.PAGE).read_text()
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>").strip())
    drawings = list(root.iter("svg"))
    assert len(drawings) == 2 * 5 + 5 + 3
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
    assert page.count('<div class="verdict">') == 14 + 1 + 2


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
    assert len(re.findall(r"^## ", text, re.MULTILINE)) == 2 * 5 + 1
    assert re.search(r"^\| SCP \| 8\.\S+ ± \S+<br>paper 2\.1 ± 0\.2 \|", text, re.MULTILINE)
    assert re.search(r"^\| PG\(Barzilai-Borwein\) \| \*\*0\.5\S+ ± \S+\*\* \|", text, re.MULTILINE)
    assert "- **holds** (stated): nmAPG(closed-form) is faster than SCP at every i." in text
    widths = {}
    for line in text.splitlines():
        if line.startswith("|"):
            widths.setdefault(len(re.findall(r"(?<!\\)\|", line)), []).append(line)
    assert set(widths) == {5 + 2, 4 + 2}


def test_verdict_lines_are_those_of_the_page(folder):
    lines = report.verdict_lines(folder)
    heads = [line for line in lines if not line.startswith(" ")]
    assert len(heads) == 14 + 1 + 2
    assert "HOLDS: nmAPG(closed-form) is faster than SCP at every i (compressed-sensing, stated)" in heads


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


def test_results_that_were_not_finite():
    def change(settings, results):
        if settings["method"] == "SCP" and settings["i"] == 1:
            results |= {
                "status": "NOT_FINITE",
                "objective": None,
                "rmse": None,
                "stationarity": None,
                "early": None,
            }
            results["history"]["objective"] = [9.0, None, None]

    rows = sensing_rows(change=change)
    cells, _ = table(rows, "RMSE x 100")
    assert cells["SCP"][1].text == "no rows"
    assert outcome(rows, STATIONARITY).outcome is Outcome.OPEN


def test_damaged_rows_are_told_of(tmp_path):
    rewrite_rows(tmp_path, prox_rows())
    with (tmp_path / FILE).open("a") as file:
        file.write('{"key": "half a ro')
    assert "is cut off; it was left out" in report.report(tmp_path).read_text()


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_nothing_to_report_is_a_clear_error(tmp_path, make):
    path = tmp_path / "empty"
    make(path)
    with pytest.raises(FileNotFoundError, match=r"empty holds no rows to report: run `ell12 reproduce"):
        report.report(path)
    with pytest.raises(FileNotFoundError, match="holds no rows"):
        report.verdict_lines(path)
