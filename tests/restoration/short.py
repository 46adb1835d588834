"""The functions of images with the shape of the penalty as plain keywords: tests compare many shapes."""

import ell12
from ell12.minimization import Checkpoint
from ell12.operators import Reshaped

SHAPE = {"l2_weight", "smoothing", "isotropic", "boundary", "bounds", "spacing", "colour", "ndim"}
RUN = {"callback", "measure", "checkpoint"}


def short(function, **defaults):
    """The function, which makes a penalty of some keywords and a Run of others."""

    def call(*arguments, **options):
        shape = {name: options.pop(name) for name in SHAPE & options.keys()}
        run = {name: options.pop(name) for name in RUN & options.keys()}
        options |= {"penalty": ell12.TotalVariationL12(**(defaults | shape))} if shape else {}
        if "checkpoint" in run:
            seconds, resume = options.pop("checkpoint_seconds", 60.0), options.pop("resume", False)
            run["checkpoint"] = Checkpoint(run["checkpoint"], seconds, resume)
        options |= {"run": ell12.Run(**run)} if run else {}
        return function(*arguments, **options)

    return call


denoise_tv = short(ell12.denoise_tv)
deblur_tv = short(ell12.deblur_tv, l2_weight=0.0)
inpaint_tv = short(ell12.inpaint_tv)
reconstruct_mri = short(ell12.reconstruct_mri, boundary="periodic")
_restore_tv = short(ell12.restore_tv)


def restore_tv(y, A, *arguments, shape=None, **options):
    """An operator on vectors is given the shape of the image."""
    return _restore_tv(y, A if shape is None else Reshaped(A, shape), *arguments, **options)
