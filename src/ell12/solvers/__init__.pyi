"""The names of this package, and where they live: for type checkers and the package itself."""

from ell12.solvers.dc_algorithms import DCA as DCA
from ell12.solvers.dc_algorithms import SequentialConvex as SequentialConvex
from ell12.solvers.newton import GroupNewton as GroupNewton
from ell12.solvers.newton import SupportNewton as SupportNewton
from ell12.solvers.proximal_gradient import (
    FISTA as FISTA,
)
from ell12.solvers.proximal_gradient import (
    NonmonotoneAPG as NonmonotoneAPG,
)
from ell12.solvers.proximal_gradient import (
    ProximalGradient as ProximalGradient,
)
from ell12.solvers.restarts import Restarts as Restarts
from ell12.solvers.stochastic import SAGA as SAGA
from ell12.solvers.stochastic import ProxSVRG as ProxSVRG
from ell12.solvers.working_set import WorkingSet as WorkingSet
