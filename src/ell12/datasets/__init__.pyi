"""The names of this package, and where they live: for type checkers and the package itself."""

from .by_seed import COMPRESSED_SENSING_SETUPS as COMPRESSED_SENSING_SETUPS
from .by_seed import SparseProblem as SparseProblem
from .by_seed import compressed_sensing as compressed_sensing
from .by_seed import correlated_design as correlated_design
from .by_seed import phantom as phantom
from .by_seed import piecewise_constant as piecewise_constant
from .by_seed import radial_lines as radial_lines
from .by_seed import synthetic_ratings as synthetic_ratings
from .ratings import Ratings as Ratings
from .ratings import load_ratings as load_ratings
