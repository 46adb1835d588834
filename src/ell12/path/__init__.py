"""Solutions over a grid of strengths, one after the other or side by side."""

from ell12.path.paths import l12_path, penalty_path, solution_path, squared_loss
from ell12.path.strengths import (
    alpha_grid,
    alpha_max,
    best_on_log_grid,
    falling,
    first_strength,
    grid_size,
    one_sparse_fit,
    vanishing_strength,
)
from ell12.path.structure import l12_penalty

__all__ = [
    "alpha_grid",
    "alpha_max",
    "best_on_log_grid",
    "falling",
    "first_strength",
    "grid_size",
    "l12_path",
    "l12_penalty",
    "one_sparse_fit",
    "penalty_path",
    "solution_path",
    "squared_loss",
    "vanishing_strength",
]
