"""Draw the README's picture from the rows of a run: `python docs/images/draw.py reproduction/paper`."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from ell12.experiments.rows import read_rows

SETUP, GRID = "stated", (0, 2, 4)
STYLES = {
    "SCP": ("#009e73", "-"),
    "DCA(rho=1)": ("#d55e00", ":"),
    "DCA": ("#d55e00", "-"),
    "nmAPG(numerical)": ("#aa3e98", "--"),
    "nmAPG(closed-form)": ("#0072b2", "-"),
}


def main(folder: str) -> None:
    """Three strengths side by side, with one legend."""
    rows = [r for r in read_rows(folder)[0] if r["experiment"] == "compressed-sensing"]
    rows = [r for r in rows if r["settings"]["setup"] == SETUP and r["settings"]["repeat"] == 0]
    figure, panels = plt.subplots(1, len(GRID), figsize=(10, 3.2), layout="constrained")
    for axes, i in zip(panels, GRID, strict=True):
        draw(axes, i, {r["settings"]["method"]: r["results"]["history"] for r in rows if r["settings"]["i"] == i})
    panels[0].set_ylabel("objective - lowest")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(STYLES), frameon=False)
    with matplotlib.rc_context({"svg.hashsalt": "ell12"}):
        figure.savefig(Path(__file__).parent / "compressed_sensing.svg", metadata={"Date": None})


def draw(axes, i: int, histories: dict) -> None:
    """One panel: how fast each method comes down to the lowest objective that any of them reached."""
    histories = {name: histories[name] for name in STYLES if name in histories}
    lowest = min(min(history["objective"]) for history in histories.values())
    for name, history in histories.items():
        gaps = [value - lowest for value in history["objective"]]
        points = [(s, g) for s, g in zip(history["cpu_seconds"], gaps, strict=True) if g > 1e-9 * lowest]
        colour, dash = STYLES[name]
        axes.loglog(*zip(*points, strict=True), dash, color=colour, label=name, linewidth=1.8)
    axes.set_title(f"alpha = 0.01 / 4$^{i}$")
    axes.set_xlabel("CPU seconds")
    axes.grid(True, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main(sys.argv[1])
