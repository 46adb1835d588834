"""A run from elsewhere: whether its file is sound, its numbers are the same here, its ratios of times alike."""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np

from ell12_paper import provenance
from ell12_paper.rows import FILE, Row, read_rows
from ell12_paper.studies.images import names
from ell12_paper.trial_runs import Measurement, RunError, Show, Trial, Wish, measured
from ell12_paper.trials import published
from ell12_paper.words import number, percent, scientific, span

# How far results may differ, as a fraction. Another processor rounds sums in another order. On 489 trials of the
# quick study, with kernels of OpenBLAS and NumPy for another processor, objectives differed by up to 2.6e-6 and
# errors of recovery by up to 1.7e-2; those of SketchyCGM, whose steps follow rounding, by up to 6.5e-2.
MOST_OF_OBJECTIVES, MOST, MOST_OF_FREE = 1e-4, 5e-2, 1e-1
OBJECTIVES = frozenset(("objective", "smoothed_objective", "value", "values"))
FREE_METHODS = frozenset(("SketchyCGM",))
# Results that tell the way to the end. In that comparison the iterations of nmAPG differed by up to 20 %. So these
# are judged only where the end is the same to the last digit.
WAY = frozenset(("alpha", "difference", "early", "history", "n_iter", "rules", "stationarity", "status", "tried"))
COUNTS = 5e-2  # of whole numbers, such as entries that are not zero, and one more


@dataclass(frozen=True)
class Agreement:
    """Whether results are the same to the last digit, the largest difference as a fraction, and what differs."""

    is_exact: bool
    largest: float = 0.0
    differing: tuple[str, ...] = ()


def compare(there: Row, here: Row, is_free: bool = False) -> Agreement:
    """Compare two results of one trial, but for times; ``is_free`` where its method's steps follow rounding.

    Examples
    --------
    >>> from ell12_paper.verify import compare
    >>> compare({"rmse": 0.5, "n_iter": 7, "seconds": 1.0}, {"rmse": 0.5, "n_iter": 7, "seconds": 9.0})
    Agreement(is_exact=True, largest=0.0, differing=())
    >>> compare({"rmse": 0.5, "n_iter": 7}, {"rmse": 0.501, "n_iter": 8}).differing
    ()
    >>> compare({"objective": 0.5}, {"objective": 0.501}).differing
    ('objective is 0.5 there and 0.501 here (+0.20 %)',)
    """
    theirs, ours = ({n: v for n, v in _leaves(results) if n not in DROPPED} for results in (there, here))
    pairs = {name: (theirs.get(name, GONE), ours.get(name, GONE)) for name in {**theirs, **ours}}
    unequal = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    judged = {name: pair for name, pair in unequal.items() if name.partition(".")[0] not in WAY} or unequal
    gaps = {name: _gap(*pair) for name, pair in judged.items()}
    wrong = [name for name, gap in gaps.items() if gap is None or gap > _most(name, pairs[name], is_free)]
    largest = max((gap for gap in gaps.values() if gap is not None), default=0.0)
    return Agreement(not unequal, largest, tuple(_words(name, *pairs[name]) for name in wrong))


GONE = object()
DROPPED = frozenset(("first_share",))  # results that earlier versions kept, and that no table or claim reads


def _most(name: str, pair: tuple[Any, Any], is_free: bool) -> float:
    """How far the two values of a result may differ."""
    if all(isinstance(value, int) for value in pair):
        return math.inf if is_free else COUNTS + 1 / max(map(abs, pair))
    return MOST_OF_FREE if is_free else MOST_OF_OBJECTIVES if name in OBJECTIVES else MOST


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The results by name, those of nested dictionaries with a dot, without times; lists are left whole."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key, entry in value.items():
        if "seconds" not in key:  # which a clock decided
            yield from _leaves(entry, f"{name}.{key}" if name else key)


def _gap(a: Any, b: Any) -> float | None:
    """The difference of two numbers or lists, as a fraction of the largest entry; None where there is none."""
    try:
        x, y = (np.array(value if isinstance(value, list) else [value]) for value in (a, b))
    except ValueError:  # a nest of lists of unequal lengths
        return None
    if x.shape != y.shape or x.dtype.kind not in "if" or y.dtype.kind not in "if":
        return None
    scale = max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0))
    return float(np.abs(x - y).max(initial=0.0) / scale) if scale else 0.0


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _words(name: str, there: Any, here: Any) -> str:
    if GONE in (there, here):
        return f"{name} is missing {'there' if there is GONE else 'here'}"
    if is_number(there) and is_number(here):
        change = f" ({percent(here / there - 1)})" if there else ""
        return f"{name} is {number(there)} there and {number(here)} here{change}"
    return f"{name} differs"


SECONDS = 60.0  # of trials that are measured again by default, by the times of their rows
ALIKE = 2.0  # the factor within which a ratio of two times must be the same
SHORTEST = 0.05  # seconds; ratios of shorter times are noise
# Settings of a trial that tell its method, not its problem.
OF_METHOD = ("method", "max_iter", "max_cpu_seconds")


@contextmanager
def opened(source: Path) -> Iterator[Path]:
    """The folder of a run: the one given, or one with the content of a zip file, which is gone afterwards."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="ell12-") as name:
        try:
            shutil.unpack_archive(source, name, "zip")
        except (OSError, zipfile.BadZipFile) as error:
            raise RunError(f"{source} is no folder and no zip file of a run: {error}") from None
        yield next(Path(name).rglob(FILE), Path(name) / FILE).parent


def verify(
    source: Path, count: int | None = None, seed: int = 0, jobs: int = 1, show: Show | None = None
) -> tuple[list[str], bool]:
    """What was found, as lines of text, and whether nothing is wrong.

    ``count`` trials, by default as many as took a minute, are measured again; the seed chooses which.
    """
    with opened(source) as folder:
        rows, damaged = read_rows(folder)
        known, digest = provenance.read(folder), provenance.digest(folder / FILE)
    if not rows:
        raise RunError(f"{source} holds no sound row")
    wrong = [f"{sentence}: get the run again from where it came" for sentence in damaged]
    wrong += _file_faults(known, digest)
    trials = _planned(rows, known, wrong)
    kept = {row["key"]: row for row in rows}
    chosen = _sample(trials, kept, count, random.Random(seed))
    pairs = [(trial, other) for trial in chosen if (other := _partner(trial, trials, kept))]
    asked = list({trial.key: trial for trial in (*chosen, *chain.from_iterable(pairs))}.values())
    found = {trial.key: answer for trial, answer in measured(asked, jobs, show)}
    is_known = digest in published()["sha256"].values()
    origin = "which are published rows" if is_known else "not published with ell12"
    lines = [f"The file: {len(rows)} rows, SHA-256 {digest}, {origin}.", _versions(rows)]
    lines += _results(asked, kept, found, wrong)
    lines += _ratios(pairs, kept, found, wrong)
    return [*lines, *(f"WRONG: {text}." for text in wrong)], not wrong


def _file_faults(known: Row | None, digest: str) -> list[str]:
    if known is None:
        return [f"{provenance.FILE} is missing or damaged: nothing says where the rows come from"]
    kept = known["files"].get(FILE, {}).get("sha256")
    if kept is None:
        return ["the run did not come to its end: `ell12-paper run --resume` brings it there"]
    return [] if kept == digest else [f"{FILE} is not the file that the run wrote"]


def _versions(rows: Sequence[Row]) -> str:
    names, here = ("ell12", "python", "numpy", "scipy", "numba", "cpu"), provenance.environment()
    theirs = {name: sorted({str(row["environment"].get(name)) for row in rows}) for name in names}
    others = [f"{n} {' and '.join(theirs[n])} (here {here[n]})" for n in names if theirs[n] != [str(here[n])]]
    return f"Versions: {', '.join(others) or 'those that are here'}."


def _planned(rows: Sequence[Row], known: Row | None, wrong: list[str]) -> list[Trial]:
    """The trials of the plan that have a row; what is missing or too much is wrong."""
    if known is None:
        return []
    if (pictures := provenance.images_of(known["runs"][0])) != names():
        wrong.append(f"its pictures, {', '.join(pictures)}, are not here: give their folder by --images")
        return []
    wish = Wish(preset=known["runs"][0]["preset"], seed=known["runs"][0]["seed"])
    whole = {trial.key: trial for trial in wish.trials()}
    have = {row["key"] for row in rows}
    runs = known["runs"]
    asked = (t for t in whole.values() if any(provenance.is_asked(run, t.experiment, t.settings) for run in runs))
    missing = [trial.key for trial in asked if trial.key not in have]
    if missing:
        wrong.append(f"{len(missing)} trials that were asked for have no row, the first is {missing[0]}")
    if extra := [key for key in have if key not in whole]:
        wrong.append(f"{len(extra)} rows belong to no trial of this version, the first is {extra[0]}")
    return [trial for key, trial in whole.items() if key in have]


def _sample(trials: Sequence[Trial], rows: Row, count: int | None, chance: random.Random) -> list[Trial]:
    """Some trials by chance, without those that a limit of time may have ended."""
    order = [trial for trial in trials if not _is_clocked(trial, rows[trial.key]["results"])]
    chance.shuffle(order)
    if count is not None:
        return order[:count]
    times = [rows[trial.key]["environment"].get("trial_seconds") or 0.0 for trial in order]
    return [trial for trial, until in zip(order, accumulate(times), strict=True) if until <= SECONDS]


def _is_clocked(trial: Trial, results: Row) -> bool:
    """Whether a limit of CPU time may have ended a trial."""
    taken: Any = results.get("cpu_seconds")
    return is_number(taken) and taken >= (trial.settings.get("max_cpu_seconds") or math.inf)


def _partner(trial: Trial, trials: Sequence[Trial], rows: Row) -> Trial | None:
    """The quickest other method on the same problem, where both times are long enough to be compared."""

    def problem(one: Trial) -> Row:
        return {name: value for name, value in one.settings.items() if name not in OF_METHOD}

    same = (t for t in trials if (t.experiment, problem(t)) == (trial.experiment, problem(trial)) and t != trial)
    times = {t.key: _time(rows[t.key]["results"]) for t in (trial, *trials)}
    others = [t for t in same if times[t.key] >= SHORTEST and not _is_clocked(t, rows[t.key]["results"])]
    found = min(others, key=lambda other: times[other.key], default=None)
    return found if times[trial.key] >= SHORTEST else None


def _time(results: Row | None) -> float:
    found: Any = (results or {}).get("cpu_seconds")
    return found if is_number(found) else 0.0


def _results(asked: Sequence[Trial], rows: Row, found: dict[str, Measurement], wrong: list[str]) -> list[str]:
    """How the results that were measured again agree."""
    judged: list[Agreement] = []
    for trial in asked:
        results = found[trial.key].results
        if results is None:
            wrong.append(f"{trial} could not be measured: {found[trial.key].error.strip().splitlines()[-1]}")
        elif not _is_clocked(trial, results):
            is_free = trial.settings.get("method") in FREE_METHODS
            judged.append(compare(rows[trial.key]["results"], results, is_free))
            wrong += [f"{trial} gives something else here: {text}" for text in judged[-1].differing]
    exact = sum(agreement.is_exact for agreement in judged)
    largest = max((agreement.largest for agreement in judged), default=0.0)
    words = f"{len(judged)} trials measured again, {exact} to the last digit"
    return [f"The numbers: {words}, the largest difference is {scientific(100 * largest)} %."]


def _ratios(
    pairs: Sequence[tuple[Trial, Trial]], rows: Row, found: dict[str, Measurement], wrong: list[str]
) -> list[str]:
    """Whether one method takes as many times as long as another on the same problem as it took there."""
    factors = []
    for trial, other in pairs:
        here = [_time(found[t.key].results) for t in (trial, other)]
        there = [_time(rows[t.key]["results"]) for t in (trial, other)]
        if min(here) > 0:
            factors.append(here[0] / here[1] * there[1] / there[0])
            if not 1 / ALIKE <= factors[-1] <= ALIKE:
                ratios = f"{number(there[0] / there[1])} there and {number(here[0] / here[1])} here"
                wrong.append(f"{trial}: its time over that of {other.settings.get('method')} is {ratios}")
    if not factors:
        return ["The times: no two methods of one problem were measured, so that no ratio of times is judged."]
    return [f"The times: {len(factors)} ratios of two methods are {span(factors)} times what they were there."]
