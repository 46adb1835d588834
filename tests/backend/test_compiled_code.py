"""Compiled loops where their cache cannot be written, cannot be read, or where there is no compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ell12

pytest.importorskip("numba")

PACKAGE = Path(ell12.__file__).parent

PROGRAM = Path(__file__).parent / "programs" / "compiled_calls.py"


def answer(where, *arguments, warn="error", **environment):
    """What the program prints, and says on the other stream, when the package is read from a folder."""
    environment = os.environ | {"PYTHONPATH": str(where), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    command = [sys.executable, "-W", warn, str(PROGRAM), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    return found.stdout.split(), found.stderr


@pytest.fixture(scope="module")
def expected():
    return answer(PACKAGE.parent)[0]


def test_without_a_folder_for_the_cache_or_without_a_compiler_everything_runs_as_before(tmp_path, expected):
    """In a copy of the package and a home in which nobody, not even root, can make a folder for the cache."""
    shutil.copytree(PACKAGE, tmp_path / "ell12", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [tmp_path / "ell12", *(path for path in (tmp_path / "ell12").rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file where a folder should be")
    home = tmp_path / "home"
    home.write_text("a file where a folder should be")
    environment = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"), str(home))
    assert answer(tmp_path, **environment)[0] == expected
    (tmp_path / "numba.py").write_text("raise OSError('the compiler library does not load')")
    plain, said = answer(tmp_path, warn="default", **environment)
    assert said.count("numba cannot compile here") == 1
    assert plain[-1] == "False"
    np.testing.assert_allclose(np.array(plain[:-1], float), np.array(expected[:-1], float), rtol=1e-3)


def test_a_full_disk_and_damaged_files_of_the_cache_cost_only_time_of_which_one_line_tells(tmp_path, expected):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert answer(PACKAGE.parent, "full", **cache)[0] == expected  # nothing can be written
    assert not [path for path in tmp_path.rglob("*.nb?") if path.stat().st_size]
    cold, warm = (answer(PACKAGE.parent, **cache) for _ in range(2))
    assert cold[0] == warm[0] == expected
    assert cold[1].splitlines() == ["compiling, once on this machine: some seconds more"]
    assert warm[1] == ""
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*.nb?")}
    assert {path.suffix for path in whole} == {".nbi", ".nbc"}
    for number, (path, content) in enumerate(whole.items()):
        path.write_bytes(content[: [0, 7, len(content) // 2][number % 3]])
    assert answer(PACKAGE.parent, **cache)[0] == expected
    assert all(path.stat().st_size > 7 for path in whole if path.suffix == ".nbi")  # mended for the next process
