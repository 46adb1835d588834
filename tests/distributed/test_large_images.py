"""Dask and Zarr images against the same images in memory."""

import tempfile
import tracemalloc
from dataclasses import replace

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from ell12 import TotalVariationL12, restoration
from ell12.distributed import denoise_tv, inpaint_tv, large_images


@pytest.fixture(autouse=True)
def _small_bands(monkeypatch):
    monkeypatch.setattr(large_images, "PIXELS", 1600)


def image(shape, seed=0, dtype=np.float64):
    """Flat parts with noise, the lighter ones at the beginning of every axis, where differences then begin."""
    rng = np.random.default_rng(seed)
    ramp = np.add.reduce(np.meshgrid(*(np.linspace(1, 0, n) for n in shape), indexing="ij"))
    noisy = 0.3 * (ramp > 0.6 * ramp.max()) + 0.4 + 0.05 * rng.standard_normal(shape)
    return (255 * noisy.clip(0, 1)).astype(np.uint8) if dtype == np.uint8 else noisy.astype(dtype)


def chunked(y, *chunks):
    return da.from_array(y, chunks=chunks)


SHAPE = {"smoothing": 0.004}
CASES = [
    ((92, 50), (17, 50), {}, np.float64),
    ((92, 50), (17, 50), SHAPE, np.float32),
    ((92, 50), (1, 7), SHAPE | {"boundary": "periodic"}, np.float64),
    ((92, 50), ((5, 80, 7), (50,)), SHAPE | {"bounds": (0.3, 0.8)}, np.float64),
    ((40, 10, 9), (3, 10, 9), SHAPE | {"spacing": (2, 1, 1), "ndim": 3}, np.float64),
    ((92, 50), (50, 50), SHAPE | {"isotropic": True, "l2_weight": 0.0}, np.float64),
]


@pytest.mark.parametrize(("shape", "chunks", "options", "dtype"), CASES)
def test_bands_are_denoised_as_the_whole_is(shape, chunks, options, dtype):
    y, penalty = image(shape, dtype=dtype), TotalVariationL12(1.0, **options) if options else None
    found = denoise_tv(chunked(y, *chunks), 0.03, penalty=penalty, tol=0.1)
    whole = restoration.denoise_tv(y, 0.03, tol=0.1, penalty=penalty and replace(penalty, alpha=None))
    assert found.chunks == chunked(y, *chunks).chunks
    assert found.dtype == whole.dtype
    np.testing.assert_allclose(found.compute(), whole, atol=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("kind", ["dask", "zarr"])
def test_channels_of_integers_are_denoised_one_by_one(kind, tmp_path):
    y = image((40, 20, 3), dtype=np.uint8)
    given = chunked(y, 40, 20, 2)
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        given = zarr.create_array(store=tmp_path / "noisy", shape=y.shape, chunks=(20, 20, 3), dtype=y.dtype)
        given[...] = y
    found = denoise_tv(given, 0.03, channel_axis=2, tol=0.1)
    whole = restoration.denoise_tv(y, 0.03, channel_axis=2, penalty=TotalVariationL12(colour=False), tol=0.1)
    np.testing.assert_allclose(found.compute(), whole, atol=1e-12)
    if kind == "zarr":
        da.to_zarr(found, tmp_path / "clean.zarr")
        np.testing.assert_array_equal(da.from_zarr(tmp_path / "clean.zarr"), found)


@pytest.mark.parametrize("of_a_channel", [False, True])
def test_missing_pixels_are_filled_as_in_the_whole_up_to_the_tolerance(of_a_channel):
    y, rng = image((3, 61, 40)), np.random.default_rng(1)
    mask = rng.random(y.shape[1:] if of_a_channel else y.shape) < 0.5
    y = np.where(mask, y, np.nan)
    penalty = TotalVariationL12(1.0, l2_weight=0.0, smoothing=0.004)
    options = {"channel_axis": 0, "tol": 1e-6}
    whole = restoration.inpaint_tv(
        y, mask, 0.01, penalty=TotalVariationL12(l2_weight=0.0, smoothing=0.004, colour=False), **options
    )
    for known in (mask, chunked(mask, *(9,) * mask.ndim)):
        found = inpaint_tv(chunked(y, 2, 30, 11), known, 0.01, penalty=penalty, **options)
        np.testing.assert_allclose(found.compute(), whole, atol=1e-4)


def test_bands_on_the_workers_of_a_cluster_are_restored_as_in_files():
    y, rng = image((92, 30)), np.random.default_rng(0)
    mask = rng.random(y.shape) < 0.6
    options = {"tol": 0.2}
    whole = inpaint_tv(chunked(y, 20, 10), mask, 0.05, **options).compute()
    quiet = {"dashboard_address": None, "silence_logs": 50, "processes": False}
    with LocalCluster(n_workers=2, threads_per_worker=1, **quiet) as cluster, Client(cluster):
        found = inpaint_tv(chunked(y, 20, 10), mask, 0.05, **options)
        np.testing.assert_array_equal(found.compute(), whole)


def test_the_strength_is_that_of_the_middle(monkeypatch):
    y = image((60, 80))
    monkeypatch.setattr(large_images, "PIXELS", 2**19)
    found = restoration.denoise_tv(y, return_result=True)
    penalty = replace(found.penalty, smoothing=None)
    expected = denoise_tv(chunked(y, 20, 80), found.alpha, penalty=penalty)
    np.testing.assert_array_equal(denoise_tv(chunked(y, 20, 80)), expected)
    monkeypatch.setattr(large_images, "PIXELS", 1200)
    middle = restoration.denoise_tv(y[15:45, 20:60], return_result=True)
    penalty = replace(middle.penalty, smoothing=None)
    expected = denoise_tv(chunked(y, 20, 80), middle.alpha, penalty=penalty)
    np.testing.assert_array_equal(denoise_tv(chunked(y, 20, 80)), expected)


def test_files_have_no_name_and_a_run_that_is_cut_short_warns(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.warns(RuntimeWarning, match="max_iter=1"):
        found = denoise_tv(chunked(image((60, 50)), 20, 50), 0.03, max_iter=1)
    assert not list(tmp_path.iterdir())
    assert np.isfinite(found).all().compute()


def test_memory_is_that_of_some_bands(monkeypatch):
    monkeypatch.setattr(large_images, "PIXELS", 2**14)
    noisy = 0.5 + 0.1 * da.random.default_rng(0).standard_normal((4000, 1000), chunks=(100, 500))
    denoise_tv(noisy[:16], 0.1, tol=0.9)  # which loads compiled code
    tracemalloc.start()
    with dask.config.set(scheduler="sync"), pytest.warns(RuntimeWarning, match="max_iter=1"):
        denoise_tv(noisy, 0.1, max_iter=1)
    assert tracemalloc.get_traced_memory()[1] < 0.7 * noisy.nbytes
    tracemalloc.stop()


y = chunked(image((20, 20)), 10, 10)
WRONG = [
    (ValueError, "smoothing > 0", lambda: denoise_tv(y, 0.1, penalty=TotalVariationL12(1, smoothing=0))),
    (ValueError, "l2_weight=0", lambda: denoise_tv(y, 0.1, penalty=TotalVariationL12(1, 0.5, isotropic=True))),
    (ValueError, "channel_axis 2 is out of range", lambda: denoise_tv(y, 0.1, channel_axis=2)),
    (ValueError, "image holds NaN", lambda: denoise_tv(y / 0, 0.1)),
    (ValueError, "real numbers", lambda: denoise_tv(1j * y, 0.1)),
    (ValueError, r"image.compute_chunk_sizes\(\)", lambda: denoise_tv(y[y[:, 0] > 0], 0.1)),
    (TypeError, "mask must hold truth values", lambda: inpaint_tv(y, y, 0.1)),
    (ValueError, r"mask of shape \(20, 10\)", lambda: inpaint_tv(y, np.ones((20, 10), bool), 0.1)),
    (TypeError, "give it to ell12.distributed.denoise_tv", lambda: restoration.deblur_tv(y, np.ones((3, 3)), 0.1)),
]


@pytest.mark.parametrize(("error", "words", "call"), WRONG, ids=[words for _, words, _ in WRONG])
@pytest.mark.filterwarnings("ignore:divide")
def test_what_cannot_be_restored_is_refused_in_words(error, words, call):
    with pytest.raises(error, match=words):
        call()
