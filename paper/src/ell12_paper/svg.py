"""Pictures inside pages: SVG whose colours are those of the page, light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from html import escape
from typing import Any


def page_svg(canvas: Any, name: str, title: str, description: str, colours: Mapping[str, str]) -> str:
    """A matplotlib figure as an element of a page; ``colours`` says what the page calls some of its colours.

    ``name`` must be unique on the page: it prefixes the ids inside the SVG.
    """
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        canvas.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return _embed(text.getvalue(), name, title, description, colours)


def _embed(svg: str, name: str, title: str, description: str, colours: Mapping[str, str]) -> str:
    """Matplotlib's file as an element of the page: own ids, the page's colours and font, short numbers."""
    svg = svg[svg.index("<svg") :]
    view_box = re.search(r'viewBox="[^"]*"', svg)
    body = svg[svg.index(">") + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = body.replace('xlink:href="#', f'href="#{name}-')
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    body = re.sub(r'\bd="[^"]*"', lambda path: _shorten(path[0]), body)
    for colour, variable in colours.items():
        body = body.replace(colour, variable)
    head = f'<svg {view_box[0] if view_box else ""} role="img" aria-labelledby="{name}-title {name}-desc">'
    words = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
    return re.sub(r"\s*\n\s*", "\n", head + words + body).strip()


def _shorten(path: str) -> str:
    return re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), path)
