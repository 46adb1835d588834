"""Image files: what is read is what was stored, what is written can be read by others, and damage is named."""

import io
import os
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("PIL", reason="image files need the extra 'images'")
pytest.importorskip("tifffile", reason="TIFF files need the extra 'images'")

import tifffile
from PIL import Image, ImageOps

from ell12.commands.image_files import ImageFileError, Picture, check_target, read_image, write_image
from ell12.commands.png import encode_png

CHANNELS = {"grey": 1, "grey and opacity": 2, "colour": 3, "colour and opacity": 4}
KINDS = {"8 bits": np.uint8, "16 bits": np.uint16}


def stored(n_channels, kind, seed=0, shape=(6, 9)):
    top = np.iinfo(kind).max + 1
    pixels = np.random.default_rng(seed).integers(0, top, (*shape, n_channels), dtype=kind)
    return pixels[..., 0] if n_channels == 1 else pixels


def whole(picture):
    """The pixels of a picture with its opacity, as they were stored."""
    if picture.opacity is None:
        return picture.pixels
    colours = picture.pixels[..., None] if picture.channel_axis is None else picture.pixels
    return np.concatenate([colours, picture.opacity[..., None]], axis=-1)


def write_tiff(path, pixels, **options):
    n_channels = 1 if pixels.ndim == 2 else pixels.shape[-1]
    options |= {"extrasamples": ["unassalpha"]} if n_channels in (2, 4) else {}
    options |= {"photometric": "rgb" if n_channels > 2 else "minisblack"}
    tifffile.imwrite(path, pixels, planarconfig="contig" if n_channels > 1 else None, **options)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("n_channels", CHANNELS.values(), ids=CHANNELS)
def test_a_png_is_read_by_pillow_to_the_bits_that_it_keeps(n_channels, kind):
    pixels = stored(n_channels, kind)
    with Image.open(io.BytesIO(encode_png(pixels))) as image:
        image.verify()
    with Image.open(io.BytesIO(encode_png(pixels))) as image:
        found = np.asarray(image)
        kept = pixels >> 8 if kind is np.uint16 and n_channels > 1 else pixels
        if kind is np.uint16 and n_channels == 2:
            found = found[..., [0, 3]]
    np.testing.assert_array_equal(found, kept)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("n_channels", CHANNELS.values(), ids=CHANNELS)
@pytest.mark.parametrize("suffix", [".png", ".tif", ".npy"])
def test_reading_keeps_every_bit_and_writing_gives_it_back(tmp_path, n_channels, kind, suffix):
    pixels, path = stored(n_channels, kind), tmp_path / f"in{suffix}"
    if suffix == ".png":
        path.write_bytes(encode_png(pixels))
    elif suffix == ".tif":
        write_tiff(path, pixels)
    else:
        np.save(path, pixels)
    picture = read_image(path, channel_axis=-1 if suffix == ".npy" and n_channels > 1 else None)
    assert picture.pixels.dtype == kind
    np.testing.assert_array_equal(whole(picture), pixels)
    if suffix != ".npy":
        assert (picture.opacity is not None) == (n_channels in (2, 4))
        assert picture.channel_axis == (-1 if n_channels > 2 else None)
        write_image(tmp_path / f"out{suffix}", picture, picture.values())
        np.testing.assert_array_equal(whole(read_image(tmp_path / f"out{suffix}")), pixels)


def test_every_row_filter_of_a_png_keeps_the_low_bytes(tmp_path):
    import struct
    import zlib

    pixels = stored(3, np.uint16, shape=(5, 4))
    rows = pixels.astype(">u2").reshape(5, -1).view(np.uint8).astype(int)
    lines = []
    for k, row in enumerate(rows):
        left = np.concatenate([np.zeros(6, int), row[:-6]])
        up = rows[k - 1] if k else 0 * row
        corner = np.concatenate([np.zeros(6, int), up[:-6]])
        guess = left + up - corner
        distance = [abs(guess - left), abs(guess - up), abs(guess - corner)]
        nearest = np.choose(np.argmin(distance, axis=0), [left, up, corner])
        prediction = [0 * row, left, up, (left + up) // 2, nearest][k]
        lines.append(bytes([k]) + ((row - prediction) % 256).astype(np.uint8).tobytes())
    whole_file = encode_png(pixels)
    content = b"IDAT" + zlib.compress(b"".join(lines))
    start = whole_file.index(b"IDAT") - 4
    end = whole_file.index(b"IEND") - 4
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    (tmp_path / "a.png").write_bytes(whole_file[:start] + chunk + whole_file[end:])
    np.testing.assert_array_equal(read_image(tmp_path / "a.png").pixels, pixels)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg(tmp_path, mode):
    ramp = np.add.outer(np.arange(64), np.arange(96)).astype(np.uint8)
    Image.fromarray(ramp).convert(mode).save(tmp_path / "a.jpg", quality=95)
    picture = read_image(tmp_path / "a.jpg")
    assert picture.channel_axis == (None if mode == "L" else -1)
    write_image(tmp_path / "b.JPEG", picture, picture.values())
    again = read_image(tmp_path / "b.JPEG")
    expected = ramp if mode == "L" else np.stack([ramp] * 3, axis=-1)
    assert np.abs(again.pixels.astype(int) - expected).max() <= 8
    assert again.pixels.dtype == np.uint8


def test_a_photograph_taken_sideways_is_upright(tmp_path):
    pixels = np.zeros((16, 32), dtype=np.uint8)
    pixels[:, :8] = 200  # the left of the sensor is the top of the picture
    exif = Image.Exif()
    exif[0x0112] = 6  # turn clockwise
    Image.fromarray(pixels).save(tmp_path / "a.jpg", exif=exif, quality=95)
    assert read_image(tmp_path / "a.jpg").pixels.shape == (32, 16)
    assert read_image(tmp_path / "a.jpg").pixels[:6].min() > 150


def test_palettes_and_transparent_colours_become_opacity(tmp_path):
    image = Image.new("P", (4, 3), 1)
    image.putpalette([0, 0, 0, 10, 20, 30, 200, 100, 50])
    image.putpixel((2, 1), 2)
    image.save(tmp_path / "plain.png")
    image.save(tmp_path / "clear.png", transparency=2)
    plain, clear = read_image(tmp_path / "plain.png"), read_image(tmp_path / "clear.png")
    assert plain.opacity is None
    assert plain.pixels[1, 2].tolist() == [200, 100, 50]
    assert clear.opacity.min() == clear.opacity[1, 2] == 0
    assert np.count_nonzero(clear.opacity == 255) == 11


def test_the_one_transparent_colour_of_a_png_with_16_bits(tmp_path):
    pixels = np.array([[1000, 1001], [1002, 1000]], dtype=np.uint16)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    start = content.index(b"IDAT") - 4
    named = b"tRNS" + b"\x03\xe8"
    chunk = struct.pack(">I", 2) + named + struct.pack(">I", zlib.crc32(named))
    (tmp_path / "a.png").write_bytes(content[:start] + chunk + content[start:])
    picture = read_image(tmp_path / "a.png")
    np.testing.assert_array_equal(picture.pixels, pixels)
    assert picture.opacity.tolist() == [[0, 65535], [65535, 0]]


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
def test_the_colour_profile_is_kept(tmp_path, suffix):
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    picture = Picture(stored(3, np.uint8), -1, None, profile)
    write_image(tmp_path / f"a{suffix}", picture, picture.values())
    assert read_image(tmp_path / f"a{suffix}").profile == profile


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_deflate", "jpeg"])
def test_tiff_compressions(tmp_path, compression):
    ramp = np.add.outer(np.arange(32), np.arange(40)).astype(np.uint8)
    pixels = np.stack([ramp] * 3, axis=-1)
    Image.fromarray(pixels).save(tmp_path / "a.tif", compression=compression)
    error = np.abs(read_image(tmp_path / "a.tif").pixels.astype(int) - pixels)
    assert error.max() <= (8 if compression == "jpeg" else 0)
    grey = stored(1, np.uint16)
    if compression != "jpeg":
        Image.fromarray(grey).save(tmp_path / "grey.tif", compression=compression)
        np.testing.assert_array_equal(read_image(tmp_path / "grey.tif").pixels, grey)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_tiff_that_is_stored_turned_or_mirrored_is_upright(tmp_path, orientation, kind):
    pixels = stored(3, kind)
    tags = [(274, 3, 1, orientation)]
    tifffile.imwrite(tmp_path / "turned.tif", pixels, photometric="rgb", extratags=tags)
    image = Image.fromarray((pixels >> 8 * (kind is np.uint16)).astype(np.uint8))
    image.getexif()[274] = orientation
    found = read_image(tmp_path / "turned.tif")
    np.testing.assert_array_equal(found.pixels >> 8 * (kind is np.uint16), ImageOps.exif_transpose(image))
    write_image(tmp_path / "upright.tif", found, found.values())
    np.testing.assert_array_equal(read_image(tmp_path / "upright.tif").pixels, found.pixels)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", ["L", "P", "RGB"])
def test_a_packed_tiff_that_is_stored_turned_is_upright(tmp_path, orientation, mode):
    image = Image.fromarray(stored(3, np.uint8)).convert(mode)
    image.save(tmp_path / "turned.tif", compression="tiff_lzw", tiffinfo={274: orientation})
    image = image.convert("RGB") if mode == "P" else image
    image.getexif()[274] = orientation
    expected = np.asarray(ImageOps.exif_transpose(image))
    np.testing.assert_array_equal(read_image(tmp_path / "turned.tif").pixels, expected)


def test_colours_that_a_tiff_stores_dimmed_by_their_opacity(tmp_path):
    colours, opacity = np.full((2, 2, 3), 200, np.uint8), np.array([[255, 128], [64, 0]], np.uint8)
    dimmed = np.rint(colours * (opacity / 255)[..., None]).astype(np.uint8)
    pixels = np.concatenate([dimmed, opacity[..., None]], axis=-1)
    tifffile.imwrite(tmp_path / "a.tif", pixels, photometric="rgb", extrasamples=["assocalpha"])
    picture = read_image(tmp_path / "a.tif")
    np.testing.assert_array_equal(picture.opacity, opacity)
    assert np.abs(picture.pixels[opacity > 0].astype(int) - 200).max() <= 2
    write_image(tmp_path / "a.png", picture, picture.values())
    shown = np.asarray(Image.open(tmp_path / "a.png"))
    np.testing.assert_array_equal(shown[..., :3], picture.pixels)


def test_floats_and_volumes_stay_as_they_are(tmp_path):
    volume = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
    for name in ("a.npy", "a.tif"):
        write_image(tmp_path / name, Picture(volume), volume)
        picture = read_image(tmp_path / name)
        assert (picture.channel_axis, picture.pixels.dtype) == (None, np.float32)
        np.testing.assert_array_equal(picture.pixels, volume)


def test_channels_are_an_axis_only_where_that_is_said(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 8, 9)))
    assert read_image(tmp_path / "a.npy").channel_axis is None
    said = read_image(tmp_path / "a.npy", channel_axis=0)
    assert (said.pixels.shape, said.channel_axis) == ((3, 8, 9), 0)
    write_image(tmp_path / "b.npy", said, said.values())
    assert np.load(tmp_path / "b.npy").shape == (3, 8, 9)  # as it was given
    write_image(tmp_path / "b.png", said, said.values())
    assert read_image(tmp_path / "b.png").pixels.shape == (8, 9, 3)
    with pytest.raises(ImageFileError, match=r"a\.npy has 3 axes, so channels cannot be axis 3"):
        read_image(tmp_path / "a.npy", channel_axis=3)


def test_sixteen_bits_of_a_float_image_and_clipping(tmp_path):
    picture = Picture(np.array([[0.0, 0.25, 1.0]]))
    write_image(tmp_path / "a.png", picture, np.array([[-0.1, 0.25, 1.2]]))
    assert read_image(tmp_path / "a.png").pixels.tolist() == [[0, 16384, 65535]]


def test_npy_of_a_transparent_image_has_the_opacity_last(tmp_path):
    picture = Picture(np.array([[255, 0]], np.uint8), None, np.array([[0, 255]], np.uint8))
    write_image(tmp_path / "a.npy", picture, picture.values())
    assert np.load(tmp_path / "a.npy").tolist() == [[[1.0, 0.0], [0.0, 1.0]]]


# Damage


def damaged_files(folder):
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.jpg").write_text("no image")
    for name, pixels in {
        "cut.png": stored(3, np.uint8),
        "cut16.png": stored(3, np.uint16, shape=(60, 90)),
    }.items():
        (folder / name).write_bytes(encode_png(pixels)[:-200])
    noisy = stored(1, np.uint8, shape=(80, 80))
    buffer = io.BytesIO()
    Image.fromarray(noisy).save(buffer, "JPEG")
    (folder / "cut.jpg").write_bytes(buffer.getvalue()[:-1000])
    tifffile.imwrite(folder / "cut.tif", noisy)
    (folder / "cut.tif").write_bytes((folder / "cut.tif").read_bytes()[:-2000])
    (folder / "text.tiff").write_text("no image")
    np.save(folder / "cut.npy", noisy)
    (folder / "cut.npy").write_bytes((folder / "cut.npy").read_bytes()[:-10])
    np.save(folder / "objects.npy", np.array([{}, {}]), allow_pickle=True)
    np.save(folder / "words.npy", np.array(["a", "b"]))
    np.save(folder / "integers.npy", np.arange(6).reshape(2, 3))
    (folder / "folder.png").mkdir()
    return sorted(folder.iterdir())


def test_a_damaged_file_is_named(tmp_path):
    paths = [*damaged_files(tmp_path), tmp_path / "missing.png"]
    assert len(paths) == 13
    for path in paths:
        with pytest.raises(ImageFileError, match=r"cannot read ") as raised:
            read_image(path)
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)
        assert "object at" not in str(raised.value)


def test_unknown_suffixes_are_told_the_known_ones(tmp_path):
    with pytest.raises(ImageFileError, match=r"a\.gif has an unknown suffix; known are \.png \.jpg"):
        read_image(tmp_path / "a.gif")


@pytest.mark.parametrize(
    ("name", "picture", "words"),
    [
        ("a.jpg", Picture(stored(3, np.uint8), -1, stored(1, np.uint8)), "transparent"),
        ("a.png", Picture(np.zeros((2, 3, 4))), "3 axes"),
        ("a.png", Picture(np.zeros((2, 3, 5)), -1), "5 channels"),
        ("a.png", Picture(np.array([[0.0, 255.0]])), r"input's are in \[0, 255\]"),
        ("a.png", Picture(np.array([[-0.5, np.nan]])), "scale the input"),
        ("a.tif", Picture(np.array([[1j]])), "complex"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_work(tmp_path, name, picture, words):
    with pytest.raises(ImageFileError, match=words) as raised:
        check_target(tmp_path / name, picture)
    assert name in str(raised.value)
    check_target(tmp_path / "a.npy", picture)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    picture = Picture(stored(1, np.uint8))
    write_image(tmp_path / "a.png", picture, picture.values())
    before = (tmp_path / "a.png").read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    other = replace(picture, pixels=255 - picture.pixels)
    with pytest.raises(ImageFileError, match=r"cannot write .*a\.png: No space left on device"):
        write_image(tmp_path / "a.png", other, other.values())
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a.png", before)]
