"""Runs that go on where they were, whatever ended them."""

import hashlib
import json
import os

import pytest
from paper.tests import fake_trials

from ell12.commands import CommandError
from ell12_paper import EXPERIMENTS, PRESET_NAMES, experiment, workers
from ell12_paper import run as run_module
from ell12_paper.compressed_sensing import study as compressed_sensing
from ell12_paper.rows import FILE, key_of, read_rows
from ell12_paper.run import run
from ell12_paper.workers import Trial


class Listener:
    """A progress display that remembers."""

    def __init__(self):
        self.notes, self.states = [], []

    def note(self, text):
        self.notes.append(text)

    def update(self, state):
        self.states.append(state)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Register one fake experiment of some trials; returns a function that lists which were measured."""

    def register(*moods):
        log = tmp_path / "log"
        monkeypatch.setattr(fake_trials, "LOG", str(log))
        monkeypatch.setattr(fake_trials, "MOODS", moods)
        for place in (run_module, workers):
            monkeypatch.setattr(place, "experiment", lambda _: fake_trials)
        monkeypatch.setattr(run_module, "EXPERIMENTS", {"fake": "fake_trials"})
        return lambda: [int(line) for line in log.read_text().split()] if log.exists() else []

    return register


def values(folder):
    rows, damaged = read_rows(folder)
    assert not damaged
    return {row["settings"]["i"]: row["results"]["value"] for row in rows}


# Runs


def test_a_run_measures_each_trial_once_with_one_thread(tmp_path, fake, monkeypatch):
    measured = fake("well", "well", "well")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    listener = Listener()
    outcome = run(out=tmp_path / "out", progress=listener)
    assert (outcome.total, outcome.kept, outcome.written, outcome.failures) == (3, 0, 3, [])
    assert measured() == [0, 1, 2]
    rows, _ = read_rows(tmp_path / "out")
    assert values(tmp_path / "out") == {0: 0, 1: 1, 2: 4}
    assert {row["results"]["threads"]["OMP_NUM_THREADS"] for row in rows} == {"1"}
    assert {row["results"]["threads"]["OPENBLAS_NUM_THREADS"] for row in rows} == {"1"}
    assert (os.environ["OMP_NUM_THREADS"], "OPENBLAS_NUM_THREADS" in os.environ) == ("7", False)
    assert all(
        row["environment"].keys() >= {"python", "numpy", "scipy", "ell12", "machine", "cpu", "date"}
        for row in rows
    )
    assert [state.done for state in listener.states] == sorted(state.done for state in listener.states)
    assert (listener.states[0].seconds_left, listener.states[0].running[0].settings["i"]) == (None, 0)
    assert (listener.states[-1].done, listener.states[-1].seconds_left) == (3, 0.0)
    known = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert [entry["command"] for entry in known["runs"]] == ["ell12-paper run --preset quick --seed 0 --jobs 1"]
    digest = hashlib.sha256((tmp_path / "out" / FILE).read_bytes()).hexdigest()
    assert known["files"][FILE]["sha256"] == digest


def test_a_resumed_run_repeats_nothing(tmp_path, fake):
    measured = fake("well", "well")
    run(out=tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    outcome = run(out=tmp_path / "out", resume=True)
    assert (outcome.kept, outcome.written) == (2, 0)
    assert measured() == [0, 1]
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    (tmp_path / "out" / "provenance.json").unlink()  # as in a folder from before it was kept
    run(out=tmp_path / "out", resume=True)
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["runs"][0]["rows_before"] == 2


@pytest.mark.parametrize(
    ("damage", "kept", "redone"),
    [
        (lambda lines: [*lines[:-1], lines[-1][:40]], {0, 1}, 2),
        (lambda lines: [lines[0], lines[1].replace(b'"value":1', b'"value":7'), lines[2]], {0, 2}, 1),
    ],
    ids=["half-written last row", "changed middle row"],
)
def test_a_damaged_row_is_noticed_and_redone(tmp_path, fake, damage, kept, redone):
    measured = fake("well", "well", "well")
    file = tmp_path / "out" / FILE
    run(out=tmp_path / "out")
    file.write_bytes(b"".join(damage(file.read_bytes().splitlines(keepends=True))))
    listener = Listener()
    outcome = run(out=tmp_path / "out", resume=True, progress=listener)
    assert (outcome.kept, outcome.written) == (2, 1)
    assert measured() == [0, 1, 2, redone]
    assert values(tmp_path / "out") == {0: 0, 1: 1, 2: 4}
    assert len(listener.notes) == 1
    assert f"line {redone + 1} of {file}" in listener.notes[0]


def test_a_trial_that_raises_has_no_row_and_is_tried_again(tmp_path, fake):
    measured = fake("well", "raises", "dies", "no JSON", "well")
    outcome = run(out=tmp_path / "out")
    assert [trial.settings["i"] for trial, _ in outcome.failures] == [1, 2, 3]
    errors = [error for _, error in outcome.failures]
    assert "ZeroDivisionError: a fake trouble" in errors[0]
    assert "exit code 3" in errors[1]
    assert "not JSON serializable" in errors[2]
    assert values(tmp_path / "out") == {0: 0, 4: 16}
    run(out=tmp_path / "out", resume=True)
    assert measured() == [0, 1, 2, 3, 4, 1, 2, 3]


def test_rows_of_an_earlier_run_need_resume(tmp_path, fake):
    measured = fake("well", "well")
    run(out=tmp_path / "out")
    with pytest.raises(CommandError, match="holds 2 rows of an earlier run: add --resume to go on"):
        run(out=tmp_path / "out")
    assert measured() == [0, 1]


@pytest.mark.parametrize("other", [{"preset": "paper"}, {"seed": 1}])
def test_rows_of_another_preset_or_seed_are_refused(tmp_path, fake, other):
    measured = fake("well")
    run(out=tmp_path / "out")
    with pytest.raises(CommandError, match="--preset quick --seed 0, not of"):
        run(out=tmp_path / "out", resume=True, **other)
    assert measured() == [0]


@pytest.mark.parametrize(
    "content",
    [None, "{", "[]", '{"preset": "quick"}', "[" * 200_000],
    ids=["none", "cut off", "a list", "no seed", "very deep"],
)
def test_rows_that_nobody_describes_are_refused(tmp_path, fake, content):
    fake("well")
    run(out=tmp_path / "out")
    (tmp_path / "out" / "run.json").unlink()
    if content is not None:
        (tmp_path / "out" / "run.json").write_text(content)
    with pytest.raises(CommandError, match=r"run\.json.* cannot be read"):
        run(out=tmp_path / "out", resume=True)


def test_rows_of_another_version_are_told(tmp_path, fake, monkeypatch):
    fake("well")
    run(out=tmp_path / "out")
    monkeypatch.setattr(run_module, "__version__", "9.9")
    listener = Listener()
    run(out=tmp_path / "out", resume=True, progress=listener)
    assert len(listener.notes) == 1
    assert listener.notes[0].endswith("this is 9.9")


def test_resume_in_a_new_folder_starts_there(tmp_path, fake):
    fake("well")
    assert run(out=tmp_path / "a" / "b", resume=True, seed=5).written == 1
    facts = json.loads((tmp_path / "a" / "b" / "run.json").read_text())
    assert (facts["preset"], facts["seed"]) == ("quick", 5)


def test_a_folder_that_cannot_be_written_is_told(tmp_path, fake):
    measured = fake("well")
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match=r"cannot write to .*file/out: Not a directory; choose another --out"):
        run(out=tmp_path / "file" / "out")
    (tmp_path / "out" / FILE).mkdir(parents=True)
    with pytest.raises(CommandError, match=r"cannot write to .*out: Is a directory"):
        run(out=tmp_path / "out")
    assert measured() == []


def test_two_runs_do_not_share_a_folder(tmp_path, fake):
    fake("well")
    with run_module.reserved(tmp_path / "out"), pytest.raises(CommandError, match="another run is writing"):
        run(out=tmp_path / "out")
    assert run(out=tmp_path / "out").written == 1


def test_unknown_names_are_answered_with_the_known_ones(tmp_path):
    with pytest.raises(CommandError, match=r"unknown experiment 'nothing'; there are: compressed-sensing, .*prox"):
        run(["nothing"], out=tmp_path / "out")
    with pytest.raises(CommandError, match="unknown preset 'huge'; there are: quick, paper"):
        run(preset="huge", out=tmp_path / "out")
    with pytest.raises(ValueError, match="level-curves"):
        experiment("nothing")
    assert not (tmp_path / "out").exists()


def test_time_left_is_known_from_trials_of_the_same_kind():
    estimate = run_module._TimeLeft()
    a = [Trial("e", {"method": "a", "repeat": r, "seed": r}) for r in range(3)]
    b, other = Trial("e", {"method": "b", "repeat": 0, "seed": 0}), Trial("f", {})
    assert estimate.left([], a, 1) is None
    estimate.add(a[0], 10.0)
    estimate.add(b, 2.0)
    assert estimate.left([(a[1], 4.0)], [a[2]], jobs=2) == (6.0 + 10.0) / 2
    assert estimate.left([(a[1], 14.0)], [b], jobs=1) == 2.0
    assert estimate.left([], [Trial("e", {"method": "new"}), other], jobs=1) == 6.0 + 6.0


def test_two_jobs_give_the_rows_of_one(tmp_path, monkeypatch):
    tiny = compressed_sensing.SensingSize(
        20, n_repeats=1, slow_repeats={}, max_cpu_seconds=60.0, max_iter=300, dca_max_iter=3, grid=(0, 2)
    )
    monkeypatch.setitem(compressed_sensing.PRESETS, "quick", tiny)
    found = []
    for jobs in (1, 2):
        outcome = run(["compressed-sensing"], out=tmp_path / str(jobs), jobs=jobs)
        assert (outcome.written, outcome.failures) == (28, [])
        rows, _ = read_rows(tmp_path / str(jobs))
        found.append({row["key"]: without_times(row["results"]) for row in rows})
    assert found[0] == found[1]


def without_times(value):
    if isinstance(value, dict):
        return {name: without_times(entry) for name, entry in value.items() if "seconds" not in name}
    return value


@pytest.mark.parametrize("preset", PRESET_NAMES)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_trials_are_distinct_and_follow_the_seed(name, preset):
    module = experiment(name)
    keys = [key_of(name, settings) for settings in module.trials(preset, 3)]
    assert name == module.NAME
    assert len(set(keys)) == len(keys) > 0
    assert keys == [key_of(name, settings) for settings in module.trials(preset, 3)]


def test_fewer_repeats_are_the_first_ones(tmp_path):
    every = run_module.plan(["compressed-sensing"], "paper", 0, None)
    some = run_module.plan(["compressed-sensing"], "paper", 0, 2)
    assert some == every[: len(some)]
    assert some == [trial for trial in every if trial.repeat < 2]
    assert {trial.repeat for trial in some} == {0, 1}


def test_only_the_trials_with_the_named_settings_are_planned():
    wishes = ["image=Sea", "i=1,64", "method=DCA"]
    some = run_module.plan(["denoising"], "paper", 0, 1, wishes)
    assert {(t.settings["image"], t.settings["i"], t.settings["method"]) for t in some} == {
        ("Sea", 1, "DCA"),
        ("Sea", 64, "DCA"),
    }
    assert len(some) == 4  # both readings of the noise


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("i", "names no setting"),
        ("colour=red", "no trial has a setting 'colour'"),
        ("image=Paris", "image is one of Mountain, Sea, Windows"),
    ],
)
def test_a_wish_that_leaves_no_trial_is_explained(wish, words):
    with pytest.raises(CommandError, match=words):
        run_module.plan(["denoising"], "quick", 0, None, [wish])
