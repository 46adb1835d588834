"""The public names, in the order of the flow from data to results: for type checkers and the package itself."""

from .prox import (
    prox_l12 as prox_l12,
)
from .penalties import (
    L12 as L12,
    L1 as L1,
    GroupL12 as GroupL12,
    RowsL12 as RowsL12,
    SpectralL12 as SpectralL12,
    MCP as MCP,
)
from .operators.out_of_memory import Columns as Columns
from .losses import (
    SquaredLoss as SquaredLoss,
    LogisticLoss as LogisticLoss,
    HuberLoss as HuberLoss,
    PoissonLoss as PoissonLoss,
)
from .solvers import (
    FISTA as FISTA,
    NonmonotoneAPG as NonmonotoneAPG,
    SequentialConvex as SequentialConvex,
    DCA as DCA,
    WorkingSet as WorkingSet,
)
from .minimization import (
    minimize as minimize,
    Run as Run,
    Result as Result,
    Status as Status,
    stationarity as stationarity,
)
from .path import l12_path as l12_path, solution_path as solution_path
from .certificate import certify as certify, Certificate as Certificate
from .recovery import recover_sparse as recover_sparse
from .completion import (
    LowRank as LowRank,
    Observed as Observed,
    complete_matrix as complete_matrix,
    completion_path as completion_path,
)
from .completion.imputer import L12Imputer as L12Imputer
from .completion.recommender import L12Recommender as L12Recommender
from .restoration import (
    denoise_tv as denoise_tv,
    deblur_tv as deblur_tv,
    inpaint_tv as inpaint_tv,
    reconstruct_mri as reconstruct_mri,
    restore_tv as restore_tv,
    TotalVariationL12 as TotalVariationL12,
)
from .linear_model import (
    L12Regressor as L12Regressor,
    L12RegressorCV as L12RegressorCV,
    L12Classifier as L12Classifier,
    L12ClassifierCV as L12ClassifierCV,
    L12CoxRegressor as L12CoxRegressor,
    L12CoxRegressorCV as L12CoxRegressorCV,
)
from .selection import (
    StabilitySelection as StabilitySelection,
    information_criteria as information_criteria,
    summary as summary,
    confidence_intervals as confidence_intervals,
)

from . import (
    backend as backend,
    completion as completion,
    datasets as datasets,
    distributed as distributed,
    linear_model as linear_model,
    losses as losses,
    minimization as minimization,
    operators as operators,
    path as path,
    penalties as penalties,
    plots as plots,
    protocols as protocols,
    prox as prox,
    restoration as restoration,
    selection as selection,
    solvers as solvers,
)

__version__: str
