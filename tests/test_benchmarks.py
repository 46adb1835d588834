"""The benchmarks: few scripts, and results that say which command made them, at which commit."""

import ast
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
SCRIPTS = sorted(FOLDER.glob("*.py"))
MOST_SCRIPTS = 20


def test_there_are_few_scripts():
    assert len(SCRIPTS) <= MOST_SCRIPTS


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
OLD = {"cross_validation", "prediction", "race_lasso", "tables"}


@pytest.mark.parametrize("path", sorted((FOLDER / "results").glob("*.json")), ids=lambda path: path.stem)
def test_a_result_has_a_script_and_says_at_which_commit_it_was_measured(path):
    result = json.loads(path.read_text(encoding="utf-8"))
    assert (FOLDER / f"{path.stem}.py").exists() or path.stem in OLD
    assert len(result["commit"].rstrip("+")) >= 7
    assert f"commit {result['commit']}" in path.with_suffix(".md").read_text(encoding="utf-8")


def test_the_readme_of_the_benchmarks_names_each_script():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [path.stem for path in SCRIPTS if f"`{path.stem}.py`" not in text] == []
