"""Who may import whom: read from the source, so that the architecture cannot drift."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "ell12"

# What each module of the package may import from it. A folder stands for its files, which may import each other.
ALLOWED = {
    "protocols": set(),
    "backend": {"protocols"},
    "spectrum": {"protocols", "backend"},
    "compiled": set(),
    "compiled_descent": set(),
    "files": set(),
    "png": set(),
    "checks": {"backend"},
    "layout": {"protocols", "backend"},
    "cuda": {"protocols", "backend"},
    "norms": {"protocols", "backend", "cuda"},
    "vector_prox": {"protocols", "backend", "cuda"},
    "prox": {"protocols", "backend", "checks", "layout", "compiled", "vector_prox"},
    "penalties": {"protocols", "backend", "norms", "spectrum", "checks", "layout", "prox"},
    "operators": {"protocols", "backend", "checks"},
    "image_operators": {"protocols", "backend", "operators"},
    "active_columns": set(),
    "ridge": {"protocols", "backend", "operators"},
    "kept_columns": {"protocols", "operators", "ridge"},
    "losses": {
        "protocols",
        "backend",
        "checks",
        "operators",
        "spectrum",
        "active_columns",
        "kept_columns",
        "ridge",
    },
    "streaming": {"protocols", "backend", "spectrum", "losses"},
    "solvers": {"protocols", "backend", "norms", "compiled_descent"},
    "checkpoints": {"protocols", "backend", "files"},
    "stalling": {"protocols", "backend"},
    "minimization": {"protocols", "backend", "solvers", "checkpoints", "stalling"},
    "progress": {"minimization"},
    "plots": {"backend"},
    "centering": {"protocols", "backend", "operators", "ridge"},
    "side_by_side": {"protocols", "backend", "losses", "penalties", "solvers", "minimization"},
    "path": {
        "protocols",
        "backend",
        "centering",
        "checks",
        "operators",
        "losses",
        "penalties",
        "minimization",
        "side_by_side",
    },
    "quadratic": {"protocols", "backend"},
    "moments": {"protocols", "ridge", "quadratic"},
    "distributed": {
        "protocols",
        "backend",
        "checks",
        "operators",
        "spectrum",
        "ridge",
        "losses",
        "quadratic",
        "moments",
        "penalties",
        "minimization",
        "completion",
    },
    "linear_model": {
        "protocols",
        "backend",
        "checks",
        "centering",
        "operators",
        "losses",
        "moments",
        "solvers",
        "minimization",
        "side_by_side",
        "path",
        "progress",
        "plots",
        "distributed",
    },
    "completion": {
        "protocols",
        "backend",
        "checks",
        "files",
        "penalties",
        "minimization",
        "path",
        "progress",
        "plots",
    },
    "restoration": {
        "protocols",
        "backend",
        "cuda",
        "checks",
        "layout",
        "prox",
        "operators",
        "image_operators",
        "losses",
        "minimization",
    },
    "datasets": set(),
}
# The package's front, and its thin users that nothing imports.
FREE = {"__init__", "__main__", "cli", "commands", "experiments"}
# A folder stands for its files, or a file is named alone.
ONLY_IMPORTER = {
    "array_api_compat": {"backend"},
    "dask": {"distributed"},
    "distributed": {"distributed"},
    "numba": {"compiled", "compiled_descent", "completion/compiled", "restoration"},
    "matplotlib": {"experiments", "plots"},
    "sklearn": {"linear_model", "completion/imputer"},
    "PIL": {"commands"},
    "tifffile": {"commands"},
}


def files():
    return sorted(PACKAGE.rglob("*.py"))


def unit(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path):
    """The dotted names a file imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_units(path):
    names = {name.split(".")[1] for name in imports(path) if name.startswith("ell12.")}
    units = {p.stem for p in PACKAGE.glob("*.py")} | {p.name for p in PACKAGE.iterdir() if p.is_dir()}
    return (names & units) - {unit(path)}


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_the_layers_below_it(path):
    if unit(path) in FREE:
        return
    assert unit(path) in ALLOWED, f"say in ALLOWED what {unit(path)} may import"
    assert imported_units(path) <= ALLOWED[unit(path)]


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_optional_packages_have_one_importer(path):
    file = str(path.relative_to(PACKAGE).with_suffix(""))
    for name in imports(path):
        owner = ONLY_IMPORTER.get(name.split(".")[0])
        assert owner is None or {unit(path), file} & owner, f"{path.name} imports {name}"


def test_the_rule_finds_a_forbidden_import(tmp_path):
    path = tmp_path / "x.py"
    path.write_text("def f():\n    from ell12.solvers import FISTA\n    import numpy\n")
    assert set(imports(path)) == {"ell12.solvers", "ell12.solvers.FISTA", "numpy"}


def test_no_file_is_over_its_budget():
    assert [p.name for p in files() if len(p.read_text().splitlines()) > 400] == []


def modules_after(code):
    listing = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    )


def test_importing_the_package_loads_nothing_heavy():
    loaded = modules_after("import ell12")
    assert not {name.split(".")[0] for name in loaded} & {
        "numpy",
        "scipy",
        "sklearn",
        "numba",
        "matplotlib",
        "torch",
        "dask",
    }


def test_a_small_fit_loads_no_compiler_and_no_plotting():
    loaded = modules_after(
        "import ell12, numpy as np; ell12.minimize(ell12.SquaredLoss(np.eye(3), [1., 2., 3.]), ell12.L12(1.))"
    )
    assert not loaded & {"numba", "matplotlib", "torch", "jax", "sklearn", "pandas", "dask"}
