"""Solutions over a grid of strengths, one after the other or side by side."""

from ell12.path.path import (
    alpha_grid,
    alpha_max,
    falling,
    l12_path,
    l12_penalty,
    one_sparse_fit,
    solution_path,
    squared_loss,
)

__all__ = [
    "alpha_grid",
    "alpha_max",
    "falling",
    "l12_path",
    "l12_penalty",
    "one_sparse_fit",
    "solution_path",
    "squared_loss",
]
