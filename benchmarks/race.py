"""Time to a given accuracy, ell12 and every peer side by side.

The accuracy is the stationarity, the largest violation of the first-order condition over alpha. Every method
starts from zero. Points are pairs of time and accuracy, each a run of its own from the start: the budget (steps,
or a tolerance) rises until the run reaches 1e-8 or takes longer than the limit; of long runs that are far from the
next accuracy in the table every other one is left out. Times are medians over rounds in which the methods take
turns; a run of more than 0.3 seconds is timed once. `race_lasso` is the convex twin.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from race_methods import L12_METHODS, LIMIT, Method, methods, squared
from race_problems import L12_PROBLEMS, Problem
from timing import CLOCK, Row, load, version_of

BASELINE = "ell12"
TARGETS = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8)
ROUNDS, SHORT = 3, 0.3  # of the points that take less than so many seconds
LONG, FAR = (
    0.1,
    10.0,
)  # a run of so many seconds that is so many times off its target lets the next budget be skipped


@dataclass
class Point:
    """One budget of one method: its times, and where it ended."""

    budget: Any
    error: float
    objective: float
    times: list[float] = field(default_factory=list)


def rows() -> Iterator[Row]:
    yield from race_all(L12_PROBLEMS, L12_METHODS, "stationarity")


def race_all(
    problems: list[Callable[[], Problem]],
    makers: list[Callable[[], Method]],
    measure: str,
    limit: float = LIMIT,
    name: str = "",
) -> Iterator[Row]:
    """One problem after the other, of those whose name begins as asked; no run after one beyond the limit."""
    found = list(methods(makers))
    for make in problems:
        problem = make()
        if not problem.name.startswith(name):
            continue
        for entry in found:
            if not isinstance(entry, Method):
                yield Row(problem.name, entry[0], "", note=entry[1], measure=measure)
        runners = [m for m in found if isinstance(m, Method) and m.fits(problem)]
        yield from race(problem, runners, measure, limit)
        if measure == "stationarity" and squared(problem):
            yield nearest_rival(problem)


def nearest_rival(problem: Problem) -> Row:
    """Another nonconvex penalty by a working-set solver: another objective, so that only its time is shown."""
    skglm, missing = load("skglm")
    name = "skglm, MCP (another penalty)"
    if skglm is None:
        return Row(problem.name, name, "", note=missing, measure="stationarity")
    sparse = scipy.sparse.issparse(problem.A)
    A = scipy.sparse.csc_matrix(problem.A) if sparse else np.asfortranarray(problem.A)
    alpha = problem.alpha / A.shape[0]

    def fit() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return skglm.MCPRegression(alpha, gamma=3.0, tol=1e-6 * alpha, fit_intercept=False).fit(A, problem.b)

    fit()
    begin = CLOCK()
    model = fit()
    seconds = CLOCK() - begin
    note = f"{1e3 * seconds:.3g} ms to its own tolerance 1e-6 alpha, {np.count_nonzero(model.coef_)} nonzeros"
    return Row(problem.name, name, version_of("skglm"), seconds, note=note, measure="stationarity")


def race(problem: Problem, runners: list[Method], measure: str, limit: float = LIMIT) -> Iterator[Row]:
    """A row for every point of every method."""
    points = {method.name: climb_or_fail(problem, method, limit) for method in runners}
    for method in runners:
        if isinstance(points[method.name], str):
            note = str(points.pop(method.name))
            yield Row(problem.name, method.name, version_of(method.package), note=note, measure=measure)
    yield from rows_of(problem, [m for m in runners if m.name in points], points, measure)


def rows_of(problem: Problem, runners: list[Method], points: dict[str, Any], measure: str) -> Iterator[Row]:
    """The rows of the methods that did not fail, short runs timed again."""
    for _ in range(ROUNDS - 1):
        for method in runners:
            for point in points[method.name]:
                if point.times[0] < SHORT:
                    point.times.append(timed(problem, method, point.budget)[0])
    for method in runners:
        for point in points[method.name]:
            yield Row(
                problem.name,
                method.name,
                version_of(method.package),
                statistics.median(point.times),
                objective=point.objective,
                accuracy=point.error,
                measure=measure,
            )


def climb_or_fail(problem: Problem, method: Method, limit: float) -> list[Point] | str:
    """The points of a method, or what went wrong: a peer may fail in any way, and the rest goes on."""
    try:
        return climb(problem, method, limit)
    except Exception as error:
        return f"failed: {type(error).__name__}: {str(error)[:100]}"


def climb(problem: Problem, method: Method, limit: float = LIMIT) -> list[Point]:
    """Rising budgets until the last target or the limit; the first run, which may compile, is not counted."""
    method.solve(problem, method.budgets[0])
    points: list[Point] = []
    place = 0
    while place < len(method.budgets):
        budget = method.budgets[place]
        seconds, x = timed(problem, method, budget)
        points.append(Point(budget, problem.error(x), problem.objective(x), [seconds]))
        if points[-1].error <= TARGETS[-1] or seconds > limit:
            break
        target = next(target for target in TARGETS if target < points[-1].error)
        place += 2 if seconds > LONG and points[-1].error > FAR * target else 1
    return points


def timed(problem: Problem, method: Method, budget: Any) -> tuple[float, np.ndarray]:
    begin = CLOCK()
    x = method.solve(problem, budget)
    return CLOCK() - begin, x


def render(result: dict) -> str:
    """The Markdown page: for each problem the time to each accuracy, and the objective reached."""
    title, _, about = result["about"].partition("\n")
    lines = [f"# {title.rstrip('.')}", "", about.strip(), "", where(result), ""]
    for problem in dict.fromkeys((row["problem"], row["measure"]) for row in result["rows"]):
        lines += table(problem, [r for r in result["rows"] if (r["problem"], r["measure"]) == problem])
    return "\n".join(lines) + "\n"


def where(result: dict) -> str:
    """Where and when it was measured."""
    versions = result["versions"]
    names = ", ".join(f"{name} {versions[name]}" for name in ("numpy", "scipy", "scikit-learn"))
    load = "" if result["load"] is None else f"; load of the machine before: {result['load']:.1f}"
    limit = result.get("limit") or LIMIT
    return (
        f"Measured {result['date']} on {result['processor']}, one thread, Python {result['python']}, {names}"
        f"{load}."
        f" Times are processor time; a dash is an accuracy not reached by a run of {limit:g} s."
    )


def table(problem: tuple[str, str], rows: list[dict]) -> list[str]:
    """One problem: a line a method, the fastest time to each accuracy in bold."""
    name, measure = problem
    what = "stationarity" if measure == "stationarity" else "duality gap"
    header = ["method", "version", *(f"to {what} {target:.0e}" for target in TARGETS), "best objective", "note"]
    lines = [f"## {name}" + (" (Lasso)" if measure == "gap" else ""), "", line(header)]
    lines.append(line(["---", "---", *["---:"] * (len(TARGETS) + 1), "---"]))
    groups: dict[str, list[dict]] = {}
    for row in rows:
        groups.setdefault(row["method"], []).append(row)
    times = {method: [time_to(target, points) for target in TARGETS] for method, points in groups.items()}
    best = [min((t[k] for t in times.values() if t[k] is not None), default=None) for k in range(len(TARGETS))]
    for method, points in groups.items():
        cells = [shown(t, b) for t, b in zip(times[method], best, strict=True)]
        values = [p["objective"] for p in points if p["objective"] is not None]
        objective = f"{min(values):.9g}" if values else ""
        lines.append(line([method, points[0]["version"], *cells, objective, points[0]["note"]]))
    return [*lines, ""]


def time_to(target: float, points: list[dict]) -> float | None:
    """The least time of a run that reached the accuracy."""
    reached = [p["seconds"] for p in points if p["accuracy"] is not None and p["accuracy"] <= target]
    return min(reached, default=None)


def shown(seconds: float | None, best: float | None) -> str:
    if seconds is None:
        return "-"
    text = f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
    return f"**{text}**" if seconds == best else text


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
