"""One HTML page of all results: `python benchmarks/page.py`; `run.py` calls it after each run."""

from __future__ import annotations

import html
import io
import json
import re
from pathlib import Path
from typing import Any

# What grows in a benchmark: how the problems are named, with the size in brackets, and what the size counts.
GROWTH = {
    "completion": [(r"a sweep, (\d+) known of", "known entries")],
    "growth": [(r"more columns, 500 x (\d+)", "columns"), (r"more rows, (\d+) x 500", "rows")],
}
STYLE = """
:root { color-scheme: light dark; --line: #8884; --faint: #888; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
.scroll { overflow-x: auto; }
nav a { margin-right: 1rem; }
figure { margin: 1rem 0; display: inline-block; background: white; }
"""


def write(results: Path) -> Path:
    """Make results/index.html out of results/*.md and curves of some results/*.json; return its path."""
    pages = sorted(path for path in results.glob("*.md"))
    names = "".join(f'<a href="#{path.stem}">{path.stem}</a>' for path in pages)
    sections = [section(path) for path in pages]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
    body = f"<h1>ell12: benchmarks</h1><nav>{names}</nav>" + "".join(sections)
    target = results / "index.html"
    part = target.with_suffix(".part")
    part.write_text(
        f'<!doctype html><html lang="en"><head><title>ell12: benchmarks</title>{head}</head>{body}</html>'
    )
    part.replace(target)
    return target


def section(path: Path) -> str:
    """One benchmark: its Markdown as HTML, with curves where it has some."""
    body = to_html(path.read_text())
    source = path.with_suffix(".json")
    if path.stem in ("race", "race_lasso") and source.exists():
        body += "<h3>Accuracy against time</h3>" + curves(json.loads(source.read_text())["rows"])
    if path.stem in GROWTH and source.exists():
        body += "<h3>Growth</h3>" + growth(json.loads(source.read_text())["rows"], GROWTH[path.stem])
    return f'<section id="{path.stem}">{body}</section>'


def to_html(markdown: str) -> str:
    """Headings, paragraphs and tables: all that the pages of the benchmarks hold."""
    parts: list[str] = []
    for block in markdown.split("\n\n"):
        lines = [line for line in block.strip().splitlines() if line]
        if not lines:
            continue
        if lines[0].startswith("#"):
            level = len(lines[0]) - len(lines[0].lstrip("#")) + 1
            parts.append(f"<h{level}>{inline(lines[0].lstrip('# '))}</h{level}>")
            lines = lines[1:]
        if lines and lines[0].startswith("|"):
            parts.append(table(lines))
        elif lines:
            parts.append(f"<p>{inline(' '.join(lines))}</p>")
    return "\n".join(parts)


def table(lines: list[str]) -> str:
    rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if not line.startswith("| ---")
    ]
    head = "".join(f"<th>{inline(cell)}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{inline(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:])
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def inline(text: str) -> str:
    """Bold and code."""
    text = html.escape(text.replace("\\|", "|"))
    for mark, tag in (("**", "b"), ("`", "code")):
        pieces = text.split(mark)
        text = pieces[0] + "".join(
            (f"<{tag}>{piece}" if k % 2 == 0 else f"</{tag}>{piece}") for k, piece in enumerate(pieces[1:])
        )
    return text


def curves(rows: list[dict]) -> str:
    """A figure for each problem: the accuracy reached against the time of the run."""
    figures = []
    for problem, measure in dict.fromkeys((row["problem"], row["measure"]) for row in rows):
        lines = {}
        for method in dict.fromkeys(row["method"] for row in rows):
            own = [r for r in rows if (r["problem"], r["measure"], r["method"]) == (problem, measure, method)]
            lines[method] = [(r["seconds"], max(r["accuracy"], 1e-16)) for r in own if r["accuracy"] is not None]
        title = problem + (" (Lasso)" if measure == "gap" else "")
        label = "stationarity" if measure == "stationarity" else "relative duality gap"
        figures.append(drawing(lines, "seconds", label, title))
    return "".join(figures)


def growth(rows: list[dict], kinds: list[tuple[str, str]]) -> str:
    """A figure for each thing that grows: the time of each method against its size."""
    figures = []
    for pattern, counted in kinds:
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            size = re.match(pattern, row["problem"])
            if size and row["seconds"]:
                lines.setdefault(row["method"], []).append((float(size[1]), row["seconds"]))
        figures.append(drawing(lines, counted, "seconds", f"time against {counted}"))
    return "".join(figures)


def drawing(lines: dict[str, list[tuple[float, float]]], x: str, y: str, title: str) -> str:
    """One figure, both axes logarithmic, with a line for each name that has points."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure: Any
    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for name, points in lines.items():
        if points:
            axes.loglog(*zip(*sorted(points), strict=True), marker=".", label=name)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=7)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    return f"<figure>{text.getvalue()[text.getvalue().index('<svg') :]}</figure>"


if __name__ == "__main__":
    print(write(Path(__file__).resolve().parent / "results"))
