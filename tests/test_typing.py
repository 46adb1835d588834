"""What a user's type checker learns from the wheel."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.distribution import environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there that few users have")
ROOT = Path(__file__).parent.parent

ANY, DOUBLE, SINGLE = r"ndarray\[.*Any", r"ndarray\[.*(float64|_64Bit)", r"ndarray\[.*(float32|_32Bit)"
REVEALED = {
    "model.coef_": ANY,
    "model.predict(A)": ANY,
    "ell12.L12ClassifierCV().fit(A, b).predict_proba(A)": ANY,
    "ell12.prox_l12(b, 0.5)": DOUBLE,
    "ell12.prox_l12(singles, 0.5)": SINGLE,
    "ell12.prox_l12([3.0, 4.0], 0.5)": DOUBLE,
    "ell12.prox_l12(np.ones(3, dtype=np.int64), 0.5)": DOUBLE,
    "ell12.minimize(ell12.SquaredLoss(A, b), ell12.L12(0.1)).x": ANY,
    "ell12.minimize(ell12.LogisticLoss(A, [1, -1, 1]), ell12.L12(0.1)).x": ANY,
    "ell12.complete_matrix(A).x": "LowRank",
    "ell12.minimize(ell12.SquaredLoss(A, b), ell12.L12(0.1)).status": "Status",
    "ell12.denoise_tv(A, 0.1)": ANY,
    "ell12.restore_tv(b, A, alpha=0.1, return_result=True)": "Restoration",
    "ell12.recover_sparse(A, b, tol=1e-3)": ANY,
    "ell12.recover_sparse(A, b, return_result=True)": "Recovery",
    "ell12.L12Imputer().fit_transform(A)": ANY,
    "ell12.l12_path(A, b)": "Path",
    "ell12.confidence_intervals(A, b)": "Intervals",
}
SCRIPT = """
import numpy as np
import ell12

A, b = np.ones((3, 2)), np.ones(3)
singles = np.ones(3, dtype=np.float32)
model = ell12.L12Regressor(alpha=0.1).fit(A, b)
"""
SCRIPT += "".join(f"reveal_type({call})\n" for call in REVEALED)
WRONG = {
    'ell12.prox_l12("word", "word", axes=0)': "call-overload",
    "ell12.prox_l12(3, 0.5)": "call-overload",
    "ell12.L12Regressor(alhpa=1.0)": "call-arg",
    "ell12.minimize(3, ell12.L12(0.1))": "arg-type",
    "ell12.L12(0.1, l2_weight=[])": "arg-type",
    "ell12.prox_l13": "attr-defined",
    "ell12.denoise_tv(A, alhpa=1.0)": "call-overload",
    "ell12.minimize(ell12.SquaredLoss([[1.0]], [1.0]), ell12.L12(0.1)).solution": "attr-defined",
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What mypy says of the script and of wrong lines, in an environment with the built wheel and NumPy."""
    folder = tmp_path_factory.mktemp("user")
    site, python = environment(folder / "env")
    (site / "numpy").symlink_to(Path(np.__file__).parent, target_is_directory=True)
    with zipfile.ZipFile(folder / built_wheel(folder)) as archive:
        archive.extractall(site)
    script = folder / "script.py"
    script.write_text(SCRIPT + "\n".join(WRONG) + "\n")
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--python-executable={python}", script]
    return subprocess.run(command, check=False, cwd=folder, env=clean, capture_output=True, text=True).stdout


def built_wheel(folder):
    build = "import sys, hatchling.build; print(hatchling.build.build_wheel(sys.argv[1]))"
    command = [sys.executable, "-c", build, folder]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()[-1]


def test_names_have_real_types_in_a_users_script(checked):
    revealed = re.findall(r'Revealed type is "(.*)"', checked)
    assert len(revealed) == len(REVEALED), checked
    for found, expected in zip(revealed, REVEALED.values(), strict=True):
        assert re.search(expected, found), f"{found} is not {expected}"


def test_wrong_calls_are_refused_and_right_ones_are_not(checked):
    errors = re.findall(r"script\.py:(\d+): error: .*\[(.+)\]", checked)
    first = SCRIPT.count("\n") + 1
    expected = [(str(first + line), code) for line, code in enumerate(WRONG.values())]
    assert sorted(set(errors), key=lambda error: int(error[0])) == expected, checked
