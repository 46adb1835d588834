"""Low-rank matrix completion: the matrix type, the engines, the imputer."""

from ell12.completion.loss import CompletionLoss
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed, as_observed

__all__ = ["CompletionLoss", "LowRank", "Observed", "as_observed"]
