"""Low-rank matrices from known entries."""

from ell12.completion.complete import Completion, CompletionPath, complete_matrix, completion_path
from ell12.completion.least_squares import AlternatingLeastSquares
from ell12.completion.low_rank import LowRank
from ell12.completion.matrix_apg import BlockAPG, FactoredAPG, FullSVD
from ell12.completion.observed import Observed
from ell12.completion.offsets import Offsets
from ell12.completion.ranking import Recommendations
from ell12.completion.squared_error import CompletionLoss

__all__ = [
    "AlternatingLeastSquares",
    "BlockAPG",
    "Completion",
    "CompletionLoss",
    "CompletionPath",
    "FactoredAPG",
    "FullSVD",
    "LowRank",
    "Observed",
    "Offsets",
    "Recommendations",
    "complete_matrix",
    "completion_path",
]
