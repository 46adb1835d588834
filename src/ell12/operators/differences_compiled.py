"""``D'D x`` of finite differences as a compiled loop (numba); the plain version is in `image_operators`.

Imported only for images large enough to pay for loading numba; its code is cached on disk where possible.
"""

from __future__ import annotations

from ell12.backend.compiled_code import compiled_loop


@compiled_loop(error_model="numpy", nogil=True)
def add_rows(x, weight, around, out):  # type: ignore[no-untyped-def]
    """Add weight times ``D'D x`` along the middle of three axes; ``around``: its last row meets the first."""
    planes, n, size = x.shape
    for p in range(planes):
        for i in range(n):
            here, into = x[p, i], out[p, i]
            before = x[p, i - 1] if i > 0 else x[p, n - 1] if around else here
            after = x[p, i + 1] if i < n - 1 else x[p, 0] if around else here
            for j in range(size):
                into[j] += weight * ((here[j] - before[j]) - (after[j] - here[j]))


@compiled_loop(error_model="numpy", nogil=True)
def add_along(x, weight, around, out):  # type: ignore[no-untyped-def]
    """The same along the last axis of two."""
    for p in range(x.shape[0]):
        here, into, last = x[p], out[p], x.shape[1] - 1
        for j in range(1, last):
            into[j] += weight * ((here[j] - here[j - 1]) - (here[j + 1] - here[j]))
        if last > 0:
            step = here[0] - (here[last] if around else here[0])
            into[0] += weight * (step - (here[1] - here[0]))
            into[last] += weight * ((here[last] - here[last - 1]) - step)
