"""Draw benchmarks.svg from the races in benchmarks/results: `python docs/images/benchmarks.py`."""

import json
import math
import re
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from shades import save

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "benchmarks" / "results"
WANTED = 1e-4  # the accuracy
RACES = {
    "race": "l1-2: time to a stationarity of 1e-4",
    "race_lasso": "Lasso: time to a duality gap of 1e-4",
}
OURS = {"ell12, default": "ell12", "ell12": "ell12", "ell12, the paper's nmAPG": "the paper's nmAPG, ours"}
COLOURS = {
    "ell12": "#0072b2",
    "the paper's nmAPG, ours": "#56b4e9",
    "PyProximal": "#d55e00",
    "skglm": "#009e73",
    "celer": "#aa3e98",
    "scikit-learn": "#e69f00",
}
MARKERS = dict(zip(COLOURS, "osv^DP", strict=True))


def main() -> None:
    """One panel for each race; a row for each problem, a dot for each package."""
    races = {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in RACES}
    heights = [len(problems(race["rows"])) for race in races.values()]
    figure, panels = plt.subplots(
        2, 1, figsize=(9, 1.8 + 0.32 * sum(heights)), height_ratios=heights, sharex=True, layout="constrained"
    )
    for axes, (name, race) in zip(panels, races.items(), strict=True):
        draw(axes, race["rows"])
        axes.set_title(RACES[name], fontsize=10, loc="left")
    panels[-1].set_xlabel("seconds of one processor; open: not reached in a run of this length")
    handles = [plt.Line2D([], [], color=COLOURS[name], marker=MARKERS[name], linestyle="") for name in COLOURS]
    figure.legend(handles, COLOURS, loc="outside lower center", ncols=3, frameon=False)
    save(figure, HERE / "benchmarks.svg", metadata={"Date": None})


def problems(rows: list) -> list[str]:
    """The names of the problems, in the order of the race."""
    return list(dict.fromkeys(row["problem"] for row in rows))


def package(method: str) -> str | None:
    """What a method is called in the picture; None for those that solve another problem."""
    if method in OURS or method.startswith("ell12"):
        return OURS.get(method)
    name = method.partition(",")[0]
    return name if name in COLOURS and "another penalty" not in method else None


def draw(axes, rows: list) -> None:
    """A dot for each package and problem, where the first run reached the accuracy."""
    names = problems(rows)
    for method in dict.fromkeys(row["method"] for row in rows):
        if (label := package(method)) is None:
            continue
        for place, problem in enumerate(names):
            own = [row for row in rows if row["problem"] == problem and row["method"] == method and row["seconds"]]
            reached = [row["seconds"] for row in own if row["accuracy"] is not None and row["accuracy"] <= WANTED]
            x = min(reached, default=max((row["seconds"] for row in own), default=math.nan))
            style = {"fillstyle": "full" if reached else "none", "color": COLOURS[label]}
            axes.plot(x, place, MARKERS[label], markersize=7, linestyle="", **style)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), [re.sub(r"paper, (.*)\^(\d)", r"paper's, \1$^\2$", name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(True, axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
