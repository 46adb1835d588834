"""The names of this package, and where they live: for type checkers and the package itself."""

from .denoise import denoise_tv as denoise_tv
from .denoise import inpaint_tv as inpaint_tv
from .known_operator import deblur_tv as deblur_tv
from .known_operator import reconstruct_mri as reconstruct_mri
from .known_operator import restore_tv as restore_tv
from .restore import Restoration as Restoration
from .sigma import estimate_sigma as estimate_sigma
from .smoothed_gradient import SmoothedGradient as SmoothedGradient
from .splitting import AlternatingMinimization as AlternatingMinimization
from .splitting import GrowingADMM as GrowingADMM
from .total_variation import TotalVariationL12 as TotalVariationL12
