"""The methods that the paper compares with, each a solver for `ell12.minimize`.

Those of matrix completion
work on NumPy arrays. AIS-Impute, FaNCL and Soft-Impute take a spectral penalty; the others have parameters of
their own and are run with `NoPenalty`.
"""

from ell12_paper.rivals.ais_impute import AISImpute
from ell12_paper.rivals.arss_m3f import ARSSM3F
from ell12_paper.rivals.er1mp import ER1MP
from ell12_paper.rivals.fancl import FaNCL
from ell12_paper.rivals.frobenius import SquaredFrobenius
from ell12_paper.rivals.lmafit import LMaFit
from ell12_paper.rivals.matrix_dc import MatrixDCA, MatrixSequentialConvex
from ell12_paper.rivals.numerical_apg import NumericalAPG
from ell12_paper.rivals.sketchy_cgm import SketchyCGM
from ell12_paper.rivals.soft_impute import SoftImpute
from ell12_paper.rivals.stopping import objective_settled

__all__ = [
    "ARSSM3F",
    "ER1MP",
    "AISImpute",
    "FaNCL",
    "LMaFit",
    "MatrixDCA",
    "MatrixSequentialConvex",
    "NumericalAPG",
    "SketchyCGM",
    "SoftImpute",
    "SquaredFrobenius",
    "objective_settled",
]
