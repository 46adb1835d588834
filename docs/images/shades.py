"""Every figure in two shades: as it was drawn, and for pages on a dark ground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.collections import Collection
from matplotlib.colors import to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

DARK = "_dark"
# The two images of one figure, of which Furo shows one.
PAIR = """
.. image:: /{path}
   :alt: {alt}
   :width: {width}px
   :loading: lazy
   :class: sphx-glr-single-img only-light

.. image:: /{dark}
   :alt: {alt}
   :width: {width}px
   :loading: lazy
   :class: sphx-glr-single-img only-dark
"""


def save(figure: Any, path: Path, **options: Any) -> None:
    """Write the figure, and beside it ``NAME_dark`` for a dark ground. The figure is dark afterwards."""
    with matplotlib.rc_context({"svg.hashsalt": "ell12"}):
        figure.savefig(path, **options)
        darken(figure)
        dark = path.with_name(f"{path.stem}{DARK}{path.suffix}")
        figure.savefig(dark, facecolor="none", **options)


def darken(figure: Any) -> None:
    """Turn the colours of a figure for a dark ground: dark greys become light, colours a little lighter."""
    figure.patch.set_facecolor("none")
    for axes in figure.axes:
        axes.set_facecolor("none")
    for artist in figure.findobj(lambda artist: artist is not figure.patch):
        _darken(artist)


def scrape(_: tuple[Any, ...], block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The figures of a block of a script of the gallery, as sphinx-gallery asks for them."""
    found = []
    for number in plt.get_fignums():
        figure, path = plt.figure(number), Path(next(block_vars["image_path_iterator"]))
        alt = _alt(figure) or block_vars["example_globals"].get("__doc__", "").strip().partition("\n")[0]
        width = int(96 * figure.get_size_inches()[0])
        save(figure, path, dpi=150)
        here = path.relative_to(gallery_conf["src_dir"])
        dark = here.with_stem(f"{path.stem}{DARK}")
        found.append(PAIR.format(path=here.as_posix(), dark=dark.as_posix(), alt=alt, width=width))
    plt.close("all")
    return "".join(found)


def _alt(figure: Any) -> str:
    """The titles of the panels, in words."""
    return ", ".join(dict.fromkeys(filter(None, (axes.get_title() for axes in figure.axes)))).replace("\n", " ")


def _darken(artist: Any) -> None:
    if isinstance(artist, Text):
        artist.set_color(_turned(artist.get_color(), text=True))
    elif isinstance(artist, Line2D):
        colours = (artist.get_color(), artist.get_markeredgecolor(), artist.get_markerfacecolor())
        line, edge, face = map(_turned, colours)
        artist.set(color=line, markeredgecolor=edge, markerfacecolor=face)
    elif isinstance(artist, Patch) or (isinstance(artist, Collection) and artist.get_array() is None):
        face, edge = _turned(artist.get_facecolor()), _turned(artist.get_edgecolor())
        artist.set_facecolor(face)
        artist.set_edgecolor(edge)


def _turned(colours: Any, text: bool = False) -> Any:
    """The same colours for a dark ground: greys from the other end, others a little lighter."""
    if isinstance(colours, str) and colours == "none":
        return colours
    turned = to_rgba_array(colours).copy()
    if not turned[:, 3].any():  # invisible, and stays so
        return "none"
    for colour in turned:
        light, spread = colour[:3].mean(), colour[:3].max() - colour[:3].min()
        if spread < 0.12:
            grey = max(0.95 - 0.8 * light, 0.16)
            colour[:3] = max(grey, light) if text else grey
        elif light < 0.5:
            colour[:3] += 0.25 * (1 - colour[:3])
    return turned if len(turned) != 1 else turned[0]
