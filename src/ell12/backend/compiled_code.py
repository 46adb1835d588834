"""Compiled code: numba if it is installed, and CUDA C by NVRTC for PyTorch and CuPy."""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import os
import re
import struct
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from ell12.backend import Array, is_cupy, is_torch

# Arrays of at least this many entries, times the problems over them, go to a compiled loop, which takes 0.2 s to
# load (results/startup); beyond, a prox of rows takes 1.4 to 4 copies (results/prox).
COMPILED_FROM = 2**16


@cache
def can_compile() -> bool:
    """Whether numba is there and works; the first call loads it, and warns where it does not."""
    works = False
    with suppress(Exception):  # not installed, too old for this NumPy, or a library of its own does not load
        import numba

        # Without the compiler loops would be far slower than the plain code.
        works = not getattr(numba.config, "DISABLE_JIT", 0)
    if not works:
        warnings.warn("numba cannot compile here: loops run as plain NumPy, up to ten times as long", stacklevel=2)
    return works


def compiled_loop(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit(cache=True, **options)`` that compiles without a cache where none can be read or written."""
    from numba import njit

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        with suppress(Exception):  # where no folder can be written to: numba's error or the file system's
            dispatcher._cache = _forgiving_cache()(function)
        return dispatcher

    return decorate


@cache
def _forgiving_cache() -> Any:
    """The class of numba's caches, with faults that end the caching and not the call; it logs what takes long."""
    from numba.core.caching import FunctionCache

    said: list[str] = []

    class ForgivingCache(FunctionCache):
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            self.began = time.perf_counter()
            try:
                return super().load_overload(sig, target_context)
            except Exception:  # a damaged file: unpickling it may raise anything
                with suppress(Exception):
                    self.flush()  # writes an empty index, so that the next process finds a whole one
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            if time.perf_counter() - self.began > 1 and not said:
                said.append("compiling, once on this machine: some seconds more")
                logging.getLogger("ell12").warning(said[0])
            try:
                super().save_overload(sig, data)
            except Exception:  # a full disk, a folder that has become read-only, an index damaged meanwhile
                self.disable()

    return ForgivingCache


THREADS = 256
WARP = 32  # threads that can read each other's registers

Launch = Callable[[tuple[int, int], Sequence[Array], Sequence[float]], None]


def kernel(x: Array, module: str, name: str, **macros: int) -> Launch | None:
    """A kernel for arrays like x, called with (blocks, arrays, numbers); None where there can be none.

    Its source is the ``.cu`` file of the same name as the module ``module``. Arrays must be `one_piece`, of the
    precision of x or as the kernel says.
    """
    if not takes(x):
        return None
    where = (True, x.device.id) if is_cupy(x) else (False, x.device.index)
    return _compiled(module, name, *where, REAL=_real(x), THREADS=THREADS, **macros)


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


def source(module: str, macros: dict[str, Any]) -> str:
    """The source of the kernels of a module, after what all kernels share."""
    files = "".join(Path(path).with_suffix(".cu").read_text() for path in (__file__, module))
    return "".join(f"#define {macro} {value}\n" for macro, value in macros.items()) + files


@cache
def _compiled(module: str, name: str, of_cupy: bool, device: int, **macros: Any) -> Launch | None:
    try:
        start = _starter(source(module, macros), name, device)
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
    check(driver.cuCtxPushCurrent_v2(context))
    try:
        function = _functions(text, device)(name)
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ignored))

    def start(blocks: tuple[int, int], stream: int, arguments: Any) -> None:
        driver.cuCtxPushCurrent_v2(context)
        error = driver.cuLaunchKernel(
            function, *blocks, 1, THREADS, 1, 1, 0, ctypes.c_void_p(stream), arguments, None
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
    check(driver.cuInit(0))
    check(driver.cuDeviceGet(ctypes.byref(handle), device))
    check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle))
    return context


@cache
def _functions(text: str, device: int) -> Callable[[str], ctypes.c_void_p]:
    """The kernels of a source by their names, as the driver knows them; by CuPy where no compiler is found."""
    driver, parts = _driver(), [ctypes.c_int(), ctypes.c_int()]
    for part, attribute in zip(parts, (75, 76), strict=True):  # CUDA's numbers of the two parts of a capability
        check(driver.cuDeviceGetAttribute(ctypes.byref(part), attribute, device))
    module = ctypes.c_void_p()
    for code in machine_code(text, 10 * parts[0].value + parts[1].value):
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
    check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
    return function


_FILES = {"nt": "nvrtc64_*.dll"}.get(os.name, "libnvrtc.so*")
_BY_NAME = {"nt": ("nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll")}.get(
    os.name, ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so")
)


def machine_code(text: str, capability: int) -> Iterator[bytes]:
    """The source compiled for a GPU of this capability, such as 90, by each compiler that can.

    A compiler that does not know this GPU makes code for the newest it knows, which the driver then translates.
    """
    for library in libraries():
        try:
            yield _compiled_by(library, text, capability)
        except (RuntimeError, AttributeError):  # too old for this source, or without a function
            continue


@cache
def libraries() -> tuple[ctypes.CDLL, ...]:
    """The compilers that are installed, those that came with Python packages first."""
    found: list[ctypes.CDLL] = []
    for path in (*_files(), *_BY_NAME):
        try:
            found.append(ctypes.CDLL(str(path)))
        except OSError:
            continue
    return tuple(found)


def _files() -> list[Path]:
    """Files of the compiler, the newest of a folder first."""
    patterns = [(folder, below) for folder in _package_folders("nvidia") for below in ("*/lib", "*/bin")]
    patterns += [(folder, "lib") for folder in _package_folders("torch")]
    installed = [Path(os.environ[name]) for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    patterns += [(folder, below) for folder in installed for below in ("lib64", "lib", "bin")]
    files = [file for folder, below in patterns for file in _newest_first(folder.glob(f"{below}/{_FILES}"))]
    return list({file.resolve(): file for file in files if "alt" not in file.name}.values())


def _package_folders(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    return [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]


def _newest_first(files: Iterator[Path]) -> list[Path]:
    return sorted(files, key=lambda file: [int(part) for part in re.findall(r"\d+", file.name)], reverse=True)


def _compiled_by(library: Any, text: str, capability: int) -> bytes:
    known = [number for number in _known(library) if number <= capability]
    exact = capability in known
    target = f"--gpu-architecture={'sm' if exact else 'compute'}_{max(known, default=capability)}"
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    check(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), None, 0, None, None))
    try:
        check(library.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(target.encode())))
        kind = "CUBIN" if exact else "PTX"
        check(library[f"nvrtcGet{kind}Size"](program, ctypes.byref(size)))
        code = ctypes.create_string_buffer(size.value)
        check(library[f"nvrtcGet{kind}"](program, code))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def _known(library: Any) -> list[int]:
    """The capabilities that a compiler knows."""
    count = ctypes.c_int()
    check(library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    numbers = (ctypes.c_int * count.value)()
    check(library.nvrtcGetSupportedArchs(numbers))
    return list(numbers)


def check(error: int) -> None:
    """Raise where a function of CUDA says that it failed."""
    if error:
        raise RuntimeError(f"CUDA error {error}")
