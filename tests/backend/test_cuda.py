"""The source of kernels, and where there are none; what they compute is tested beside their modules."""

from pathlib import Path

import numpy as np
import pytest

import ell12
from ell12.backend import compiled_code as cuda

MODULES = sorted(path.with_suffix(".py") for path in Path(ell12.__file__).parent.rglob("*.cu"))
WITH_KERNELS = [path for path in MODULES if path.name != "cuda.py"]


@pytest.mark.parametrize("module", WITH_KERNELS, ids=lambda path: path.stem)
def test_a_source_is_its_macros_then_what_all_share_then_its_own(module):
    text = cuda.source(str(module), {"REAL": "float", "THREADS": 128, "CASE": 3})
    assert text.splitlines()[:3] == ["#define REAL float", "#define THREADS 128", "#define CASE 3"]
    shared, own = (Path(file).with_suffix(".cu").read_text() for file in (cuda.__file__, module))
    assert text.split("\n", 3)[3] == shared + own
    assert "over_block" in shared


@pytest.mark.parametrize("module", WITH_KERNELS, ids=lambda path: path.stem)
def test_every_source_stands_beside_a_module_that_names_its_kernels(module):
    names = [
        line.split("(")[0].split()[-1]
        for line in module.with_suffix(".cu").read_text().splitlines()
        if "__global__" in line
    ]
    assert names
    assert all(f'"{name}"' in module.read_text() for name in names)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_in_main_memory_have_no_kernel(dtype):
    assert cuda.kernel(np.zeros(3, dtype=dtype), str(WITH_KERNELS[0]), "any") is None
    torch = pytest.importorskip("torch")
    assert cuda.kernel(torch.zeros(3), str(WITH_KERNELS[0]), "any") is None


def test_where_nothing_compiles_there_is_no_kernel_and_no_error():
    module = str(WITH_KERNELS[0])
    assert cuda._compiled(module, "no_such_kernel", False, 0, REAL="float", THREADS=256) is None


def test_a_view_becomes_one_piece(gpu):
    x = gpu.make_array(np.arange(12.0).reshape(3, 4)).T
    np.testing.assert_array_equal(gpu.to_numpy(cuda.one_piece(x)), np.arange(12.0).reshape(3, 4).T)
