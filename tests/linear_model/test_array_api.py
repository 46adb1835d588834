"""Arrays other than NumPy's through scikit-learn's array API dispatch."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ON_GPU = [pytest.param(kind, marks=pytest.mark.gpu) for kind in ("torch cuda", "cupy")]
# SciPy reads the variable when it is first imported, so that all of this runs in a process of its own.
PROGRAMS = Path(__file__).parent / "programs"


def run(program, *arguments):
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    command = [sys.executable, str(PROGRAMS / program), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def installed(*names):
    from importlib.util import find_spec

    return [name for name in names if find_spec(name)]


def test_the_checks_of_scikit_learn_on_arrays_of_other_libraries():
    pytest.importorskip("array_api_strict")
    kinds = installed("array_api_strict", "torch")
    done = run("scikit_learn_checks.py").split()
    assert set(done) >= {"numpy", *kinds}


def load(name, device="cpu"):
    """The library, or a skip where it or its device is not there."""
    library = pytest.importorskip(name)
    if device == "cuda" and not library.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    if name == "cupy" and not library.is_available():
        pytest.skip("CuPy finds no device")


def run_on(kind, program):
    """Run the program with the library, and on the device, that a kind such as "torch cpu" names."""
    load(*kind.split())
    run(program, *kind.split())


@pytest.mark.parametrize("kind", ["torch cpu", *ON_GPU])
def test_arrays_stay_what_and_where_they_are_and_fit_the_same(kind):
    run_on(kind, "estimators.py")


@pytest.mark.parametrize("kind", ["torch cpu", *ON_GPU, "jax", "array_api_strict"])
def test_cross_validation_on_arrays_of_other_libraries(kind):
    run_on(kind, "cross_validation.py")


@pytest.mark.parametrize("kind", ["torch cpu", *ON_GPU, "jax"])
def test_the_imputer_gives_arrays_back_as_they_came(kind):
    run_on(kind, "imputer.py")


def test_without_dispatch_tensors_become_numpy_arrays():
    torch = pytest.importorskip("torch")
    from ell12 import L12Regressor

    X = np.random.default_rng(0).standard_normal((20, 3))
    model = L12Regressor(0.1).fit(torch.asarray(X), torch.asarray(X[:, 0]))
    assert isinstance(model.coef_, np.ndarray)
