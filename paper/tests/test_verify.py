"""Runs from elsewhere: what agrees, what does not, and what to do about it in each case."""

import json
import shutil
import sys

import pytest

from ell12 import cli
from ell12_paper import archive, experiment, provenance, report
from ell12_paper import run as run_module
from ell12_paper import verify as verify_module
from ell12_paper.agreement import compare, merged, sample
from ell12_paper.level_curves import study
from ell12_paper.rows import FILE, make_row, read_rows, rewrite_rows
from ell12_paper.run import RunDisplay
from ell12_paper.verification import Verification
from ell12_paper.verify import verify
from ell12_paper.workers import Measurement, Trial

NAME = "level-curves"


@pytest.fixture(scope="module", autouse=True)
def small():
    """One experiment, with a coarser grid."""
    coarse = [settings | {"grid": 21} for settings in study.trials("quick", 0)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "trials", lambda preset, seed: coarse)
        patch.setattr(run_module, "EXPERIMENTS", [NAME])
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory, small):
    """A finished run of one experiment with a page that is no page, as its author has it."""
    folder = tmp_path_factory.mktemp("run") / "there"
    folder.mkdir()
    where = provenance.environment() | {"trial_seconds": 0.01}
    rewrite_rows(folder, [make_row(NAME, s, study.measure(s), where) for s in study.trials("quick", 0)])
    (folder / provenance.RUN_FILE).write_text(json.dumps({"preset": "quick", "seed": 0}))
    provenance.begin(folder, [NAME], "quick", 0, 1, None, 0)
    seal(folder)
    return folder


def seal(folder):
    """What `ell12-paper run` does at its end, but for the page itself."""
    (folder / "index.html").write_text("a page")
    provenance.seal(folder, provenance.MEASURED)
    verdicts = {"ell12": provenance.__version__, "verdicts": report.verdict_lines(folder)}
    provenance.seal(folder, provenance.PAGE_FILES, page=verdicts)


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "copy")


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Trials are measured here, which is faster than by a process of their own."""

    def measured(trials, rows, jobs, progress):
        return (
            (trial, Measurement(experiment(trial.experiment).measure(trial.settings), 0.02)) for trial in trials
        )

    monkeypatch.setattr(verify_module, "measured", measured)


def change_rows(folder, change):
    rewrite_rows(folder, change(read_rows(folder)[0]))


def forged(rows):
    """The rows with another value in one of them, its check computed anew."""
    values = [list(line) for line in rows[1]["results"]["values"]]
    values[3][4] += 1e-3
    new = make_row(NAME, rows[1]["settings"], rows[1]["results"] | {"values": values}, rows[1]["environment"])
    return [rows[0], new, *rows[2:]]


# Whole runs


def test_a_run_of_some_trials_is_whole_if_those_have_their_rows(copy):
    change_rows(copy, lambda rows: [row for row in rows if row["settings"]["penalty"] == "l1-2"])
    (copy / provenance.FILE).unlink()
    provenance.begin(copy, [NAME], "quick", 0, 1, None, 0, ["penalty=l1-2"])
    seal(copy)
    found = verify(copy)
    assert (found.agrees, len(found.rechecks)) == (True, 1)
    assert any(
        "All 1 trials of --preset quick --seed 0 that were asked for, of 5" in line for line in found.lines()
    )


def test_a_run_that_nobody_touched_is_verified_as_a_folder_and_as_an_archive(run, tmp_path):
    archive.pack(run, tmp_path / "run.zip")
    for source in (run, tmp_path / "run.zip"):
        found = verify(source)
        assert (found.agrees, found.problems, len(found.rechecks)) == (True, [], 5)
        assert all(check.agreement.is_exact for check in found.rechecks)
        outcomes = {f"{claim.there.upper()}: {claim}" for claim in found.claims}
        assert outcomes
        assert all(claim.there == claim.here for claim in found.claims)
        lines = list(found.lines())
        assert lines[0].startswith("Run: ell12-paper run level-curves --preset quick --seed 0 --jobs 1, 20")
        assert lines[-1].startswith("The run is verified. Claims: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.zip"]


def test_a_worker_of_its_own_measures_what_this_process_measures(run, monkeypatch):
    monkeypatch.undo()
    found = verify(run, n_trials=1, progress=RunDisplay())
    assert found.agrees
    assert [check.agreement.is_exact for check in found.rechecks] == [True]


def damaged_line(folder):
    text = (folder / FILE).read_bytes().replace(b'"grid":21', b'"grid":20', 1)
    (folder / FILE).write_bytes(text)


def deleted_row(folder):
    change_rows(folder, lambda rows: rows[:2] + rows[3:])
    seal(folder)


def row_twice(folder):
    change_rows(folder, lambda rows: [*rows, rows[0]])
    seal(folder)


def strange_row(folder):
    change_rows(folder, lambda rows: [*rows, make_row(NAME, {"grid": 10**9}, rows[0]["results"], {})])
    seal(folder)


def forged_row(folder):
    change_rows(folder, forged)
    seal(folder)


def no_results(folder):
    change_rows(folder, lambda rows: [make_row(NAME, row["settings"], {}, row["environment"]) for row in rows])
    provenance.seal(folder, provenance.MEASURED)


def other_verdicts(folder):
    provenance.seal(folder, (), page={"ell12": provenance.__version__, "verdicts": ["HOLDS: everything"]})


def killed_run(folder):
    provenance.begin(folder, [NAME], "quick", 0, 1, None, 5)


@pytest.mark.parametrize(
    ("harm", "sentences"),
    [
        (damaged_line, ["line 1 of rows.jsonl is damaged", "rows.jsonl is not the file", "1 trial has no row"]),
        (
            lambda folder: change_rows(folder, forged),
            ["rows.jsonl is not the file that the run wrote: get the run"],
        ),
        (forged_row, ["gives something else here: values differs"]),
        (deleted_row, ["1 trial has no row", "`ell12-paper run --resume`"]),
        (row_twice, ["1 trial has more than one row"]),
        (strange_row, ["1 row belong to no trial of --preset quick --seed 0", "Verify with the version"]),
        (no_results, ["allow no verdict (KeyError", "values is missing there"]),
        (other_verdicts, ["printed other verdicts than its rows give, the first: HOLDS: everything"]),
        (killed_run, ["was killed or is still going on", "brings it to its end"]),
        (
            lambda folder: (folder / "index.html").unlink(),
            ["index.html is missing: `ell12-paper report` makes it again"],
        ),
        (
            lambda folder: (folder / "run.json").unlink(),
            ["run.json is missing: get the run again", "names no preset"],
        ),
        (lambda folder: (folder / "run.json").write_text('{"preset": "quick", "seed": "x"}'), ["names no preset"]),
        (lambda folder: (folder / "provenance.json").unlink(), ["provenance.json is missing", "of an old run"]),
        (lambda folder: (folder / "provenance.json").write_text("[]"), ["provenance.json cannot be read"]),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(copy, harm, sentences):
    harm(copy)
    found = verify(copy)
    assert not found.agrees
    told = "\n".join(finding.text for finding in found.problems)
    for sentence in sentences:
        assert sentence in told
    assert "not verified" in found.summary


def test_rows_of_another_version_are_told_and_still_compared(copy):
    def older(rows):
        return [
            make_row(NAME, row["settings"], row["results"], row["environment"] | {"ell12": "0.0.9"})
            for row in rows
        ]

    change_rows(copy, older)
    seal(copy)
    found = verify(copy)
    assert (found.agrees, len(found.rechecks)) == (True, 5)
    told = [finding.text for finding in found.findings if finding.check == "versions"]
    assert told[0].startswith("5 rows were measured by ell12 0.0.9")
    assert "install ell12 0.0.9 and verify again" in told[0]


def test_an_old_run_with_fewer_repeats_lacks_only_its_provenance(copy):
    (copy / "provenance.json").unlink()
    assert [finding.check for finding in verify(copy).problems] == ["files"]


def test_a_claim_that_falls_with_the_trials_measured_here_is_told(copy, monkeypatch):
    def measured(trials, rows, jobs, progress):
        for trial in trials:
            results = study.measure(trial.settings)
            values = [[-value for value in line] for line in results["values"]]
            yield trial, Measurement(results | {"values": values}, 0.02)

    monkeypatch.setattr(verify_module, "measured", measured)
    found = verify(copy)
    changed = [claim for claim in found.claims if claim.here != claim.there]
    assert changed
    assert any("there, " in line and "here: " in line for line in found.lines())
    assert any("change the verdict" in finding.text for finding in found.problems)


# The command


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["ell12", *map(str, arguments)])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return raised.value.code or 0


def test_the_command_says_by_its_exit_code_whether_all_agrees(copy, tmp_path, monkeypatch, capsys):
    assert call(monkeypatch, "verify", copy, "--trials", "0") == 0
    assert "Trials: none is measured again." in capsys.readouterr().out.splitlines()
    assert call(monkeypatch, "verify", copy, "--trials", "0", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["agrees"], told["trials"], told["run"]["rows"]) == (True, [], 5)
    assert told["claims"][0].keys() == {"experiment", "setting", "text", "there", "here"}
    (copy / "index.html").unlink()
    assert call(monkeypatch, "verify", copy, "--trials", "1") == 1
    assert "WRONG: Files: index.html is missing" in capsys.readouterr().out
    for source in (tmp_path / "nowhere", tmp_path):
        assert call(monkeypatch, "verify", source) == 1
        assert capsys.readouterr().err.count("\n") == 1


def test_ctrl_c_tells_what_was_done(copy, monkeypatch, capsys):
    def stopped(trials, rows, jobs, progress):
        yield trials[0], Measurement(study.measure(trials[0].settings), 0.02)
        raise KeyboardInterrupt

    def refuse(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(verify_module, "measured", stopped)
    assert call(monkeypatch, "verify", copy) == 130
    assert capsys.readouterr().out.splitlines()[-1] == "Stopped: 1 of 5 trials were measured again."
    monkeypatch.setattr(verify_module, "check_files", refuse)
    assert call(monkeypatch, "verify", copy) == 130
    assert capsys.readouterr().out.splitlines() == ["Stopped: nothing is written."]


# Agreement


def test_rounding_is_allowed_and_more_is_not():
    row = {"objective": 1.0, "rmse": 0.5, "n_nonzero": 100, "n_iter": 70, "status": "CONVERGED", "seconds": 1.0}
    assert compare(row, row | {"seconds": 9.0}).is_exact
    cases = {
        "objective": (1.00005, 1.001),
        "rmse": (0.51, 0.56),
        "n_nonzero": (105, 120),
    }
    for name, (near, far) in cases.items():
        close = compare(row, row | {name: near, "n_iter": 90, "status": "MAX_ITER"})
        assert (close.agrees, close.is_exact) == (True, False)
        assert [words.split()[0] for words in compare(row, row | {name: far}).differing] == [name]
    assert compare(row, row | {"rmse": 0.54, "n_nonzero": 60}, is_free=True).agrees


def test_the_way_is_judged_where_the_end_is_the_same():
    row = {"rmse": 0.5, "status": "CONVERGED", "history": {"rmse": [1.0, 0.5], "cpu_seconds": [0.0, 1.0]}}
    assert compare(row, row | {"history": {"rmse": [1.0, 0.5 + 1e-9], "cpu_seconds": [0.0, 7.0]}}).agrees
    assert compare(row, row | {"history": {"rmse": [1.0, 0.7]}}).differing == ("history.rmse differs",)
    assert compare(row, row | {"status": "MAX_ITER"}).differing == ("status is CONVERGED there and MAX_ITER here",)
    assert compare(row, {"rmse": 0.5}).differing == ("status is missing here", "history.rmse is missing here")
    assert compare(row, row | {"rmse": None}).differing == ("rmse differs",)


def trials_of(**counts):
    trials = [
        Trial(name, {"i": i, "max_cpu_seconds": 60.0}) for name, count in counts.items() for i in range(count)
    ]
    rows = {trial.key: make_row(trial.experiment, trial.settings, {}, {"trial_seconds": 2.0}) for trial in trials}
    return trials, rows


def test_a_sample_is_fixed_by_its_seed_and_takes_from_each_experiment():
    trials, rows = trials_of(a=50, b=3)
    chosen = sample(trials, rows, 8, 60.0, seed=1)
    assert chosen == sample(trials, rows, 8, 60.0, seed=1) != sample(trials, rows, 8, 60.0, seed=2)
    assert sum(trial.experiment == "b" for trial in chosen) == 3
    assert len(sample(trials, rows, None, 60.0, seed=1)) == 30
    assert len(sample(trials, rows, None, 0.5, seed=1)) == 1
    assert sample(trials, rows, 1000, 60.0, seed=1) != trials
    assert len(sample(trials, rows, 1000, 60.0, seed=1)) == 53


def test_what_a_clock_ended_is_not_measured_again():
    trials, rows = trials_of(a=3)
    rows[trials[1].key]["results"]["cpu_seconds"] = 61.0
    assert {trial.settings["i"] for trial in sample(trials, rows, 10, 60.0, seed=0)} == {0, 2}
    found = Verification()
    verify_module._check_trials(found, trials, list(rows.values()), 0, 0, 1, RunDisplay())
    assert found.findings[0].text.startswith("1 of 3 took as long as their limit of time")


def test_times_of_two_machines_are_not_mixed():
    rows = [
        make_row("a", {"i": i}, {"rmse": 1.0, "seconds": 5.0, "early": {"cpu_seconds": 3.0}}, {}) for i in (0, 1)
    ]
    here = {"rmse": 0.9, "seconds": 50.0, "early": {"cpu_seconds": 30.0}}
    partly = [row["results"] for row in merged(rows, {rows[0]["key"]: here})]
    assert partly == [{"rmse": 0.9, "seconds": 5.0, "early": {"cpu_seconds": 3.0}}, rows[1]["results"]]
    assert [row["results"] for row in merged(rows, {row["key"]: here for row in rows})] == [here, here]
