"""Parts of one study, measured apart and joined into one run."""

import json
import sys

import pytest

from ell12 import cli
from ell12.commands import CommandError, UsageError
from ell12_paper import archive, provenance
from ell12_paper.joining import join
from ell12_paper.rows import FILE, make_row, read_rows, rewrite_rows
from ell12_paper.verify import verify


def part(folder, numbers, started="2026-01-01T00:00:00+00:00", repeat=0, **facts):
    """A finished run of some trials of the experiment of the prox, whose rows say when they were measured."""
    folder.mkdir()
    where = {"date": started, "trial_seconds": 0.1, "ell12": "0"}
    rows = [make_row("prox", {"d": d, "repeat": repeat}, {"value": started}, where) for d in numbers]
    rewrite_rows(folder, rows)
    (folder / provenance.RUN_FILE).write_text(json.dumps({"preset": "quick", "seed": 0} | facts))
    only = [f"d={','.join(map(str, numbers))}"]
    provenance.begin(folder, ["prox"], "quick", 0, 1, repeat + 1, 0, only)
    known = provenance.read(folder)
    known["runs"][0]["started"] = started
    provenance.write(folder, known)
    provenance.seal(folder, provenance.MEASURED)
    return folder


def test_the_rows_of_folders_and_archives_come_together_with_the_runs_that_measured_them(tmp_path):
    early, late = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"
    first, second = part(tmp_path / "a", [10, 100], early), part(tmp_path / "b", [100, 1000], late)
    archive.pack(second, tmp_path / "b.zip")
    found = join([first, tmp_path / "b.zip"], tmp_path / "whole")
    rows, damaged = read_rows(tmp_path / "whole")
    assert [(row["settings"]["d"], row["results"]["value"]) for row in rows] == [
        (10, early),
        (100, early),
        (1000, late),
    ]
    assert (damaged, found.repeated) == ([], 1)
    known = provenance.read(tmp_path / "whole")
    assert [(run["started"], run["rows_before"]) for run in known["runs"]] == [(early, 0), (late, 2)]
    assert provenance.is_sealed(tmp_path / "whole")
    assert known["files"][FILE] == provenance.digest(tmp_path / "whole" / FILE)
    problems = {finding.check for finding in verify(tmp_path / "whole", 0).findings if finding.is_problem}
    assert problems <= {"plan", "claims"}  # no real trials, but the files are whole and the rows sound


def test_a_row_belongs_to_the_last_run_that_was_asked_for_it_and_had_begun():
    runs = [
        {"started": "2", "experiments": ["prox"], "repeats": None, "only": ["d=10"]},
        {"started": "1", "experiments": ["prox"], "repeats": 1, "only": []},
        {"started": "3", "experiments": ["denoising"], "repeats": None, "only": []},
    ]

    def measured(d, date, repeat=0):
        row = make_row("prox", {"d": d, "repeat": repeat}, {}, {"date": date})
        return provenance.run_of(row, runs)

    assert measured(10, "4") is runs[0]
    assert measured(10, "1") is runs[1]
    assert measured(20, "4") is runs[1]
    assert measured(20, "4", repeat=1) is None
    assert measured(10, "0") is None


def test_what_is_no_part_of_the_same_study_is_refused_and_nothing_is_written(tmp_path):
    first = part(tmp_path / "a", [10])
    other = part(tmp_path / "b", [100], seed=3)
    with pytest.raises(UsageError, match=r"--preset quick --seed 3, .* only parts of one study"):
        join([first, other], tmp_path / "out")
    (other / provenance.RUN_FILE).unlink()
    with pytest.raises(CommandError, match=r"no sound run\.json"):
        join([first, other], tmp_path / "out")
    bare = part(tmp_path / "c", [5])
    (bare / provenance.FILE).unlink()
    with pytest.raises(CommandError, match=r"no sound provenance\.json"):
        join([first, bare], tmp_path / "out")
    with pytest.raises(CommandError, match="holds no sound row"):
        join([first, part(tmp_path / "d", [])], tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())
    with pytest.raises(UsageError, match="not empty"):
        join([first], first)


def test_the_command_says_what_it_joined(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    part(tmp_path / "a", [10, 100])
    part(tmp_path / "b", [100, 1000])
    monkeypatch.setattr(sys, "argv", ["ell12", "join", "a", "b", "--out", "whole"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    printed = " ".join(capsys.readouterr().out.split())
    assert "whole has 3 rows of 2 runs (1 measured twice: left out)" in printed
