"""Draw support_recovery.svg from its results in benchmarks/results: `python docs/images/support_recovery.py`."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from shades import save

HERE = Path(__file__).resolve().parent
RESULT = HERE.parents[1] / "benchmarks" / "results" / "support_recovery.json"
COLOURS = {"lasso": "#4d4d66", "lasso, 1se": "#9a9aad", "l1-2": "#0072b2", "l1-2, 1se": "#56b4e9"}


def main() -> None:
    """One panel for each design: every seed a dot, the mean a line."""
    rows = json.loads(RESULT.read_text())["rows"]
    designs = list(dict.fromkeys(row["design"] for row in rows))
    figure, panels = plt.subplots(
        1, len(designs), figsize=(4.5 * len(designs), 3.6), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, design in zip(panels[0], designs, strict=True):
        own = [row for row in rows if row["design"] == design]
        seeds = len({row["seed"] for row in own})
        draw(axes, own)
        axes.set_title(f"{design} design, {own[0]['nonzeros']} nonzeros, {seeds} seeds", fontsize=10)
    panels[0][0].set_ylabel("F1 of the support")
    save(figure, HERE / "support_recovery.svg", metadata={"Date": None})


def draw(axes, rows: list) -> None:
    """The seeds of each method, spread a little so that they do not hide each other."""
    for place, (method, colour) in enumerate(COLOURS.items()):
        values = [row["F1"] for row in rows if row["method"] == method]
        spread = [place + 0.3 * (k / max(len(values) - 1, 1) - 0.5) for k in range(len(values))]
        axes.plot(spread, values, "o", color=colour, markersize=4, alpha=0.7)
        axes.hlines(sum(values) / len(values), place - 0.3, place + 0.3, color=colour, linewidth=2.5)
    axes.set_xticks(range(len(COLOURS)), list(COLOURS))
    axes.set_ylim(0, 1)
    axes.grid(True, axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
