"""Image restoration by l1-2 total variation: denoising, deblurring, inpainting, MRI, any linear operator."""

from ell12.restoration.alternating import AlternatingMinimization
from ell12.restoration.deblurring import deblur_tv
from ell12.restoration.denoising import denoise_tv
from ell12.restoration.inpainting import inpaint_tv
from ell12.restoration.measurements import reconstruct_mri, restore_tv
from ell12.restoration.noise import estimate_noise
from ell12.restoration.problems import Restoration
from ell12.restoration.smoothed_gradient import SmoothedGradient
from ell12.restoration.splitting import GrowingADMM, TotalVariationDCA
from ell12.restoration.total_variation import TotalVariationL12

__all__ = [
    "AlternatingMinimization",
    "GrowingADMM",
    "Restoration",
    "SmoothedGradient",
    "TotalVariationDCA",
    "TotalVariationL12",
    "deblur_tv",
    "denoise_tv",
    "estimate_noise",
    "inpaint_tv",
    "reconstruct_mri",
    "restore_tv",
]
