"""Data by seed, and ratings from files: nothing is downloaded."""

from ell12.datasets.by_seed import (
    COMPRESSED_SENSING_SETUPS,
    SparseProblem,
    compressed_sensing,
    correlated_design,
    phantom,
    piecewise_constant,
    radial_lines,
    synthetic_ratings,
)
from ell12.datasets.ratings import Ratings, load_ratings

__all__ = [
    "COMPRESSED_SENSING_SETUPS",
    "Ratings",
    "SparseProblem",
    "compressed_sensing",
    "correlated_design",
    "load_ratings",
    "phantom",
    "piecewise_constant",
    "radial_lines",
    "synthetic_ratings",
]
