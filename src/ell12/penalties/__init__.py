"""Penalties: frozen dataclasses of numbers with a value and a closed-form proximal operator.

`L12`, `BoundedL12`, `GroupL12`, `RowsL12`, `ColumnsL12` and `SpectralL12` are the package's own; `LogSum`,
`CappedL1`, `Lp` and `MCP`, and of matrices `SpectralLogSum` and `TruncatedNuclear`, are there to compare with.
Each prox is a global minimiser; `BoundedL12` says with which bounds its is.

A new penalty is one class with ``alpha``, ``value`` and ``prox``. `ell12.protocols` says what else it may offer,
and what that opens: `DifferencePenalty` serves SCP and DCA, `CertifyingPenalty` gives an exact stationarity, and
`PiecewisePenalty` serves Newton's method and working sets.
"""

from ell12.penalties.blocks import GroupL12, RowsL12
from ell12.penalties.bounds import BoundedL12
from ell12.penalties.columns import ColumnsL12
from ell12.penalties.frobenius import SquaredFrobenius
from ell12.penalties.intercept import WithIntercept
from ell12.penalties.l12 import L1, L12
from ell12.penalties.separable import MCP, CappedL1, LogSum, Lp
from ell12.penalties.spectral import NoPenalty, Spectral, SpectralL12
from ell12.penalties.spectral_rivals import SpectralLogSum, TruncatedNuclear

__all__ = [
    "L1",
    "L12",
    "MCP",
    "BoundedL12",
    "CappedL1",
    "ColumnsL12",
    "GroupL12",
    "LogSum",
    "Lp",
    "NoPenalty",
    "RowsL12",
    "Spectral",
    "SpectralL12",
    "SpectralLogSum",
    "SquaredFrobenius",
    "TruncatedNuclear",
    "WithIntercept",
]
