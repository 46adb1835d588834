"""The options of the functions of images, and what their solvers declare."""

import inspect

import numpy as np
import pytest

import ell12
from ell12.protocols import missing, offers
from ell12.restoration import denoise as denoising
from ell12.restoration import inpaint as inpainting
from ell12.restoration import known_operator as deblurring
from ell12.restoration import known_operator as measurements
from ell12.restoration.variation import ImageLoss, ImageSolver, SmoothImageLoss, VariationPenalty

MASK = np.eye(8, dtype=bool)
CALLS = {
    "denoise_tv": lambda **options: ell12.denoise_tv(np.ones((8, 8)), 0.1, **options),
    "deblur_tv": lambda **options: ell12.deblur_tv(np.ones((8, 8)), np.ones((3, 3)), 0.1, **options),
    "inpaint_tv": lambda **options: ell12.inpaint_tv(np.ones((8, 8)), MASK, 0.1, **options),
    "reconstruct_mri": lambda **options: ell12.reconstruct_mri(np.ones((8, 8)), MASK, 0.1, **options),
    "restore_tv": lambda **options: ell12.restore_tv(np.ones(64), np.eye(64), 0.1, shape=(8, 8), **options),
}
# No two are alike, and none is a default.
OPTIONS = {
    "l2_weight": 0.25,
    "smoothing": 0.02,
    "noise": 0.03,
    "colour": False,
    "spins": 2,
    "bounds": (0.0, 2.0),
    "isotropic": True,
    "spacing": (1.0, 2.0),
    "loss": "absolute",
    "solver": ell12.GrowingADMM(),
    "tol": 0.04,
    "max_iter": 7,
    "measure": {"size": np.size},
    "objectives": True,
    "stop": lambda history: True,
    "checkpoint": "run.npz",
    "checkpoint_seconds": 5.0,
    "resume": 1,
    "return_result": 3,
}
SOLVERS = [
    ell12.SmoothedGradient(),
    ell12.AlternatingMinimization(),
    ell12.TotalVariationDCA(),
    ell12.GrowingADMM(),
]


def parameters(name):
    return inspect.signature(getattr(ell12, name)).parameters


@pytest.mark.parametrize("name", CALLS)
def test_every_option_stands_in_the_signature(name):
    shown = parameters(name)
    assert {p.kind for p in shown.values()} == {
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    }
    own = {"tol", "boundary"} | ({"l2_weight"} if name == "deblur_tv" else set())
    for option, parameter in parameters("denoise_tv").items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and option not in own:
            assert shown[option].default == parameter.default
            assert shown[option].annotation == parameter.annotation
    assert {*OPTIONS, "channel_axis", "batch_axis", "boundary"} <= set(shown)


@pytest.mark.parametrize("boundary", ["neumann", "periodic"])
@pytest.mark.parametrize("name", CALLS)
def test_every_option_arrives_under_its_own_name(name, boundary, monkeypatch):
    seen = {}

    class Recorder:
        def __init__(self, *data):
            *_, model, run = data
            seen.update(vars(model) | vars(run))

        def restore(self, *arguments):
            return None

    for module in (denoising, deblurring, inpainting, measurements):
        monkeypatch.setattr(module, "ImageProblem", Recorder)
    CALLS[name](boundary=boundary, **OPTIONS)
    assert seen == OPTIONS | {"boundary": boundary, "channel_axis": None}


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
