"""The options of the functions of images, and what their solvers declare."""

import numpy as np
import pytest

import ell12
from ell12.protocols import missing, offers
from ell12.restoration.smoothed_gradient import ImageLoss, ImageSolver, SmoothImageLoss, VariationPenalty

# No two are alike, and none is a default.
SOLVERS = [
    ell12.restoration.SmoothedGradient(),
    ell12.restoration.AlternatingMinimization(),
    ell12.restoration.TotalVariationDCA(),
    ell12.restoration.GrowingADMM(),
]


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
