"""Compiled code: every loop gives what plain NumPy gives, which a process without the compiler computes."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.laws.case import assert_close
from tests.laws.compiled_cases import CASES

pytest.importorskip("numba")
ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    for path in sorted((ROOT / "src").rglob("*.py"))
    if "compiled_loop(" in path.read_text(encoding="utf-8") and path.stem != "compiled_code"
]


PROGRAM = """
import sys, numpy
from tests.laws.compiled_cases import CASES
numpy.savez(sys.argv[1], **{name: compute() for name, (compute, _) in CASES.items()})
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The answers of a process in which numba does not compile."""
    path = tmp_path_factory.mktemp("plain") / "answers.npz"
    command = [sys.executable, "-c", PROGRAM, str(path)]
    subprocess.run(command, check=True, cwd=ROOT, env=os.environ | {"NUMBA_DISABLE_JIT": "1"})
    return np.load(path)


def test_compiled_loops_give_what_plain_code_gives(plain):
    for name, (compute, tol) in CASES.items():
        assert_close(compute(), plain[name], tol)
    for module in MODULES:  # one without a case fails here
        loops = [loop for loop in vars(importlib.import_module(module)).values() if hasattr(loop, "signatures")]
        assert not loops or any(loop.signatures for loop in loops), f"no case of compiled_cases uses {module}"
