"""Image restoration by l1-2 total variation: denoising, deblurring, inpainting, MRI, any linear operator."""

from ell12.restoration.functions import (
    Restoration,
    deblur_tv,
    denoise_tv,
    inpaint_tv,
    reconstruct_mri,
    restore_tv,
)
from ell12.restoration.smoothed_gradient import SmoothedGradient
from ell12.restoration.total_variation import TotalVariationL12

__all__ = [
    "Restoration",
    "SmoothedGradient",
    "TotalVariationL12",
    "deblur_tv",
    "denoise_tv",
    "inpaint_tv",
    "reconstruct_mri",
    "restore_tv",
]
