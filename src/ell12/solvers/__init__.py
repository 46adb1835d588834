"""Solvers: each a frozen dataclass of options with a generator of iterates."""

from ell12.solvers.columnwise import ColumnwiseAPG
from ell12.solvers.dca import DCA
from ell12.solvers.proximal_gradient import FISTA, NonmonotoneAPG, ProximalGradient
from ell12.solvers.sequential_convex import SequentialConvex
from ell12.solvers.stochastic import SAGA, ProxSVRG
from ell12.solvers.support.newton import SupportNewton
from ell12.solvers.support.working_set import WorkingSet

__all__ = [
    "DCA",
    "FISTA",
    "SAGA",
    "ColumnwiseAPG",
    "NonmonotoneAPG",
    "ProxSVRG",
    "ProximalGradient",
    "SequentialConvex",
    "SupportNewton",
    "WorkingSet",
]
