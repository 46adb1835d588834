"""Formulas as MathML: readable without a script, without fonts of our own and without a network.

Formulas that docstrings write as text, such as ``alpha (||x||_1 - l2_weight ||x||_2)``, are typeset on their pages
too. In a terminal the docstring stays readable; names of parameters stay names; what is not surely a formula is
left alone.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from tex import to_mathml, to_tex

LOGGER = logging.getLogger(__name__)


def setup(app: Any) -> dict[str, Any]:
    """Offer the renderer ``mathml`` to ``html_math_renderer``, and typeset the formulas of docstrings."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.add_transform(TypesetFormulas)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


class TypesetFormulas(SphinxTransform):
    """Literals of docstrings that are formulas become mathematics."""

    default_priority = 690  # before names become links

    def apply(self, **_: Any) -> None:
        """Within a line, and in blocks of their own."""
        if not self.env.docname.startswith("generated/api"):
            return
        for node in list(self.document.findall(nodes.literal)):
            if tex := to_tex(node.astext()):
                node.replace_self(nodes.math(tex, tex))
        for node in list(self.document.findall(nodes.literal_block)):
            lines = [to_tex(line) for line in node.astext().splitlines()]
            if "language" not in node and all(lines):
                node.replace_self([nodes.math_block(tex, tex, nowrap=False, number=None) for tex in lines])


def visit_math(translator: Any, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(_checked(node, "inline"))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    translator.body.append(f'<div class="formula">{_checked(node, "block")}</div>')
    raise nodes.SkipNode


def _checked(node: Any, display: str) -> str:
    try:
        return to_mathml(node.astext(), display)
    except ValueError as problem:
        LOGGER.warning(str(problem), location=node)
        return node.astext()
