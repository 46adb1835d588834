"""Kernels for NVIDIA GPUs: CUDA C, compiled when first used, for PyTorch and CuPy from the same source.

A kernel sees ``REAL``, the type of its arrays, and ``THREADS``, their number in a block. Its arguments are arrays,
then numbers, which are doubles. NVRTC compiles it and the driver starts it: both are public libraries. Arrays of
PyTorch and CuPy give an address and a stream. Where nothing can compile, plain operations do.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from ell12.backend import nvrtc
from ell12.backend.arrays import is_cupy, is_torch
from ell12.protocols import Array

THREADS = 256
WARP = 32  # threads that can read each other's registers
_MAJOR, _MINOR = 75, 76  # CUDA's numbers for the two parts of a GPU's capability

Launch = Callable[[tuple[int, int], Sequence[Array], Sequence[float]], None]


def kernel(x: Array, beside: str, name: str, **macros: int) -> Launch | None:
    """A kernel for arrays like x, called with (blocks, arrays, numbers); None where there can be none.

    Its source is the ``.cu`` file of the same name as the module ``beside``. Arrays must be `one_piece`, of the
    precision of x or as the kernel says.
    """
    if not takes(x):
        return None
    where = (True, x.device.id) if is_cupy(x) else (False, x.device.index)
    return _compiled(beside, name, *where, REAL=_real(x), THREADS=THREADS, **macros)


def takes(x: Array) -> bool:
    """Whether x is real numbers in the memory of a GPU and no more: not differentiated, batched or traced."""
    return on_gpu(x) and _real(x) is not None


def on_gpu(x: Array) -> bool:
    """Whether x is memory of a GPU and no more."""
    return is_cupy(x) or (is_torch(x) and x.is_cuda and is_bare(x))


def _real(x: Array) -> str | None:
    """The type of the entries in CUDA C, None where kernels have none."""
    return {"float32": "float", "float64": "double"}.get(str(x.dtype).rpartition(".")[2])


def is_bare(x: Any) -> bool:
    """Whether a tensor is memory and no more.

    PyTorch has no public question for this. One whose function is transformed (`torch.func`) has no address, or 0.
    """
    import torch

    if x.requires_grad or type(x) not in (torch.Tensor, torch.nn.Parameter) or torch.compiler.is_compiling():
        return False
    if torch.autograd.forward_ad.unpack_dual(x).tangent is not None:
        return False
    try:
        return x.data_ptr() != 0 or x.numel() == 0
    except RuntimeError:
        return False


def one_piece(x: Array) -> Array:
    """An array that is on a GPU, in one piece of memory as it reads."""
    if is_torch(x):
        return settled(x).contiguous()
    import cupy

    return cupy.ascontiguousarray(x)


def settled(x: Array) -> Array:
    """An array whose memory holds what it says: PyTorch has views that only say that they are negated."""
    return x.resolve_neg() if is_torch(x) else x


def strides(x: Array) -> tuple[int, ...]:
    """How many entries apart neighbours along each axis are."""
    return tuple(x.stride()) if is_torch(x) else tuple(stride // x.itemsize for stride in x.strides)


def source(beside: str, macros: dict[str, Any]) -> str:
    """The source of the kernels of a module, after what all kernels share."""
    files = "".join(Path(module).with_suffix(".cu").read_text() for module in (__file__, beside))
    return "".join(f"#define {macro} {value}\n" for macro, value in macros.items()) + files


@cache
def _compiled(beside: str, name: str, of_cupy: bool, device: int, **macros: Any) -> Launch | None:
    try:
        start = _starter(source(beside, macros), name, device)
    except (RuntimeError, OSError, AttributeError):  # no NVIDIA driver, or none that fits
        return None
    address, stream = _of_cupy(device) if of_cupy else _of_torch(device)

    def launch(blocks: tuple[int, int], arrays: Sequence[Array], numbers: Sequence[float]) -> None:
        count = len(arrays) + len(numbers)
        values = (ctypes.c_char * (8 * count))()
        struct.pack_into(f"{len(arrays)}Q{len(numbers)}d", values, 0, *map(address, arrays), *numbers)
        first = ctypes.addressof(values)
        start(blocks, stream(), (ctypes.c_void_p * count)(*range(first, first + 8 * count, 8)))

    return launch


def _of_torch(device: int) -> tuple[Callable[[Any], int], Callable[[], int]]:
    """Where a tensor lies, and the stream that its library works in."""
    import torch

    return lambda x: x.data_ptr(), lambda: torch.cuda.current_stream(device).cuda_stream


def _of_cupy(device: int) -> tuple[Callable[[Any], int], Callable[[], int]]:
    """The same for CuPy."""
    import cupy

    def stream() -> int:
        with cupy.cuda.Device(device):
            return int(cupy.cuda.get_current_stream().ptr)

    return lambda x: x.data.ptr, stream


def _starter(text: str, name: str, device: int) -> Callable[[tuple[int, int], int, Any], None]:
    """A kernel of a source on a device, called with (blocks, stream, addresses of the arguments).

    It is started by way of the driver: PyTorch's own call takes longer than a kernel does on a small image. A
    thread of its own may have no device yet, so each start says which.
    """
    driver = _driver()
    context, ignored = _context(driver, device), ctypes.c_void_p()
    nvrtc.check(driver.cuCtxPushCurrent_v2(context))
    try:
        function = _functions(text, device)(name)
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ignored))

    def start(blocks: tuple[int, int], stream: int, places: Any) -> None:
        driver.cuCtxPushCurrent_v2(context)
        error = driver.cuLaunchKernel(
            function, *blocks, 1, THREADS, 1, 1, 0, ctypes.c_void_p(stream), places, None
        )
        driver.cuCtxPopCurrent_v2(ctypes.byref(ignored))
        if error:
            raise RuntimeError(f"CUDA error {error} at the start of the kernel {name}")

    return start


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")


def _context(driver: Any, device: int) -> ctypes.c_void_p:
    """The context of a device that PyTorch and CuPy use too."""
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    nvrtc.check(driver.cuInit(0))
    nvrtc.check(driver.cuDeviceGet(ctypes.byref(handle), device))
    nvrtc.check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle))
    return context


@cache
def _functions(text: str, device: int) -> Callable[[str], ctypes.c_void_p]:
    """The kernels of a source by their names, as the driver knows them; by CuPy where no compiler is found."""
    driver, parts = _driver(), [ctypes.c_int(), ctypes.c_int()]
    for part, attribute in zip(parts, (_MAJOR, _MINOR), strict=True):
        nvrtc.check(driver.cuDeviceGetAttribute(ctypes.byref(part), attribute, device))
    module = ctypes.c_void_p()
    for code in nvrtc.machine_code(text, 10 * parts[0].value + parts[1].value):
        if driver.cuModuleLoadData(ctypes.byref(module), code) == 0:
            return partial(_named, driver, module)
    try:
        import cupy

        with cupy.cuda.Device(device):
            compiled = cupy.RawModule(code=text)
            compiled.compile()
    except Exception as error:  # whatever CuPy says
        raise RuntimeError("there is no compiler for CUDA C") from error
    return lambda name: ctypes.c_void_p(compiled.get_function(name).kernel.ptr)


def _named(driver: Any, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
    function = ctypes.c_void_p()
    nvrtc.check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
    return function
