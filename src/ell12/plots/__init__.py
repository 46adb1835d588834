"""Pictures of paths, of cross-validation and of selections; matplotlib is loaded when the first one is drawn."""

from ell12.plots.criteria import plot_criteria
from ell12.plots.intervals import plot_intervals
from ell12.plots.paths import plot_completion_path, plot_cross_validation, plot_path
from ell12.plots.stability import plot_stability

__all__ = [
    "plot_completion_path",
    "plot_criteria",
    "plot_cross_validation",
    "plot_intervals",
    "plot_path",
    "plot_stability",
]
