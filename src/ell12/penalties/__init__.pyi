"""The names of this package, and where they live: for type checkers and the package itself."""

from ell12.penalties.concave import SCAD as SCAD
from ell12.penalties.concave import TransformedL1 as TransformedL1
from ell12.penalties.l12 import L1 as L1
from ell12.penalties.l12 import L12 as L12
from ell12.penalties.l12 import GroupL12 as GroupL12
from ell12.penalties.l12 import RowsL12 as RowsL12
from ell12.penalties.penalty_base import PenaltyBase as PenaltyBase
from ell12.penalties.penalty_base import WithIntercept as WithIntercept
from ell12.penalties.penalty_base import with_strength as with_strength
from ell12.penalties.separable import MCP as MCP
from ell12.penalties.separable import CappedL1 as CappedL1
from ell12.penalties.separable import LogSum as LogSum
from ell12.penalties.separable import Lp as Lp
from ell12.penalties.spectral import NoPenalty as NoPenalty
from ell12.penalties.spectral import Spectral as Spectral
from ell12.penalties.spectral import SpectralL12 as SpectralL12
from ell12.penalties.spectral import SpectralLogSum as SpectralLogSum
from ell12.penalties.spectral import TruncatedNuclear as TruncatedNuclear
