"""The names of this package, and where they live: for type checkers and the package itself."""

from .concave import SCAD as SCAD
from .concave import TransformedL1 as TransformedL1
from .l12 import L1 as L1
from .l12 import L12 as L12
from .l12 import GroupL12 as GroupL12
from .l12 import RowsL12 as RowsL12
from .penalty_base import PenaltyBase as PenaltyBase
from .penalty_base import WithIntercept as WithIntercept
from .penalty_base import with_strength as with_strength
from .separable import MCP as MCP
from .separable import CappedL1 as CappedL1
from .separable import LogSum as LogSum
from .separable import Lp as Lp
from .spectral import NoPenalty as NoPenalty
from .spectral import Spectral as Spectral
from .spectral import SpectralL12 as SpectralL12
from .spectral import SpectralLogSum as SpectralLogSum
from .spectral import TruncatedNuclear as TruncatedNuclear
