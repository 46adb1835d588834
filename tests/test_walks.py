"""How much of the package three plain calls pass through: the figures of this table are lowered, never raised."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ell12

ROOT = str(Path(ell12.__file__).parent)


def fit() -> Any:
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 500))
    y = X[:, :5].sum(axis=1) + 0.1 * random.standard_normal(200)
    return lambda: ell12.L12Regressor().fit(X, y)


def denoise() -> Any:
    image = np.zeros((64, 64))
    image[16:48, 16:48] = 1
    image += 0.1 * np.random.default_rng(0).standard_normal(image.shape)
    return lambda: ell12.denoise_tv(image)


def complete() -> Any:
    random = np.random.default_rng(0)
    table = np.outer(np.arange(1.0, 31), np.arange(1.0, 21)) + 0.1 * random.standard_normal((30, 20))
    table[random.random(table.shape) < 0.3] = np.nan
    return lambda: ell12.complete_matrix(table)


# The call, and the most functions, files and calls of the package in its second run.
MOST = {
    "L12Regressor().fit, 200 x 500": (fit, 303, 31, 2720),
    "denoise_tv, 64 x 64": (denoise, 190, 27, 6530),
    "complete_matrix, 30 x 20": (complete, 201, 21, 22440),
}


@pytest.mark.parametrize("name", MOST)
def test_a_plain_call_passes_through_little(name: str) -> None:
    make, functions, files, calls = MOST[name]
    walked = walk(make())
    found = len(set(walked)), len({file for file, _ in walked}), len(walked)
    assert all(a <= b for a, b in zip(found, (functions, files, calls), strict=True)), (name, found)


def walk(call: Callable[[], Any]) -> list[tuple[str, str]]:
    """The functions of the package that a second call passes through, in order; the first fills the caches."""
    call()
    seen: list[tuple[str, str]] = []

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            seen.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return seen
