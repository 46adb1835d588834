"""The methods that the paper compares with, each a solver for `ell12.minimize`.

Those of matrix completion work on NumPy arrays. AIS-Impute, FaNCL and Soft-Impute take a spectral penalty; the
others have parameters of their own and are run with `NoPenalty`.
"""

from ell12_paper.rivals.arss_m3f import ARSSM3F
from ell12_paper.rivals.difference_of_convex import MatrixDCA, NumericalAPG
from ell12_paper.rivals.impute import AISImpute, FaNCL, SoftImpute
from ell12_paper.rivals.lmafit import LMaFit
from ell12_paper.rivals.rank_one import ER1MP, SketchyCGM
from ell12_paper.rivals.tv_dca import TotalVariationDCA

__all__ = ["ARSSM3F", "ER1MP", "AISImpute", "FaNCL", "LMaFit", "MatrixDCA", "NumericalAPG", "SketchyCGM",
           "SoftImpute", "TotalVariationDCA"]  # fmt: skip
