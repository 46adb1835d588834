"""Compiled code: every loop gives what plain NumPy gives, which a process without the compiler computes."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from tests.laws.case import assert_close

import ell12
from ell12.backend import as_numpy

pytest.importorskip("numba")
ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    for path in sorted((ROOT / "src").rglob("*.py"))
    if "compiled_loop(" in path.read_text(encoding="utf-8") and path.stem != "compiled_code"
]
PROGRAM = """
import sys, numpy
from tests.laws.test_compiled import CASES
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
        assert not loops or any(loop.signatures for loop in loops), f"no case uses {module}"


def rows(width):
    """The prox of many short problems."""
    z = np.random.default_rng(0).standard_normal((2**17 // width + 1, width))
    return ell12.prox_l12(z, 0.7, l2_weight=0.8, axis=1)


def correlated(sparse):
    """A design with so many columns that the Gram matrix of those in use is large."""
    random = np.random.default_rng(1)
    A = random.standard_normal((400, 600)) + random.standard_normal((400, 1))
    A = np.where(random.random(A.shape) < 0.5, A, 0.0) if sparse else A
    b = A[:, :300] @ random.standard_normal(300)
    return (scipy.sparse.csr_array(A) if sparse else A), b


def fit(sparse):
    A, b = correlated(sparse)
    return ell12.L12Regressor(0.05, penalty=ell12.L12(l2_weight=0.5), tol=1e-8).fit(A, b).coef_


def completion(solver):
    random = np.random.default_rng(2)
    X = random.standard_normal((1500, 4)) @ random.standard_normal((4, 60))
    X[random.random(X.shape) < 0.5] = np.nan
    options = {"penalty": ell12.SpectralL12(l2_weight=0.5), "center": None, "scale": None, "tol": 1e-7}
    return ell12.complete_matrix(X, 20.0, solver=solver, **options).to_array()


def image(*shape, **shape_of_penalty):
    clean = np.zeros(shape)
    clean[tuple(slice(n // 4, 3 * n // 4) for n in shape[:2])] = 1.0
    noisy = clean + 0.1 * np.random.default_rng(3).standard_normal(shape)
    penalty = ell12.TotalVariationL12(l2_weight=0.0, **shape_of_penalty)
    axis = -1 if shape[-1] == 3 else None
    return as_numpy(ell12.denoise_tv(noisy, 0.1, penalty=penalty, tol=1e-3, channel_axis=axis))


def certificate():
    random = np.random.default_rng(4)
    A = random.standard_normal((20, 8)) + 2 * random.standard_normal((20, 1))
    found = ell12.certify(ell12.SquaredLoss(A, A[:, 0] + A[:, 1]), ell12.L12(2.0))
    return np.append(found.x, found.lower_bound)


CASES = {
    "prox of pairs": (lambda: rows(2), 1e-12),
    "prox of short rows": (lambda: rows(5), 1e-12),
    "dense fit": (lambda: fit(False), 1e-6),
    "sparse fit": (lambda: fit(True), 1e-6),
    "completion by blocks": (lambda: completion(ell12.completion.BlockAPG()), 1e-5),
    "completion by factors": (lambda: completion(ell12.completion.AlternatingLeastSquares(8)), 1e-5),
    "image": (lambda: image(40, 40), 1e-3),
    "image, isotropic": (lambda: image(40, 40, isotropic=True), 1e-3),
    "colours": (lambda: image(24, 24, 3), 1e-3),
    "volume": (lambda: image(16, 16, 12), 1e-3),
    "certificate": (certificate, 1e-6),
}
