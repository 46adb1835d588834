"""Images on the workers of a cluster against the same images in memory."""

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from ell12 import inpaint_tv
from ell12.restoration import blocks

pytest.importorskip("numba")


def test_an_image_on_workers_is_restored_as_in_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(blocks, "PIXELS", 1200)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    rng = np.random.default_rng(0)
    y, mask = rng.random((45, 30, 2)), rng.random((45, 30)) < 0.6
    options = {"alpha": 0.05, "channel_axis": -1, "max_iter": 5, "spins": 2, "return_result": True}
    whole = inpaint_tv(y, mask, **options)
    quiet = {"dashboard_address": None, "silence_logs": 50, "processes": False}
    with LocalCluster(n_workers=2, threads_per_worker=1, **quiet) as cluster, Client(cluster):
        found = inpaint_tv(da.from_array(y, chunks=(20, 10, 1)), mask, **options)
        assert found.image.chunks == ((20, 20, 5), (10, 10, 10), (1, 1))
        np.testing.assert_allclose(found.image.compute(), whole.image, atol=1e-6)
    assert [run.n_iter for run in found.runs] == [run.n_iter for run in whole.runs]
    assert not list(tmp_path.glob("ell12-*"))
