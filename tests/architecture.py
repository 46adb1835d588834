"""The plan of the package as one table, and what the source says about it: ``python -m tests.architecture``.

`test_layers.py` holds the package to this table. With ``--write`` it brings up to date the drawing in
docs/architecture.md and the table of capabilities in docs/extend/index.md.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import re
import sys
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ell12"

# What each folder and each module of the top level may import, the lowest first.
ROOMS: dict[str, str] = {
    "backend": "",
    "protocols": "backend",
    "checks": "backend",
    "nested_parameters": "",
    "plots": "backend checks",
    "operators": "protocols backend checks",
    "prox": "protocols backend checks",
    "penalties": "protocols backend checks operators prox",
    "losses": "protocols backend checks operators",
    "solvers": "protocols backend checks operators",
    "minimization": "protocols backend checks plots solvers",
    "path": "protocols backend checks plots operators prox losses penalties solvers minimization",
    "recovery": "protocols backend checks operators losses penalties solvers minimization",
    "certificate": "protocols backend checks operators losses penalties solvers minimization",
    "datasets": "",
    "picture_files": "",
    "completion": "protocols nested_parameters backend checks operators penalties solvers minimization path "
    "plots datasets",
    "restoration": "protocols backend checks operators prox penalties losses solvers minimization path",
    "distributed": "protocols backend checks operators penalties losses minimization completion restoration",
    "linear_model": "protocols nested_parameters backend checks operators losses penalties solvers "
    "minimization path plots distributed",
    "selection": "protocols backend checks operators losses penalties solvers minimization path plots "
    "linear_model",
}
# The package's front. Nothing below imports it.
FREE = ("__init__", "__main__", "cli")

# The most lines of code of each room: lines that hold more than comments and docstrings.
# A budget is lowered when its room shrinks, and raised only with a sentence in docs/decisions.
BUDGET: dict[str, int] = {
    "__init__": 14,
    "__main__": 3,
    "backend": 503,
    "certificate": 399,
    "checks": 130,
    "cli": 224,
    "completion": 1988,
    "datasets": 349,
    "distributed": 864,
    "linear_model": 1784,
    "losses": 1310,
    "minimization": 551,
    "nested_parameters": 28,
    "operators": 1115,
    "path": 641,
    "penalties": 804,
    "picture_files": 135,
    "plots": 151,
    "protocols": 171,
    "prox": 566,
    "recovery": 155,
    "restoration": 1833,
    "selection": 1210,
    "solvers": 1352,
}
MOST_LINES_OF_PAPER = 3000
MOST_FILES = 131
MOST_ARGUMENTS = 12  # of a public callable
RESULTS = {"Completion", "CriteriaPath"}  # which functions return and nobody constructs
MOST_NAMES = 50  # at the top, submodules apart
# The most named numeric constants at the top of modules, of these rooms and of the package.
NUMERIC_ROOMS = ("solvers", "path", "losses", "operators", "linear_model", "prox")
MOST_CONSTANTS = {"of numeric rooms": 38, "of the package": 84}

# What tests import from behind the front of a package. It may only fall: such tests do not survive a refactoring.
MOST_PRIVATE_IMPORTS = 150

# Libraries that only some rooms or files may import.
ONLY_IMPORTER = {
    "array_api_compat": {"backend"},
    "dask": {"distributed"},
    "distributed": {"distributed"},
    "numba": {"backend/compiled_code", "restoration/stencil_compiled"},
    "matplotlib": {"plots"},
    "sklearn": {"linear_model", "selection", "completion/imputer", "completion/recommender"},
    "PIL": {"picture_files"},
    "tifffile": {"picture_files"},
    "imagecodecs": {"picture_files"},
    "typer": {"cli"},
    "rich": {"cli"},
}


def files(folder: Path = PACKAGE) -> list[Path]:
    """All source files of the package, or of another folder."""
    return sorted(folder.rglob("*.py"))


def module_of(path: Path) -> str:
    """The dotted name below ``ell12`` of a file; a folder's ``__init__`` has the folder's own name."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def room_of(path: Path) -> str:
    """The folder or top-level module that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[str]:
    """The dotted names that a file imports, inside functions too, but for those of type checkers alone."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def graph() -> dict[str, set[str]]:
    """Which module imports which, imports inside functions counted."""
    modules = {module_of(path) for path in files()}
    found = {}
    for path in files():
        names = {name.removeprefix("ell12.") for name in imports(path) if name.startswith("ell12.")}
        targets = {name for name in names if name in modules}
        # ``from ell12.a import b`` names the folder a, whose __init__ counts only if b is no module of it.
        whole = {name for name in targets if any(f"{name}.{rest}" in targets for rest in _rests(name, names))}
        found[module_of(path)] = targets - whole - {module_of(path)}
    return found


def _rests(package: str, names: set[str]) -> Iterator[str]:
    """What of a package is named."""
    return (name.removeprefix(f"{package}.") for name in names if name.startswith(f"{package}."))


def rooms_imported(path: Path) -> set[str]:
    """The other rooms that a file imports."""
    rooms = {p.stem for p in PACKAGE.glob("*.py")} | {p.name for p in PACKAGE.iterdir() if p.is_dir()}
    names = {name.split(".")[1] for name in imports(path) if name.startswith("ell12.")}
    return (names & rooms) - {room_of(path)}


def private_imports() -> list[str]:
    """What tests import of a package's modules rather than of its front, and names with an underscore."""
    modules, found = {module_of(path) for path in files()}, []
    for path in files(ROOT / "tests"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("ell12."):
                front = str(node.module).removeprefix("ell12").lstrip(".")
                names = [alias.name for alias in node.names]
                private = (n for n in names if "." in front or n[:1] == "_" or f"{front}.{n}" in modules)
                found += [f"{path.name}: {node.module}.{name}" for name in private if name != "__version__"]
    return found


def cycles() -> list[list[str]]:
    """A group of modules that import each other, directly or through others, if there is one."""
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        return [error.args[1]]
    return []


def probes() -> list[str]:
    """Where a loss, a penalty or a solver is asked what it has, outside the one check in `protocols`."""
    found = []
    for path in files():
        if module_of(path) == "protocols":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _is_probe(node):
                found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}")
    return found


def _is_probe(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Name) or call.func.id not in ("hasattr", "getattr") or not call.args:
        return False
    words = ast.unparse(call.args[0]).replace(".", "_").split("_")
    return bool({"loss", "losses", "penalty", "penalties", "convex", "solver", "problem"} & set(words))


def lines_of_code(text: str) -> int:
    """How many lines of a source hold a token other than a comment or a docstring."""
    layout = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER"}
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if tokenize.tok_name[token.type] not in layout:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node) is not None:
            found.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(found)


def constants(text: str) -> list[str]:
    """The names in capitals to which the top level of a source gives a number, or a tuple of numbers."""
    found: list[str] = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                found += [name for name, value in _pairs(target, node.value) if _is_number(value)]
    return [name for name in found if re.fullmatch("_?[A-Z][A-Z0-9_]*", name)]


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for inner, part in zip(target.elts, value.elts, strict=True):
            yield from _pairs(inner, part)
    elif isinstance(target, ast.Name):
        yield target.id, value


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return isinstance(node, ast.Tuple | ast.List) and bool(node.elts) and all(map(_is_number, node.elts))


def by_room(count: Callable[[str], int]) -> dict[str, int]:
    """The sum of a number over the files of each room."""
    found: dict[str, int] = {}
    for path in files():
        found[room_of(path)] = found.get(room_of(path), 0) + count(path.read_text())
    return found


def repeated(folders: tuple[Path, ...] = (PACKAGE, ROOT / "paper")) -> dict[str, list[str]]:
    """The file names, and the names of classes at the top of a file, that occur more than once."""
    owners: dict[str, list[str]] = {}
    for path in (path for folder in folders for path in files(folder)):
        classes = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
        for name in classes + [path.name] * (path.stem != "__init__"):
            owners.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return {name: found for name, found in owners.items() if len(found) > 1}


def public_callables() -> dict[str, Callable[..., object]]:
    """The functions and classes that users import, by their full names."""
    import ell12

    found = {}
    for module in (ell12, *(importlib.import_module(f"ell12.{name}") for name in ell12._modules)):
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            made_by_users = inspect.isclass(thing) and not issubclass(thing, Exception) and name not in RESULTS
            if inspect.isroutine(thing) or made_by_users:
                found[f"{module.__name__}.{name}"] = thing
    return found


def report() -> str:
    """Figures of the source, for people."""
    code, numbers = by_room(lines_of_code), by_room(lambda text: len(constants(text)))
    rows = [f"{room:18}{code[room]:6}{BUDGET[room]:8}{numbers[room]:11}" for room in sorted(code)]
    return "\n".join(
        [
            f"cycles of imports, ones counted: {len(cycles())}",
            *("  " + ", ".join(cycle) for cycle in cycles()),
            f"probes of losses, penalties and solvers outside the one check: {len(probes())}",
            *("  " + probe for probe in probes()),
            f"names that stand twice: {repeated() or 'none'}",
            f"private imports of tests: {len(private_imports())}",
            f"{'room':18}{'code':>6}{'budget':>8}{'constants':>11}",
            *rows,
            f"{'total':18}{sum(code.values()):6}{sum(BUDGET.values()):8}{sum(numbers.values()):11}",
            f"{len(files())} files",
        ]
    )


def drawing() -> str:
    """Who may import whom, from the ground up, as text."""
    lines = [f"{room:14}<- {', '.join(below.split())}" if below else room for room, below in ROOMS.items()]
    rows = [textwrap.fill(line, 100, subsequent_indent=17 * " ") for line in lines]
    free = ", ".join(name for name in FREE if not name.startswith("_"))
    return "\n".join(["```", *rows, f"{free} <- everything; nothing imports them", "```"])


# Who else asks for a capability, where it is offered.
ASKED_BY = {"SplitLoss": ["GrowingADMM, for losses that are not squared"]}


def capabilities() -> str:
    """Every protocol of losses and penalties: what it asks for, and which of ours offer and need it."""
    from ell12 import protocols

    rows = ["| protocol | asks for | with a default | offered by | needed by |", "|---|---|---|---|---|"]
    for protocol in (value for value in vars(protocols).values() if _is_capability(value)):
        above = {name for base in protocol.__mro__[1:] for name in _declared(base)}
        own = [name for name in _declared(protocol) if not name.startswith("_") and name not in above]
        offered = [type(thing).__name__ for thing in _things() if protocols.offers(thing, protocol)]
        needed = [type(s).__name__ for s in _solvers() if protocol in (s.needs.loss, s.needs.penalty)]
        needed += ASKED_BY.get(protocol.__name__, [])
        inherited = [base.__name__ for base in protocol.__bases__ if _is_capability(base)]
        required = [name for name in own if name in protocol.__abstractmethods__]
        asked = [f"what `{name}` does" for name in inherited] + [f"`{name}`" for name in required]
        defaults = [f"`{name}`" for name in sorted(set(own) - set(required))]
        cells = [[f"`{protocol.__name__}`"], asked, defaults, [f"`{name}`" for name in offered], needed]
        rows.append(f"| {' | '.join(map(', '.join, cells))} |")
    return "\n".join(rows)


def _declared(protocol: type) -> list[str]:
    """The names of a protocol's own methods and attributes."""
    return [*vars(protocol), *vars(protocol).get("__annotations__", {})]


def _is_capability(value: object) -> bool:
    """Whether a value is a protocol of a loss or of a penalty."""
    return inspect.isclass(value) and value.__name__.endswith(("Loss", "Penalty"))


def _things() -> list[object]:
    """One of each of our losses and penalties."""
    import numpy as np

    import ell12

    A, b = np.eye(2), np.ones(2)
    of_two = "SquaredLoss HuberLoss PoissonLoss KullbackLeiblerLoss AbsoluteLoss CoxLoss QuadraticLoss"
    of_alpha = "L12 RowsL12 LogSum CappedL1 Lp MCP SpectralL12 SpectralLogSum TruncatedNuclear"
    losses = [getattr(ell12.losses, name)(A, b) for name in of_two.split()]
    classes = [ell12.LogisticLoss(A, [1.0, -1.0]), ell12.losses.MultinomialLoss(A, [0, 1])]
    others = [ell12.losses.RowsLoss([(A, b)]), ell12.completion.CompletionLoss(A), ell12.GroupL12([0, 1], 1.0)]
    penalties = [getattr(ell12.penalties, name)(1.0) for name in of_alpha.split()]
    return [*losses, *classes, *others, *penalties, ell12.penalties.NoPenalty()]


def _solvers() -> list[object]:
    """One of each of our solvers of vectors."""
    from ell12 import solvers

    return [getattr(solvers, name)() for name in solvers.__all__]


PAGES = {"docs/architecture.md": ("rooms", drawing), "docs/extend/index.md": ("capabilities", capabilities)}


def page_with(text: str, mark: str, content: str) -> str:
    """A page whose part between two marks is this content."""
    pattern = rf"(<!-- {mark} -->\n).*?(\n<!-- end -->)"
    return re.sub(pattern, lambda found: found[1] + content + found[2], text, flags=re.DOTALL)


def write_pages() -> None:
    """Bring the made parts of the pages up to date."""
    for name, (mark, make) in PAGES.items():
        path = ROOT / name
        path.write_text(page_with(path.read_text(), mark, make()))


if __name__ == "__main__":
    if "--write" in sys.argv:
        write_pages()
    print(report())
