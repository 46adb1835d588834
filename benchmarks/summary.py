"""The README's table of numbers, made from the files in benchmarks/results.

`python benchmarks/summary.py` writes it. Each line takes its numbers from one result and links to that page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import geometric_mean, mean, median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
RESULTS, README = HERE / "results", HERE.parent / "README.md"
BEGIN, END = "<!-- summary: written by `python benchmarks/summary.py` -->", "<!-- end of the summary -->"
PAGES = "benchmarks/results"

Row = dict[str, Any]


class Line(NamedTuple):
    """What was done, what came out here and elsewhere, and the result that has it."""

    task: str
    ours: str
    others: str
    source: str


def read(name: str) -> list[Row]:
    """The rows of a result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]


def seconds(value: float) -> str:
    """A time in its usual unit, two digits: '45 ms', '1.3 s'."""
    number, unit = (value, "s") if value >= 0.9995 else (1000 * value, "ms")
    return f"{number:.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"


def named(numbers: dict[str, str]) -> str:
    """Numbers with their owners: 'celer 170 ms, skglm 113 ms'."""
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def times_to(accuracy: float, rows: Iterable[Row], problem: str) -> dict[str, float]:
    """The least time in which each method of a race came to an accuracy."""
    found: dict[str, float] = {}
    for row in rows:
        if row["problem"] == problem and row["accuracy"] is not None and row["accuracy"] <= accuracy:
            found[row["method"]] = min(row["seconds"], found.get(row["method"], float("inf")))
    return found


def race() -> Line:
    found = times_to(1e-6, read("race"), "paper, alpha = 0.01/4^0")
    peers = {
        "the paper's nmAPG": "ell12, the paper's nmAPG",
        "PyProximal": "PyProximal, FISTA",
        "skglm": "skglm, FISTA",
    }
    return Line(
        "Minimise the paper's problem (500 x 2000) to a stationarity of 1e-6",
        seconds(found["ell12, default"]),
        named({name: seconds(found[method]) for name, method in peers.items()}),
        "race",
    )


def lasso() -> Line:
    rows = [row for row in read("race_sparse") if row["problem"].startswith("path") and "accuracy" in row]
    ours = {row["method"] for row in rows if row["method"].startswith("ell12")}
    peers = [method for method in dict.fromkeys(row["method"] for row in rows) if method not in ours]
    ratios = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        found = times_to(1e-4, rows, problem)
        if found.keys() - ours and "ell12, l1" in found:  # somebody else comes so close within the limit
            ratios.append(found["ell12, l1"] / min(found[peer] for peer in found.keys() - ours))
    return Line(
        f"100 Lassos, our `penalty=L1()`, to a duality gap of 1e-4 ({len(ratios)} problems)",
        f"{median(ratios):.2f} of the best peer's time (median; {min(ratios):.2f} to {max(ratios):.2f})",
        f"the best of {', '.join(peers)} 1",
        "race_sparse",
    )


def recovery() -> Line:
    rows = [row for row in read("recovery") if row["panel"] == "coherent" and row["value"] == 15]
    shares = {row["method"]: f"{100 * row['recovered'] / row['trials']:.0f} %" for row in rows}
    peers = {"log-sum": "log-sum", "reweighted l1": "reweighted l1", "l1": "l1"}
    return Line(
        "Recover 15 of 1280 entries from 64 measurements, neighbouring columns alike",
        shares["recover_sparse"],
        named({name: shares[method] for name, method in peers.items()}),
        "recovery",
    )


def ratings() -> Line:
    rows = {row["method"]: row for row in read("ratings") if row["problem"].startswith("MovieLens 100k, real")}

    def cell(method: str) -> str:
        return f"{rows[method]['objective']:.3f} in {seconds(rows[method]['seconds'])}"

    return Line(
        "Predict MovieLens' 100,000 ratings: RMSE, with everything chosen",
        cell("L12Imputer()"),
        f"cmfrec, tuned {cell('cmfrec')}",
        "ratings",
    )


def tables() -> Line:
    rows = [row for row in read("tables") if row["kind"] == "errors" and row["pattern"] == "30 % at random"]
    methods = {"ours": "L12Imputer", "KNNImputer, tuned": "KNN, tuned", "IterativeImputer": "iterative"}
    names = sorted({row["table"] for row in rows})

    def error(method: str) -> str:
        own = [
            [row["error"] for row in rows if row["method"] == method and row["table"] == name] for name in names
        ]
        return f"{geometric_mean(map(mean, own)):.2f}"

    errors = {name: error(method) for name, method in methods.items()}
    return Line(
        f"Fill in {len(names)} tables with 30 % missing: error, where a column's mean has 1",
        errors.pop("ours"),
        named(errors),
        "tables",
    )


def denoising() -> Line:
    found = [row["theirs ms"] / row["ours ms"] for row in read("pictures_race") if row["problem"] == "gap"]
    return Line(
        "Denoise by total variation (256 x 256) to relative gaps of 1e-2 to 1e-5",
        f"1 / {min(found):.1f} to 1 / {max(found):.0f} of the time",
        "scikit-image's Chambolle 1",
        "pictures_race",
    )


def gpu() -> Line:
    times = {row["what"]: row["seconds"] for row in read("gpu")}
    where = "to 0.0001 at 0.1 of the largest alpha"
    return Line(
        "A Lasso of 20,000 x 80,000 in float32 on a GPU (H200), stationarity 1e-4",
        seconds(times[f"fit {where}, l2_weight 0, PyTorch"]),
        named(
            {
                "FISTA with restarts in PyTorch": seconds(times[f"FISTA in PyTorch, restarted {where}, Lasso"]),
                "without": seconds(times[f"FISTA in PyTorch {where}, Lasso"]),
            }
        ),
        "gpu",
    )


LINES: tuple[Callable[[], Line], ...] = (race, lasso, recovery, ratings, tables, denoising, gpu)


def table() -> str:
    """The table in Markdown."""
    lines = ["| task | ell12 | others | all numbers |", "|---|---|---|---|"]
    for task, ours, others, source in (line() for line in LINES):
        lines.append(f"| {task} | **{ours}** | {others} | [{source}]({PAGES}/{source}.md) |")
    return "\n".join(lines)


def with_table(text: str) -> str:
    """A README with its table written anew."""
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def write() -> None:
    """Write the README's table anew."""
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote the table of {README.name}")


if __name__ == "__main__":
    write()
