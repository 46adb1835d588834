"""Fixtures that several test files share."""

from __future__ import annotations

import ctypes
import importlib
import itertools
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

collect_ignore_glob = ["programs/*", "*/programs/*"]  # they are run as scripts, in processes of their own


ROOT = Path(__file__).parents[1]


class Backend(NamedTuple):
    """A library of arrays under test."""

    name: str
    make_array: Callable[..., Any]  # a NumPy array, a list or a number, as an array of the library
    to_numpy: Callable[[Any], np.ndarray]
    float64: bool = True  # whether it holds double precision


def _load(name: str) -> Any:
    """The library, or a skip that says why it cannot be tested here."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} is not installed: {error}")


def _strict() -> Iterator[Backend]:
    library = _load("array_api_strict")
    yield Backend("array_api_strict", library.asarray, np.asarray)


def _torch(device: str = "cpu") -> Iterator[Backend]:
    library = _load("torch")
    if device == "cuda" and not library.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    yield Backend(
        "torch",
        lambda x, **dtype: library.as_tensor(np.asarray(x, **dtype), device=device),
        lambda x: x.detach().cpu().resolve_conj().numpy(),
    )


def _jax(float64: bool) -> Iterator[Backend]:
    library = _load("jax")
    # Older versions keep the switch among the experiments.
    switch = library if hasattr(library, "enable_x64") else _load("jax.experimental")
    with switch.enable_x64(float64):
        yield Backend("jax", library.numpy.asarray, np.asarray, float64)


def _cupy() -> Iterator[Backend]:
    library = _load("cupy")
    try:
        library.zeros(1)
    except Exception as error:  # whatever the driver says
        pytest.skip(f"CuPy finds no device: {error}")
    yield Backend("cupy", library.asarray, library.asnumpy)


BACKENDS: dict[str, Callable[[], Iterator[Backend]]] = {
    "array-api-strict": _strict,
    "torch": _torch,
    "torch-cuda": lambda: _torch("cuda"),
    "jax-float32": lambda: _jax(False),
    "jax-float64": lambda: _jax(True),
    "cupy": _cupy,
}


ON_GPU = ("torch-cuda", "cupy")


def libraries(*left_out: str) -> list[Any]:
    """The libraries to test with: those on a GPU by their mark, of the others those that are installed."""
    names = {name: name.partition("-")[0].replace("array", "array_api_strict") for name in BACKENDS}
    return [
        pytest.param(name, marks=[pytest.mark.gpu] * (name in ON_GPU))
        for name, module in names.items()
        if name not in left_out and (name in ON_GPU or find_spec(module))
    ]


def pytest_report_header() -> str:
    """Which libraries of arrays the tests run with."""
    names = ", ".join(param.values[0] for param in libraries(*ON_GPU))
    return f"libraries of arrays next to NumPy: {names} (make test-backends has all)"


def _each(names: list[Any]) -> Any:
    """A fixture that is each of these libraries in turn."""

    @pytest.fixture(params=names)
    def each(request: pytest.FixtureRequest) -> Iterator[Backend]:
        yield from BACKENDS[request.param]()

    return each


backend = _each(libraries())  # those that are installed
each_library = _each(libraries("jax-float32"))  # for tests in which JAX takes ten seconds to compile
autodiff = _each(libraries("array-api-strict", "jax-float32", *ON_GPU))  # those that differentiate
gpu = _each([pytest.param(name, marks=pytest.mark.gpu) for name in ON_GPU])  # with kernels of their own


# A GPU as a C++ compiler sees it: blocks one after the other, each of a few threads of the processor.
STAND_IN = """
#include <cmath>
#include <pthread.h>
using std::fabs; using std::sqrt; using std::copysign; using std::fmin; using std::fmax;
#define __global__
#define __device__ static
#define __shared__ static
struct Coordinates { int x, y; };
static thread_local Coordinates threadIdx = {0, 0};
static Coordinates blockIdx, gridDim;
static pthread_barrier_t barrier;
static int threads;
static void __syncthreads() { if (threads > 1) pthread_barrier_wait(&barrier); }
template <class Value> static Value __shfl_xor_sync(unsigned, Value mine, int distance) {
    static Value all[1024];
    all[threadIdx.x] = mine;
    __syncthreads();
    const Value other = all[threadIdx.x ^ distance];
    __syncthreads();
    return other;
}
static float __fmul_rn(float a, float b) { return a * b; }
static double __dmul_rn(double a, double b) { return a * b; }
template <class Real> static Real rsqrt(Real square) { return 1 / sqrt(square); }
extern "C" void block(int x, int y, int across, int down) { blockIdx = {x, y}; gridDim = {across, down}; }
extern "C" void begin(int count) { threads = count; pthread_barrier_init(&barrier, nullptr, count); }
extern "C" void thread(int number) { threadIdx = {number, 0}; }
"""


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_reaches_tests() -> None:
    """Ctrl-C is Python's own in the background too, where a shell has it ignored."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def nothing_is_left_in_the_repository() -> Iterator[None]:
    """A test writes to folders of its own."""
    before = set(os.listdir(ROOT))
    yield
    left = {name for name in os.listdir(ROOT) if not name.startswith(".")} - before
    assert not left, f"files were left in {ROOT}: {sorted(left)}"


COMPILED_KERNELS: dict[str, ctypes.CDLL] = {}
# Macros that stand in expressions alone: here variables, so that a source is compiled once for all of them.
CHOICES = ("WEIGHTED", "NONNEGATIVE", "APART", "NORMS")


def _compiled_kernels(threads: int, source: str, make_folder: Callable[[str], Path]) -> ctypes.CDLL:
    """The kernels of a source as functions of the processor."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler to try the kernels with")
    if source not in COMPILED_KERNELS:
        folder = make_folder("kernels")
        choices = f'extern "C" {{ int {", ".join(CHOICES)}; }}\n'
        (folder / "kernels.cpp").write_text(STAND_IN + choices + source)
        command = [compiler, "-O1", "-shared", "-fPIC", "-pthread", "-o", folder / "kernels.so"]
        subprocess.run([*command, folder / "kernels.cpp"], check=True)
        COMPILED_KERNELS[source] = ctypes.CDLL(str(folder / "kernels.so"))
        COMPILED_KERNELS[source].begin(threads)
    return COMPILED_KERNELS[source]


@pytest.fixture
def kernels_on_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The kernels of CUDA C for NumPy arrays, so that what they compute is tested without a GPU.

    A block has one thread; a test that sets ``cuda.THREADS`` gets as many, which wait for each other as on a GPU.
    """
    from ell12.backend import compiled_code as cuda

    def kernel(x: np.ndarray, module: str, name: str, **macros: Any) -> Any:
        chosen = {name: macros.pop(name) for name in CHOICES if name in macros}
        macros |= {"REAL": {"float32": "float", "float64": "double"}[x.dtype.name], "THREADS": cuda.THREADS}
        library = _compiled_kernels(cuda.THREADS, cuda.source(module, macros), tmp_path_factory.mktemp)

        def run(thread: int, given: list[Any]) -> None:
            library.thread(thread)
            library[name](*given)

        def launch(blocks: tuple[int, int], arrays: Any, numbers: Any) -> None:
            for choice, value in chosen.items():
                ctypes.c_int.in_dll(library, choice).value = value
            given = [*(ctypes.c_void_p(array.ctypes.data) for array in arrays), *map(ctypes.c_double, numbers)]
            for across, down in itertools.product(range(blocks[0]), range(blocks[1])):
                library.block(across, down, *blocks)
                # One thread needs no other, and takes a fiftieth of the time.
                list((pool.map if cuda.THREADS > 1 else map)(run, range(cuda.THREADS), [given] * cuda.THREADS))

        return launch

    monkeypatch.setattr(cuda, "kernel", kernel)
    monkeypatch.setattr(cuda, "takes", lambda x: x.dtype.name in ("float32", "float64"))
    monkeypatch.setattr(cuda, "on_gpu", lambda _: True)
    monkeypatch.setattr(cuda, "one_piece", np.ascontiguousarray)
    monkeypatch.setattr(cuda, "THREADS", 1)
    with ThreadPoolExecutor(8) as pool:
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples of docstrings run as users paste them: they import what they use."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.dtest.globs = {"__name__": "__main__"}
