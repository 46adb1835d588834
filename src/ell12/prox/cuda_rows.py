"""The closed form of many rows on a GPU."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ell12.backend import compiled_code as cuda
from ell12.backend import device, is_number, namespace
from ell12.protocols import Array

# How many threads share a problem whose entries are neighbours: one up to 4 entries, then up to 8; beyond 128
# enough entries that each keeps 16; a whole warp up to 32 each. Measured on an H200 with rows of 2 to 1000.
FEW, SEVERAL, MANY, MOST = 4, 8, 16, 32
# Problems whose entries are not neighbours stay with one thread up to MOST entries. Of longer ones a block reads
# WIDEST side by side, or NARROW where that would leave too few blocks: 32 bytes, the least that memory sends.
WIDEST, NARROW = 64, 8
# A GPU gets at most MOST_BLOCKS blocks of many problems: eight times what an H200 runs at once, so that none waits
# long for the last. At most SHARED blocks share a long one, fewer where they read several side by side: each adds
# up what all of them have found.
MOST_BLOCKS, SHARED = 8448, 2112
LEAST_READS = 8  # A thread of a problem that is shared reads at least this many entries: fewer do not pay.


class Arrangement(NamedTuple):
    """Problems of ``length`` entries that lie ``inner`` apart: an array of shape (outer, length, inner)."""

    outer: int
    length: int
    inner: int


class Plan(NamedTuple):
    """Kernels that run one after the other, their macros, and how many blocks."""

    kernels: tuple[str, ...]
    macros: dict[str, int]
    blocks: int
    parts: int = 1  # blocks that share a problem


def plan(shape: Arrangement) -> Plan:
    """How problems are dealt out."""
    outer, length, inner = shape
    apart = {"APART": int(inner > 1)}
    if length <= (MOST if inner > 1 else MOST * cuda.WARP):
        group = 1 if inner > 1 else _group(length)
        kept = -(-length // group)
        macros = {"GROUP": group, "ENTRIES": kept if kept <= FEW else _power(kept)}
        blocks = min(-(-outer * inner * group // cuda.THREADS), MOST_BLOCKS)
        return Plan(("short_rows",), macros | apart, blocks)
    enough = outer * -(-inner // WIDEST) * (SHARED // WIDEST) >= MOST_BLOCKS
    across = min(_power(inner), WIDEST if enough else NARROW, cuda.THREADS)
    tiles = outer * -(-inner // across)
    parts = min(MOST_BLOCKS // tiles, SHARED // across, -(-length * across // (LEAST_READS * cuda.THREADS)))
    macros = {"ACROSS": across} | apart
    if parts <= 1:
        return Plan(("whole_rows",), macros, tiles)
    return Plan(("measure_parts", "write_parts"), macros, tiles * parts, parts)


def _group(length: int) -> int:
    """How many threads share a problem of neighbours."""
    few, many = _power(-(-length // FEW)), _power(-(-length // MANY))
    return min(max(min(few, SEVERAL), many), cuda.WARP)


def prox_on_gpu(rows: Array, t: Any, l2_weight: Any, weights: Array | None, positive: bool) -> Array | None:
    """`ell12.prox.closed_form.prox_rows` by kernels; None where there are none."""
    others = [array for array in (weights, None if is_number(t) else t) if array is not None]
    if not cuda.takes(rows) or not is_number(l2_weight) or math.prod(rows.shape) == 0:
        return None
    if not all(cuda.takes(array) and _is_alike(array, rows) for array in others):
        return None
    xp, batch = namespace(rows), tuple(rows.shape[:-1])
    z, axis = _in_memory_order(rows)
    shape = Arrangement(math.prod(batch[:axis]), rows.shape[-1], math.prod(batch[axis:]))
    w, strides = (z, (0, 0, 0)) if weights is None else _weights(weights, rows, axis, shape)
    each = z if is_number(t) else cuda.one_piece(xp.broadcast_to(t, (*batch, 1)))
    numbers = (*shape, *strides, float(t) if is_number(t) else 0.0, float(l2_weight), not is_number(t))
    weighted = 0 if weights is None else 1 if strides[1] == 1 else 2
    x, macros = xp.empty_like(z), {"WEIGHTED": weighted, "NONNEGATIVE": int(positive), "NORMS": 0}
    if not _run(plan(shape), macros, (z, w, each), x, numbers):
        return None
    return x if axis == len(batch) else xp.moveaxis(x, axis, -1)


def norms_on_gpu(rows: Array) -> Array | None:
    """`ell12.prox.batching.row_norms` by one kernel; None where there is none."""
    if not cuda.takes(rows) or math.prod(rows.shape) == 0:
        return None
    xp, batch = namespace(rows), tuple(rows.shape[:-1])
    z, axis = _in_memory_order(rows)
    shape = Arrangement(math.prod(batch[:axis]), rows.shape[-1], math.prod(batch[axis:]))
    found = plan(shape)
    if found.parts > 1:  # few and long: plain operations keep a GPU busy
        return None
    norms = xp.empty((*batch, 1), dtype=z.dtype, device=device(z))
    macros = {"WEIGHTED": 0, "NONNEGATIVE": 0, "NORMS": 1}
    return norms if _run(found, macros, (z, z, z), norms, (*shape, *(0.0,) * 6)) else None


def _is_alike(array: Array, rows: Array) -> bool:
    """Whether a kernel for rows can read the array too."""
    return type(array) is type(rows) and array.dtype == rows.dtype and device(array) == device(rows)


def _run(
    found: Plan, macros: dict[str, int], arrays: tuple[Array, ...], x: Array, numbers: tuple[float, ...]
) -> bool:
    """Have the kernels write x; whether there are any."""
    last = cuda.kernel(arrays[0], __file__, found.kernels[-1], **found.macros, **macros)
    blocks = (found.blocks, 1)
    if last is None:
        return False
    if found.parts == 1:
        last(blocks, (*arrays, x), numbers)
        return True
    first = cuda.kernel(arrays[0], __file__, found.kernels[0], **found.macros, **macros)
    if first is None:
        return False
    xp = namespace(x)
    parts = xp.empty((found.blocks * found.macros["ACROSS"], 4), dtype=xp.float64, device=device(x))
    first(blocks, (*arrays, parts), (*numbers, found.parts))
    last(blocks, (*arrays, parts, x), (*numbers, found.parts))
    return True


def _in_memory_order(rows: Array) -> tuple[Array, int]:
    """The rows with their last axis where it lies in memory, without a copy where they are in one piece."""
    xp, last, rows = namespace(rows), len(rows.shape) - 1, cuda.settled(rows)
    lengths, strides = tuple(rows.shape), cuda.strides(rows)
    for axis in range(last, -1, -1):
        order = (*range(axis), last, *range(axis, last))
        if _is_one_piece([(lengths[a], strides[a]) for a in order]):
            return rows if axis == last else xp.permute_dims(rows, order), axis
    return cuda.one_piece(rows), last


def _is_one_piece(axes: list[tuple[int, int]]) -> bool:
    """Whether axes of these lengths and strides, one after the other, are all of a piece of memory."""
    distance = 1
    for length, stride in reversed(axes):
        if length > 1 and stride != distance:
            return False
        distance *= length
    return True


def _weights(weights: Array, rows: Array, axis: int, shape: Arrangement) -> tuple[Array, tuple[int, ...]]:
    """The weights, and how many entries apart they are along (outer, entries, inner); a copy where that varies."""
    xp = namespace(rows)
    wide = xp.reshape(xp.moveaxis(xp.broadcast_to(cuda.settled(weights), tuple(rows.shape)), -1, axis), shape)
    wide = wide if min(cuda.strides(wide)) >= 0 else cuda.one_piece(wide)
    return wide, cuda.strides(wide)


def _power(number: int) -> int:
    """The smallest power of two that is not less."""
    return 1 << max(number - 1, 0).bit_length()
