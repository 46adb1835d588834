"""The paper's tables and figures, rebuilt: studies measure trials, rows keep them, one page shows them.

A study is a module of `ell12_paper.studies` with ``NAME``, ``trials(preset, seed)`` (a list of settings) and
``measure(settings)`` (results that JSON can hold; what a clock decided has ``seconds`` in its name).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Name on the command line -> module of `studies`, in the order of the page.
STUDIES = {
    "compressed-sensing": "compressed_sensing",
    "completion": "image_completion",
    "denoising": "denoising",
    "dca-variants": "dca_variants",
    "level-curves": "level_curves",
    "prox": "prox_race",
    "theory": "theory",
}
PRESETS = ("quick", "paper")


def study(name: str) -> Any:
    """The module of a study.

    Examples
    --------
    >>> from ell12_paper import study
    >>> study("level-curves").NAME
    'level-curves'
    """
    return import_module(f"{__name__}.studies.{STUDIES[name]}")
