"""The rows of gpu.py that measure the prox on a GPU beside a copy of its array."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

import ell12
from ell12.path.columnwise import ColumnsL12

ROW_LENGTHS = 2, 3, 16, 64, 1000, 100_000
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
COPY = "limit: a copy"
Row = dict[str, Any]


def seconds(call: Callable[[], Any], repeats: int = 20) -> float:
    """The median wall time of a call that ends on the device."""
    times = []
    synchronize = torch.cuda.synchronize if DEVICE == "cuda" else lambda: None
    for _ in range(repeats + 3):
        synchronize()
        begin = time.perf_counter()
        call()
        synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[3:])


def row(what: str, value: float, limit: float | None = None, note: str = "") -> Row:
    """One line; printed at once."""
    ratio = None if limit is None else value / limit
    line = {"what": what, "seconds": value, "limit": limit, "ratio": ratio, "note": note}
    print("  ".join(str(part) for part in line.values()), flush=True)
    return line


def prox_rows(entries: int = 2**28) -> list[Row]:
    """The prox beside a copy of its array, which reads it and writes it once, measured before and after."""
    z = torch.randn(entries, device=DEVICE)
    w = torch.rand(entries, device=DEVICE)
    rows = []
    for library, kind in array_kinds().items():
        a, b = kind(z), kind(w)
        rows += beside_a_copy(f"vector of {entries} floats, {library}", a, b, None, 1.0)
        for length in ROW_LENGTHS:
            shape = (entries // length, length)
            size = shape[0] * length
            t = kind(torch.rand(shape[0], device=DEVICE)) + 0.5
            rows += beside_a_copy(
                f"rows of {length}, {library}", a[:size].reshape(shape), b[:size].reshape(shape), -1, t
            )
        shape = (2**12, entries // 2**12)
        columns = (a.reshape(shape), b.reshape(shape), 0)
        rows += beside_a_copy(
            f"columns of {shape[0]}, {library}", *columns, kind(torch.ones(shape[1], device=DEVICE))
        )
        double = kind(z[: entries // 2].double())
        rows += beside_a_copy(f"rows of 16 in double precision, {library}", double.reshape(-1, 16), None, -1, 1.0)
        del a, b, double, columns, t
    del z, w
    return rows + penalty_rows(entries)


def array_kinds() -> dict[str, Callable[[Any], Any]]:
    """What makes arrays of each library out of a tensor on the device."""
    kinds: dict[str, Callable[[Any], Any]] = {"PyTorch": lambda x: x}
    try:
        import cupy

        kinds["CuPy"] = cupy.asarray
    except ImportError:
        pass
    return kinds


def as_tensor(x: Any) -> Any:
    """An array as a tensor in the same memory."""
    return x if isinstance(x, torch.Tensor) else torch.from_dlpack(x)


def beside_a_copy(what: str, z: Any, w: Any, axis: int | None, t: Any) -> list[Row]:
    """Rows for the prox with and without weights and signs: seconds, and how many copies these are."""
    weighted = "a copy that reads as many weights takes 1.5"
    cases: list[tuple[str, dict[str, Any], str]] = [("", {}, ""), (", non-negative", {"positive": True}, "")]
    if w is not None:
        cases += [(", weights", {"weights": w}, weighted)]
        cases += [(", weights, non-negative", {"weights": w, "positive": True}, weighted)]
    copy = as_tensor(z).clone  # CuPy's own copy takes twice as long
    rows = []
    for case, options, note in cases:
        before = seconds(copy)
        value = seconds(partial(ell12.prox_l12, z, t, axis=axis, **options))
        limit = statistics.mean((before, seconds(copy)))
        rows.append(row(f"prox, {what}{case}", value, limit, "; ".join(filter(None, [COPY, note]))))
    if axis is None or z.shape[-1] in (2, 1000):
        value = seconds(lambda: without_kernels(ell12.prox_l12, z, t, axis=axis), 5)
        rows.append(row(f"the same, {what}, plain operations", value, limit, COPY))
    return rows


def without_kernels(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a call does where nothing can compile."""
    from ell12.backend import compiled_code as cuda

    takes, cuda.takes = cuda.takes, lambda _: False
    try:
        return call(*arguments, **options)
    finally:
        cuda.takes = takes


def penalty_rows(entries: int) -> list[Row]:
    """The prox of penalties that are rows, columns or groups, with the kernels and without."""
    entries //= 4
    groups = np.arange(entries // 16) // 4
    cases = [
        (f"RowsL12, {entries // 16} x 16", ell12.RowsL12(0.5), (entries // 16, 16)),
        (f"ColumnsL12, {entries // 64} x 64", ColumnsL12(np.linspace(0.1, 1, 64)), (entries // 64, 64)),
        (f"GroupL12, {entries // 16} entries in fours", ell12.GroupL12(groups, 0.5), (entries // 16,)),
    ]
    rows = []
    for what, penalty, shape in cases:
        for library, kind in array_kinds().items():
            x = kind(torch.randn(shape, device=DEVICE))
            limit = seconds(as_tensor(x).clone)
            plain = seconds(lambda p=penalty, x=x: without_kernels(p.prox, x, 1.0), 5)
            value = seconds(lambda p=penalty, x=x: p.prox(x, 1.0))
            note = f"{COPY}; {plain / limit:.1f} copies by plain operations"
            rows.append(row(f"prox of {what}, {library}", value, limit, note))
    return rows
