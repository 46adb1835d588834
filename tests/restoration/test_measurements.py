"""Images from measurements: few Fourier coefficients without noise, operators of any kind."""

import numpy as np
import pytest
import scipy.sparse.linalg
from tests.restoration import short

import ell12
from ell12 import datasets


@pytest.mark.parametrize(
    ("lines", "unit", "options"),
    [(14, 1.0, {}), (14, 1e-6, {"real": True}), (11, 4095.0, {"bounds": (0, None)})],
    ids=["complex", "real", "bounds"],
)
def test_a_phantom_without_noise_is_found_from_few_lines_by_the_plain_call(lines, unit, options):
    clean = unit * datasets.phantom(64)
    mask = datasets.radial_lines(64, lines)
    x = short.reconstruct_mri(np.fft.fft2(clean, norm="ortho"), mask, sigma=0.0, **options)
    assert np.linalg.norm(x - clean) < 1e-3 * np.linalg.norm(clean)


def test_an_operator_without_an_adjoint_is_refused_with_words():
    forward = scipy.sparse.linalg.LinearOperator((3, 4), matvec=lambda x: x[:3], dtype=float)
    calls = [
        lambda: short.restore_tv(np.ones(3), forward, 0.1, shape=(2, 2)),
        lambda: ell12.SquaredLoss(forward, np.ones(3)),
        lambda: ell12.SquaredLoss(2 * forward, np.ones(3)),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"A has no adjoint: .*rmatvec"):
            call()
