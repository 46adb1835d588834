"""Penalties: frozen dataclasses of numbers with a value and a closed-form proximal operator.

`L12`, `L1`, `GroupL12`, `RowsL12` and `SpectralL12` are the package's own; `LogSum`,
`CappedL1`, `Lp` and `MCP`, and of matrices `SpectralLogSum` and `TruncatedNuclear`, are there to compare with.
Each prox is a global minimiser.

A new penalty is one dataclass with ``alpha``, ``value`` and ``prox``; `PenaltyBase` is the base class of all.
`ell12.protocols` says what else it may offer, and what that opens: `DifferencePenalty` serves SCP and DCA,
`CertifyingPenalty` gives an exact stationarity, and `PiecewisePenalty` serves Newton's method and working sets.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
