"""Images as Dask and Zarr arrays against the same images in memory."""

from __future__ import annotations

import errno
import gc
import itertools
import tempfile

import numpy as np
import pytest

from ell12 import GrowingADMM, SmoothedGradient, Status, deblur_tv, denoise_tv, inpaint_tv
from ell12.operators.images import flipped
from ell12.restoration import blocks
from ell12.restoration.bands import measures
from ell12.restoration.bands.arrays import BandedArray, Layout
from ell12.restoration.bands.files import Folder
from ell12.restoration.colour import is_coloured
from ell12.restoration.corners import corner_of
from ell12.restoration.noise import estimate_noise

pytest.importorskip("numba")
da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def _small_bands(monkeypatch, tmp_path):
    monkeypatch.setattr(blocks, "PIXELS", 1600)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def image(shape, seed=0, dtype=np.float64):
    """Flat parts with noise, heavier at the end of every axis."""
    rng = np.random.default_rng(seed)
    ramp = np.add.reduce(np.meshgrid(*(np.linspace(0, 1, n) for n in shape), indexing="ij"))
    noisy = 0.3 * (ramp > 0.6 * ramp.max()) + 0.4 + 0.05 * rng.standard_normal(shape)
    return (255 * noisy.clip(0, 1)).astype(np.uint8) if dtype == np.uint8 else noisy.astype(dtype)


def chunked(y, *chunks):
    return da.from_array(y, chunks=chunks)


CASES = [
    ((93, 50), (17, 50), {}, np.float64),
    ((93, 50), (1, 7), {"boundary": "periodic"}, np.float64),
    ((93, 50), ((5, 80, 8), (50,)), {"bounds": (0.3, 0.8)}, np.float64),
    ((40, 20, 3), (40, 20, 2), {"channel_axis": 2}, np.uint8),
    ((3, 40, 20), (3, 40, 20), {"channel_axis": 0, "colour": False}, np.float64),
    ((40, 10, 9), (3, 10, 9), {"spacing": (2, 1, 1)}, np.float64),
    ((93, 50), (50, 50), {"isotropic": True, "l2_weight": 0.0}, np.float64),
    ((7, 300), (7, 20), {}, np.float64),
]


@pytest.mark.parametrize(("shape", "chunks", "options", "dtype"), CASES)
def test_blocks_are_denoised_as_the_whole_is(shape, chunks, options, dtype):
    y = image(shape, dtype=dtype)
    options |= {"alpha": 0.03, "tol": 0.1, "return_result": True}
    whole, found = denoise_tv(y, **options), denoise_tv(chunked(y, *chunks), **options)
    assert found.converged
    assert found.runs[0].n_iter == whole.runs[0].n_iter > 2
    assert found.image.chunks == chunked(y, *chunks).chunks
    assert found.image.dtype == whole.image.dtype
    np.testing.assert_allclose(found.image.compute(), whole.image, atol=1e-6)
    np.testing.assert_allclose(found.runs[0].history["objective"], whole.runs[0].history["objective"], rtol=1e-5)


@pytest.mark.parametrize("corner", [1, -1])
def test_colours_in_blocks_are_restored_as_the_whole_is(corner):
    grey = image((93, 50))[::corner, ::corner]
    noise = 0.05 * np.random.default_rng(1).standard_normal((3, 93, 50))
    y = np.array([1, 0.9, 0.7])[:, None, None] * grey + noise
    options = {"alpha": 0.03, "tol": 0.1, "channel_axis": 0}
    whole = denoise_tv(y, **options)
    assert np.abs(whole - denoise_tv(y, colour=False, **options)).max() > 0.01
    np.testing.assert_allclose(denoise_tv(chunked(y, 3, 20, 30), **options).compute(), whole, atol=1e-6)
    mask = np.random.default_rng(1).random((93, 50)) < 0.7
    whole = inpaint_tv(y, mask, **options)
    np.testing.assert_allclose(inpaint_tv(chunked(y, 3, 20, 30), mask, **options).compute(), whole, atol=1e-6)
    for more, words in (({"bounds": (0, 1)}, "bounds"), ({"mask": mask != (noise > 0)}, "a mask that differs")):
        with pytest.raises(ValueError, match=f"{words}.* cannot be had for colours in blocks: give colour=False"):
            inpaint_tv(chunked(y, 3, 20, 30), **{"mask": mask} | more, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_image_that_is_its_own_mirror_image_begins_where_the_whole_does(dtype):
    quarter = np.random.default_rng(3).random((45, 31)).astype(dtype)
    y = np.block([[quarter, quarter[:, ::-1]], [quarter[::-1], quarter[::-1, ::-1]]])
    keeper = Folder()
    for cuts in itertools.pairwise(range(8, 88, 4)):
        layout = Layout(keeper, -2, (0, *cuts, 90))
        banded = BandedArray(layout, [keeper.keep(part) for part in layout.split(y)], y.shape, y.dtype)
        assert measures.corner_of(banded, 2) == corner_of(y, 2) == ()


@pytest.mark.parametrize("of_a_channel", [False, True])
def test_blocks_are_inpainted_as_the_whole_is(of_a_channel):
    y, rng = image((3, 61, 40)), np.random.default_rng(1)
    mask = rng.random(y.shape[1:] if of_a_channel else y.shape) < 0.5
    mask[..., 8:30, 5:38] = False  # larger than the squares over which means are taken band by band
    y = np.where(mask, y, np.nan)
    options = {"alpha": 0.01, "channel_axis": 0, "colour": False, "spins": 2, "max_iter": 8, "return_result": True}
    whole = inpaint_tv(y, mask, **options)
    for known in (mask, chunked(mask, *(9,) * mask.ndim)):
        found = inpaint_tv(chunked(y, 2, 30, 11), known, **options)
        np.testing.assert_allclose(found.image.compute(), whole.image, atol=1e-6)


def test_colours_are_told_from_other_channels_as_in_the_whole():
    rng, grey = np.random.default_rng(2), image((50, 70))
    for k, noise in itertools.product(range(4), (0.0, 0.3)):
        other = [grey, rng.random(grey.shape), np.roll(grey, k, 0)]
        y = np.stack([grey, *other[k % 3 :][:2], *other][:3]) + noise * rng.standard_normal((3, 50, 70))
        y = np.flip(y, axis=[(), (1,), (2,), (1, 2)][k])
        layout = Layout(Folder(), -2, (0, 16, 32, 50))
        banded = BandedArray(layout, layout.split(y), y.shape, y.dtype)
        problem = blocks.BandedProblem(banded, None, banded, 2, None, None)
        expected = is_coloured(flipped(y, problem.corner), 2, None)
        assert is_coloured(problem._pixels_from_the_corner, 2, None) == expected


def banded(y, *cuts):
    layout = Layout(Folder(), -2 if y.ndim == 2 else -y.ndim + (y.shape[0] == 3), cuts)
    return BandedArray(layout, layout.split(y), y.shape, y.dtype)


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("shape", [(181, 120), (3, 165, 200), (3, 101, 80), (101, 40, 30)])
def test_the_noise_is_that_of_the_whole(shape, missing, monkeypatch):
    monkeypatch.setattr(measures, "IN_MEMORY", 0)
    ndim = 2 if shape[0] == 3 else len(shape)
    for y in (image(shape), np.flip(image(shape), -ndim)):
        known = np.random.default_rng(1).random(shape) >= missing if missing else None
        cuts = (0, 32, 80, shape[-ndim])
        found = measures.noise_of(banded(y, *cuts), ndim, None if known is None else banded(known, *cuts))
        assert found == pytest.approx(estimate_noise(y, ndim, known), rel=1e-12)


@pytest.mark.parametrize(
    ("shape", "options"), [((181, 120), {}), ((60, 50), {}), ((3, 61, 50), {"channel_axis": 0})]
)
def test_the_strength_is_that_of_the_whole(shape, options):
    y, options = image(shape), options | {"max_iter": 1, "return_result": True}
    whole, found = denoise_tv(y, **options), denoise_tv(chunked(y, *shape), **options)
    assert found.alpha == pytest.approx(whole.alpha, rel=1e-9)
    assert found.noise == pytest.approx(whole.noise, rel=1e-6)
    if len(shape) == 2:
        mask = np.random.default_rng(1).random(shape) >= 0.1
        whole, found = inpaint_tv(y, mask, **options), inpaint_tv(chunked(y, *shape), mask, **options)
        assert found.alpha == pytest.approx(whole.alpha, rel=1e-9)


def test_a_batch_of_images_is_restored_image_by_image():
    y = np.stack([image((20, 20), seed) for seed in (1, 2)])
    found = denoise_tv(chunked(y, 1, 10, 20), 0.03, batch_axis=0)
    np.testing.assert_allclose(found.compute(), denoise_tv(y, 0.03, batch_axis=0), atol=1e-6)


def test_a_run_that_is_cut_short_says_so_and_is_certified_all_the_same():
    y = image((60, 50))
    with pytest.warns(RuntimeWarning, match="max_iter"):
        denoise_tv(chunked(y, 20, 50), 0.03, max_iter=1)
    options = {"max_iter": 2, "tol": 0.0, "return_result": True}
    run, whole = (denoise_tv(x, 0.03, **options).runs[0] for x in (chunked(y, 20, 50), y))
    assert run.status is Status.MAX_ITER
    assert run.stationarity == pytest.approx(whole.stationarity, rel=1e-6)
    options |= {"channel_axis": 0, "colour": True}
    y = image((3, 40, 30))
    run, whole = (denoise_tv(x, 0.03, **options).runs[0] for x in (chunked(y, 3, 20, 30), y))
    assert run.stationarity == pytest.approx(whole.stationarity, rel=1e-6)


def test_a_zarr_array_gives_a_zarr_array_whose_files_go_with_it(tmp_path):
    zarr = pytest.importorskip("zarr")
    y, mask = image((50, 40, 3)), np.random.default_rng(1).random((50, 40)) < 0.7
    noisy = zarr.create_array(store=tmp_path / "noisy", shape=y.shape, chunks=(20, 20, 3), dtype="f8")
    noisy[...] = y
    options = {"alpha": 0.02, "tol": 0.2, "channel_axis": -1}
    with pytest.raises(TypeError, match="batch_axis cannot be had with a Zarr array"):
        denoise_tv(noisy, 0.02, batch_axis=2)
    found = inpaint_tv(noisy, mask, **options)
    assert isinstance(found, zarr.Array)
    assert (found.shape, found.chunks, found.dtype) == (noisy.shape, noisy.chunks, noisy.dtype)
    np.testing.assert_allclose(found[...], inpaint_tv(y, mask, **options), atol=1e-6)
    assert len(temporary(tmp_path)) == 1
    del found
    gc.collect()
    assert not temporary(tmp_path)


def temporary(folder):
    return list(folder.glob("ell12-*"))


def test_files_live_as_long_as_the_image_that_reads_them(tmp_path):
    found = denoise_tv(chunked(image((60, 50)), 20, 50), 0.03)
    (folder,) = temporary(tmp_path)
    assert len(list(folder.iterdir())) == 2  # the result's bands: what the run needed is gone
    first = found[:5].compute()
    part = found[:5]
    del found
    gc.collect()
    np.testing.assert_array_equal(part.compute(), first)
    del part
    gc.collect()
    assert not temporary(tmp_path)


def test_no_file_is_left_behind_by_an_error(tmp_path):
    y = image((60, 50))
    y[40, 3] = np.nan
    with pytest.raises(ValueError, match="image holds NaN"):
        denoise_tv(chunked(y, 20, 50), 0.03)
    assert not temporary(tmp_path)


def test_ctrl_c_ends_with_the_best_image_and_leaves_no_other_file(tmp_path, monkeypatch):
    run, calls = Folder.run, itertools.count()

    def interrupted(self, function, columns, kept=0):
        if kept == 2 and next(calls) == 2:
            raise KeyboardInterrupt
        return run(self, function, columns, kept)

    monkeypatch.setattr(Folder, "run", interrupted)
    found = denoise_tv(chunked(image((60, 50)), 20, 50), 0.03, return_result=True)
    assert (found.runs[0].status, found.runs[0].n_iter) == (Status.STOPPED, 2)
    (folder,) = temporary(tmp_path)
    assert len(list(folder.iterdir())) == 2


def test_a_full_disk_is_told_in_words(tmp_path, monkeypatch):
    save, calls = np.save, itertools.count()

    def full(path, array):
        if next(calls) == 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(path, array)

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match=r"temporary files .*No space left on device.*TMPDIR"):
        denoise_tv(chunked(image((60, 50)), 20, 50), 0.03)
    assert not temporary(tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": "held-out"}, "alpha='held-out' cannot be had with a Dask array"),
        ({"solver": GrowingADMM()}, "solver=GrowingADMM.* cannot be had"),
        (
            {"isotropic": True},
            r"isotropic=True with l2_weight > 0 \(with 0 it can, nearly the same\) cannot be had",
        ),
        ({"smoothing": 0}, "smoothing=0 cannot be had"),
        ({"measure": {"mean": np.mean}}, "measure cannot be had"),
        ({"channel_axis": 0}, "an image of 1 axes cannot be had"),
        ({"channel_axis": 2}, "channel_axis 2 is out of range"),
    ],
)
def test_what_needs_the_whole_image_is_refused_in_words(options, words):
    with pytest.raises(ValueError, match=words):
        denoise_tv(chunked(image((20, 20)), 10, 10), **{"alpha": 0.1} | options)


def test_other_functions_say_who_takes_dask_arrays():
    y = chunked(image((20, 20)), 10, 10)
    with pytest.raises(TypeError, match="Dask Array, which denoise_tv and inpaint_tv alone take"):
        deblur_tv(y, np.ones((3, 3)) / 9, 0.1)
    with pytest.raises(ValueError, match=r"chunks of unknown shape: call image.compute_chunk_sizes\(\)"):
        denoise_tv(y[y[:, 0] > 0], 0.1)
    with pytest.raises(TypeError, match="mask must hold truth values"):
        inpaint_tv(y, y, 0.1)
    with pytest.raises(ValueError, match=r"mask of shape \(20, 10\) does not fit"):
        inpaint_tv(y, np.ones((20, 10), bool), 0.1)


def test_the_solver_may_be_named():
    y, solver = image((60, 50)), SmoothedGradient(threads=1)
    found = denoise_tv(chunked(y, 20, 50), 0.03, solver=solver)
    np.testing.assert_allclose(found.compute(), denoise_tv(y, 0.03), atol=1e-6)


def test_arrays_in_bands_are_the_arrays_that_they_hold():
    x = np.random.default_rng(0).standard_normal((2, 30, 7))
    keeper = Folder()
    layout = Layout(keeper, -2, (0, 16, 30))
    banded = BandedArray(layout, [keeper.keep(part) for part in layout.split(x)], x.shape, x.dtype)
    xp = banded.__array_namespace__()
    everything = (..., slice(0, 30), slice(0, 7))

    def equal(found, expected):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found[everything], expected)

    equal(2.0 * banded + banded / 4 - (-banded), 2.0 * x + x / 4 + x)
    equal(xp.astype(xp.clip(banded, -0.5, None), np.float32), np.clip(x, -0.5, None).astype(np.float32))
    for axes in [(-2,), (-1,), (-2, -1)]:
        equal(xp.flip(banded, axis=axes), np.flip(x, axes))
    equal(xp.flip(banded, axis=(-2,)).recut((0, 5, 23, 30)), np.flip(x, -2))
    np.testing.assert_array_equal((banded * banded)[..., 14:18, 2:5], (x * x)[:, 14:18, 2:5])
    assert float(xp.max(xp.abs(banded))) == np.abs(x).max()
    assert float(xp.min(banded)) == x.min()
    assert xp.sum(banded) == pytest.approx(x.sum())
    above, own, below = xp.flip(banded, axis=(-2,)).neighbourhoods(4, periodic=True)[1]
    upside_down = np.flip(x, -2)
    for rows, expected in [
        (above, upside_down[:, 10:14]),
        (own, upside_down[:, 14:]),
        (below, upside_down[:, :4]),
    ]:
        np.testing.assert_array_equal(rows.load(), expected)
