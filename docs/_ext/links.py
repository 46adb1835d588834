"""Names in prose lead to their pages: the package's own, those of other packages, and articles by their DOI.

A name that stands as code in a sentence, such as ``minimize`` or ``L12Regressor.fit``, becomes a link where it is
public. The few names of other packages that we use are listed here, and are written to small inventories for
``sphinx.ext.intersphinx``, so that nothing is downloaded.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

import ell12
from pages import MODULES

GENERATED = Path(__file__).resolve().parents[1] / "generated"
DOI = r"doi:(?P<doi>10\.\d{4,}/[^\s,;)]*[^\s,;).])"
# Of each package its address, the folder of its pages, and the names that are mentioned somewhere.
ELSEWHERE = {
    "numpy": ("https://numpy.org/doc/stable/", "reference/generated/", "numpy.save numpy.memmap numpy.unique"),
    "scipy": (
        "https://docs.scipy.org/doc/scipy/",
        "reference/generated/",
        "scipy.sparse.csc_array scipy.sparse.csr_array scipy.sparse.linalg.LinearOperator",
    ),
    "sklearn": (
        "https://scikit-learn.org/stable/",
        "modules/generated/",
        "sklearn.linear_model.Lasso sklearn.linear_model.LassoCV sklearn.linear_model.ElasticNet"
        " sklearn.linear_model.ElasticNetCV sklearn.linear_model.RidgeCV sklearn.linear_model.MultiTaskLasso"
        " sklearn.linear_model.LogisticRegression sklearn.impute.KNNImputer sklearn.impute.IterativeImputer"
        " sklearn.impute.SimpleImputer sklearn.preprocessing.StandardScaler sklearn.preprocessing.OneHotEncoder"
        " sklearn.feature_selection.SelectFromModel sklearn.feature_selection.VarianceThreshold"
        " sklearn.compose.ColumnTransformer sklearn.exceptions.ConvergenceWarning sklearn.config_context"
        " sklearn.pipeline.make_pipeline sklearn.model_selection.GridSearchCV",
    ),
}
INVENTORIES = {
    package: (address, str(GENERATED / f"{package}.inv")) for package, (address, _, _) in ELSEWHERE.items()
}


def setup(app: Any) -> dict[str, Any]:
    """Write the inventories before they are read, and add the transforms."""
    app.connect("config-inited", lambda *_: write_inventories(), priority=100)
    app.add_transform(LinkNames)
    app.add_transform(LinkWords)
    app.connect("missing-reference", resolve_alias)
    return {"version": "1", "parallel_read_safe": True}


def write_inventories() -> None:
    """One file for each package, in Sphinx's format."""
    GENERATED.mkdir(exist_ok=True)
    for package, (_, folder, names) in ELSEWHERE.items():
        kinds = {name: "class" if name.rpartition(".")[2][0].isupper() else "function" for name in names.split()}
        lines = "".join(f"{name} py:{kind} 1 {folder}{name}.html#$ -\n" for name, kind in kinds.items())
        head = f"# Sphinx inventory version 2\n# Project: {package}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        (GENERATED / f"{package}.inv").write_bytes(head.encode() + zlib.compress(lines.encode()))


def known_names() -> dict[str, str]:
    """What a name in prose refers to: the short and the full names of everything that has a page."""
    found = {}
    for _, _, names in ELSEWHERE.values():
        for name in names.split():
            found |= {name: name, name.rpartition(".")[2]: name, name.replace("numpy.", "np."): name}
    for word in ("save", "unique", "memmap"):  # too common to stand for NumPy's without a prefix
        del found[word]
    for module, names in MODULES.items():
        home = f"ell12.{module}"
        found |= {f"{module}.{name}": f"{home}.{name}" for name in names}
        found |= {name: f"{home}.{name}" for name in names if name[0].isupper() or "_" in name}
    found |= {name: f"ell12.{name}" for name in ell12.__all__}
    return found | {target: target for target in found.values()}


NAMES = known_names()
# Words of prose that can mean nothing else: "Lasso" is a method as well, ElasticNet is not.
PLAIN = [
    name for name in NAMES if re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", name) and not NAMES[name].startswith("ell12")
]
WORDS = re.compile(rf"{DOI}|\b(?:{'|'.join(PLAIN)})\b")


def target_of(text: str) -> str | None:
    """The full name that a piece of code stands for, or None."""
    name = text.removesuffix("()")
    if name in NAMES:
        return NAMES[name]
    owner, _, member = name.rpartition(".")
    is_member = owner in ell12.__all__ and member and not member.startswith("_")
    return f"ell12.{name}" if is_member and hasattr(getattr(ell12, owner), member) else None


def resolve_alias(app: Any, env: Any, node: Any, text: Any) -> Any:
    """A reference such as `ell12.prox.prox_l12` or `Solver` by the name under which the page stands."""
    name = node.get("reftarget", "")
    target = target_of(name) or target_of(name.rpartition(".")[2])
    if node.get("refdomain") != "py" or target in (None, name):
        return None
    return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, text)


class LinkNames(SphinxTransform):
    """Code in a sentence that is a public name becomes a link to its page."""

    default_priority = 700

    def apply(self, **_: Any) -> None:
        """Wrap every such literal, but not in titles, in links, or on the page of the name itself."""
        for node in list(self.document.findall(nodes.literal)):
            target = target_of(node.astext())
            if target is None or self.env.docname.endswith(f"/{target}") or _is_linked(node):
                continue
            node.replace_self(_reference(target, node.deepcopy(), self.env.docname))


class LinkWords(SphinxTransform):
    """``doi:10.1000/x`` becomes a link to the article, a word such as ElasticNet one to its page."""

    default_priority = 710

    def apply(self, **_: Any) -> None:
        """Split the texts that hold such a word."""
        for node in list(self.document.findall(nodes.Text)):
            if WORDS.search(node) and not _is_linked(node) and not _is_code(node):
                node.parent.replace(node, self.linked(str(node)))

    def linked(self, text: str) -> list[nodes.Node]:
        """The same text in parts, some of which are links."""
        parts, place = [], 0
        for match in WORDS.finditer(text):
            parts += [nodes.Text(text[place : match.start()]), self.link(match)]
            place = match.end()
        return [*parts, nodes.Text(text[place:])]

    def link(self, match: re.Match[str]) -> nodes.Node:
        """A link to an article, or to the page of another package."""
        if match["doi"]:
            return nodes.reference("", match[0], refuri=f"https://doi.org/{match['doi']}")
        return _reference(NAMES[match[0]], nodes.Text(match[0]), self.env.docname)


def _reference(target: str, shown: nodes.Node, page: str) -> pending_xref:
    link = pending_xref("", shown, refdomain="py", reftype="obj", reftarget=target, refexplicit=True)
    link["refdoc"], link["refwarn"] = page, False
    return link


def _is_code(node: nodes.Node) -> bool:
    return isinstance(node.parent, nodes.literal | nodes.literal_block | nodes.math | nodes.math_block)


def _is_linked(node: nodes.Node) -> bool:
    """Whether the node lies in a title, or leads somewhere already."""
    while node is not None:
        if isinstance(node, nodes.title | nodes.reference | pending_xref):
            return True
        node = node.parent
    return False
