"""Learning with the nonconvex l1-2 regulariser ``||x||_1 - ||x||_2``.

A loss and a penalty make a problem; a solver yields iterates; `minimize` turns them into a result.
Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

# Where each public name lives, in the order of the flow from data to results.
_HOMES = {
    "prox": (
        "prox_l12",
        "prox_l12_groups",
        "prox_l12_iterative",
        "prox_l12_spectral",
        "moreau_l12",
    ),
    "penalties": (
        "L12",
        "L1",
        "GroupL12",
        "RowsL12",
        "ColumnsL12",
        "SpectralL12",
        "LogSum",
        "CappedL1",
        "Lp",
        "MCP",
        "SpectralLogSum",
        "TruncatedNuclear",
        "NoPenalty",
    ),
    "losses": (
        "SquaredLoss",
        "LogisticLoss",
        "HuberLoss",
        "QuadraticLoss",
        "StreamedLoss",
    ),
    "solvers": (
        "ProximalGradient",
        "FISTA",
        "NonmonotoneAPG",
        "SequentialConvex",
        "DCA",
        "SupportNewton",
        "ColumnwiseAPG",
        "ProxSVRG",
        "SAGA",
        "WorkingSet",
    ),
    "protocols": ("DataUnavailable",),
    "minimization": (
        "minimize",
        "Result",
        "Status",
        "stationarity",
    ),
    "path": ("l12_path", "penalty_path"),
    "completion": (
        "LowRank",
        "Observed",
        "as_observed",
        "CompletionLoss",
        "BlockAPG",
        "FactoredAPG",
        "AlternatingLeastSquares",
        "FullSVD",
        "MatrixSequentialConvex",
        "MatrixDCA",
        "complete_matrix",
        "Completion",
        "completion_path",
        "CompletionPath",
    ),
    "completion.imputer": ("L12Imputer",),
    "restoration": (
        "denoise_tv",
        "deblur_tv",
        "inpaint_tv",
        "reconstruct_mri",
        "restore_tv",
        "Restoration",
        "TotalVariationL12",
        "SmoothedGradient",
        "AlternatingMinimization",
        "TotalVariationDCA",
        "GrowingADMM",
    ),
    "linear_model": (
        "L12Regressor",
        "L12RegressorCV",
        "L12Classifier",
        "L12ClassifierCV",
    ),
    "plots": ("plot_path", "plot_cross_validation", "plot_completion_path"),
}
_MODULES = (
    "backend",
    "completion",
    "datasets",
    "distributed",
    "experiments",
    "linear_model",
    "losses",
    "operators",
    "path",
    "penalties",
    "plots",
    "prox",
    "restoration",
    "solvers",
)
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from ell12.completion import (
        AlternatingLeastSquares,
        BlockAPG,
        Completion,
        CompletionLoss,
        CompletionPath,
        FactoredAPG,
        FullSVD,
        LowRank,
        MatrixDCA,
        MatrixSequentialConvex,
        Observed,
        as_observed,
        complete_matrix,
        completion_path,
    )
    from ell12.completion.imputer import L12Imputer
    from ell12.linear_model import L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV
    from ell12.losses import HuberLoss, LogisticLoss, QuadraticLoss, SquaredLoss, StreamedLoss
    from ell12.minimization import Result, Status, minimize, stationarity
    from ell12.path import l12_path, penalty_path
    from ell12.penalties import (
        L1,
        L12,
        MCP,
        CappedL1,
        ColumnsL12,
        GroupL12,
        LogSum,
        Lp,
        NoPenalty,
        RowsL12,
        SpectralL12,
        SpectralLogSum,
        TruncatedNuclear,
    )
    from ell12.plots import plot_completion_path, plot_cross_validation, plot_path
    from ell12.protocols import DataUnavailable
    from ell12.prox import moreau_l12, prox_l12, prox_l12_groups, prox_l12_iterative, prox_l12_spectral
    from ell12.restoration import (
        AlternatingMinimization,
        GrowingADMM,
        Restoration,
        SmoothedGradient,
        TotalVariationDCA,
        TotalVariationL12,
        deblur_tv,
        denoise_tv,
        inpaint_tv,
        reconstruct_mri,
        restore_tv,
    )
    from ell12.solvers import (
        DCA,
        FISTA,
        SAGA,
        ColumnwiseAPG,
        NonmonotoneAPG,
        ProximalGradient,
        ProxSVRG,
        SequentialConvex,
        SupportNewton,
        WorkingSet,
    )

__all__ = [
    "DCA",
    "FISTA",
    "L1",
    "L12",
    "MCP",
    "SAGA",
    "AlternatingLeastSquares",
    "AlternatingMinimization",
    "BlockAPG",
    "CappedL1",
    "ColumnsL12",
    "ColumnwiseAPG",
    "Completion",
    "CompletionLoss",
    "CompletionPath",
    "DataUnavailable",
    "FactoredAPG",
    "FullSVD",
    "GroupL12",
    "GrowingADMM",
    "HuberLoss",
    "L12Classifier",
    "L12ClassifierCV",
    "L12Imputer",
    "L12Regressor",
    "L12RegressorCV",
    "LogSum",
    "LogisticLoss",
    "LowRank",
    "Lp",
    "MatrixDCA",
    "MatrixSequentialConvex",
    "NoPenalty",
    "NonmonotoneAPG",
    "Observed",
    "ProxSVRG",
    "ProximalGradient",
    "QuadraticLoss",
    "Restoration",
    "Result",
    "RowsL12",
    "SequentialConvex",
    "SmoothedGradient",
    "SpectralL12",
    "SpectralLogSum",
    "SquaredLoss",
    "Status",
    "StreamedLoss",
    "SupportNewton",
    "TotalVariationDCA",
    "TotalVariationL12",
    "TruncatedNuclear",
    "WorkingSet",
    "as_observed",
    "complete_matrix",
    "completion_path",
    "deblur_tv",
    "denoise_tv",
    "inpaint_tv",
    "l12_path",
    "minimize",
    "moreau_l12",
    "penalty_path",
    "plot_completion_path",
    "plot_cross_validation",
    "plot_path",
    "prox_l12",
    "prox_l12_groups",
    "prox_l12_iterative",
    "prox_l12_spectral",
    "reconstruct_mri",
    "restore_tv",
    "stationarity",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"ell12.{_HOME_OF[name]}"), name)
    if name in _MODULES:
        return import_module(f"ell12.{name}")
    raise AttributeError(f"module 'ell12' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
