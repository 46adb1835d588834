"""Image files: what is written is read again, whole; what cannot be read or held is an error."""

import io
import zlib

import numpy as np
import pytest

from ell12.picture_files import Picture, check_target, read_picture, replacing, write_picture

Image = pytest.importorskip("PIL.Image", reason="image files need the extra 'images'")
tifffile = pytest.importorskip("tifffile", reason="image files need the extra 'images'")

RANDOM = np.random.default_rng(0)


def pixels(kind, *shape):
    return RANDOM.integers(0, np.iinfo(kind).max, shape, endpoint=True).astype(kind)


def picture(kind, n_channels=1, opacity=False):
    shape = (12, 15) if n_channels == 1 else (12, 15, n_channels)
    return Picture(pixels(kind, *shape), "YXS"[: len(shape)], pixels(kind, 12, 15) if opacity else None)


def assert_equal(found, expected):
    assert found.axes == expected.axes
    assert found.pixels.dtype == expected.pixels.dtype
    np.testing.assert_array_equal(found.pixels, expected.pixels)
    assert (found.opacity is None) == (expected.opacity is None)
    if expected.opacity is not None:
        np.testing.assert_array_equal(found.opacity, expected.opacity)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("opacity", [False, True])
def test_every_bit_comes_back(tmp_path, suffix, kind, n_channels, opacity):
    given = picture(kind, n_channels, opacity)
    write_picture(tmp_path / f"a{suffix}", given, given.values)
    assert_equal(read_picture(tmp_path / f"a{suffix}"), given)


@pytest.mark.parametrize("name", ["a.bmp", "a.webp", "a.PNG"])
def test_eight_bits_come_back_from_formats_without_loss(tmp_path, name):
    given = picture(np.uint8, 3)
    write_picture(tmp_path / name, given, given.values)
    assert_equal(read_picture(tmp_path / name), given)


def test_jpeg_loses_little(tmp_path):
    smooth = np.linspace(50, 200, 240).reshape(12, 20).astype(np.uint8)
    write_picture(tmp_path / "a.jpg", Picture(smooth, "YX"), smooth / 255)
    assert np.abs(read_picture(tmp_path / "a.jpg").pixels - smooth.astype(float)).max() < 4


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.float32, np.float64])
def test_other_numbers_stay_in_tiff(tmp_path, kind):
    given = Picture(np.array([[-3, 700], [5, 6]], dtype=kind), "YX")
    write_picture(tmp_path / "a.tif", given, given.values)
    assert_equal(read_picture(tmp_path / "a.tif"), given)


@pytest.mark.parametrize("name", ["a.tif", "a.ome.tif"])
@pytest.mark.parametrize("axes", ["TZYX", "ZYX", "TYXS", "CYX"])
def test_axes_of_stacks_come_back(tmp_path, name, axes):
    shape = [3 if letter == "S" else 4 for letter in axes]
    given = Picture(pixels(np.uint16, *shape), axes)
    write_picture(tmp_path / name, given, given.values)
    assert_equal(read_picture(tmp_path / name), given)


def test_the_parts_of_a_stack_are_joined_in_its_order():
    given = Picture(np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5), "ZTYX")
    parts = list(given.parts())
    assert [part.shape for part in parts] == [(2, 4, 5)] * 3
    np.testing.assert_array_equal(parts[1], given.pixels[:, 1])
    np.testing.assert_array_equal(given.joined(parts), given.pixels)


def test_arrays_are_space_unless_axes_are_given(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 4, 5)))
    assert read_picture(tmp_path / "a.npy").axes == "ZYX"
    found = read_picture(tmp_path / "a.npy", "syx")
    assert (found.axes, found.pixels.shape, found.channel_axis) == ("YXS", (4, 5, 3), -1)


@pytest.mark.parametrize("mode", ["1", "P", "CMYK", "LA", "I;16"])
def test_modes_of_pillow_become_grey_or_colours(tmp_path, mode):
    rgb = Image.fromarray(pixels(np.uint8, 12, 15, 3))
    image = Image.fromarray(pixels(np.uint16, 12, 15)) if mode == "I;16" else rgb.convert(mode)
    image.save(tmp_path / ("a.jpg" if mode == "CMYK" else "a.png"))
    found = read_picture(next(tmp_path.iterdir()))
    assert found.axes == ("YXS" if mode in ("P", "CMYK") else "YX")
    assert found.pixels.dtype == (np.uint16 if mode == "I;16" else np.uint8)
    assert (found.opacity is not None) == (mode == "LA")


def test_a_photograph_on_its_side_is_turned_and_keeps_its_notes(tmp_path):
    image, exif = Image.fromarray(pixels(np.uint8, 12, 15)), Image.Exif()
    exif[274], exif[271] = 6, "maker"
    image.save(tmp_path / "a.png", exif=exif, icc_profile=b"profile", dpi=(72, 72))
    given = read_picture(tmp_path / "a.png")
    np.testing.assert_array_equal(given.pixels, np.rot90(np.asarray(image), -1))
    write_picture(tmp_path / "b.png", given, given.values)
    with Image.open(tmp_path / "b.png") as found:
        assert found.getexif().get(274, 1) == 1
        assert found.getexif()[271] == "maker"
        assert found.info["icc_profile"] == b"profile"


def frames():
    file, first = io.BytesIO(), Image.fromarray(pixels(np.uint8, 4, 4))
    first.save(file, "PNG", save_all=True, append_images=[Image.fromarray(pixels(np.uint8, 4, 4))])
    return file.getvalue()


def bomb():
    """A PNG of 20,000 x 20,000 pixels without content."""
    header = (20000).to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    parts = [len(d).to_bytes(4, "big") + n + d + zlib.crc32(n + d).to_bytes(4, "big") for n, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def tiff(**options):
    file = io.BytesIO()
    tifffile.imwrite(file, pixels(np.uint8, 4, 4), **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.gif", b"", "unknown suffix"),
        ("a.png", b"no image", "cannot identify"),
        ("a.png", frames(), "2 frames"),
        ("a.png", bomb(), "decompression bomb"),
        ("a.tif", tiff(photometric="miniswhite"), "MINISWHITE, not grey or RGB"),
        ("a.tif", tiff(extratags=[(274, 3, 1, 6, True)]), "turned or mirrored"),
        ("a.npy", b"no array", "pickled"),
    ],
)
def test_what_cannot_be_read_is_an_error(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Exception, match=message):
        read_picture(tmp_path / name)


def test_a_tiff_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((400, 400), np.uint8), compression="zlib")
    monkeypatch.setattr("ell12.picture_files.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="unpacks to 160,000 bytes"):
        read_picture(tmp_path / "a.tif")


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("a.png", Picture(np.zeros((3, 4, 5)), "ZYX"), "cannot hold an array of 3x4x5"),
        ("a.png", Picture(np.zeros((4, 5, 2)), "YXS"), "cannot hold an array of 4x5x2"),
        ("a.jpg", picture(np.uint8, 3, True), "transparent"),
        ("a.png", Picture(np.array([[0.5, 1.5]]), "YX"), r"values in \[0, 1\]"),
    ],
)
def test_what_a_photograph_cannot_hold_is_an_error(tmp_path, name, given, message):
    with pytest.raises(ValueError, match=message):
        check_target(tmp_path / name, given)


def test_a_file_is_whole_or_what_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.txt", "old")]
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.txt", "new")]
