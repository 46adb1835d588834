"""Data by seed and data that ships with other packages: nothing here is downloaded."""

from ell12.datasets.images import photographs
from ell12.datasets.sparse import COMPRESSED_SENSING_SETUPS, SparseProblem, compressed_sensing, correlated_design

__all__ = ["COMPRESSED_SENSING_SETUPS", "SparseProblem", "compressed_sensing", "correlated_design", "photographs"]
