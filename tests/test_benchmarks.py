"""The benchmarks: results that say which command made them, at which commit, and the README says the same."""

import ast
import json
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
SCRIPTS = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_script_imports_from_here_exists(path, monkeypatch):
    tree, own = ast.parse(path.read_text(encoding="utf-8")), {script.stem for script in SCRIPTS}
    assert ast.get_docstring(tree)
    monkeypatch.syspath_prepend(str(FOLDER))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in {"ell12", *own}:
            module = __import__(node.module, fromlist=[alias.name for alias in node.names])
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
    for name in own & sys.modules.keys():
        monkeypatch.delitem(sys.modules, name)


# Their scripts have successors; they leave with the first results of these.
OLD = {"prediction", "tables"}


@pytest.mark.parametrize("path", sorted((FOLDER / "results").glob("*.json")), ids=lambda path: path.stem)
def test_a_result_has_a_script_and_says_at_which_commit_it_was_measured(path):
    result = json.loads(path.read_text(encoding="utf-8"))
    assert (FOLDER / f"{path.stem}.py").exists() or path.stem in OLD
    assert len(result["commit"].rstrip("+")) >= 7
    assert f"commit {result['commit']}" in path.with_suffix(".md").read_text(encoding="utf-8")


def test_the_table_of_the_readme_says_what_the_results_say():
    text = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    table = runpy.run_path(str(FOLDER / "summary.py"))["with_table"]
    assert table(text) == text, "run `python benchmarks/summary.py`"
