"""CUDA C to machine code by NVRTC, NVIDIA's compiler as a library: PyTorch and CuPy bring it along."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

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
            yield _compiled(library, text, capability)
        except (RuntimeError, AttributeError):  # too old for this source, or without a function
            continue


@cache
def libraries() -> tuple[ctypes.CDLL, ...]:
    """The compilers that are installed, those that came with Python packages first."""
    found: list[ctypes.CDLL] = []
    for place in (*_files(), *_BY_NAME):
        try:
            found.append(ctypes.CDLL(str(place)))
        except OSError:
            continue
    return tuple(found)


def _files() -> list[Path]:
    """Files of the compiler, the newest of a folder first."""
    places = [(folder, below) for folder in _package_folders("nvidia") for below in ("*/lib", "*/bin")]
    places += [(folder, "lib") for folder in _package_folders("torch")]
    installed = [Path(os.environ[name]) for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    places += [(folder, below) for folder in installed for below in ("lib64", "lib", "bin")]
    files = [file for folder, below in places for file in _newest_first(folder.glob(f"{below}/{_FILES}"))]
    return list({file.resolve(): file for file in files if "alt" not in file.name}.values())


def _package_folders(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    return [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]


def _newest_first(files: Iterator[Path]) -> list[Path]:
    return sorted(files, key=lambda file: [int(part) for part in re.findall(r"\d+", file.name)], reverse=True)


def _compiled(library: Any, text: str, capability: int) -> bytes:
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
