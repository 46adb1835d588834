"""Draw stochastic.svg from benchmarks/results/stochastic.json: `python docs/images/stochastic.py`."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from shades import save

HERE = Path(__file__).resolve().parent
RESULT = HERE.parents[1] / "benchmarks" / "results" / "stochastic.json"
COLOURS = {"nmAPG": "#4d4d66", "ProxSVRG": "#0072b2", "SAGA": "#d55e00"}


def main() -> None:
    """A panel for each problem."""
    rows = json.loads(RESULT.read_text())["rows"]
    names = list(dict.fromkeys(row["problem"] for row in rows))
    figure, panels = plt.subplots(1, len(names), figsize=(11, 3.6), sharey=True, layout="constrained")
    for axes, name in zip(panels, names, strict=True):
        for row in (row for row in rows if row["problem"] == name):
            passes = [row["passes_each"] * k for k in range(len(row["above"]))]
            axes.semilogy(passes, [max(value, 1e-15) for value in row["above"]], COLOURS[row["solver"]])
            axes.set_title(name, fontsize=10)
            axes.set_xlabel("passes over the data")
    panels[0].set_ylabel("objective above the lowest")
    figure.legend(panels[0].lines, COLOURS, loc="outside upper center", ncols=len(COLOURS), frameon=False)
    save(figure, HERE / "stochastic.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
