"""Runs: each trial is measured once, rows survive what kills a run; `verify` finds what is wrong with one."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import zipfile

import pytest

from ell12_paper import provenance
from ell12_paper.rows import FILE, make_row, read_rows, rewrite_rows
from ell12_paper.trial_runs import RunError, Trial, Wish, run
from ell12_paper.verify import compare, verify

LEVELS = Wish(names=["level-curves"])
PROGRAM = "from ell12_paper.command import main\nif __name__ == '__main__':\n    main()\n"


def start(tmp_path, out, *options):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = ["run", "prox", "--repeats", "2", "--only", "d=100,1000,10000", "--out", str(out), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, str(program), *words], start_new_session=True, **pipes)


def until(condition):
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def processes_of(session):
    """The processes of a session that live (Linux)."""
    command = ["ps", "-o", "pid=,stat=", "-s", str(session)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line for line in listed.stdout.splitlines() if "Z" not in line]


def test_ctrl_c_stops_the_run_and_says_how_to_go_on_and_it_does(tmp_path):
    out = tmp_path / "a folder"
    process = start(tmp_path, out)
    until(lambda: len(read_rows(out)[0]) >= 2)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "")
    rows, damaged = read_rows(out)
    assert damaged == []
    assert f"Stopped: {len(rows)} of 24 trials are on disk." in stdout
    assert f"--out '{out}' --resume" in stdout
    process = start(tmp_path, out, "--resume")
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (0, "")
    again = read_rows(out)[0]
    assert (again[: len(rows)], len(again)) == (rows, 24)
    assert stdout.splitlines()[-1] == f"The page: {out / 'index.html'}"


def test_a_killed_run_leaves_rows_and_no_process(tmp_path):
    process = start(tmp_path, tmp_path / "out")
    until(lambda: len(read_rows(tmp_path / "out")[0]) >= 2)
    process.kill()
    process.communicate(timeout=60)
    until(lambda: not processes_of(process.pid))


def test_a_run_ends_its_own_processes_and_no_others(tmp_path):
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    before = set(multiprocessing.active_children())  # of other tests too
    run(LEVELS, tmp_path)
    assert other.is_alive()
    assert set(multiprocessing.active_children()) <= before
    other.kill()
    other.join()


def test_each_trial_is_measured_once_and_a_damaged_row_again(tmp_path):
    outcome = run(LEVELS, tmp_path)
    assert (outcome.done, outcome.total, outcome.failures) == (5, 5, [])
    rows, _ = read_rows(tmp_path)
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    (tmp_path / FILE).write_bytes(b"".join([*lines[:3], lines[3].replace(b"0.5", b"0.6", 1), lines[4][:-1]]))
    assert len(read_rows(tmp_path)[1]) == 2
    with pytest.raises(RunError, match="--resume"):
        run(LEVELS, tmp_path)
    with pytest.raises(RunError, match="another preset, seed or pictures"):
        run(Wish(names=["level-curves"], seed=1), tmp_path, resume=True)
    assert run(LEVELS, tmp_path, resume=True).done == 5
    results = [{row["key"]: row["results"] for row in found} for found in (rows, read_rows(tmp_path)[0])]
    assert results[0] == results[1]
    known = json.loads((tmp_path / provenance.FILE).read_text())
    assert [run["rows_before"] for run in known["runs"]] == [0, 3]
    assert known["files"][FILE]["sha256"] == provenance.digest(tmp_path / FILE)
    provenance.begin(tmp_path, LEVELS.as_json(), 5)  # as if a kill had come behind the last row
    assert run(LEVELS, tmp_path, resume=True).done == 5
    assert provenance.read(tmp_path)["files"] == known["files"]


def test_a_trial_that_raises_has_no_row(tmp_path, monkeypatch):
    monkeypatch.setattr(Wish, "trials", lambda wish: [Trial("level-curves", {"penalty": "l3"})])
    outcome = run(LEVELS, tmp_path)
    assert (outcome.done, "KeyError" in outcome.failures[0][1]) == (0, True)


def test_wishes_choose_trials_and_what_is_not_there_is_named():
    chosen = Wish(names=["prox"], repeats=1, only=["d=100,1000", "method=closed-form"]).trials()
    assert {(t.repeat, t.settings["d"], t.settings["method"]) for t in chosen} == {
        (0, d, "closed-form") for d in (100, 1000)
    }
    for wish, message in (
        (Wish(names=["nothing"]), "compressed-sensing"),
        (Wish(preset="huge"), "quick, paper"),
        (Wish(only=["i"]), "--only i=1,2,4"),
        (Wish(only=["i=99"]), "leaves no trial"),
    ):
        with pytest.raises(RunError, match=message):
            wish.trials()


def test_rows_that_were_changed_or_moved_are_damaged(tmp_path):
    row = make_row("prox", {"d": 10}, {"value": 1.0}, {})
    rewrite_rows(tmp_path, [row, row | {"results": {"value": 2.0}}, row | {"key": "prox {}"}])
    rows, damaged = read_rows(tmp_path)
    assert (rows, len(damaged)) == ([row], 2)
    (tmp_path / FILE).write_text("[" * 200_000 + "\n")
    assert read_rows(tmp_path)[0] == []


WISH = Wish(names=["compressed-sensing"], repeats=1, only=["i=0", "method=DCA,SCP", "setup=stated"])


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    run(WISH, folder)
    return folder


@pytest.fixture
def copy(sound, tmp_path):
    for path in sound.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def change(folder, edit, sealed=True):
    """Edit the rows, with checks and hashes as if nothing had happened."""
    rows = [edit(row) for row in read_rows(folder)[0]]
    fields = ("experiment", "settings", "results", "environment")
    rewrite_rows(folder, [make_row(*(row[field] for field in fields)) for row in rows])
    if sealed:
        provenance.seal(folder)


def with_results(row, **changed):
    return row | {"results": row["results"] | changed}


def test_a_sound_run_is_sound_also_as_an_archive(sound, tmp_path):
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        for path in sound.iterdir():
            archive.write(path, f"run/{path.name}")
    for source in (sound, tmp_path / "run.zip"):
        lines, fine = verify(source)
        assert fine, lines
        assert "2 trials measured again, 2 to the last digit" in "\n".join(lines)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda row: with_results(row, rmse=2 * row["results"]["rmse"]), "rmse is"),
        (lambda row: row | {"settings": row["settings"] | {"alpha": 0.5}}, "belong to no trial"),
        (lambda row: with_results(row, cpu_seconds=100.0 ** (row["settings"]["method"] == "DCA")), "time over"),
    ],
)
def test_forged_rows_are_found_by_measuring_again(copy, edit, words):
    change(copy, edit)
    lines, fine = verify(copy)
    assert not fine
    assert any(words in line for line in lines if line.startswith("WRONG"))


def test_what_the_hash_the_check_the_plan_and_the_pictures_find(copy):
    change(copy, lambda row: row | {"environment": {}}, sealed=False)
    assert "is not the file that the run wrote" in "".join(verify(copy, 0)[0])
    content = (copy / FILE).read_bytes()
    (copy / FILE).write_bytes(content[:-5])
    found = "".join(verify(copy, 0)[0])
    assert "is damaged" in found
    assert "1 trials that were asked for have no row" in found
    known = json.loads((copy / provenance.FILE).read_text())
    known["runs"][0]["images"] = ["testimage"]
    (copy / provenance.FILE).write_text(json.dumps(known))
    assert "testimage, are not here: give their folder by --images" in "".join(verify(copy, 0)[0])
    (copy / provenance.FILE).write_text(json.dumps({"runs": []}))
    assert "missing or damaged" in "".join(verify(copy, 0)[0])
    (copy / FILE).write_text("")
    with pytest.raises(RunError, match="no sound row"):
        verify(copy)
    with pytest.raises(RunError, match="no zip file"):
        verify(copy / FILE)


@pytest.mark.parametrize(
    ("there", "here", "differing"),
    [
        ({"rmse": 0.5}, {"rmse": 0.51}, 0),
        ({"rmse": 0.5}, {"rmse": 0.6}, 1),
        ({"objective": 1.0}, {"objective": 1.001}, 1),
        ({"n_nonzero": 100}, {"n_nonzero": 104}, 0),
        ({"n_nonzero": 100}, {"n_nonzero": 120}, 1),
        ({"rmse": 0.5, "n_iter": 10}, {"rmse": 0.5 + 1e-12, "n_iter": 40}, 0),
        ({"rmse": 0.5, "n_iter": 10}, {"rmse": 0.5, "n_iter": 40}, 1),
        ({"rmse": 0.5}, {}, 1),
        ({"rmse": 0.5, "first_share": 0.9}, {"rmse": 0.5}, 0),
        ({"values": [1.0, 2.0]}, {"values": [1.0, 2.0, 3.0]}, 1),
    ],
)
def test_what_counts_as_rounding(there, here, differing):
    assert len(compare(there, here).differing) == differing
