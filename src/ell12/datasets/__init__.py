"""Data by seed and data that ships with other packages: nothing here is downloaded."""

from ell12.datasets.images import STAND_INS, phantom, photographs, piecewise_constant, radial_lines
from ell12.datasets.sparse import COMPRESSED_SENSING_SETUPS, SparseProblem, compressed_sensing, correlated_design

__all__ = [
    "COMPRESSED_SENSING_SETUPS",
    "STAND_INS",
    "SparseProblem",
    "compressed_sensing",
    "correlated_design",
    "phantom",
    "photographs",
    "piecewise_constant",
    "radial_lines",
]
