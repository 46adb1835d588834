"""Kernels for NVIDIA GPUs: CUDA C, compiled when first used, for PyTorch and CuPy from the same source.

A kernel sees ``REAL``, the type of its arrays, and ``THREADS``, their number in a block. Its arguments are arrays,
then numbers, which are doubles.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ell12.backend.arrays import is_cupy, is_torch
from ell12.protocols import Array

THREADS = 256
_REALS = {"float32": "float", "float64": "double"}

Launch = Callable[[tuple[int, int], Sequence[Array], Sequence[float]], None]


def kernel(x: Array, beside: str, name: str, **macros: int) -> Launch | None:
    """A kernel for arrays like x, called with (blocks, arrays, numbers); None where there can be none.

    Its source is the ``.cu`` file of the same name as the module ``beside``. Arrays must be `one_piece`, of the
    precision of x or as the kernel says.
    """
    if is_cupy(x):
        compiled, where = _compile_cupy, x.device.id
    elif _is_plain_cuda_tensor(x):
        compiled, where = _compile_torch, x.device
    else:
        return None
    real = _REALS.get(str(x.dtype).rpartition(".")[2])
    return None if real is None else compiled(beside, name, where, REAL=real, THREADS=THREADS, **macros)


def one_piece(x: Array) -> Array:
    """An array that is on a GPU, in one piece of memory as it reads."""
    if is_torch(x):
        return x.resolve_neg().contiguous()
    import cupy

    return cupy.ascontiguousarray(x)


def _is_plain_cuda_tensor(x: Array) -> bool:
    """Whether x is memory of a GPU and no more: nothing that is differentiated, batched or traced."""
    if not is_torch(x) or not x.is_cuda or x.requires_grad:
        return False
    import torch

    if not hasattr(torch.cuda, "_compile_kernel"):  # an older version
        return False
    return not torch.compiler.is_compiling() and not torch._C._functorch.is_functorch_wrapped_tensor(x)


def source(beside: str, macros: dict[str, Any]) -> str:
    """The source of the kernels of a module, after what all kernels share."""
    files = "".join(Path(module).with_suffix(".cu").read_text() for module in (__file__, beside))
    return "".join(f"#define {macro} {value}\n" for macro, value in macros.items()) + files


@cache
def _compile_cupy(beside: str, name: str, device: int, **macros: Any) -> Launch | None:
    import cupy
    import numpy as np

    compiled = cupy.RawKernel(source(beside, macros), name)

    def launch(blocks: tuple[int, int], arrays: Sequence[Array], numbers: Sequence[float]) -> None:
        with cupy.cuda.Device(device):
            compiled(blocks, (THREADS,), (*arrays, *map(np.float64, numbers)))

    return launch


@cache
def _compile_torch(beside: str, name: str, device: Any, **macros: Any) -> Launch | None:
    import torch

    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        with torch.cuda.device(device):
            compiled = torch.cuda._compile_kernel(source(beside, macros), name)
        function = compiled.func
    except (RuntimeError, OSError, AttributeError):  # without its compiler, plain operations do
        return None

    def launch(blocks: tuple[int, int], arrays: Sequence[Array], numbers: Sequence[float]) -> None:
        # By way of the driver: PyTorch's own call takes longer than a kernel does on a small image.
        count = len(arrays) + len(numbers)
        values = (ctypes.c_char * (8 * count))()
        struct.pack_into(f"{len(arrays)}Q{len(numbers)}d", values, 0, *(a.data_ptr() for a in arrays), *numbers)
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * count)(*range(first, first + 8 * count, 8))
        with torch.cuda.device(device):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            error = driver.cuLaunchKernel(function, *blocks, 1, THREADS, 1, 1, 0, stream, places, None)
        if error:
            raise RuntimeError(f"CUDA error {error} at the start of the kernel {name}")

    return launch
