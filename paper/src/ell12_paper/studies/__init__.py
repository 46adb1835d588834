"""What is measured: one module for each study, their sizes in ``sizes.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import SimpleNamespace


def size_of(study: str, preset: str) -> SimpleNamespace:
    """How large a study is."""
    sizes = tomllib.loads(Path(__file__).with_name("sizes.toml").read_text(encoding="utf-8"))
    return SimpleNamespace(**sizes[study][preset])
