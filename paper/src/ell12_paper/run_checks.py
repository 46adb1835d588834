"""The checks of a run that need no measurement: are its files, rows, versions and trials what they should be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ell12 import __version__
from ell12_paper import PRESET_NAMES, provenance
from ell12_paper.archive import CONTENT
from ell12_paper.rows import FILE, Row, key_of, parse_rows
from ell12_paper.run import plan
from ell12_paper.verification import Verification
from ell12_paper.workers import Trial

AGAIN = "get the run again from where it came, or measure its trial again with `ell12-paper run --resume`"


def check_files(found: Verification, folder: Path, known: provenance.Facts | None) -> None:
    """Whether the files are there, with the hashes that the run kept."""
    if known is None:
        was = "cannot be read" if (folder / provenance.FILE).exists() else "is missing"
        found.add(
            "files",
            f"{provenance.FILE} {was}: nothing says whether the files are as they were written. Ask for the run "
            "with it; of an old run, `ell12-paper run --resume` in its folder writes one from now on.",
            True,
        )
        return
    if not set(provenance.MEASURED) <= known["files"].keys():
        found.add(
            "files",
            "The run was killed or is still going on: its rows have no hash yet. `ell12-paper run --resume` "
            "in its folder brings it to its end.",
            True,
        )
    listed = {name: entry for name, entry in known["files"].items() if name in CONTENT}
    for name, entry in listed.items():
        fault = _fault(folder / name, entry)
        if fault:
            found.add("files", f"{name} {fault}: {_remedy(name)}.", True)
    sound = len(listed) - sum(finding.check == "files" for finding in found.findings)
    if sound == len(listed):
        found.add("files", f"All {sound} files have the SHA-256 that the run kept.")


def _fault(path: Path, entry: dict[str, Any]) -> str:
    if not path.is_file():
        return "is missing"
    return "" if provenance.digest(path)["sha256"] == entry.get("sha256") else "is not the file that the run wrote"


def _remedy(name: str) -> str:
    if name in provenance.PAGE_FILES:
        return "`ell12-paper report` makes it again from the rows"
    return "get the run again from where it came"


def check_rows(found: Verification, folder: Path) -> list[Row]:
    """The sound rows, each trial's last, and what is wrong with the others."""
    everything, damaged = parse_rows((folder / FILE).read_bytes().splitlines(keepends=True), FILE)
    for sentence in damaged:
        found.add("rows", f"{sentence}, and does not count: {AGAIN}.", True)
    sound = [row for row in everything if _is_whole(row)]
    if len(sound) < len(everything):
        count = len(everything) - len(sound)
        found.add("rows", f"{_rows(count)} of {FILE} name another trial than they measured: {AGAIN}.", True)
    counts = Counter(row["key"] for row in sound)
    doubles = [key for key, count in counts.items() if count > 1]
    if doubles:
        found.add(
            "rows", f"{_trials(len(doubles))} more than one row, as {doubles[0]}: the last one counts.", True
        )
    if len(sound) == len(counts) == len(everything) and not damaged:
        found.add("rows", f"{_rows(len(sound))}, none damaged, none double.")
    return list({row["key"]: row for row in sound}.values())


def _is_whole(row: Row) -> bool:
    kinds = {"experiment": str, "settings": dict, "results": dict, "environment": dict}
    if not all(isinstance(row[part], kind) for part, kind in kinds.items()):
        return False
    return row["key"] == key_of(row["experiment"], row["settings"])


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}"


def _trials(count: int) -> str:
    return f"{count} trials have" if count != 1 else "1 trial has"


def run_facts(folder: Path) -> dict[str, Any]:
    """The preset and the seed, where they can be read and make sense."""
    try:
        facts = json.loads((folder / provenance.RUN_FILE).read_bytes())
        preset, seed = facts["preset"], facts["seed"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    is_sound = preset in PRESET_NAMES and isinstance(seed, int) and seed >= 0
    return {"preset": preset, "seed": seed} if is_sound else {}


# Versions and plan


def check_versions(found: Verification, rows: Sequence[Row], known: provenance.Facts | None) -> None:
    """Tell which versions and processors differ from those here."""
    names = ("ell12", "python", "numpy", "scipy", "numba", "cpu")
    ours = provenance.environment()
    theirs = {name: sorted({str(row["environment"].get(name)) for row in rows}) for name in names}
    others = [version for version in theirs["ell12"] if version != __version__]
    if others:
        count = sum(str(row["environment"].get("ell12")) in others for row in rows)
        found.add(
            "versions",
            f"{_rows(count)} were measured by ell12 {' and '.join(others)}, this is {__version__}: if something "
            f"differs below, install ell12 {others[-1]} and verify again.",
        )
    different = [name for name in names[1:] if theirs[name] != [str(ours[name])]]
    words = ", ".join(f"{name} {' and '.join(theirs[name])} (here {ours[name]})" for name in different)
    found.add("versions", f"Different there: {words}." if words else "Measured with the versions that are here.")
    first = (known or {"runs": []})["runs"][:1]
    before = first[0].get("rows_before") if first else 0
    if before:
        found.add("versions", f"The first {before} rows are older than the provenance, which begins after them.")


def check_plan(
    found: Verification, rows: Sequence[Row], facts: dict[str, Any], known: provenance.Facts | None
) -> list[Trial]:
    """The trials of the plan that have a row, and what is missing or too much."""
    if not facts:
        found.add(
            "plan",
            f"{provenance.RUN_FILE} is missing or names no preset and seed, so that no trial can be measured "
            "again: get the run again from where it came.",
            True,
        )
        return []
    have = {row["key"] for row in rows}
    whole = {trial.key: trial for trial in plan((), facts["preset"], facts["seed"], None)}
    asked = _asked(whole, rows, known)
    missing = [trial for key, trial in asked.items() if key not in have]
    extra = [row["key"] for row in rows if row["key"] not in whole]
    what = f"--preset {facts['preset']} --seed {facts['seed']}"
    if missing:
        found.add(
            "plan",
            f"{_trials(len(missing))} no row, the first is {missing[0].key}: `ell12-paper run --resume` with the "
            "options of the run measures them.",
            True,
        )
    if extra:
        found.add(
            "plan",
            f"{_rows(len(extra))} belong to no trial of {what}, the first is {extra[0]}: they are of another "
            "version of ell12, or somebody put them there. Verify with the version that measured them.",
            True,
        )
    if not missing and not extra:
        part = "" if len(asked) == len(whole) else f" that were asked for, of {len(whole)}"
        found.add("plan", f"All {len(asked)} trials of {what}{part} have their row.")
    return [trial for key, trial in whole.items() if key in have]


def _asked(whole: dict[str, Trial], rows: Sequence[Row], known: provenance.Facts | None) -> dict[str, Trial]:
    """The trials that the runs were asked for; without provenance, those of the experiments and repeats seen."""
    if known is None or any(run.get("rows_before") for run in known["runs"][:1]):
        names = {row["experiment"] for row in rows}
        last = max((r for r in (row["settings"].get("repeat") for row in rows) if isinstance(r, int)), default=0)
        runs: list[dict[str, Any]] = [{"experiments": names, "repeats": last + 1}]
    else:
        runs = known["runs"]
    return {
        key: trial
        for key, trial in whole.items()
        if any(provenance.is_asked(run, trial.experiment, trial.settings) for run in runs)
    }
