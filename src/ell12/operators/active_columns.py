"""Products of a dense NumPy matrix with sparse vectors that change slowly, as the iterates of a solver do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SPARSE = 4  # a vector is sparse if less than one entry in so many is not zero
FEW = 16  # new columns are read one by one while they are fewer than one in so many of those kept
PATIENCE = 8  # gathering columns costs one or two products: after so many vectors with new ones it pays


@dataclass(frozen=True)
class _Kept:
    indices: Any
    inside: Any  # for each column of A whether it is kept
    columns: Any  # side by side


class ActiveColumns:
    """``x -> A x`` that keeps a copy of the columns which the last sparse vectors used.

    While x stays within those, or adds a few, its product reads them alone. The copy is at most a quarter of A.

    Examples
    --------
    >>> A = ActiveColumns(np.array([[1.0, 2.0, 3.0, 4.0]]))
    >>> A @ np.array([0.0, 2.0, 0.0, 0.0])
    array([4.])
    """

    def __init__(self, A: Any) -> None:
        self.A = A
        self._kept: _Kept | None = None
        self._misses = PATIENCE

    def __matmul__(self, x: Any) -> Any:
        count = int(np.count_nonzero(x))
        if count * SPARSE >= x.size:
            return self.A @ x
        kept = self._kept
        if kept is not None and kept.indices.size <= 2 * count + FEW:
            values = x[kept.indices]
            if np.count_nonzero(values) == count:
                return kept.columns @ values
        return self._product_with_new_columns(x)

    def _product_with_new_columns(self, x: Any) -> Any:
        support, kept = np.flatnonzero(x), self._kept
        self._misses += 1
        if self._misses > PATIENCE:
            self._misses = 0
            inside = np.zeros(x.size, dtype=bool)
            inside[support] = True
            self._kept = kept = _Kept(support, inside, self._gather(support))
        if kept is None:
            return self.A @ x
        new = support[~kept.inside[support]]
        if new.size * FEW > kept.indices.size:
            return self.A @ x
        return kept.columns @ x[kept.indices] + self._gather(new) @ x[new]

    def _gather(self, columns: Any) -> Any:
        A = self.A  # np.take would first copy the whole of a matrix that is not in C order
        return np.take(A, columns, axis=1) if A.flags.c_contiguous else A.T[columns].T
