"""The command as its user meets it: messages, exit codes, and runs that are killed or stopped."""

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import rich

from ell12_paper import command as cli
from ell12_paper import report
from ell12_paper.display import run_display
from ell12_paper.level_curves import study as level_curves
from ell12_paper.rows import FILE, make_row, read_rows, rewrite_rows
from ell12_paper.run import RunOutcome, RunState
from ell12_paper.workers import Trial

TINY = Path(__file__).parent / "tiny_reproduction.py"
TOTAL = 2 * 2 * 2 * 7 + 5 + 8


def start(out, *options, page=False):
    command = [sys.executable, str(TINY), "run", "--out", str(out), *options]
    environment = os.environ | ({} if page else {"NO_PAGE": "1"})
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, start_new_session=True, **pipes)


def end(process):
    try:
        stdout, stderr = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, stdout, stderr


def n_lines(out):
    path = Path(out) / FILE
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for(condition, seconds=60.0):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.002)


def measured(out):
    """Every row but for times, dates and the checks that cover them."""
    rows, damaged = read_rows(out)
    assert not damaged
    keys = [row["key"] for row in rows]
    assert len(set(keys)) == len(keys) == n_lines(out)
    return {row["key"]: without_times(row["results"]) for row in rows}


def without_times(value):
    if isinstance(value, dict):
        return {name: without_times(entry) for name, entry in value.items() if "seconds" not in name}
    return value


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["ell12-paper", *map(str, arguments)])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return raised.value.code or 0


def processes_of(session):
    """The processes of a session that live (Linux)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


# Whole runs


def test_a_run_killed_three_times_ends_with_the_rows_of_an_undisturbed_one(tmp_path):
    undisturbed = start(tmp_path / "whole")
    for n_rows in np.sort(np.random.default_rng(12).integers(0, TOTAL - 20, 3)):
        process = start(tmp_path / "killed", "--resume")
        wait_for(lambda n=n_rows, p=process: n_lines(tmp_path / "killed") > n or p.poll() is not None)
        assert process.poll() is None, "the run ended before it could be killed"
        process.kill()
        end(process)
        if Path("/proc/self/stat").exists():
            wait_for(lambda p=process: not processes_of(p.pid), seconds=10)
        assert n_lines(tmp_path / "killed") < TOTAL
    before = (tmp_path / "killed" / FILE).read_bytes()
    code, _, stderr = end(start(tmp_path / "killed", "--resume"))
    assert (code, stderr) == (0, "")
    assert (tmp_path / "killed" / FILE).read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert end(undisturbed)[0] == 0
    assert len(measured(tmp_path / "whole")) == TOTAL
    assert measured(tmp_path / "killed") == measured(tmp_path / "whole")


@pytest.mark.parametrize("to_all", [True, False], ids=["terminal", "kill -INT"])
def test_ctrl_c_stops_the_run_and_says_how_to_go_on(tmp_path, to_all):
    out = tmp_path / "a folder"
    process = start(out, "--jobs", "2")
    wait_for(lambda: n_lines(out) > 3 or process.poll() is not None)
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    code, stdout, stderr = end(process)
    assert (code, stderr) == (130, "")
    rows, damaged = read_rows(out)
    assert (3 < len(rows) < TOTAL, damaged) == (True, [])
    assert all(row["results"].get("status") != "STOPPED" for row in rows)
    assert f"Stopped: {len(rows)} of {TOTAL} trials are on disk." in stdout
    assert f"ell12-paper run --preset quick --seed 0 --jobs 2 --out '{out}' --resume" in stdout.splitlines()[-1]


def test_the_whole_way_to_the_page(tmp_path):
    names, packed = ("compressed-sensing", "prox", "level-curves"), tmp_path / "run.zip"
    process = start(tmp_path / "out", *names, "--archive", str(packed), page=True)
    code, stdout, stderr = end(process)
    assert (code, stderr) == (0, "")
    assert "\x1b" not in stdout
    lines = stdout.splitlines()
    assert lines[0].startswith(
        f"0 of {TOTAL} trials done, 0:00 elapsed; running compressed-sensing: stated, i 0, DCA"
    )
    assert any(line.startswith(f"{TOTAL} of {TOTAL} trials done") for line in lines)
    assert set(report.verdict_lines(tmp_path / "out")) <= set(lines)
    assert lines[-2] == f"The page: {(tmp_path / 'out' / 'index.html').resolve()}"
    assert lines[-1] == f"The archive: {packed.resolve()}"
    assert (tmp_path / "out" / "index.html").stat().st_size > 1000
    with zipfile.ZipFile(packed) as archive:
        inside = {Path(name).name: archive.read(name) for name in archive.namelist()}
    assert inside == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    hashes = {name: entry["sha256"] for name, entry in json.loads(inside.pop("provenance.json"))["files"].items()}
    assert hashes == {name: hashlib.sha256(content).hexdigest() for name, content in inside.items()}


# Messages and exit codes


def test_bad_use_is_one_clear_line_and_an_exit_code(tmp_path, monkeypatch, capsys):
    rewrite_rows(tmp_path, [make_row("prox", {}, {}, {})])
    (tmp_path / "file").write_text("")
    cases = {
        ("nothing", "--out", tmp_path / "new"): "unknown experiment 'nothing'; there are: compressed-sensing,",
        ("--out", tmp_path): "holds 1 row of an earlier run: add --resume to go on, or choose another --out",
        ("--out", tmp_path / "file" / "out"): "cannot write to",
    }
    for arguments, message in cases.items():
        assert call(monkeypatch, "run", *arguments) == (1 if message.startswith("cannot") else 2)
        captured = capsys.readouterr()
        assert captured.err.startswith("ell12-paper: ")
        assert message in captured.err
        assert (captured.err.count("\n"), captured.out) == (1, "")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "option", [("--preset", "huge"), ("--jobs", "0"), ("--seed", "-1"), ("--seed", "x"), ("--speed", "9")]
)
def test_bad_options_are_refused(tmp_path, monkeypatch, capsys, option):
    assert call(monkeypatch, "run", "--out", tmp_path / "out", *option) == 2
    assert option[0] in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_failed_trials_are_told_with_their_settings(tmp_path, monkeypatch, capsys):
    failure = (Trial("prox", {"d": 10, "method": "numerical"}), "Traceback\n  ...\nMemoryError: too large\n")
    monkeypatch.setattr(cli, "run", lambda *_: RunOutcome(total=3, kept=0, written=2, failures=[failure]))
    monkeypatch.setattr(report, "report", lambda out: Path(out) / "index.html")
    monkeypatch.setattr(report, "verdict_lines", lambda out: ["HOLDS: a claim"])
    assert call(monkeypatch, "run", "--out", tmp_path) == 1
    captured = capsys.readouterr()
    assert captured.out == f"HOLDS: a claim\nThe page: {(tmp_path / 'index.html').resolve()}\n"
    assert 'this trial failed: prox {"d":10,"method":"numerical"}\n  MemoryError: too large\n' in captured.err
    assert captured.err.endswith("1 of 3 trials failed; --resume tries them again\n")


def test_a_run_without_any_row_makes_no_page(tmp_path, monkeypatch, capsys):
    failure = (Trial("prox", {}), "MemoryError")
    monkeypatch.setattr(cli, "run", lambda *_: RunOutcome(total=1, kept=0, failures=[failure]))
    assert call(monkeypatch, "run", "--out", tmp_path) == 1
    assert capsys.readouterr().out == ""


def test_options_reach_the_run(tmp_path, monkeypatch):
    seen = []

    def record(names, preset, out, seed, jobs, resume, progress, repeats, only):
        seen.append((names, preset, out, seed, jobs, resume, repeats, only))
        return RunOutcome(total=0, kept=0)

    monkeypatch.setattr(cli, "run", record)
    options = ("--preset", "paper", "--out", "there", "--seed", "7", "--jobs", "3", "--repeats", "2", "--resume")
    options += ("--only", "d=10", "--only", "repeat=0,1")
    assert call(monkeypatch, "run", "prox", "level-curves", *options) == 0
    assert call(monkeypatch, "run") == 0
    assert seen[0] == (["prox", "level-curves"], "paper", Path("there"), 7, 3, True, 2, ["d=10", "repeat=0,1"])
    assert seen[1] == ((), "quick", Path("reproduction"), 0, 1, False, None, ())


def test_a_report_needs_rows_only(tmp_path, monkeypatch, capsys):
    rows = [make_row("level-curves", s, level_curves.measure(s), {}) for s in level_curves.trials("quick", 0)]
    rewrite_rows(tmp_path, rows)
    before = (tmp_path / FILE).read_bytes()
    assert call(monkeypatch, "report", tmp_path) == 0
    assert capsys.readouterr().out.endswith(f"The page: {(tmp_path / 'index.html').resolve()}\n")
    assert (tmp_path / FILE).read_bytes() == before


def test_rows_nested_without_end_are_one_clear_line(tmp_path, monkeypatch, capsys):
    (tmp_path / FILE).write_text("[" * 200_000 + "\n")
    (tmp_path / "run.json").write_text("[" * 200_000)
    assert call(monkeypatch, "report", tmp_path) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"ell12-paper: {tmp_path} holds no rows to report")
    assert error.count("\n") == 1
    assert call(monkeypatch, "run", "--out", tmp_path) == 2
    assert "holds 1 row of an earlier run" in capsys.readouterr().err


def test_a_report_of_nothing_is_a_clear_error(tmp_path, monkeypatch, capsys):
    assert call(monkeypatch, "report", tmp_path / "nowhere") == 1
    error = capsys.readouterr().err
    assert error.startswith("ell12-paper: ")
    assert (error.count("\n"), str(tmp_path / "nowhere") in error) == (1, True)


# Progress


def test_progress_without_a_terminal_is_plain_lines_now_and_then(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    trial = Trial("prox", {"d": 10, "method": "numerical", "repeat": 0})
    with run_display() as progress:
        for done in range(4):
            progress.update(RunState(done, 4, (trial,), None if done == 0 else 65.0))
            now[0] += 6
        progress.note("line 3 is damaged [really]")
        progress.update(RunState(4, 4, (), 0.0))
    assert capsys.readouterr().out.splitlines() == [
        "0 of 4 trials done, 0:00 elapsed; running prox: d 10, numerical, repeat 0",
        "2 of 4 trials done, 0:12 elapsed, about 1:05 left; running prox: d 10, numerical, repeat 0",
        "line 3 is damaged [really]",
        "4 of 4 trials done, 0:24 elapsed",
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_is_a_bar_as_wide_as_the_terminal_is_now(monkeypatch):
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(rich, "_console", None)
    rich.get_console()  # the console that the process shares keeps the width it was made with
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    trial = Trial("prox", {"d": 10, "method": "numerical", "repeat": 0})
    with run_display() as progress:
        progress.note("line 3 is damaged [really]")
        progress.update(RunState(1, 4, (trial,), 65.0))
    shown = terminal.getvalue()
    assert "line 3 is damaged [really]" in shown
    for words in ("prox: d 10, numerical, repeat 0", "1/4", "about 1:05 left", "0:00:00"):
        assert words in shown
