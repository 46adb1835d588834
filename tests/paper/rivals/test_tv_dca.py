"""Total variation by DCA reaches convex optima, and its options change the way alone."""

import numpy as np
import pytest
from tests.restoration import short
from tests.restoration.oracles import least_objective, noisy

import ell12
from ell12_paper.rivals import TotalVariationDCA


@pytest.mark.parametrize("isotropic", [False, True])
def test_dca_reaches_the_least_true_total_variation(isotropic):
    y = noisy((24, 24))
    expected = least_objective(y, 0.1, isotropic=isotropic)
    options = {"l2_weight": 0, "isotropic": isotropic, "max_iter": 400, "tol": 1e-3, "return_result": True}
    found = short.denoise_tv(y, 0.1, solver=TotalVariationDCA(inner_tol=1e-6), **options)
    assert expected * (1 - 1e-6) <= found.result.objective <= expected * (1 + 1e-4)


def test_dca_ends_when_only_flat_regions_turn_below_the_smoothed_problem():
    y = noisy((24, 24))
    found = short.denoise_tv(y, 0.1, solver=TotalVariationDCA(), max_iter=30, return_result=True).result
    assert found.converged
    longer = short.denoise_tv(y, 0.1, solver=TotalVariationDCA(), tol=0, max_iter=30, return_result=True).result
    assert found.objective <= min(longer.history["objective"]) * (1 + 5e-3)
    smooth = short.denoise_tv(y, 0.1)
    assert found.objective < 0.5 * np.sum((smooth - y) ** 2) + ell12.TotalVariationL12(0.1).value(smooth)


@pytest.mark.parametrize("options", [{"inner": "cg", "cg_tol": 1e-12}, {"warm_start": False}], ids=str)
def test_options_of_dca_change_the_way_and_not_the_problems(options):
    y = np.random.default_rng(5).random((12, 10))
    solvers = [TotalVariationDCA(inner_tol=1e-9, inner_max_iter=5000, **given) for given in (options, {})]
    run = {"tol": 0, "max_iter": 3, "return_result": True}
    found, plain = (short.denoise_tv(y, 0.1, solver=solver, **run) for solver in solvers)
    np.testing.assert_allclose(found.image, plain.image, atol=1e-6)


def test_dca_refuses_other_losses():
    y = noisy((8, 8))
    loss = ell12.SquaredLoss(np.eye(8), y, scale=0.5)
    with pytest.raises(ValueError, match="SquaredLoss of scale 1"):
        ell12.minimize(loss, ell12.TotalVariationL12(0.05, smoothing=0.0), solver=TotalVariationDCA())
