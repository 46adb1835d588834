"""Draw recovery.svg from benchmarks/results/recovery.json: `python docs/images/recovery.py`."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

plt.rcParams["svg.hashsalt"] = "ell12"  # the same file each time
HERE = Path(__file__).resolve().parent
RESULT = HERE.parents[1] / "benchmarks" / "results" / "recovery.json"
TITLES = {
    "gaussian": ("Gaussian columns, nearly orthogonal", "number of nonzeros"),
    "coherent": ("cosines, neighbours nearly alike (F = 10)", "number of nonzeros"),
    "coherence": ("cosines, 12 nonzeros", "F, and the coherence of the columns"),
}
STYLES = {
    "l1": ("#4d4d66", "-", "o"),
    "reweighted l1": ("#009e73", "-", "s"),
    "MCP": ("#d55e00", "-", "^"),
    "log-sum": ("#aa3e98", "-", "v"),
    "DCA by linear programs": ("#56b4e9", "--", "x"),
    "l1-2": ("#0072b2", "-", "o"),
}


def main() -> None:
    """Three panels side by side, with one legend."""
    rows = json.loads(RESULT.read_text())["rows"]
    figure, panels = plt.subplots(1, len(TITLES), figsize=(11, 3.8), sharey=True, layout="constrained")
    for axes, (name, (title, label)) in zip(panels, TITLES.items(), strict=True):
        draw(axes, [row for row in rows if row["panel"] == name])
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(label)
    ticks = {row["value"]: row["coherence"] for row in rows if row["panel"] == "coherence"}
    panels[-1].set_xscale("log", base=2)
    # Every second coherence, as there is no room for more.
    words = [f"{value}\n{c:.2f}" if k % 2 == 0 else str(value) for k, (value, c) in enumerate(ticks.items())]
    panels[-1].set_xticks(list(ticks), words)
    panels[-1].minorticks_off()
    panels[0].set_ylabel(f"recovered, % of {rows[0]['trials']} signals")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(STYLES), frameon=False)
    figure.savefig(HERE / "recovery.svg", metadata={"Date": None})


def draw(axes, rows: list) -> None:
    """One panel: a curve for each method."""
    for method, (colour, dash, marker) in STYLES.items():
        points = [
            (row["value"], 100 * row["recovered"] / row["trials"]) for row in rows if row["method"] == method
        ]
        axes.plot(*zip(*points, strict=True), dash, color=colour, marker=marker, markersize=5, label=method)
    axes.set_ylim(-3, 103)
    axes.grid(True, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
