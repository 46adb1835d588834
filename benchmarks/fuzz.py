"""Random hostile calls of the whole public API: every answer right, or an error that names the argument.

``python benchmarks/fuzz.py`` makes 20,000 calls from a seed in two worker processes, ten seconds each at most, and
writes ``benchmarks/results/fuzz.md``. ``--call 1234`` repeats one of them here, with its traceback.

Each call takes good arguments and spoils one or two of them. It ends as one of:

- right: an answer without NaN, which the formulas of fuzz_calls.py do not refute;
- clear: an error that names an argument of the call;
- raw: an error that names none, as of NumPy or SciPy;
- internal: AttributeError, IndexError, LinAlgError and the like, which no user's mistake should bring about;
- wrong: NaN in the answer, or a claim that a formula refutes;
- hang: no end within ten seconds, or the worker died.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import multiprocessing
import os
import re
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

SECONDS, MEMORY = 10, 8 * 2**30
CLASSES = ("right", "clear", "raw", "internal", "wrong", "hang")
RESULTS = Path(__file__).parent / "results" / "fuzz.md"


def call(seed: int, number: int, *, raises: bool = False) -> tuple[str, str, str, str]:
    """Make the call of this number: its class, the name called, what was spoilt, and words about the outcome."""
    from fuzz_calls import make_call

    made = make_call(np.random.default_rng([seed, number]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = made.function(**made.arguments)
            trouble = made.check(made.arguments, answer)
    except Exception as error:
        if raises:
            traceback.print_exc()
        return _class_of(error, made.arguments), made.name, made.spoilt, _words(error)
    return ("wrong" if trouble else "right"), made.name, made.spoilt, trouble or ""


def _class_of(error: Exception, arguments: dict[str, Any]) -> str:
    if not isinstance(error, (TypeError, ValueError)) or isinstance(error, np.linalg.LinAlgError):
        return "internal"
    names = "|".join(map(re.escape, arguments))
    return "clear" if re.search(rf"(?<![\w'.])({names})(?!\w|\.(?!shape))", str(error)) else "raw"


def _words(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:110]
    return f"{type(error).__name__}: {text} ({Path(place.filename).name}:{place.lineno})"


def _work(seed: int, numbers: list[int], pipe: Any) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with contextlib.suppress(ImportError):  # here rather than in a call, whose time is limited
        import torch

        torch.set_num_threads(1)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # verbose is an option too
        for number in numbers:
            pipe.send((number, *call(seed, number)))
    pipe.close()


def run(seed: int, numbers: list[int], rows: list[Any]) -> None:
    """Make the calls in a worker, and in a new one after each that has no end."""
    context = multiprocessing.get_context("spawn")
    while numbers:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(seed, numbers, theirs), daemon=True)
        worker.start()
        theirs.close()
        limit = 60.0  # the first call imports the package
        try:
            while numbers and ours.poll(limit):
                rows.append(ours.recv())
                numbers, limit = numbers[1:], SECONDS
        except EOFError:  # the worker died
            pass
        worker.kill()
        worker.join()
        if numbers:
            rows.append((numbers[0], "hang", *_described(seed, numbers[0]), "no end, or the worker died"))
            numbers = numbers[1:]


def _described(seed: int, number: int) -> tuple[str, str]:
    from fuzz_calls import make_call

    made = make_call(np.random.default_rng([seed, number]))
    return made.name, made.spoilt


def page(rows: list[Any], seed: int, seconds: float) -> str:
    """The table of outcomes by name, and the first calls of each class that should be empty."""
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for _, kind, name, _, _ in rows:
        counts[name][kind] += 1
        counts["**all**"][kind] += 1
    lines = [
        "# Random hostile calls",
        "",
        f"{len(rows)} calls from seed {seed} in {seconds / 60:.1f} minutes. `benchmarks/fuzz.py` makes them and",
        "says what the classes mean; the aim is 0 in the last four columns.",
        "",
        "| name | " + " | ".join(CLASSES) + " |",
        "|---|" + "---|" * len(CLASSES),
    ]
    for name in ["**all**", *sorted(counts.keys() - {"**all**"})]:
        lines.append(f"| {name} | " + " | ".join(str(counts[name][kind]) for kind in CLASSES) + " |")
    for kind in CLASSES[2:]:
        found = [row for row in rows if row[1] == kind]
        if found:
            lines += [
                "",
                f"## The first of {len(found)} that ended as {kind}",
                "",
                "| call | name | spoilt | outcome |",
            ]
            lines += ["|---|---|---|---|"]
            shown = {(row[2], row[4][:60]): row for row in reversed(found)}.values()
            for number, _, name, spoilt, words in sorted(shown)[:40]:
                lines.append(f"| {number} | {name} | {spoilt} | {words} |".replace("\n", " "))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--call", type=int, help="repeat the call of this number here")
    given = parser.parse_args()
    if given.call is not None:
        print(*call(given.seed, given.call, raises=True), sep="\n")
        return
    from concurrent.futures import ThreadPoolExecutor

    began, rows = time.monotonic(), []
    with ThreadPoolExecutor(given.jobs) as pool:
        shares = [list(range(k, given.calls, given.jobs)) for k in range(given.jobs)]
        list(pool.map(lambda share: run(given.seed, share, rows), shares))
    rows.sort()
    text = page(rows, given.seed, time.monotonic() - began)
    given.out.parent.mkdir(exist_ok=True)
    given.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
