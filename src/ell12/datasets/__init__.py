"""Data by seed, ratings from files, and photographs that ship with scikit-image: nothing is downloaded."""

from ell12.datasets.by_seed import (
    COMPRESSED_SENSING_SETUPS,
    STAND_INS,
    SparseProblem,
    compressed_sensing,
    correlated_design,
    phantom,
    photographs,
    piecewise_constant,
    radial_lines,
    synthetic_ratings,
)
from ell12.datasets.rating_files import load_ratings
from ell12.datasets.ratings import Ratings

__all__ = [
    "COMPRESSED_SENSING_SETUPS",
    "STAND_INS",
    "Ratings",
    "SparseProblem",
    "compressed_sensing",
    "correlated_design",
    "load_ratings",
    "phantom",
    "photographs",
    "piecewise_constant",
    "radial_lines",
    "synthetic_ratings",
]
