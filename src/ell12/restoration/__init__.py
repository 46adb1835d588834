"""Image restoration by l1-2 total variation: denoising, deblurring, inpainting, MRI, any linear operator."""

from ell12.restoration.denoise import denoise_tv, inpaint_tv
from ell12.restoration.known_operator import deblur_tv, reconstruct_mri, restore_tv
from ell12.restoration.restore import Restoration
from ell12.restoration.sigma import estimate_sigma
from ell12.restoration.smoothed_gradient import SmoothedGradient
from ell12.restoration.splitting import AlternatingMinimization, GrowingADMM
from ell12.restoration.total_variation import TotalVariationL12

__all__ = [
    "AlternatingMinimization",
    "GrowingADMM",
    "Restoration",
    "SmoothedGradient",
    "TotalVariationL12",
    "deblur_tv",
    "denoise_tv",
    "estimate_sigma",
    "inpaint_tv",
    "reconstruct_mri",
    "restore_tv",
]
