"""The function ``array``: NumPy's arrays as those of the library and device that the arguments name."""

import sys

if sys.argv[1] == "torch":
    import torch

    def array(values):
        return torch.asarray(values, device=sys.argv[2])

elif sys.argv[1] == "cupy":
    from cupy import asarray as array
elif sys.argv[1] == "jax":
    import jax

    jax.config.update("jax_enable_x64", True)
    array = jax.numpy.asarray
else:
    from array_api_strict import asarray as array

__all__ = ["array"]
