r"""Formulas of the pages and of docstrings are typeset; none leaks its TeX, as ``\arg`` once did."""

import ast
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("latex2mathml")
ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs" / "_ext"))
from check import problems  # noqa: E402
from tex import to_mathml, to_tex  # noqa: E402

PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not {"_build", "generated"} & set(page.parts)]


def formulas_of(page):
    """What stands between dollars, but not within code."""
    text = re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [block or line for block, line in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", text, flags=re.DOTALL)]


def literals_of_docstrings():
    """What stands between two backquotes in a docstring."""
    for path in sorted((ROOT / "src" / "ell12").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield from re.findall(r"``([^`]+)``", ast.get_docstring(node) or "")


def test_every_formula_of_the_pages_has_its_mathml():
    found = [formula for page in PAGES for formula in formulas_of(page)]
    assert len(found) > 80
    for formula in found:
        text = re.sub(r"<[^>]*>", "", to_mathml(formula))
        assert "\\" not in text
        assert "$" not in text


def test_every_formula_of_a_docstring_has_its_mathml():
    typeset = [tex for literal in literals_of_docstrings() if (tex := to_tex(" ".join(literal.split())))]
    assert len(typeset) > 200
    for tex in typeset:
        assert "\\" not in re.sub(r"<[^>]*>", "", to_mathml(tex))


def test_a_command_without_mathml_is_an_error():
    with pytest.raises(ValueError, match="unheard"):
        to_mathml(r"x + \unheard{y}")


def test_an_argmin_is_typeset_with_its_variable_below():
    assert "<munder><mo>argmin</mo><mi>x</mi></munder>" in to_mathml(r"\arg\min_x f(x)", "block")


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("alpha (||x||_1 - l2_weight ||x||_2)", r"\alpha  (\|x\|_{1} - \text{l2_weight}\,\|x\|_{2})"),
        ("1/2 ||A x - b||^2", r"\tfrac{1}{2} \|A x - b\|^{2}"),
        ("sum_i w_i |x_i|", r"\sum _{i} w_{i} |x_{i}|"),
        ("x_i'c + c_0", r"x_{i}^{\top}c + c_{0}"),
        ("||X||_*", r"\|X\|_{*}"),
        ("(H + P)^-1", r"(H + P)^{-1}"),
        ("<p_u, q_i>", r"\langle p_{u}, q_{i}\rangle "),
    ],
)
def test_text_becomes_tex(text, tex):
    assert to_tex(text) == tex


@pytest.mark.parametrize(
    "code", ["l2_weight=0", "alpha", "n_alphas", "np.unique(groups)", 'loss="huber"', "fit-{}.npz", "x[i] - x[j]"]
)
def test_code_stays_code(code):
    assert to_tex(code) is None


def test_the_check_of_built_pages_finds_raw_tex_and_dead_links(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<p>prox = <math><mi>\\arg</mi></math></p><pre>\\n</pre><a href='gone.html'></a>")
    assert list(problems(page)) == ["raw TeX '\\\\arg'"]
    page.write_text('<p>fine</p><code>\\alpha</code><a href="gone.html">x</a><a href="page.html">y</a>')
    assert list(problems(page)) == ["a link to gone.html, which is not there"]
