"""Images along a batch axis are restored as so many calls would."""

import numpy as np
import pytest

import ell12

RNG = np.random.default_rng(0)
SIZE = (34, 32)
LEVELS = np.array([1.0, 30.0, 0.2])  # images of different ranges: each has its own strength and smoothing
BATCH = np.empty((3, 3, *SIZE))  # images, channels, rows, columns
BATCH[:] = 0.2
BATCH[:, :, 9:25, 8:20] = 0.8
BATCH += 0.05 * RNG.standard_normal(BATCH.shape)
BATCH *= LEVELS[:, None, None, None]
KERNEL = np.outer([1, 2, 1], [1, 2, 1]) / 16.0
MASK = RNG.random(SIZE) < 0.7
MATRIX = RNG.standard_normal((80, 120)) / 10
CALLS = {
    "denoise": ell12.denoise_tv,
    "deblur": lambda y, **options: ell12.deblur_tv(y, KERNEL, **options),
    "inpaint": lambda y, **options: ell12.inpaint_tv(y, MASK, **options),
    "mri": lambda y, **options: ell12.reconstruct_mri(
        np.fft.fftn(y, axes=(-2, -1), norm="ortho"), MASK, 0.02, **options
    ),
}
GREY = BATCH[:, 0]


@pytest.mark.parametrize("name", CALLS)
def test_a_batch_is_so_many_calls(name):
    call = CALLS[name]
    found = call(GREY, batch_axis=0, return_result=True)
    apart = [call(image, return_result=True) for image in GREY]
    np.testing.assert_array_equal(found.image, np.stack([one.image for one in apart]))
    assert found.alpha == tuple(one.alpha for one in apart)
    assert found.noise == tuple(one.noise for one in apart)
    assert [run.n_iter for run in found.runs] == [run.n_iter for one in apart for run in one.runs]
    assert found.converged
    np.testing.assert_array_equal(call(GREY, batch_axis=0), found.image)


@pytest.mark.parametrize(("batch_axis", "channel_axis"), [(0, 1), (1, 0), (-1, 0), (3, -2), (-4, -3), (2, 3)])
def test_channels_and_batch_may_lie_along_any_two_axes(batch_axis, channel_axis):
    batch = np.moveaxis(BATCH, (0, 1), (batch_axis, channel_axis))
    found = ell12.denoise_tv(batch, 0.1, batch_axis=batch_axis, channel_axis=channel_axis, spins=2)
    assert found.shape == batch.shape
    apart = np.stack([ell12.denoise_tv(image, 0.1, channel_axis=0, spins=2) for image in BATCH])
    np.testing.assert_allclose(np.moveaxis(found, (batch_axis, channel_axis), (0, 1)), apart, rtol=1e-9)


def test_a_mask_is_one_for_all_or_one_for_each():
    channels = {"channel_axis": 1, "batch_axis": 0}
    masks = RNG.random((3, 3, *SIZE)) < 0.7
    image = BATCH[:, [0, 0, 0, 1], ...]  # four channels, three images
    four = masks[:, [0, 1, 2, 0]]
    for whole, each in (
        (four, list(four)),
        (four[:, 0], list(four[:, 0])),
        (four[0], [four[0]] * 3),
        (four[0, 0], [four[0, 0]] * 3),
    ):
        found = ell12.inpaint_tv(image, whole, 0.01, **channels)
        apart = [ell12.inpaint_tv(y, m, 0.01, channel_axis=0) for y, m in zip(image, each, strict=True)]
        np.testing.assert_array_equal(found, np.stack(apart))


def test_measurements_of_one_operator_are_a_batch_too():
    y, shape = GREY[:, 6:18, 4:14].reshape(3, -1) @ MATRIX.T, (12, 10)
    found = ell12.restore_tv(y, MATRIX, 0.05, shape=shape, batch_axis=0)
    apart = [ell12.restore_tv(one, MATRIX, 0.05, shape=shape) for one in y]
    np.testing.assert_array_equal(found, np.stack(apart))
    columns = ell12.restore_tv(y.T, MATRIX, 0.05, shape=shape, batch_axis=-1)
    assert columns.shape == (*shape, 3)
    np.testing.assert_allclose(np.moveaxis(columns, -1, 0), found, rtol=1e-6)
    samples = np.fft.fftn(BATCH[:2], axes=(-2, -1), norm="ortho")[..., MASK]
    coils = ell12.reconstruct_mri(samples, MASK, 0.1, channel_axis=1, batch_axis=0)
    apart = [ell12.reconstruct_mri(one, MASK, 0.1, channel_axis=0) for one in samples]
    np.testing.assert_array_equal(coils, np.stack(apart))


def test_measures_stops_and_checkpoints_are_each_image_own(tmp_path):
    shapes = []
    found = ell12.denoise_tv(
        BATCH[:2],
        0.1,
        channel_axis=1,
        batch_axis=0,
        spins=2,
        measure={"channels": lambda x: shapes.append(x.shape) or x.shape[0]},
        stop=lambda history: len(history["objective"]) > 1,
        checkpoint=tmp_path / "run.npz",
        return_result=True,
    )
    assert set(shapes) == {(3, *SIZE)}
    assert [run.status for run in found.runs] == [ell12.Status.STOPPED] * 4
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["run-0-0.npz", "run-0-1.npz", "run-1-0.npz", "run-1-1.npz"]


def test_ctrl_c_ends_the_batch_and_a_cut_run_warns_once():
    calls = []

    def interrupt(x):
        calls.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ell12.denoise_tv(GREY, 0.1, batch_axis=0, measure={"none": interrupt})
    assert len(calls) == 1
    with pytest.warns(RuntimeWarning, match="max_iter") as caught:
        ell12.denoise_tv(GREY, LEVELS[0], batch_axis=0, max_iter=1)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_axis": 3}, r"batch_axis 3 is out of range for image of shape \(3, 34, 32\)"),
        ({"batch_axis": -4}, "batch_axis -4 is out of range"),
        ({"batch_axis": 0.5}, "batch_axis must be a whole number or None"),
        ({"batch_axis": 1, "channel_axis": 1}, "batch_axis and channel_axis must be different axes, both are 1"),
        ({"batch_axis": 0, "channel_axis": -3}, "batch_axis and channel_axis must be different axes, both are 0"),
        ({"batch_axis": 0, "channel_axis": 3}, "channel_axis 3 is out of range"),
    ],
)
def test_errors_name_the_axis(options, message):
    with pytest.raises(ValueError, match=message):
        ell12.denoise_tv(GREY, 0.1, **options)


def test_an_empty_batch_is_an_error():
    with pytest.raises(ValueError, match="image is empty"):
        ell12.denoise_tv(GREY[:0], 0.1, batch_axis=0)


def test_batches_of_tensors():
    torch = pytest.importorskip("torch")
    batch = torch.from_numpy(BATCH.astype(np.float32))
    found = ell12.denoise_tv(batch, channel_axis=1, batch_axis=0, return_result=True)
    assert found.image.dtype == torch.float32
    assert len(found.alpha) == 3
    expected = ell12.denoise_tv(batch.numpy(), channel_axis=1, batch_axis=0)
    np.testing.assert_array_equal(found.image.numpy(), expected)
