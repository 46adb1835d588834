"""Pages made from the package itself, so that they cannot fall behind: the API reference and the benchmarks."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import ell12

HERE = Path(__file__).resolve().parents[1]
GENERATED = HERE / "generated"
RESULTS = HERE.parent / "benchmarks" / "results"
# Modules whose contents have no place in the package's front, and what is shown of each.
MODULES = {
    "datasets": (
        "compressed_sensing",
        "correlated_design",
        "load_ratings",
        "as_ratings",
        "synthetic_ratings",
        "photographs",
        "phantom",
        "piecewise_constant",
        "radial_lines",
        "SparseProblem",
        "Ratings",
    ),
    "operators.images": ("FiniteDifference", "Convolution", "Sampling", "FourierSampling"),
    "completion.baselines": (
        "AISImpute",
        "SoftImpute",
        "FaNCL",
        "LMaFit",
        "ER1MP",
        "SketchyCGM",
        "ARSSM3F",
    ),
    "distributed": ("sum_loss", "columns", "complete_matrix"),
    "path": ("alpha_max", "alpha_grid", "vanishing_strength", "one_sparse_fit", "solution_path"),
    "protocols": (
        "Operator",
        "ColumnSource",
        "FarSource",
        "Point",
        "Iterate",
        "Loss",
        "ColumnLoss",
        "FarLoss",
        "PointwiseLoss",
        "RowLoss",
        "BatchLoss",
        "ProximalLoss",
        "ParallelLoss",
        "ForeseeingLoss",
        "CancellingLoss",
        "SessionLoss",
        "FactoredLoss",
        "Penalty",
        "ScalablePenalty",
        "CertifyingPenalty",
        "DifferencePenalty",
        "PiecewisePenalty",
        "Curvature",
        "NumericalPenalty",
        "ParallelPenalty",
        "Solver",
        "DeclaringSolver",
        "Needs",
        "missing",
        "offers",
    ),
}


def setup(app: Any) -> dict[str, Any]:
    """Write the pages before Sphinx looks for its sources."""
    app.connect("config-inited", lambda *_: write_pages(), priority=100)
    return {"version": "1", "parallel_read_safe": True}


def write_pages() -> None:
    """Write generated/api.rst and copy the benchmarks' pages, touching only what has changed."""
    folder = GENERATED / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    _write(GENERATED / "api.rst", api_page())
    pages = {path.name: path.read_text() for path in RESULTS.glob("*.md")}
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        _write(folder / name, text)


def api_page() -> str:
    """Every public name, grouped by its module, in the order of the flow from data to results."""
    front = [_group(module, names, "ell12") for module, names in ell12._HOMES.items()]
    inside = [_group(module, names, f"ell12.{module}") for module, names in MODULES.items()]
    words = "Everything in the first part is imported from ``ell12`` itself: ``from ell12 import L12, minimize``."
    return "\n".join(["API reference", "=" * 13, "", words, "", *front, "In modules", "-" * 10, "", *inside])


def _group(module: str, names: tuple[str, ...], home: str) -> str:
    title = module if home == "ell12" else home
    about = (import_module(f"ell12.{module}").__doc__ or "").strip().split("\n\n")[0]
    mark = "-" if home == "ell12" else "~"
    title = title.replace("_", " ").capitalize() if home == "ell12" else title
    directive = [
        ".. autosummary::",
        "   :toctree: api",
        "   :nosignatures:",
        "",
        *(f"   {name}" for name in names),
    ]
    return "\n".join([title, mark * len(title), "", about, "", f".. currentmodule:: {home}", "", *directive, ""])


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
