"""The proximal operator of l1-2: the public functions, the one kernel, and its compiled versions."""

from ell12.prox.functions import (
    moreau_l12,
    prox_l12,
    prox_l12_groups,
    prox_l12_iterative,
    prox_l12_spectral,
    soft_threshold,
)

__all__ = [
    "moreau_l12",
    "prox_l12",
    "prox_l12_groups",
    "prox_l12_iterative",
    "prox_l12_spectral",
    "soft_threshold",
]
