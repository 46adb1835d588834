"""`make bench` finds in each benchmark what it asks for. Peers are not installed here, so the source is read."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def names_of(path):
    """What a module defines, assigns or imports at its top."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def benchmarks():
    for node in ast.parse((FOLDER / "run.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BENCHMARKS":
            return ast.literal_eval(node.value)
    raise AssertionError("run.py names no BENCHMARKS")


@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_has_rows_and_a_baseline(name):
    assert {"rows", "BASELINE"} <= set(names_of(FOLDER / f"{name}.py"))


def test_the_readme_of_the_benchmarks_names_each_of_them():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in benchmarks() if f"[{name}]" not in text] == []
