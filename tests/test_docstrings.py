"""Docstrings hold what a reader needs: examples that can be pasted, defaults of parameters, standard terms."""

import ast
import builtins
import doctest
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "ell12").rglob("*.py"))
PAPER = sorted((ROOT / "paper" / "src").rglob("*.py"))
# Written by commands, or the history of decisions.
OTHERS = ("reproduction.md", "results/", "decisions/", "_build/", "generated/", "gallery/")
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not page.relative_to(ROOT / "docs").as_posix().startswith(OTHERS)
    ),
]
# Words that were used here for what has a standard term, with that term.
DIALECT = {
    "leap": "Newton step on the support",
    "crowded": "rank-deficient, more columns than rows",
    "hopeless": "skip",
    "bent": "of strong negative curvature",
    "foresee": "announce",
    "foreseen": "announced",
    "lent": "reused buffer",
    "rosy": "optimistic",
    "twin": "reference implementation, compiled version",
    "twins": "reference implementations, compiled versions",
    "stranger": "unseen row or column",
    "strangers": "unseen rows or columns",
    "told": "reported, returned, separated",
    "looks": "computes, reads, gradients of all columns",
    "looked": "computed, checked",
    "mend": "correct",
    "spins": "cycle spinning",
    "follower": "screened path",
    "annex": "package",
}


def documented(path):
    """The docstrings of a file, each with the name of what it describes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return [(getattr(node, "name", path.name), ast.get_docstring(node) or "") for node in nodes]


def bound_names(tree):
    """What a piece of code imports, assigns or defines, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


def unbound_names(docstring):
    """The names that an example uses without having imported or defined them."""
    tree = ast.parse("".join(example.source for example in doctest.DocTestParser().get_examples(docstring)))
    known = {*dir(builtins), *bound_names(tree)}
    return sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - known)


def test_every_example_of_a_docstring_can_be_pasted():
    lacking, seen = {}, 0
    for path in SOURCES:
        for name, docstring in documented(path):
            seen += ">>>" in docstring
            if unbound := unbound_names(docstring):
                lacking[f"{path.name}: {name}"] = unbound
    assert seen > 150
    assert lacking == {}


def words_of(text):
    """The words of a text, those inside names such as ``is_crowded`` and ``WorkingSet`` too."""
    return set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower()))


def words_of_source(path):
    """The words of the comments, strings and names of a file, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING, tokenize.NAME):
            yield token.start[0], words_of(token.string)


def test_the_standard_terms_are_used():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word} -> {DIALECT[word]}"
        for path in (*SOURCES, *PAPER)
        for line, words in words_of_source(path)
        for word in words & DIALECT.keys()
    ]
    for page in PAGES:
        prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        found += [f"{page.name}: {word} -> {DIALECT[word]}" for word in words_of(prose) & DIALECT.keys()]
    assert found == []
