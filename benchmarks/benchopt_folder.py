"""The paper's compressed sensing as a folder that ``benchopt run`` executes: objective, datasets, solvers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

from ell12 import __version__
from ell12_paper import PRESETS
from ell12_paper.studies import size_of
from ell12_paper.studies.compressed_sensing import SETUPS, trials

_TEMPLATES = Path(__file__).parent / "benchopt"


@dataclass(frozen=True)
class ExportedSolver:
    """A solver as benchopt knows it: its name, how it is made, what it is, and the method of our study."""

    name: str
    solver: str
    what: str
    method: str | None
    l2_weight: float = 1.0

    @property
    def file(self) -> str:
        """The name of its file."""
        return self.name.lower().replace("-", "_") + ".py"


# The paper's five methods in the order of its tables, then our default.
SOLVERS = (
    ExportedSolver("DCA", "methods.DCA()", "The difference of convex functions algorithm, ADMM inside.", "DCA"),
    ExportedSolver("SCP", "methods.SequentialConvex()", "Sequential convex programming.", "SCP"),
    ExportedSolver(
        "nmAPG-numerical",
        "NumericalAPG()",
        "Nonmonotone accelerated proximal gradient, its proximal step by fixed-point iteration.",
        "nmAPG(numerical)",
    ),
    ExportedSolver(
        "nmAPG",
        "methods.NonmonotoneAPG()",
        "Nonmonotone accelerated proximal gradient, its proximal step in closed form.",
        "nmAPG(closed-form)",
    ),
    ExportedSolver(
        "FISTA", "methods.FISTA()", "FISTA on the convex twin, with the l1 norm alone.", "FISTA", l2_weight=0.0
    ),
    ExportedSolver("ell12-default", "None", "The default solver of ell12: working sets.", None),
)


def export_benchopt(folder: Path) -> list[Path]:
    """Write a benchmark of benchopt to a new folder; its files."""
    folder.mkdir()
    written = []
    for name, content in _files():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
        written.append(path)
    return written


def _files() -> Iterator[tuple[str, str]]:
    """The name and the text of every file."""
    quick, paper = (size_of("compressed-sensing", preset) for preset in PRESETS)
    tol = trials("quick", 0)[0]["tol"]
    sizes = {"quick_samples": quick.n_samples, "quick_seeds": quick.n_repeats}
    sizes |= {"paper_samples": paper.n_samples, "paper_seeds": paper.n_repeats}
    yield "README.md", _filled("README", version=__version__, tol=tol, **sizes)
    yield "objective.py", _filled("objective")
    yield "benchmark_utils/__init__.py", ""
    yield "benchmark_utils/first_order.py", _filled("first_order", tol=tol)
    yield (
        "datasets/paper.py",
        _filled(
            "dataset",
            setups=", ".join(f'"{setup}"' for setup in SETUPS),
            first_setup=f'"{SETUPS[0]}"',
            n_samples=quick.n_samples,
            seeds=_seeds(quick.n_repeats),
        ),
    )
    for solver in SOLVERS:
        key = "stationarity" if solver.l2_weight else "stationarity_l1"
        words = {"name": solver.name, "solver": solver.solver, "what": solver.what, "key": key}
        yield f"solvers/{solver.file}", _filled("solver", **words, l2_weight=solver.l2_weight)
    for name, size in ((preset, size_of("compressed-sensing", preset)) for preset in PRESETS):
        data = f"paper[n_samples={size.n_samples},seed=[{_seeds(size.n_repeats)}]]"
        lines = [
            "n-repetitions: 1",
            "max-runs: 60",
            f"timeout: {size.max_cpu_seconds:.0f}",
            f'dataset: ["{data}"]',
        ]
        yield f"{name}.yml", "\n".join(lines) + "\n"


def _filled(template: str, **values: object) -> str:
    return Template((_TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")).substitute(values)


def _seeds(count: int) -> str:
    return ", ".join(map(str, range(count)))
