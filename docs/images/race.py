"""Draw the README's picture from benchmarks/results/race.json: `python docs/images/race.py`."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "benchmarks" / "results"
GRID = (0, 2, 4)
STYLES = {
    "ell12, default": ("ell12's default", "#d55e00", "o", 2.6),
    "ell12, the paper's nmAPG": ("the paper's nmAPG", "#0072b2", "s", 1.6),
    "ell12, the paper's DCA": ("DCA", "#009e73", "^", 1.6),
    "ell12, the paper's SCP": ("SCP", "#aa3e98", "v", 1.6),
    "PyProximal, FISTA": ("FISTA of PyProximal", "#777777", "D", 1.2),
    "skglm, FISTA": ("FISTA of skglm", "#b8860b", "x", 1.2),
}


def main() -> None:
    """Three strengths side by side, with one legend."""
    rows = json.loads((RESULTS / "race.json").read_text(encoding="utf-8"))["rows"]
    figure, panels = plt.subplots(1, len(GRID), figsize=(10, 3.4), layout="constrained", sharey=True)
    for axes, i in zip(panels, GRID, strict=True):
        draw(axes, i, [row for row in rows if row["problem"] == f"paper, alpha = 0.01/4^{i}"])
    panels[0].set_ylabel("distance from stationarity")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(STYLES), frameon=False)
    with matplotlib.rc_context({"svg.hashsalt": "ell12"}):
        figure.savefig(HERE / "race.svg", metadata={"Date": None})


def draw(axes, i: int, rows: list[dict]) -> None:
    """One panel: the accuracy of each method's runs against their time, without runs that another one beats."""
    for method, (label, colour, marker, width) in STYLES.items():
        runs = sorted((r["seconds"], r["accuracy"]) for r in rows if r["method"] == method and r["accuracy"])
        best = [run for k, run in enumerate(runs) if all(run[1] < other[1] for other in runs[:k])]
        style = {"color": colour, "marker": marker, "markersize": 4, "linewidth": width}
        axes.loglog(*zip(*best, strict=True), label=label, **style)
    axes.set_title(f"alpha = 0.01 / {4**i}" if i else "alpha = 0.01")
    axes.set_xlabel("processor time, seconds")
    axes.set_ylim(3e-9, 30)
    axes.grid(True, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
