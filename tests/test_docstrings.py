"""The package and its pages use the standard terms."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src/ell12", "paper/src", "tests", "benchmarks", "examples", "docs")
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
# Written by commands, or the history of decisions.
OTHERS = ("reproduction.md", "results/", "decisions/", "_build/", "generated/", "gallery/")
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not page.relative_to(DOCS).as_posix().startswith(OTHERS)]
SOURCES = [path for path in SOURCES if path != Path(__file__) and not path.is_relative_to(DOCS / "gallery")]
# Words that were used here for what has a standard term, with that term.
DIALECT = {
    "leap": "Newton step on the support",
    "crowd": "many columns",
    "crowded": "rank-deficient, more columns than rows",
    "hopeless": "skip",
    "bend": "curve",
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
    "look": "compute, read, check, search; the gradient of all columns",
    "looks": "computes, reads, checks, searches",
    "looked": "computed, read, checked",
    "looking": "checking, searching",
    "moduli": "magnitudes, absolute values, norms of groups",
    "place": "index, position, point, case",
    "places": "indices, positions, points, cases",
    "beside": "next to",
    "lean": "with a tangent",
    "leans": "with a tangent",
    "mend": "correct",
    "spins": "cycle spinning",
    "follower": "screened path",
    "annex": "package",
}


# Phrases of plain English that hold such a word.
PHRASES = r"\b(in (the )?place\b|takes? (the |its )?place\b|decimal places?)"


def words_of(text):
    """The words of a text, those inside names such as ``is_crowded`` and ``WorkingSet`` too."""
    text = re.sub(r"[\s_]+|(?<=[a-z])(?=[A-Z])", " ", text).lower()
    return set(re.findall(r"[a-z]+", re.sub(PHRASES, "", text)))


def test_the_standard_terms_are_used():
    texts = {path: path.read_text(encoding="utf-8") for path in (*SOURCES, ROOT / "README.md", *PAGES)}
    fence = re.compile(r"^```.*?^```$", flags=re.DOTALL | re.MULTILINE)  # code of pages
    prose = {path: fence.sub("", text) if path.suffix == ".md" else text for path, text in texts.items()}
    words = {path.relative_to(ROOT): words_of(text) & DIALECT.keys() for path, text in prose.items()}
    assert [f"{path}: {word} -> {DIALECT[word]}" for path, found in words.items() for word in found] == []
