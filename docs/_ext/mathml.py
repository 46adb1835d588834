"""Formulas as MathML: readable without a script, without fonts of our own and without a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def setup(app: Any) -> dict[str, Any]:
    """Offer the renderer ``mathml`` to ``html_math_renderer``."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def visit_math(translator: Any, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode
