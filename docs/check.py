"""Check the built pages for what a build does not notice: `python docs/check.py docs/_build/html`.

Markup that was meant for Sphinx, and links to other pages of ours that are not there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

CODE = re.compile(r"<(pre|code|script|style)\b.*?</\1>", re.DOTALL)
MARKUP = re.compile(r":(?:py|doc|ref|math|class|func|obj)(?::\w+)?:`|\{(?:doc|ref|py:\w+)\}`|(?<!`)``(?!`)")
LINK = re.compile(r'href="(?!\w+:|#|//)([^"#?]+)')


def main(folder: str) -> int:
    """Print what is wrong with which page; 1 if anything is."""
    root = Path(folder)
    pages = [page for page in sorted(root.rglob("*.html")) if "_modules" not in page.parts]
    wrong = [f"{page.relative_to(root)}: {problem}" for page in pages for problem in problems(page)]
    print(*wrong, f"{len(pages)} pages checked, {len(wrong)} problems", sep="\n")
    return int(bool(wrong) or not pages)


def problems(page: Path) -> Iterator[str]:
    """What a reader would stumble over."""
    html = page.read_text(encoding="utf-8")
    text = re.sub(r"<[^>]*>", "", CODE.sub("", html))
    yield from (f"raw markup {found.group()!r}" for found in MARKUP.finditer(text))
    for link in dict.fromkeys(LINK.findall(html)):
        if not (page.parent / link).exists():
            yield f"a link to {link}, which does not exist"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
