"""Gram matrices of sparse rows as compiled loops (numba); their plain twin is in `ell12.operators.gram`.

Imported only where a product is large enough to pay for loading numba; its code is cached on disk where possible.
Rows are read one after the other: a loop over columns would jump to another row for every entry.
"""

from __future__ import annotations

from ell12.backend.compiled_code import compiled_loop


@compiled_loop(error_model="numpy", nogil=True)
def own(starts, columns, values, weight, out, diagonal):  # type: ignore[no-untyped-def]
    """Add what is half of ``A' diag(weight) A`` to out, and its diagonal: out + out' + the diagonal is all of it.

    Every pair of entries of a row is taken once, in whatever order they are, so that an entry may be given twice.
    """
    for i in range(starts.size - 1):
        for p in range(starts[i], starts[i + 1]):
            factor, into = weight[i] * values[p], out[columns[p]]
            diagonal[columns[p]] += factor * values[p]
            for q in range(p + 1, starts[i + 1]):
                into[columns[q]] += factor * values[q]


@compiled_loop(error_model="numpy", nogil=True)
def cross(starts, columns, values, weight, other_starts, other_columns, other_values, out):  # type: ignore[no-untyped-def]
    """Add ``A' diag(weight) B`` to out."""
    for i in range(starts.size - 1):
        for p in range(starts[i], starts[i + 1]):
            factor, into = weight[i] * values[p], out[columns[p]]
            for q in range(other_starts[i], other_starts[i + 1]):
                into[other_columns[q]] += factor * other_values[q]
