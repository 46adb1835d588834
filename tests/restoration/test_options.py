"""The options of the functions of images, and what their solvers declare."""

import inspect

import numpy as np
import pytest
from tests.restoration import short

import ell12
from ell12.protocols import missing, offers
from ell12.restoration.smoothed_gradient import ImageLoss, ImageSolver, SmoothImageLoss, VariationPenalty

MASK = np.eye(8, dtype=bool)
CALLS = {
    "denoise_tv": lambda **options: short.denoise_tv(np.ones((8, 8)), 0.1, **options),
    "deblur_tv": lambda **options: short.deblur_tv(np.ones((8, 8)), np.ones((3, 3)), 0.1, **options),
    "inpaint_tv": lambda **options: short.inpaint_tv(np.ones((8, 8)), MASK, 0.1, **options),
    "reconstruct_mri": lambda **options: short.reconstruct_mri(np.ones((8, 8)), MASK, 0.1, **options),
    "restore_tv": lambda **options: short.restore_tv(np.ones(64), np.eye(64), 0.1, shape=(8, 8), **options),
}
# No two are alike, and none is a default.
OPTIONS = {
    "l2_weight": 0.25,
    "smoothing": 0.02,
    "sigma": 0.03,
    "colour": False,
    "spins": 2,
    "bounds": (0.0, 2.0),
    "isotropic": True,
    "spacing": (1.0, 2.0),
    "loss": "absolute",
    "solver": ell12.restoration.GrowingADMM(),
    "tol": 0.04,
    "max_iter": 7,
    "measure": {"size": np.size},
    "objectives": True,
    "callback": lambda history: True,
    "checkpoint": "run.npz",
    "checkpoint_seconds": 5.0,
    "resume": 1,
    "return_result": 3,
}
SOLVERS = [
    ell12.restoration.SmoothedGradient(),
    ell12.restoration.AlternatingMinimization(),
    ell12.restoration.TotalVariationDCA(),
    ell12.restoration.GrowingADMM(),
]


def parameters(name):
    return inspect.signature(getattr(ell12, name)).parameters


def test_the_solvers_of_images_declare_what_they_need():
    for solver in SOLVERS:
        assert offers(solver, ImageSolver)
        needed = SmoothImageLoss if solver.smooths else ImageLoss
        assert (solver.needs.loss, solver.needs.penalty) == (needed, VariationPenalty)
    assert not offers(ell12.FISTA(), ImageSolver)
    assert missing(ell12.TotalVariationL12(1.0), VariationPenalty) == []
    assert {"differences", "smoothing"} <= set(missing(ell12.L12(1.0), VariationPenalty))


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_a_solver_of_images_says_what_another_penalty_lacks(solver):
    loss = ell12.SquaredLoss(np.eye(3), np.ones(3))
    assert offers(loss, SmoothImageLoss)
    with pytest.raises(TypeError, match=f"{type(solver).__name__} needs .* L12 lacks .*smoothing"):
        ell12.minimize(loss, ell12.L12(1.0), solver=solver)
