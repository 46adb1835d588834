"""Intervals and selections beside those that R's ncvreg prints for its Prostate data.

97 men, 8 clinical measures, and the logarithm of their prostate specific antigen (Stamey and others, 1989). ncvreg
is not installed here: its figures are those of its own reference pages, `intervals` (SCAD with a ridge share of
0.1, lambda 0.0164 by cross-validation, projection-based intervals) and `local_mfdr` (MCP, lambda 0.1). Ours are
`confidence_intervals` of an `L12RegressorCV` on standardised columns, by the exact and the nodewise inverse;
`information_criteria`; and `StabilitySelection`.

That the data are the same is seen from the first table: the MCP of ncvreg, minimised by `ell12.minimize`.

With 8 features and 97 samples all methods should agree with least squares: this compares implementations, not
methods. ncvreg's local false discovery rate is the estimated probability that a feature is noise; our adjusted p
value (Benjamini and Hochberg) bounds a share of false ones among many. They answer different questions and stand
side by side only.

The data are read from a file: prostate.data of the web page of The Elements of Statistical Learning, or any table
with the same names and commas or white space between its columns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import study
from ell12 import (
    MCP,
    L12RegressorCV,
    SquaredLoss,
    StabilitySelection,
    confidence_intervals,
    information_criteria,
    minimize,
)

FEATURES = ("lcavol", "lweight", "age", "lbph", "svi", "lcp", "gleason", "pgg45")
# ncvreg's reference page of `intervals`: coefficient, estimate, standard error, ends of the interval, p value.
# The page prints the first six features.
INTERVALS = {
    "lcavol": (0.56751990, 0.56847851, 0.08536927, 0.40036518, 0.7347329063, 2.755973e-11),
    "lweight": (0.61405064, 0.61508358, 0.19734494, 0.22718966, 1.0005399176, 1.828291e-03),
    "age": (-0.02078314, -0.02081720, 0.01091664, -0.04214965, 0.0006986845, 5.653050e-02),
    "lbph": (0.09705128, 0.09721108, 0.05726370, -0.01518622, 0.2091093219, 8.958256e-02),
    "svi": (0.74994413, 0.75129306, 0.23685421, 0.28596154, 1.2139041757, 1.514117e-03),
    "lcp": (-0.10283437, -0.10301114, 0.08884963, -0.27676062, 0.0710751889, 2.462983e-01),
}
# ncvreg's reference page of `local_mfdr`: coefficient of the MCP at lambda 0.1, local false discovery rate.
MFDR = {
    "lcavol": (0.5387509, 4.956187e-16),
    "lweight": (0.6382717, 1.172927e-02),
    "age": (0.0, 9.454421e-01),
    "lbph": (0.0, 9.275879e-01),
    "svi": (0.6102800, 2.430660e-02),
    "lcp": (0.0, 9.660606e-01),
    "gleason": (0.0, 9.554227e-01),
    "pgg45": (0.0, 9.487372e-01),
}


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The features and the logarithm of the antigen, by their names."""
    lines = [
        line.replace(",", " ").replace('"', "").split() for line in path.read_text().splitlines() if line.strip()
    ]
    names, rows = lines[0], lines[1:]
    extra = len(rows[0]) - len(names)  # the numbers of the rows, which have no name
    table = np.array([[float(row[names.index(name) + extra]) for name in (*FEATURES, "lpsa")] for row in rows])
    if table.shape != (97, 9):
        raise SystemExit(f"{path} must hold 97 rows, it holds {table.shape[0]}")
    return table[:, :8], table[:, 8]


def mcp(X: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
    """The coefficients of the MCP with gamma 3, followed down to a strength."""
    loss, x = SquaredLoss(X, y - y.mean(), scale=1 / y.size), None
    for alpha in np.geomspace(2 * np.abs(X.T @ (y - y.mean())).max() / y.size, strength, 50):
        x = minimize(loss, MCP(alpha, 3.0), x, tol=1e-8).x
    return x


def least_squares(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of least squares and their standard errors, without the intercept."""
    A = np.column_stack([X, np.ones(y.size)])
    inverse = np.linalg.inv(A.T @ A)
    x = inverse @ A.T @ y
    noise = np.sum((y - A @ x) ** 2) / (y.size - A.shape[1])
    return x[:-1], np.sqrt(noise * np.diag(inverse))[:-1]


def compare(X: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    """A row for each feature."""
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / scale
    model = L12RegressorCV().fit(Z, y)
    found = {inverse: confidence_intervals(Z, y, model, inverse=inverse) for inverse in ("exact", "nodewise")}
    ebic = information_criteria(Z, y).refit("ebic").coef_ / scale
    stability = StabilitySelection(random_state=0).fit(Z, y)
    adjusted = found["nodewise"].adjusted("bh")
    same, (plain, errors) = mcp(Z, y, 0.1) / scale, least_squares(X, y)
    rows = []
    for j, name in enumerate(FEATURES):
        row: dict[str, Any] = {"feature": name, "mcp, ncvreg": MFDR[name][0], "mcp, ours": same[j]}
        row |= {"mfdr, ncvreg": MFDR[name][1], "least squares": [plain[j], errors[j]]}
        if name in INTERVALS:
            row["ncvreg"] = list(INTERVALS[name][1:])
        for inverse, intervals in found.items():
            parts = (intervals.estimate, intervals.standard_error, intervals.lower, intervals.upper)
            row[inverse] = [float(part[j] / scale[j]) for part in parts] + [float(intervals.p_values[j])]
        row |= {"ebic": float(ebic[j]), "frequency": float(stability.frequencies_[j])}
        rows.append(row | {"adjusted": float(adjusted[j])})
    return rows


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    header = [
        "feature",
        "MCP, ncvreg",
        "MCP, ours",
        "mfdr, ncvreg",
        "adjusted p, ours",
        "frequency",
        "EBIC's refit",
    ]
    lines = [
        [row["feature"], f"{row['mcp, ncvreg']:.4f}", f"{row['mcp, ours']:.4f}"]
        + [f"{row[key]:.2g}" for key in ("mfdr, ncvreg", "adjusted", "frequency")]
        + [f"{row['ebic']:.4f}"]
        for row in rows
    ]
    yield "## Selections\n\n" + study.table(header, lines)
    header = ["feature", "method", "estimate", "standard error", "lower", "upper", "p value"]
    lines = []
    for row in rows:
        for method in ("ncvreg", "exact", "nodewise"):
            if method in row:
                estimate, error, lower, upper, p_value = row[method]
                ends = [f"{value:.4f}" for value in (estimate, error, lower, upper)]
                lines.append([row["feature"], method, *ends, f"{p_value:.2g}"])
    yield "## Intervals of 95 %\n\n" + study.table(header, lines)
    yield "## Verdicts\n\n" + "\n".join(f"- {line}" for line in verdicts(rows))


def verdicts(rows: list[dict[str, Any]]) -> Iterator[str]:
    gap = max(abs(row["mcp, ncvreg"] - row["mcp, ours"]) for row in rows)
    yield f"The MCP's coefficients agree to {gap:.1g}: the data are the same."
    shared = [row for row in rows if "ncvreg" in row]
    for method in ("exact", "nodewise"):
        errors = [row[method][1] / row["ncvreg"][1] for row in shared]
        inside = sum(row["ncvreg"][2] <= row[method][0] <= row["ncvreg"][3] for row in shared)
        same = sum((row["ncvreg"][4] < 0.05) == (row[method][4] < 0.05) for row in shared)
        yield (
            f"{method}: standard errors are {min(errors):.2f} to {max(errors):.2f} times ncvreg's; {inside} of"
            f" {len(shared)} estimates lie in its intervals; {same} of {len(shared)} features are on the same side"
            " of a p value of 0.05."
        )
    gap = max(abs(a / b - 1) for row in rows for a, b in zip(row["exact"], row["least squares"], strict=False))
    yield f"exact: estimates and standard errors are those of least squares to {gap:.1g}, as they should be."
    found = [row["feature"] for row in rows if row["mcp, ncvreg"] != 0]
    ours = [row["feature"] for row in rows if row["ebic"] != 0]
    yield f"ncvreg's MCP selects {', '.join(found)}; EBIC {', '.join(ours)}."
    mfdr = [row["feature"] for row in rows if row["mfdr, ncvreg"] < 0.05]
    adjusted = [row["feature"] for row in rows if row["adjusted"] < 0.05]
    yield f"A local mfdr below 0.05: {', '.join(mfdr)}. An adjusted p value below 0.05: {', '.join(adjusted)}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="prostate.data")
    rows = compare(*read(parser.parse_args().data))
    sources = "https://pbreheny.github.io/ncvreg/reference/ (intervals, local_mfdr)"
    study.write("published_intervals", __doc__, {"figures of ncvreg": sources}, rows, tables(rows))


if __name__ == "__main__":
    main()
