"""Data by seed, data from files and data that ships with other packages: nothing here is downloaded."""

from ell12.datasets.images import STAND_INS, photographs
from ell12.datasets.ratings import Ratings, load_ratings
from ell12.datasets.sparse import COMPRESSED_SENSING_SETUPS, SparseProblem, compressed_sensing, correlated_design
from ell12.datasets.synthetic_ratings import synthetic_ratings

__all__ = [
    "COMPRESSED_SENSING_SETUPS",
    "STAND_INS",
    "Ratings",
    "SparseProblem",
    "compressed_sensing",
    "correlated_design",
    "load_ratings",
    "photographs",
    "synthetic_ratings",
]
