"""Products of a dense NumPy matrix with sparse vectors that change slowly, as the iterates of a solver do."""

from __future__ import annotations

from typing import Any

import numpy as np

SPARSE = 3  # a vector is sparse if less than one entry in so many is not zero
PATIENCE = 8  # gathering columns costs one or two products: after so many misses it pays


class ActiveColumns:
    """``x -> A x`` that keeps a copy of the columns which the last sparse vectors used.

    While x stays within those, its product reads them alone. The copy is at most a third of A.

    Examples
    --------
    >>> A = ActiveColumns(np.array([[1.0, 2.0, 3.0, 4.0]]))
    >>> A @ np.array([0.0, 2.0, 0.0, 0.0])
    array([4.])
    """

    def __init__(self, A: Any) -> None:
        self.A = A
        self._kept: tuple[Any, Any] | None = None  # indices, and the columns that stand there
        self._misses = PATIENCE

    def __matmul__(self, x: Any) -> Any:
        count = int(np.count_nonzero(x))
        if count * SPARSE >= x.size:
            return self.A @ x
        kept = self._kept
        if kept is not None and kept[0].size <= 2 * count + 16:
            values = x[kept[0]]
            if np.count_nonzero(values) == count:
                return kept[1] @ values
        self._misses += 1
        if self._misses > PATIENCE:
            self._kept, self._misses = self._gather(np.flatnonzero(x)), 0
        return self.A @ x

    def _gather(self, columns: Any) -> tuple[Any, Any]:
        """The columns side by side."""
        A = self.A  # np.take would first copy the whole of a matrix that is not in C order
        return columns, np.take(A, columns, axis=1) if A.flags.c_contiguous else A.T[columns].T
