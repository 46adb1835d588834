"""Data by seed, data from files and data that ships with other packages: nothing here is downloaded."""

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
)
from ell12.datasets.loading import as_ratings, load_ratings
from ell12.datasets.ratings import Ratings
from ell12.datasets.synthetic_ratings import synthetic_ratings

__all__ = [
    "COMPRESSED_SENSING_SETUPS",
    "STAND_INS",
    "Ratings",
    "SparseProblem",
    "as_ratings",
    "compressed_sensing",
    "correlated_design",
    "load_ratings",
    "phantom",
    "photographs",
    "piecewise_constant",
    "radial_lines",
    "synthetic_ratings",
]
