"""The names of this package, and where they live: for type checkers and the package itself."""

from .dc_algorithms import DCA as DCA
from .dc_algorithms import SequentialConvex as SequentialConvex
from .newton import GroupNewton as GroupNewton
from .newton import SupportNewton as SupportNewton
from .proximal_gradient import (
    FISTA as FISTA,
)
from .proximal_gradient import (
    NonmonotoneAPG as NonmonotoneAPG,
)
from .proximal_gradient import (
    ProximalGradient as ProximalGradient,
)
from .restarts import Restarts as Restarts
from .stochastic import SAGA as SAGA
from .stochastic import ProxSVRG as ProxSVRG
from .working_set import WorkingSet as WorkingSet
