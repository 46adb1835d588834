"""What files say besides their pixels: notes of cameras, profiles, resolution; others read them after us."""

import io
import sys

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'report'")
pytest.importorskip("PIL", reason="image files need the extra 'images'")
pytest.importorskip("tifffile", reason="TIFF files need the extra 'images'")

import tifffile
from PIL import Image, ImageCms, ImageOps
from PIL.TiffImagePlugin import IFDRational

from ell12 import cli
from ell12.commands.image_files import Notes, Picture, read_image, write_image
from ell12.commands.png import encode_png

FORMATS = ["JPEG", "PNG", "WEBP", "TIFF"]
SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "TIFF": ".tif", "BMP": ".bmp"}
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="1" xmp:Rating="4"/></x:xmpmeta>'


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["ell12", *map(str, arguments)])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return raised.value.code or 0


def colours(shape=(24, 32), n_channels=3):
    """Smooth enough for JPEG; no symmetry, so that every turn shows."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    grey = 40 + 5 * rows + 2 * columns
    return np.stack([grey, 255 - grey, 3 * columns + 20, 255 - 2 * rows][:n_channels], axis=-1).astype(np.uint8)


def camera_notes(orientation=1, size=(32, 24)):
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010F], exif[0x0110], exif[0x8298] = "Maker", "Model 5", "(c) somebody"
    exif[0x9C9B] = "title".encode("utf-16-le")
    exif[0x8769] = {
        0x829A: IFDRational(1, 250),
        0x8827: 400,
        0x9003: "2024:05:01 12:00:00",
        0x927C: b"maker's own \x00\x01\x02",
        0xA002: size[0],
        0xA003: size[1],
    }
    exif[0x8825] = {1: "N", 2: (IFDRational(48), IFDRational(8), IFDRational(123, 10))}
    loaded = Image.Exif()  # Pillow writes lists to TIFF only of notes that it has read
    loaded.load(exif.tobytes())
    return loaded


def said(path):
    """What Pillow finds in a file: the tags, the camera's list, the place."""
    with Image.open(path) as image:
        exif = image.getexif()
        tags = {tag: exif[tag] for tag in (0x010F, 0x0110, 0x8298, 0x9C9B) if tag in exif}
        return exif.get(0x0112, 1), tags, dict(exif.get_ifd(0x8769)), dict(exif.get_ifd(0x8825))


def saved(path, form, exif, **options):
    """A photograph that Pillow wrote."""
    options |= {"quality": 95, "subsampling": 0} if form == "JPEG" else {}
    options |= {"lossless": True} if form == "WEBP" else {}
    Image.fromarray(colours()).save(path, form, exif=exif, **options)
    return path


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_notes_of_a_camera_go_from_any_format_to_any_other(tmp_path, source, target):
    before = saved(tmp_path / f"in{SUFFIXES[source]}", source, camera_notes())
    after = tmp_path / f"out{SUFFIXES[target]}"
    picture = read_image(before)
    write_image(after, picture, picture.values())
    assert said(after) == said(before)
    _, tags, camera, place = said(after)
    assert (tags[0x0110], tags[0x9C9B]) == ("Model 5", "title".encode("utf-16-le"))
    assert (camera[0x829A], camera[0x927C]) == (IFDRational(1, 250), b"maker's own \x00\x01\x02")
    assert place[1] == "N"
    with Image.open(after) as image:
        image.load()
        assert np.abs(np.asarray(image).astype(int) - colours()).max() <= 6


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", FORMATS)
def test_a_photograph_on_its_side_is_upright_and_says_so(tmp_path, form, orientation):
    source = saved(tmp_path / f"in{SUFFIXES[form]}", form, camera_notes(orientation))
    picture = read_image(source)
    write_image(tmp_path / f"out{SUFFIXES[form]}", picture, picture.values())
    with Image.open(source) as image:
        seen = np.asarray(ImageOps.exif_transpose(image)).astype(int)
    with Image.open(tmp_path / f"out{SUFFIXES[form]}") as image:
        np.testing.assert_allclose(np.asarray(ImageOps.exif_transpose(image)).astype(int), seen, atol=6)
    found, tags, camera, _ = said(tmp_path / f"out{SUFFIXES[form]}")
    assert found == 1
    assert tags[0x0110] == "Model 5"
    assert (camera[0xA003], camera[0xA002]) == seen.shape[:2] or form == "TIFF"


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_sixteen_bits_with_notes(tmp_path, kind, n_channels):
    pixels = colours(n_channels=n_channels).astype(kind) * (257 if kind is np.uint16 else 1)
    pixels = pixels[..., 0] if n_channels == 1 else pixels
    exif = camera_notes(6).tobytes()
    (tmp_path / "a.png").write_bytes(encode_png(pixels, None, exif))
    picture = read_image(tmp_path / "a.png")
    np.testing.assert_array_equal(picture.pixels, np.rot90(pixels, -1))
    write_image(tmp_path / "b.tif", picture, picture.values())
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "b.tif"), np.rot90(pixels, -1))
    with tifffile.TiffFile(tmp_path / "b.tif") as file:
        tags = file.pages[0].tags
        assert tags["Model"].value == "Model 5"
        assert tags["ExifTag"].value["ISOSpeedRatings"] == 400
        assert tags["GPSTag"].value["GPSLatitudeRef"] == "N"
        assert 274 not in tags or tags[274].value == 1
    again = read_image(tmp_path / "b.tif")
    write_image(tmp_path / "c.png", again, again.values())
    assert said(tmp_path / "c.png")[2][0x8827] == 400


@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF", "BMP"])
def test_pixels_per_inch_are_kept_and_turn_with_the_picture(tmp_path, form):
    exif = camera_notes(6) if form not in ("BMP", "TIFF") else None
    source = tmp_path / f"in{SUFFIXES[form]}"
    options = {} if exif is None else {"exif": exif}
    Image.fromarray(colours()).save(source, form, dpi=(300, 150), **options)
    picture = read_image(source)
    write_image(tmp_path / f"out{SUFFIXES[form]}", picture, picture.values())
    with Image.open(tmp_path / f"out{SUFFIXES[form]}") as image:
        expected = (300, 150) if exif is None else (150, 300)
        assert image.info["dpi"] == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_profiles_and_notes_of_editors_go_from_any_format_to_any_other(tmp_path, source, target):
    before, after = tmp_path / f"in{SUFFIXES[source]}", tmp_path / f"out{SUFFIXES[target]}"
    write_image(before, Picture(colours(), -1, None, PROFILE, notes=Notes(xmp=XMP)), colours() / 255)
    picture = read_image(before)
    write_image(after, picture, picture.values())
    with Image.open(after) as image:
        image.load()
        assert image.info["icc_profile"] == PROFILE
        found = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or image.tag_v2[700]
    assert (found.encode() if isinstance(found, str) else found) == XMP


@pytest.mark.parametrize("exif", [camera_notes(6), Image.Exif()], ids=["both say it", "only the editor says it"])
def test_notes_of_editors_no_longer_say_that_the_picture_lies_on_its_side(tmp_path, exif):
    saved(tmp_path / "a.jpg", "JPEG", exif, xmp=XMP.replace(b'Orientation="1"', b'Orientation="6"'))
    picture = read_image(tmp_path / "a.jpg")
    assert picture.pixels.shape == (32, 24, 3)
    assert picture.notes.xmp == XMP


def test_a_profile_of_inks_does_not_stay_on_red_green_and_blue(tmp_path):
    image = Image.fromarray(colours()).convert("CMYK")
    image.save(tmp_path / "a.jpg", icc_profile=PROFILE.replace(b"RGB ", b"CMYK"))
    assert read_image(tmp_path / "a.jpg").profile is None


@pytest.mark.parametrize("orientation", [1, 6])
def test_names_with_any_letters_stay(tmp_path, orientation):
    names = {0x013B: "J\u00fcrgen", 0x010E: "Caf\u00e9", 0x0131: "Entr\u00e9e 2", 0x8298: "\u00a9 somebody"}
    exif = Image.Exif()
    for tag, name in names.items():
        exif[tag] = name.encode()
    exif[0x0112], exif[0x8769] = orientation, {0xA434: "Obj..ctif"}
    notes = exif.tobytes().replace(b"Obj..ctif", "Obj\u00e9ctif".encode())
    (tmp_path / "a.png").write_bytes(encode_png(colours(), None, notes))
    for source, target in ("ab", "bc"):
        picture = read_image(next(tmp_path.glob(f"{source}.*")))
        write_image(tmp_path / f"{target}{'.tif' if target == 'b' else '.jpg'}", picture, picture.values())
    with tifffile.TiffFile(tmp_path / "b.tif") as file:
        assert {tag: file.pages[0].tags[tag].value for tag in names} == names
        assert file.pages[0].tags["ExifTag"].value["LensModel"] == "Obj\u00e9ctif"
    with Image.open(tmp_path / "c.jpg") as image:
        found = image.getexif()
        assert {tag: found[tag].encode("latin-1").decode() for tag in names} == names


def test_notes_that_cannot_be_written_again_do_not_leave_the_picture_on_its_side(tmp_path, monkeypatch):
    saved(tmp_path / "a.jpg", "JPEG", camera_notes(6))

    def fail(self, offset=8):
        raise TypeError("a tag of an unknown kind")

    monkeypatch.setattr(Image.Exif, "tobytes", fail)
    with pytest.warns(UserWarning, match="its EXIF data cannot be read and are left out"):
        assert read_image(tmp_path / "a.jpg").pixels.shape == (32, 24, 3)


def test_damaged_notes_are_left_out_with_a_word(tmp_path, monkeypatch, capsys):
    content = io.BytesIO()
    Image.fromarray(colours()).save(content, "JPEG", exif=b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\xff\xffshort")
    (tmp_path / "a.jpg").write_bytes(content.getvalue())
    assert call(monkeypatch, "denoise", tmp_path / "a.jpg", tmp_path / "b.jpg") == 0
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    assert all(line.startswith(f"ell12: {tmp_path / 'a.jpg'}: ") for line in captured.err.splitlines())
    assert ".py" not in captured.err


# WebP and BMP


@pytest.mark.parametrize("n_channels", [1, 3, 4])
def test_a_webp_without_loss_stays_without(tmp_path, n_channels):
    pixels = np.random.default_rng(0).integers(0, 256, (20, 26, n_channels), dtype=np.uint8)
    image = Image.fromarray(pixels[..., 0] if n_channels == 1 else pixels)
    image.save(tmp_path / "a.webp", lossless=True, exact=True)
    picture = read_image(tmp_path / "a.webp")
    write_image(tmp_path / "b.webp", picture, picture.values())
    with Image.open(tmp_path / "b.webp") as found:
        expected = np.repeat(pixels, 3, axis=-1) if n_channels == 1 else pixels  # the format has colours only
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_webp_with_loss_is_small_unless_told_otherwise(tmp_path, monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.webp", quality=90)
    options = ("--alpha", "0")
    assert call(monkeypatch, "denoise", tmp_path / "a.webp", tmp_path / "b.webp", *options) == 0
    assert call(monkeypatch, "denoise", tmp_path / "a.webp", tmp_path / "c.webp", *options, "--lossless") == 0
    with Image.open(tmp_path / "a.webp") as image:
        expected = np.asarray(image).astype(int)
    with Image.open(tmp_path / "c.webp") as image:
        np.testing.assert_array_equal(np.asarray(image), expected)
    assert (tmp_path / "b.webp").stat().st_size < (tmp_path / "c.webp").stat().st_size
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert call(monkeypatch, "denoise", tmp_path / "a.png", tmp_path / "d.webp", *options) == 0
    with Image.open(tmp_path / "d.webp") as image:
        np.testing.assert_array_equal(np.asarray(image), pixels)


def test_a_moving_webp_is_refused(tmp_path):
    frames = [Image.fromarray(colours()), Image.fromarray(255 - colours())]
    frames[0].save(tmp_path / "a.webp", save_all=True, append_images=frames[1:])
    with pytest.raises(Exception, match=r"a\.webp: it holds 2 frames, not one image"):
        read_image(tmp_path / "a.webp")


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB"])
def test_bmp(tmp_path, mode):
    image = Image.fromarray(colours()).convert(mode)
    image.save(tmp_path / "a.bmp")
    picture = read_image(tmp_path / "a.bmp")
    assert picture.channel_axis == (-1 if mode in ("P", "RGB") else None)
    write_image(tmp_path / "b.bmp", picture, picture.values())
    expected = image.convert("RGB" if mode in ("P", "RGB") else "L")
    with Image.open(tmp_path / "b.bmp") as found:
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_a_scan_larger_than_pillow_expects_is_read_without_a_word(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    Image.fromarray(colours()).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_image(tmp_path / "a.png").pixels, colours())
    assert Image.MAX_IMAGE_PIXELS == 100
