"""Formulas: from the text of docstrings to TeX, and from TeX to MathML."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

UNKNOWN = re.compile(r"<m\w+[^>]*>(\\[^<]*)<")  # what the converter does not know it passes on as text
GREEK = {"alpha", "beta", "gamma", "delta", "eta", "theta", "mu", "rho", "sigma", "Psi"}
NAMED = {"log", "exp", "min", "max", "cos", "sqrt", "sign", "argmin", "prox", "soft", "diag", "trace", "log2"}
SIGNS = {"<=": r"\le ", ">=": r"\ge ", "<-": r"\leftarrow ", "->": r"\to ", "||": r"\|", "*": r"\cdot "}
# A formula has a norm, a sum, an index or a power; and nothing of a program.
MARKS = re.compile(
    r"\|\||\bsum\b|\bsum_|(?<!\w)[A-Za-z]_(?:[a-z0-9]{1,3}\b|\{)|\^|\|[\w ()]+\||1/2"
    r"|<=|>=|<-|->|\blog [A-Zn]\b|\b[a-zA-Z]'[a-zA-Z(]"
)
PROGRAM = re.compile(r"""["`\[\]#]|==|\*[\w*]|\w\.\w*[a-zA-Z]|[a-z]{3,}_[a-z]{3,}\(|\w=\w|\.\.\.""")
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<half>\b(?:\d|[a-zA-Z]\w*)/(?:\w\b|\(2n\)))|(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)"
    r"|(?P<inner><(?=[^\s=-])(?P<of>[^<>]*)>)|(?P<sign><=|>=|<-|->|\|\||\*)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*(?:_[a-z][A-Za-z0-9_]+)?)|(?P<index>_(?:\{[^}]*\}|\*|[A-Za-z]+|\d))"
    r"|(?P<power>\^(?:\([^)]*\)|-?\w+|\+))|(?P<plus>(?<=\w)\+(?!\w))|(?P<prime>(?<=mu)')|(?P<transposed>')"
    r"|(?P<other>[-+=/(){}|,:;<>.])"
)


def to_mathml(tex: str, display: str = "inline") -> str:
    r"""The formula as MathML; a command that has no translation, such as ``\foo``, is an error."""
    found = convert(tex.replace(r"\arg\min", r"\operatorname{argmin}"), display=display)
    if unknown := UNKNOWN.findall(found):
        raise ValueError(f"no MathML for {', '.join(unknown)} in the formula {tex.strip()!r}")
    if display == "block":  # what runs under "min" belongs below it, as the converter does for sums
        found = re.sub(r"<msub>(<mo>(?:min|max|argmin)</mo>.*?)</msub>", _below, found)
    return found


def _below(match: re.Match[str]) -> str:
    """The same with the index below; left alone where the index has an index of its own."""
    return match[0] if "<msub>" in match[1] else f"<munder>{match[1]}</munder>"


def to_tex(text: str) -> str | None:
    """The formula in TeX, or None where the text is not one."""
    if not MARKS.search(text) or PROGRAM.search(text):
        return None
    place, parts = 0, []
    for match in TOKEN.finditer(text):
        if match.start() != place:
            return None
        parts.append(_translated(match))
        place = match.end()
    return _spaced(parts) if place == len(text) else None


def _translated(match: re.Match[str]) -> tuple[str, str]:
    """The kind of a token and its TeX."""
    kind, text = match.lastgroup or "", match[0]
    if kind == "of" or match["inner"]:
        return "inner", rf"\langle {_part(match['of'])}\rangle "
    if kind == "half":
        above, _, below = text.partition("/")
        return kind, rf"\tfrac{{{_name(above)}}}{{{below.strip('()')}}}"
    if kind == "name":
        return kind, _name(text)
    if kind in ("index", "power"):
        return kind, f"{text[0]}{{{_part(text[1:].strip('{}()'))}}}"
    if kind == "number" and "e" in text:
        mantissa, _, exponent = text.partition("e")
        return kind, ("" if mantissa == "1" else rf"{mantissa}\cdot ") + f"10^{{{exponent}}}"
    fixed = {"transposed": r"^{\top}", "prime": r"^{\prime}", "plus": "^{+}", "sign": SIGNS.get(text, "")}
    return kind, fixed.get(kind, text)


def _part(text: str) -> str:
    """The TeX of an index, a power or an inner product."""
    if text in ("*", "+") or (text.isalpha() and len(text) < 4 and text not in NAMED | GREEK):
        return text
    parts = [_translated(match) for match in TOKEN.finditer(text)]
    return _spaced(parts)


def _name(text: str) -> str:
    if text in GREEK or text in {"log", "exp", "min", "max", "cos"}:
        return f"\\{text} "
    if text == "sum":
        return r"\sum "
    stem, _, index = text.partition("_")
    if len(text) == 1 or text.isdigit():
        return text
    if text in NAMED:
        return rf"\operatorname{{{text}}}"
    if index and len(index) < 4 and (stem == "sum" or len(stem) == 1 or stem in GREEK):  # such as x_ij
        return f"{_name(stem)}_{{{index}}}"
    return rf"\text{{{text}}}"


def _spaced(parts: list[tuple[str, str]]) -> str:
    """One string, with a little room between factors that are words."""
    out = ""
    for place, (kind, tex) in enumerate(parts):
        if kind != "space":
            out += tex
            continue
        if len(tex) > 1:
            out += r"\quad "
            continue
        beside = [tex for kind, tex in parts[max(place - 1, 0) : place + 2] if kind not in ("space", "other")]
        out += r"\," if len(beside) == 2 and r"\text" in "".join(beside) else " "
    return out
