"""Arrays other than NumPy's through scikit-learn's array API dispatch."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

ON_GPU = [pytest.param(kind, marks=pytest.mark.gpu) for kind in ("torch cuda", "cupy")]
# SciPy reads the variable when it is first imported, so that all of this runs in a process of its own.
PROGRAMS = Path(__file__).parent / "programs"


def run(program, kind=""):
    """The output of a program, with the library and on the device that a kind such as "torch cpu" names."""
    library = pytest.importorskip(kind.split()[0]) if kind else None
    if (kind == "torch cuda" and not library.cuda.is_available()) or (
        kind == "cupy" and not library.is_available()
    ):
        pytest.skip(f"{kind}: no device is found")
    command = [sys.executable, str(PROGRAMS / program), *kind.split()]
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_checks_of_scikit_learn_on_arrays_of_other_libraries():
    pytest.importorskip("array_api_strict")
    kinds = [name for name in ("array_api_strict", "torch") if find_spec(name)]
    assert set(run("scikit_learn_checks.py").split()) >= {"numpy", *kinds}


@pytest.mark.parametrize("kind", ["torch cpu", *ON_GPU])
def test_arrays_stay_what_and_where_they_are_and_fit_the_same(kind):
    run("estimators.py", kind)


@pytest.mark.parametrize("kind", ["torch cpu", *ON_GPU, "jax", "array_api_strict"])
def test_cross_validation_on_arrays_of_other_libraries(kind):
    run("cross_validation.py", kind)


@pytest.mark.parametrize("kind", ["torch cpu", *ON_GPU, "jax"])
def test_the_imputer_gives_arrays_back_as_they_came(kind):
    run("imputer.py", kind)


def test_without_dispatch_tensors_become_numpy_arrays():
    torch = pytest.importorskip("torch")
    from ell12 import L12Regressor

    X = np.random.default_rng(0).standard_normal((20, 3))
    model = L12Regressor(0.1).fit(torch.asarray(X), torch.asarray(X[:, 0]))
    assert isinstance(model.coef_, np.ndarray)
