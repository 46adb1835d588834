"""Solutions over a grid of strengths."""

from ell12.path.paths import Path, l12_path, path_results, solution_path, squared_loss
from ell12.path.strengths import (
    alpha_grid,
    alpha_max,
    best_on_log_grid,
    falling,
    first_strength,
    grid_size,
    one_sparse_fit,
)

__all__ = ["Path", "alpha_grid", "alpha_max", "best_on_log_grid", "l12_path", "one_sparse_fit", "solution_path"]
