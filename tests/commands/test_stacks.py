"""Stacks of microscopes: axes are read, each image is restored by itself, and the file comes back as it was."""

import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'report'")
pytest.importorskip("tifffile", reason="TIFF files need the extra 'images'")

import tifffile
from PIL import Image

from ell12 import cli
from ell12.commands.image_files import Picture, read_image, write_image
from ell12.commands.pictures import ImageFileError
from ell12.restoration import denoise_tv, inpaint_tv


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["ell12", *map(str, arguments)])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return raised.value.code or 0


def stack(shape, kind=np.uint16, seed=0):
    """Noisy squares, each image of the stack with its own and with another brightness."""
    random = np.random.default_rng(seed)
    values = np.empty(shape)
    for index in np.ndindex(shape[:-2]):
        image = np.full(shape[-2:], random.uniform(0.1, 0.4))
        row, column = random.integers(0, 6, 2)
        image[row : row + 8, column : column + 9] += random.uniform(0.2, 0.5)
        values[index] = image + 0.05 * random.standard_normal(shape[-2:])
    values = np.clip(values, 0, 1)
    return (
        np.rint(values * np.iinfo(kind).max).astype(kind) if np.dtype(kind).kind in "iu" else values.astype(kind)
    )


def described(path):
    """The axes, the pixels and the description of a TIFF, as tifffile has them."""
    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        return series.axes, series.asarray(), file.ome_metadata, file.imagej_metadata


METADATA = {
    "Name": "cells",
    "PhysicalSizeX": 0.25,
    "PhysicalSizeXUnit": "µm",
    "PhysicalSizeY": 250.0,
    "PhysicalSizeYUnit": "nm",
    "PhysicalSizeZ": 1.5,
    "TimeIncrement": 0.1,
    "TimeIncrementUnit": "s",
}


@pytest.mark.parametrize(
    ("axes", "shape"),
    [("CYX", (3, 16, 18)), ("TYX", (4, 16, 18)), ("TCYX", (2, 2, 16, 18)), ("CZYX", (2, 4, 16, 18))],
)
def test_channels_and_times_are_restored_each_by_itself(tmp_path, monkeypatch, capsys, axes, shape):
    pixels = stack(shape)
    tifffile.imwrite(tmp_path / "in.ome.tif", pixels, metadata=METADATA | {"axes": axes}, photometric="minisblack")
    arguments = (tmp_path / "in.ome.tif", tmp_path / "out.ome.tif", "--alpha", "0.1")
    assert call(monkeypatch, "denoise", *arguments) == 0
    n_separate = len(axes) - (3 if "Z" in axes else 2)
    parts = pixels.reshape(-1, *shape[n_separate:])
    spacing = (1.5, 0.25, 0.25) if "Z" in axes else None
    expected = np.stack([denoise_tv(part / np.float32(65535), 0.1, spacing=spacing) for part in parts]).reshape(
        shape
    )
    found_axes, found, _, _ = described(tmp_path / "out.ome.tif")
    assert (found_axes, found.dtype) == (axes, np.uint16)
    np.testing.assert_allclose(found / 65535, expected, atol=1e-5)
    assert f": {len(parts)} " in capsys.readouterr().out


def test_a_channel_is_not_smoothed_into_the_next(tmp_path, monkeypatch, capsys):
    clean = np.zeros((3, 24, 24), np.float32)
    clean[0, 4:12, 4:12], clean[1, 12:20, 6:16], clean[2, 2:22, 16:20] = 1, 1, 1
    noisy = clean + 0.05 * np.random.default_rng(0).standard_normal(clean.shape).astype(np.float32)
    tifffile.imwrite(tmp_path / "in.ome.tif", noisy, metadata={"axes": "CYX"}, photometric="minisblack")
    assert call(monkeypatch, "denoise", tmp_path / "in.ome.tif", tmp_path / "out.ome.tif") == 0
    assert re.search(r": 3 channels each by itself, alpha 0\.\d+( to 0\.\d+)?, chosen", capsys.readouterr().out)
    found = described(tmp_path / "out.ome.tif")[1]
    for k in range(3):
        assert np.std(found[k] - clean[k]) < 0.4 * np.std(noisy[k] - clean[k])


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int16, np.int32, np.uint32, np.float32, np.float64])
def test_an_ome_tiff_keeps_its_axes_numbers_and_description(tmp_path, kind):
    pixels = stack((2, 3, 2, 16, 18), kind)
    names = {"Channel": {"Name": ["DAPI", "GFP"], "Color": [255, 65280]}, "Plane": {"ExposureTime": [0.1] * 12}}
    told = METADATA | names | {"axes": "TZCYX"}
    tifffile.imwrite(tmp_path / "a.ome.tif", pixels, metadata=told, photometric="minisblack")
    picture = read_image(tmp_path / "a.ome.tif")
    assert (picture.axes, picture.separate) == ("TZCYX", (0, 2))
    assert picture.spacing == {"Z": 1.5, "Y": 0.25, "X": 0.25}
    write_image(tmp_path / "b.tif", picture, picture.values())
    axes, found, description, _ = described(tmp_path / "b.tif")
    assert (axes, found.dtype) == ("TZCYX", kind)
    np.testing.assert_array_equal(found, pixels)
    before, after = (_elements(described(tmp_path / "a.ome.tif")[2]), _elements(description))
    for gone in (before, after):
        gone.pop("TiffData", None)
    assert after == before
    assert [channel["Name"] for channel in after["Channel"]] == ["DAPI", "GFP"]


def _elements(description):
    """The elements of OME-XML by name, with all that they say but where the file is."""
    elements = {}
    for element in ElementTree.fromstring(description).iter():
        said = {key: value for key, value in element.attrib.items() if key not in ("UUID", "BigEndian")}
        elements.setdefault(element.tag.partition("}")[2], []).append(said)
    return elements


def test_colours_in_an_ome_tiff_are_colours(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (2, 12, 14, 3), dtype=np.uint8)
    for planar in ("contig", "separate"):
        given = pixels if planar == "contig" else np.moveaxis(pixels, -1, 1)
        axes = "TYXS" if planar == "contig" else "TSYX"
        tifffile.imwrite(
            tmp_path / "a.ome.tif", given, metadata={"axes": axes}, photometric="rgb", planarconfig=planar
        )
        picture = read_image(tmp_path / "a.ome.tif")
        assert (picture.axes, picture.channel_axis, picture.separate) == ("TYXS", -1, (0,))
        assert [part.pixels.shape for _, part in picture.parts()] == [(12, 14, 3)] * 2
        assert {part.channel_axis for _, part in picture.parts()} == {2}
        write_image(tmp_path / "b.ome.tif", picture, picture.values())
        axes, found, _, _ = described(tmp_path / "b.ome.tif")
        assert axes == "TYXS"
        np.testing.assert_array_equal(found, pixels)


def test_an_ome_tiff_in_several_files_becomes_one_and_is_refused_where_one_is_missing(tmp_path):
    pixels = stack((2, 3, 16, 18))
    files = {}
    for k in range(2):
        tifffile.imwrite(
            tmp_path / f"{k}.ome.tif", pixels[k], metadata={"axes": "ZYX"}, photometric="minisblack", ome=True
        )
        with tifffile.TiffFile(tmp_path / f"{k}.ome.tif") as file:
            files[k] = ElementTree.fromstring(file.ome_metadata).attrib["UUID"]
            xml = file.ome_metadata
    space = "{http://www.openmicroscopy.org/Schemas/OME/2016-06}"
    root = ElementTree.fromstring(xml)
    root.attrib["UUID"] = files[0]
    described_pixels = root.find(f"{space}Image/{space}Pixels")
    described_pixels.attrib |= {"SizeT": "2"}
    for old in described_pixels.findall(f"{space}TiffData"):
        described_pixels.remove(old)
    for k in range(2):
        place = {"IFD": "0", "FirstT": str(k), "FirstZ": "0", "FirstC": "0", "PlaneCount": "3"}
        data = ElementTree.SubElement(described_pixels, f"{space}TiffData", place)
        ElementTree.SubElement(data, f"{space}UUID", {"FileName": f"{k}.ome.tif"}).text = files[k]
    tifffile.tiffcomment(tmp_path / "0.ome.tif", ElementTree.tostring(root))
    tifffile.tiffcomment(tmp_path / "1.ome.tif", ElementTree.tostring(root))
    picture = read_image(tmp_path / "0.ome.tif")
    assert picture.axes == "TZYX"
    (tmp_path / "out").mkdir()
    write_image(tmp_path / "out" / "0.ome.tif", picture, picture.values())
    axes, found, _, _ = described(tmp_path / "out" / "0.ome.tif")
    assert axes == "TZYX"
    np.testing.assert_array_equal(found, pixels)
    (tmp_path / "1.ome.tif").unlink()
    with pytest.raises(ImageFileError, match="some of its planes are in files that are not there"):
        read_image(tmp_path / "0.ome.tif")


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize(
    ("axes", "shape"), [("TZCYX", (2, 3, 2, 16, 18)), ("ZYX", (4, 16, 18)), ("CYX", (3, 16, 18))]
)
def test_a_hyperstack_of_imagej_stays_one(tmp_path, kind, axes, shape):
    pixels = stack(shape, kind)
    told = {"axes": axes, "unit": "um", "spacing": 2.0, "finterval": 0.5, "Info": "by hand", "mode": "composite"}
    told["Labels"] = [f"plane {k}" for k in range(int(np.prod(shape[:-2])))]
    tifffile.imwrite(tmp_path / "a.tif", pixels, imagej=True, metadata=told, resolution=(4.0, 2.0))
    picture = read_image(tmp_path / "a.tif")
    assert (picture.axes, picture.spacing) == (axes, {"X": 0.25, "Y": 0.5, "Z": 2.0})
    write_image(tmp_path / "b.tif", picture, picture.values())
    found_axes, found, _, imagej = described(tmp_path / "b.tif")
    assert (found_axes, found.dtype) == (axes, kind)
    np.testing.assert_array_equal(found, pixels)
    assert imagej == described(tmp_path / "a.tif")[3]
    assert imagej["Labels"] == told["Labels"]
    assert read_image(tmp_path / "b.tif").spacing == picture.spacing


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_a_packed_stack_is_read_without_further_packages(tmp_path, kind):
    """Pillow packs pages that tifffile cannot unpack; the description comes from tifffile."""
    pixels = stack((2, 3, 16, 18), kind)
    tifffile.imwrite(tmp_path / "plain.ome.tif", pixels, metadata={"axes": "CZYX"}, photometric="minisblack")
    pages = [Image.fromarray(page) for page in pixels.reshape(-1, 16, 18)]
    description = described(tmp_path / "plain.ome.tif")[2]
    options = {"compression": "tiff_lzw", "save_all": True, "append_images": pages[1:]}
    pages[0].save(tmp_path / "packed.ome.tif", description=description, **options)
    picture = read_image(tmp_path / "packed.ome.tif")
    assert picture.axes == "CZYX"
    np.testing.assert_array_equal(picture.pixels, pixels)


def test_one_packed_page_keeps_its_description(tmp_path):
    pixels = stack((16, 18))
    tifffile.imwrite(tmp_path / "plain.ome.tif", pixels, metadata={"axes": "YX", "PhysicalSizeX": 0.25})
    description = described(tmp_path / "plain.ome.tif")[2]
    Image.fromarray(pixels).save(tmp_path / "packed.ome.tif", compression="tiff_lzw", description=description)
    picture = read_image(tmp_path / "packed.ome.tif")
    assert (picture.spacing["X"], picture.pixels.dtype) == (0.25, np.uint16)
    write_image(tmp_path / "b.tif", picture, picture.values())
    assert 'PhysicalSizeX="0.25"' in described(tmp_path / "b.tif")[2]


def test_colours_and_tables_of_imagej_stay(tmp_path):
    colours = np.random.default_rng(0).integers(0, 255, (2, 12, 14, 3), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", colours, imagej=True, metadata={"axes": "ZYXS"}, photometric="rgb")
    picture = read_image(tmp_path / "a.tif")
    assert (picture.axes, picture.separate) == ("ZYXS", ())
    write_image(tmp_path / "b.tif", picture, picture.values())
    axes, found, _, _ = described(tmp_path / "b.tif")
    assert axes == "ZYXS"
    np.testing.assert_array_equal(found, colours)
    table = np.arange(768, dtype=np.uint8).reshape(3, 256)
    told = {"axes": "CYX", "LUTs": [table, table[::-1]], "Ranges": (0.0, 100.0, 5.0, 250.0), "mode": "composite"}
    tifffile.imwrite(tmp_path / "c.tif", stack((2, 16, 18), np.uint8), imagej=True, metadata=told)
    picture = read_image(tmp_path / "c.tif")
    write_image(tmp_path / "d.tif", picture, picture.values())
    imagej = described(tmp_path / "d.tif")[3]
    np.testing.assert_array_equal(imagej["LUTs"], told["LUTs"])
    assert imagej["Ranges"] == told["Ranges"]


def test_a_unit_that_is_no_ascii_stays_in_a_file_of_imagej(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", stack((2, 16, 18)), imagej=True, metadata={"axes": "ZYX", "unit": "um"})
    content = (tmp_path / "a.tif").read_bytes()
    (tmp_path / "a.tif").write_bytes(content.replace(b"unit=um", b"unit=\xb5m"))
    picture = read_image(tmp_path / "a.tif")
    write_image(tmp_path / "b.tif", picture, picture.values())
    assert described(tmp_path / "b.tif")[3]["unit"] == r"\u00B5m"  # as ImageJ writes it


def test_pages_may_become_an_ome_tiff(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", stack((3, 16, 18)), metadata=None, photometric="minisblack")
    picture = read_image(tmp_path / "a.tif")
    write_image(tmp_path / "b.ome.tif", picture, picture.values())
    axes, found, description, _ = described(tmp_path / "b.ome.tif")
    assert axes == "QYX"
    assert "OME" in description
    np.testing.assert_array_equal(found, stack((3, 16, 18)))


def test_pages_are_separate_images_unless_the_axes_are_given(tmp_path, monkeypatch, capsys):
    pixels = stack((3, 16, 18))
    tifffile.imwrite(tmp_path / "in.tif", pixels, metadata=None, photometric="minisblack")
    fractions = pixels / np.float32(65535)
    assert call(monkeypatch, "denoise", tmp_path / "in.tif", tmp_path / "pages.tif", "--alpha", "0.1") == 0
    assert "3 pages each by itself (--axes ZYX for a volume)" in capsys.readouterr().out
    expected = np.stack([denoise_tv(page, 0.1) for page in fractions])
    np.testing.assert_allclose(described(tmp_path / "pages.tif")[1] / 65535, expected, atol=1e-5)
    options = ("--alpha", "0.1", "--axes", "zyx")
    assert call(monkeypatch, "denoise", tmp_path / "in.tif", tmp_path / "volume.tif", *options) == 0
    axes, found, _, _ = described(tmp_path / "volume.tif")
    np.testing.assert_allclose(found / 65535, denoise_tv(fractions, 0.1), atol=1e-5)
    assert axes == "ZYX"  # so that it is a volume from now on
    assert call(monkeypatch, "denoise", tmp_path / "in.tif", tmp_path / "x.tif", "--axes", "CZYX") == 1
    assert "in.tif has 3 axes (3x16x18), so they cannot be CZYX" in capsys.readouterr().err


@pytest.mark.parametrize("axes", ["ZZX", "Z1X", "TC"])
def test_axes_that_make_no_sense_are_refused(tmp_path, monkeypatch, capsys, axes):
    np.save(tmp_path / "in.npy", np.zeros((3, 4, 5)))
    assert call(monkeypatch, "denoise", tmp_path / "in.npy", tmp_path / "out.npy", "--axes", axes) == 2
    assert axes in capsys.readouterr().err


def test_an_array_with_axes(tmp_path, monkeypatch):
    values = stack((2, 3, 16, 18), np.float64)
    np.save(tmp_path / "in.npy", values)
    arguments = (tmp_path / "in.npy", tmp_path / "out.npy", "--alpha", "0.1", "--axes", "TSYX")
    assert call(monkeypatch, "denoise", *arguments) == 0
    expected = np.stack([denoise_tv(time, 0.1, channel_axis=0) for time in values])
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_spacing_that_the_user_knows(tmp_path, monkeypatch, capsys):
    volume = stack((4, 16, 18), np.float64)
    np.save(tmp_path / "in.npy", volume)
    arguments = (tmp_path / "in.npy", tmp_path / "out.npy", "--alpha", "0.1", "--spacing")
    assert call(monkeypatch, "denoise", *arguments, "3,1,1") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), denoise_tv(volume, 0.1, spacing=(3, 1, 1)))
    for spacing, code in (("3,x,1", 2), ("3,1", 1), ("0,1,1", 1)):
        assert call(monkeypatch, "denoise", *arguments, spacing, "--force") == code
        assert "spacing" in capsys.readouterr().err


@pytest.mark.parametrize(("shape", "letters"), [((4, 16, 18), "ZYX"), ((2, 3, 16, 18), "QZYX"), ((16, 18), "YX")])
def test_an_array_may_become_an_ome_tiff(tmp_path, shape, letters):
    volume = stack(shape, np.float32)
    write_image(tmp_path / "a.ome.tif", Picture(volume), volume)
    axes, found, description, _ = described(tmp_path / "a.ome.tif")
    assert axes == letters
    assert "OME" in description
    np.testing.assert_array_equal(found, volume)


@pytest.mark.parametrize("whole", [False, True], ids=["one mask for all", "a mask for each"])
def test_masks_of_a_stack(tmp_path, monkeypatch, whole):
    pixels = stack((2, 16, 18))
    known = np.random.default_rng(1).random(pixels.shape if whole else (16, 18)) < 0.7
    tifffile.imwrite(tmp_path / "in.ome.tif", pixels, metadata={"axes": "CYX"}, photometric="minisblack")
    np.save(tmp_path / "known.npy", known)
    options = ("--alpha", "0.05", "--mask", tmp_path / "known.npy")
    assert call(monkeypatch, "inpaint", tmp_path / "in.ome.tif", tmp_path / "out.npy", *options) == 0
    masks = known if whole else [known, known]
    parts = zip(pixels / np.float32(65535), masks, strict=True)
    expected = [inpaint_tv(image, mask, 0.05) for image, mask in parts]
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_a_stack_does_not_fit_in_a_photograph(tmp_path, monkeypatch, capsys):
    tifffile.imwrite(
        tmp_path / "in.ome.tif", stack((3, 16, 18)), metadata={"axes": "CYX"}, photometric="minisblack"
    )
    assert call(monkeypatch, "denoise", tmp_path / "in.ome.tif", tmp_path / "out.png") == 1
    assert "out.png cannot hold an array with 3 axes: write a .npy or .tif file" in capsys.readouterr().err
