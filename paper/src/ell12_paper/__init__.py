"""The paper's tables and figures: each experiment measures trials, `run` keeps them as rows, `report` shows them.

An experiment is a folder. Its ``study`` has ``NAME``, ``TITLE``, ``trials(preset, seed)`` (a list of settings) and
``measure(settings)`` (a dictionary of results that JSON can hold; what a clock decided has ``seconds`` in its
name). Its ``report`` has ``verdicts(rows)`` and ``section(rows)``; where they are long, ``claims`` and ``words``
hold the verdicts and the sentences.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Name on the command line -> folder of this package, in the order of the page.
EXPERIMENTS = {
    "compressed-sensing": "compressed_sensing",
    "completion": "completion",
    "denoising": "denoising",
    "dca-variants": "dca_variants",
    "level-curves": "level_curves",
    "prox": "prox",
}
PRESET_NAMES = ("quick", "paper")


def experiment(name: str) -> Any:
    """The study of an experiment.

    Examples
    --------
    >>> from ell12_paper import experiment
    >>> experiment("level-curves").NAME
    'level-curves'
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; there are: {', '.join(EXPERIMENTS)}")
    return import_module(f"{__name__}.{EXPERIMENTS[name]}.study")
