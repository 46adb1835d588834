"""Join runs that measured parts of one study, on several machines or at several times, into one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ell12.commands import CommandError, UsageError
from ell12.files import write_atomically
from ell12_paper import provenance
from ell12_paper.archive import opened
from ell12_paper.provenance import Facts
from ell12_paper.rows import FILE, Row, read_rows, rewrite_rows
from ell12_paper.run import reserved
from ell12_paper.run_checks import run_facts


@dataclass
class Joined:
    """What came together: the rows by their keys, the runs that measured them, and what was left out."""

    rows: dict[str, Row]
    runs: list[Facts]
    run_file: bytes
    repeated: int = 0
    damaged: int = 0


def join(parts: Sequence[Path], out: Path) -> Joined:
    """Write one run with the rows of several; of a trial that was measured twice the first row is kept.

    Parameters
    ----------
    parts : sequence of path
        Folders or archives of runs with one preset and one seed.
    out : path
        A new or empty folder.

    Raises
    ------
    CommandError
        If a part is no run, or of another study than the first.
    """
    with reserved(out):
        if any(out.iterdir()):
            raise UsageError(f"{out} is not empty: choose another --out")
        found = _read(parts)
        rewrite_rows(out, found.rows.values())
        write_atomically(out / provenance.RUN_FILE, found.run_file)
        provenance.write(out, {"format": provenance.FORMAT, "runs": found.runs, "files": {}})
        provenance.seal(out, provenance.MEASURED)
    return found


def _read(parts: Sequence[Path]) -> Joined:
    found, first = Joined({}, [], b""), None
    for part in parts:
        with opened(part) as folder:
            facts, known = run_facts(folder), provenance.read(folder)
            if not facts or known is None:
                missing = provenance.FILE if facts else provenance.RUN_FILE
                raise CommandError(f"{part} has no sound {missing}: it is no run, or a part of it is missing")
            first = first or facts
            if facts != first:
                raise UsageError(
                    f"{part} is of --preset {facts['preset']} --seed {facts['seed']}, {parts[0]} of "
                    f"--preset {first['preset']} --seed {first['seed']}: only parts of one study can be joined"
                )
            rows, damaged = read_rows(folder)
            if not rows:
                raise CommandError(f"{part} holds no sound row in {FILE}: leave it out")
            before = len(found.rows)
            new = {row["key"]: row for row in rows if row["key"] not in found.rows}
            found.rows |= new
            found.runs += [run | {"rows_before": before + run.get("rows_before", 0)} for run in known["runs"]]
            found.run_file = found.run_file or (folder / provenance.RUN_FILE).read_bytes()
            found.repeated += len(rows) - len(new)
            found.damaged += len(damaged)
    return found
