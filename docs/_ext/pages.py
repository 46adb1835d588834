"""Pages made from the package itself, so that they cannot fall behind: the API reference and the benchmarks."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import ell12

HERE = Path(__file__).resolve().parents[1]
GENERATED = HERE / "generated"
RESULTS = HERE.parent / "benchmarks" / "results"
LEADING = ("L12Imputer", "L12Recommender", "complete_matrix", "completion_path", "minimize", "Result", "Status")
# The public names as a reader looks for them: estimators and functions first, what they are made of after that.
GROUPS = {
    "Sparse models": (
        "Estimators for regression, classes, counts and survival times, as in scikit-learn.",
        ("linear_model",),
    ),
    "How sure a selection is": (
        "Stability selection, confidence intervals, information criteria, and one table of it all.",
        ("selection",),
    ),
    "Images": (
        "Noise, blur, missing pixels and indirect measurements, by total variation.",
        ("restoration",),
    ),
    "Matrices": (
        "Missing values, ratings and recommendations, by matrices of low rank.",
        ("completion.imputer", "completion.recommender", "completion"),
    ),
    "Solving a problem": (
        "A loss and a penalty make a problem; `ell12.minimize` solves it.",
        ("minimization", "path", "recovery", "certificate"),
    ),
    "Penalties": ("The package's own, and others to compare with.", ("penalties",)),
    "Losses": ("Smooth functions of x that measure the fit.", ("losses",)),
    "Solvers": ("For `ell12.minimize` and the estimators; the default suits most problems.", ("solvers",)),
    "The proximal step": ("The closed form, as functions of arrays.", ("prox",)),
    "Columns out of memory": ("Data that stay in a file.", ("operators.out_of_memory",)),
}
# Modules whose contents have no place in the package's front, and what is shown of each.
MODULES = {
    "datasets": (
        "compressed_sensing",
        "correlated_design",
        "load_ratings",
        "synthetic_ratings",
        "phantom",
        "piecewise_constant",
        "radial_lines",
        "SparseProblem",
        "Ratings",
    ),
    "operators.image_operators": ("FiniteDifference", "Convolution", "Sampling", "FourierSampling"),
    "penalties": (
        "PenaltyBase",
        "LogSum",
        "CappedL1",
        "Lp",
        "SCAD",
        "TransformedL1",
        "SpectralLogSum",
        "TruncatedNuclear",
        "NoPenalty",
        "with_strength",
    ),
    "losses": (
        "LinearLoss",
        "MultinomialLoss",
        "CoxLoss",
        "QuadraticLoss",
        "KullbackLeiblerLoss",
        "AbsoluteLoss",
        "RowsLoss",
    ),
    "prox": ("prox_l12_groups", "prox_l12_spectral", "prox_l12_iterative", "moreau_l12"),
    "selection": ("Intervals", "CriteriaPath", "Summary"),
    "restoration": (
        "Restoration",
        "estimate_sigma",
        "SmoothedGradient",
        "AlternatingMinimization",
        "GrowingADMM",
        "TotalVariationDCA",
    ),
    "solvers": ("ProximalGradient", "SupportNewton", "GroupNewton", "ProxSVRG", "SAGA"),
    "minimization": ("Checkpoint", "DataUnavailable"),
    "recovery": ("Recovery", "recover_sparse_ratio"),
    "distributed": ("rows_loss", "columns", "complete_matrix", "denoise_tv", "inpaint_tv"),
    "path": ("alpha_max", "alpha_grid", "best_on_log_grid", "one_sparse_fit", "Path"),
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
        "CertifyingPenalty",
        "DifferencePenalty",
        "PiecewisePenalty",
        "GroupPenalty",
        "Curvature",
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
    titles = benchmark_titles()
    pages = {path.name: titled(path.read_text(), titles[path.stem]) for path in RESULTS.glob("*.md")}
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        _write(folder / name, text)


def benchmark_titles() -> dict[str, str]:
    """What each page of the benchmarks is called, by its file: as the page that lists them all says."""
    listed = re.findall(r"^(.+) <generated/benchmarks/(\w+)>$", (HERE / "benchmarks.md").read_text(), re.MULTILINE)
    return {name: title for title, name in listed}


def titled(text: str, title: str) -> str:
    """The page with this title; the sentence that the file has as its title becomes the first of the page."""
    first, _, rest = text.partition("\n")
    sentence = first.removeprefix("#").strip().rstrip(".").replace("``", "`")
    return f"# {title}\n{rest}" if sentence == title else f"# {title}\n\n*{sentence}.*\n{rest}"


def homes() -> dict[str, list[str]]:
    """Where the public names live, by module, as the stub of the package says."""
    found: dict[str, list[str]] = {}
    for node in ast.parse(Path(str(ell12.__file__) + "i").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found.setdefault(node.module, []).extend(alias.name for alias in node.names)
    return found


def api_page() -> str:
    """Every public name, grouped as a reader looks for it."""
    front = []
    for title, (words, modules) in GROUPS.items():
        names = [name for module in modules for name in homes()[module]]
        front.append(_group(title, words, "ell12", sorted(names, key=lambda name: name not in LEADING)))
    inside = [
        _group(f"ell12.{module}", _about(module), f"ell12.{module}", names) for module, names in MODULES.items()
    ]
    words = "Everything on the first part of this page is imported from ``ell12`` itself, for example"
    snippet = "\n\n.. code-block:: python\n\n   from ell12 import L12RegressorCV, denoise_tv, minimize\n"
    words += f"{snippet}\nThe `modules <In modules_>`_ at the end hold data sets, operators and protocols."
    return "\n".join(["API reference", "=" * 13, "", words, "", *front, "In modules", "-" * 10, "", *inside])


def _about(module: str) -> str:
    return (import_module(f"ell12.{module}").__doc__ or "").strip().split("\n\n")[0]


def _group(title: str, words: str, home: str, names: Sequence[str]) -> str:
    mark = "-" if home == "ell12" else "~"
    entries = "".join(f"   {name}\n" for name in names)
    return f"""{title}
{mark * len(title)}

{words}

.. currentmodule:: {home}

.. autosummary::
   :toctree: api
   :nosignatures:

{entries}"""


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
