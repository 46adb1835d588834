"""The command ``ell12``: files in, files out, messages and exit codes; image files keep their bits."""

import io
import itertools
import os
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'cli'")
Image = pytest.importorskip("PIL.Image", reason="image files need the extra 'images'")
tifffile = pytest.importorskip("tifffile", reason="image files need the extra 'images'")
cli = pytest.importorskip("ell12.cli")

from ell12 import L12Recommender, __version__, picture_files  # noqa: E402
from ell12.datasets import synthetic_ratings  # noqa: E402
from ell12.picture_files import Picture, read_picture, write_picture  # noqa: E402
from ell12.restoration import deblur_tv, denoise_tv, inpaint_tv  # noqa: E402

RANDOM = np.random.default_rng(0)


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run `ell12` with arguments in this process and a folder of its own: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ell12", *map(str, arguments)])
        with pytest.raises(SystemExit) as raised:
            cli.main()
        return raised.value.code or 0, *capsys.readouterr()

    return run


def pixels(kind, *shape):
    return RANDOM.integers(0, np.iinfo(kind).max, shape, endpoint=True).astype(kind)


def picture(kind, n_channels=1, opacity=False):
    shape = (12, 15) if n_channels + opacity == 1 else (12, 15, n_channels + opacity)
    return Picture(pixels(kind, *shape), "YXS"[: len(shape)], opacity)


def noisy(kind=np.uint8, seed=0, size=(16, 20)):
    """A rectangle with noise of standard deviation 0.1."""
    values = np.full(size, 0.3)
    values[4:12, 6:15] = 0.7
    values += 0.1 * np.random.default_rng(seed).standard_normal(size)
    scale = 1 if kind == np.float32 else np.iinfo(kind).max
    return Picture((np.clip(values, 0, 1) * scale).astype(kind), "YX")


def save(path, given):
    write_picture(path, given, given.values)
    return path


def same(found, expected):
    kinds = [(p.axes, p.has_opacity, p.pixels.dtype) for p in (found, expected)]
    return kinds[0] == kinds[1] and np.array_equal(found.pixels, expected.pixels)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "scans"
    folder.mkdir()
    save(folder / "a.png", noisy())
    save(folder / "b.tif", noisy(np.uint16, 1))
    (folder / "notes.txt").write_text("no image")
    return folder


# The command


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_version_module_and_missing_packages(call):
    assert call("--version")[:2] == (0, f"ell12 {__version__}\n")
    assert run("-m", "ell12", "--version").stdout == f"ell12 {__version__}\n"
    found = run("-c", "import sys; sys.modules['typer'] = None; import ell12.cli")
    message = "ell12: the command line needs typer (ell12's extra cli)\n"
    assert (found.returncode, found.stderr) == (1, message)


# Images


@pytest.mark.parametrize(("kind", "suffix"), [(np.uint8, ".png"), (np.uint16, ".tif"), (np.uint16, ".npy")])
def test_the_file_holds_what_the_function_returns(call, tmp_path, kind, suffix):
    given = noisy(kind)
    code, out, error = call("denoise", save(tmp_path / "in.png", given), f"out{suffix}")
    assert (code, error) == (0, "")
    result = denoise_tv(given.values, return_result=True)
    assert f"out{suffix}: alpha {result.alpha:.3g}" in out.replace("\n", "")
    found = read_picture(tmp_path / f"out{suffix}").pixels
    assert found.dtype == (np.float32 if suffix == ".npy" else kind)
    unit = 1 if suffix == ".npy" else np.iinfo(kind).max
    np.testing.assert_allclose(found / unit, np.clip(result.image, 0, 1), atol=0.51 / unit if unit > 1 else 1e-6)


PSF, KNOWN = np.outer([1.0, 2, 1], [1, 3, 1]), np.random.default_rng(1).random((16, 20)) < 0.7
COMMANDS = {
    "denoise --alpha 0.2 --loss absolute": lambda image: denoise_tv(image, 0.2, loss="absolute"),
    "denoise --sigma 0.05": lambda image: denoise_tv(image, sigma=0.05),
    "denoise --alpha held-out": lambda image: denoise_tv(image, "held-out"),
    "deblur --alpha 0.01 --psf psf.npy": lambda image: deblur_tv(image, PSF / PSF.sum(), 0.01),
    "inpaint --alpha 0.01 --mask bright.png": lambda image: inpaint_tv(image, KNOWN, 0.01),
    "inpaint --alpha 0.01 --mask dark.png --invert": lambda image: inpaint_tv(image, KNOWN, 0.01),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_what_its_function_does(call, tmp_path, command):
    image = noisy(np.float32).pixels
    np.save("in.npy", image)
    np.save("psf.npy", PSF)
    for name, known in (("bright", KNOWN), ("dark", ~KNOWN)):
        save(tmp_path / f"{name}.png", Picture(np.where(known, 255, 0).astype(np.uint8), "YX"))
    name, *options = command.split()
    assert call(name, "in.npy", "out.npy", *options)[0] == 0
    np.testing.assert_allclose(np.load("out.npy"), COMMANDS[command](image), atol=1e-6)


def test_images_along_other_axes_are_restored_one_by_one(call, tmp_path):
    given = Picture(np.stack([noisy(seed=k).pixels for k in range(2)]), "TYX")
    save(tmp_path / "in.tif", given)
    assert "2 images one by one" in call("denoise", "in.tif", "out.tif", "--alpha", "0.1")[1]
    call("denoise", "in.tif", "volume.tif", "--alpha", "0.1", "--axes", "zyx")
    found, volume = (read_picture(tmp_path / name) for name in ("out.tif", "volume.tif"))
    assert (found.axes, volume.axes) == ("TYX", "ZYX")
    np.testing.assert_allclose(found.values[1], denoise_tv(given.values[1], 0.1), atol=0.51 / 255)
    np.testing.assert_allclose(volume.values, denoise_tv(given.values, 0.1), atol=0.51 / 255)


# Many files


def test_a_folder_is_done_but_for_what_fails(call, folder, tmp_path):
    (folder / "damaged.png").write_bytes(b"no image")
    code, out, error = call("denoise", folder, "clean", "--alpha", "0.1")
    assert (code, error) == (1, "ell12: 1 of 3 images failed\n")
    assert sorted(os.listdir("clean")) == ["a.png", "b.tif"]
    assert f"ell12: {folder / 'damaged.png'}: " in out
    assert sorted(os.listdir(folder)) == ["a.png", "b.tif", "damaged.png", "notes.txt"]


def test_a_pattern_and_several_files_need_a_folder(call, folder):
    assert call("denoise", f"{folder}/*.png", "one", "--alpha", "0.1")[0] == 0
    assert call("denoise", folder / "a.png", folder / "b.tif", "two", "--alpha", "0.1")[0] == 0
    assert [sorted(os.listdir(name)) for name in ("one", "two")] == [["a.png"], ["a.png", "b.tif"]]
    code, _, error = call("denoise", folder, "all.png")
    assert code == 2
    assert "need a folder" in error


def test_nothing_is_overwritten_unless_that_is_asked_for(call, folder, tmp_path):
    target = tmp_path / "out.png"
    target.write_bytes(b"mine")
    code, _, error = call("denoise", folder / "a.png", target)
    assert (code, target.read_bytes()) == (2, b"mine")
    assert "is there already: add --force to overwrite it" in " ".join(error.split())
    assert call("denoise", folder, folder)[0] == 2
    assert call("denoise", folder / "a.png", target, "--force", "--alpha", "0.1")[0] == 0
    assert read_picture(target).pixels.shape == (16, 20)


def write_ratings(path, ratings):
    columns = {"user": ratings.users[ratings.rows], "item": ratings.items[ratings.columns]}
    pandas.DataFrame(columns | {"rating": ratings.values}).to_csv(path, index=False)


@pytest.fixture
def ratings():
    return synthetic_ratings(0, 60, 40, 500, rank=2, noise=0.3)


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("denoise in.png out.gif", 2, "unknown suffix"),
        ("denoise none.png out.png", 1, "there is no image none.png"),
        ("denoise in.png out.png --alpha much", 2, "--alpha.*'much'"),
        ("denoise large.npy out.png", 1, "large.npy: .*out.png holds values in"),
        ("denoise four.npy out.npy", 1, "four.npy: .*--axes"),
        ("denoise in.png out.png --sigma -1", 2, "--sigma"),
        ("denoise damaged.tif out.png", 1, "damaged.tif: "),
        ("inpaint in.png out.png", 2, "--mask"),
        ("inpaint in.png out.png --mask large.npy", 1, "in.png: mask"),
        ("deblur in.png out.png --psf none.npy", 1, "none.npy: No such file"),
        ("deblur in.png out.png --psf negative.npy", 1, "negative.npy: a blur must have a positive sum"),
        ("complete none.csv pairs.csv out.csv", 1, "none.csv: No such file"),
        ("complete damaged.csv pairs.csv out.csv", 1, "damaged.csv: values"),
        ("complete r.csv pairs.csv out.npz", 2, "unknown suffix"),
        ("complete r.csv pairs.csv pairs.csv", 2, "add --force"),
        ("complete r.csv pairs.csv out.csv --columns who,1,2", 1, "columns must be"),
        ("recommend r.csv out.csv -n 0", 2, "-n"),
        ("recommend r.csv no/folder/out.csv", 1, "no/folder/out.csv: Cannot save"),
    ],
)
def test_bad_use_is_one_line_that_names_the_file(call, tmp_path, ratings, command, code, words):
    save(tmp_path / "in.png", noisy())
    for name, shape in (("in", (4, 4)), ("four", (2, 2, 4, 4)), ("large", (4, 10))):
        np.save(f"{name}.npy", np.arange(np.prod(shape, dtype=float)).reshape(shape))
    np.save("negative.npy", -PSF)
    (tmp_path / "damaged.tif").write_bytes(b"II*\0 no more")
    write_ratings("r.csv", ratings)
    (tmp_path / "pairs.csv").write_text("user,item\n0,3\n")
    (tmp_path / "damaged.csv").write_text("user,item,rating\n0,3,1\n0,4,x\n")
    before = sorted(os.listdir())
    found, _, error = call(*command.split())
    assert found == code
    assert re.search(words, " ".join(error.split()))
    assert sorted(os.listdir()) == before


def test_warnings_name_the_file(call, tmp_path, monkeypatch):
    def restored(values, **_):
        warnings.warn("this is odd", stacklevel=1)
        return denoise_tv(values, 0.1, return_result=True)

    monkeypatch.setattr("ell12.restoration.denoise_tv", restored)
    save(tmp_path / "in.png", noisy())
    assert "ell12: in.png: this is odd" in call("denoise", "in.png", "out.png")[1]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_the_command_and_leaves_no_half_written_file(tmp_path):
    save(tmp_path / "in.tif", noisy(np.float32, size=(3000, 3000)))
    command = ["-m", "ell12", "denoise", "in.tif", "out.tif", "--loss", "absolute", "--alpha", "0.3"]
    process = subprocess.Popen([sys.executable, *command], cwd=tmp_path, stderr=subprocess.PIPE)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, b"")
    assert os.listdir(tmp_path) == ["in.tif"]


# Ratings


def test_pairs_are_predicted_as_the_recommender_does(call, tmp_path, ratings):
    write_ratings("ratings.csv", ratings)
    (tmp_path / "pairs.csv").write_text("user,item\n0,3\n5,7\n999,3\n")
    code, out, error = call("complete", "ratings.csv", "pairs.csv", "out.csv", "--alpha", "3")
    assert (code, error) == (0, "")
    assert "500 ratings by 60 users of 40 items" in out
    assert "hidden ratings: " in out
    found = pandas.read_csv("out.csv")
    assert list(found.columns) == ["user", "item", "prediction"]
    expected = L12Recommender(3.0, tol=1e-5).fit(ratings).predict([0, 5, 999], [3, 7, 3])
    np.testing.assert_allclose(found["prediction"], expected, atol=0.05)
    (tmp_path / "pairs.tsv").write_text("3\t0\n7\t5\n")  # no header, and items first
    assert call("complete", "ratings.csv", "pairs.tsv", "two.csv", "--columns", "1,0,2")[0] == 0
    assert [line.count(",") for line in (tmp_path / "two.csv").read_text().splitlines()] == [2, 2]


def test_the_best_items_of_each_user(call, ratings):
    write_ratings("ratings.csv", ratings)
    assert "9 lines" in call("recommend", "ratings.csv", "out.csv", "-n", "3", "--users", "0, 7,unknown")[1]
    found = pandas.read_csv("out.csv")
    assert found["user"].tolist() == [*["0"] * 3, *["7"] * 3, *["unknown"] * 3]
    assert all(rows["score"].is_monotonic_decreasing for _, rows in found.groupby("user"))
    seen = set(ratings.items[ratings.columns[ratings.rows == 7]])
    assert not seen & set(found["item"][found["user"] == "7"])


# Image files


STACKS = [(axes, [3 if axis == "S" else 4 for axis in axes]) for axes in ("TZYX", "ZYX", "TYXS", "CYX")]
SIGNED = [np.array([[-3, 700], [5, 6]], dtype=kind) for kind in (np.int16, np.int32, np.float32, np.float64)]
PLAIN = itertools.product(("a.png", "a.tif"), (np.uint8, np.uint16), (1, 3), (False, True))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((name, picture(kind, n_channels, opacity)) for name, kind, n_channels, opacity in PLAIN),
        *((name, picture(np.uint8, 3)) for name in ("a.bmp", "a.webp", "a.PNG")),
        *(("a.tif", Picture(values, "YX")) for values in SIGNED),
        *(("a.tif", Picture(pixels(np.uint16, *shape), axes)) for axes, shape in STACKS),
        *(("a.ome.tif", Picture(pixels(np.uint16, *shape), axes)) for axes, shape in STACKS),
    ],
)
def test_every_bit_comes_back(tmp_path, name, given):
    assert same(read_picture(save(tmp_path / name, given)), given)


def test_jpeg_loses_little(tmp_path):
    smooth = np.linspace(50, 200, 240).reshape(12, 20).astype(np.uint8)
    found = read_picture(save(tmp_path / "a.jpg", Picture(smooth, "YX")))
    assert np.abs(found.pixels - smooth.astype(float)).max() < 4


@pytest.mark.parametrize("mode", ["1", "P", "CMYK", "LA", "I;16"])
def test_modes_of_pillow_become_grey_or_colours(tmp_path, mode):
    rgb = Image.fromarray(pixels(np.uint8, 12, 15, 3))
    image = Image.fromarray(pixels(np.uint16, 12, 15)) if mode == "I;16" else rgb.convert(mode)
    image.save(tmp_path / ("a.jpg" if mode == "CMYK" else "a.png"))
    found = read_picture(next(tmp_path.iterdir()))
    assert (found.has_colours, found.has_opacity) == (mode in ("P", "CMYK"), mode == "LA")
    assert found.pixels.dtype == (np.uint16 if mode == "I;16" else np.uint8)


def test_a_photograph_on_its_side_is_turned_and_keeps_its_notes(tmp_path):
    image, exif = Image.fromarray(pixels(np.uint8, 12, 15)), Image.Exif()
    exif[274], exif[271] = 6, "maker"
    image.save(tmp_path / "a.png", exif=exif, icc_profile=b"profile", dpi=(72, 72))
    given = read_picture(tmp_path / "a.png")
    np.testing.assert_array_equal(given.pixels, np.rot90(np.asarray(image), -1))
    with Image.open(save(tmp_path / "b.png", given)) as found:
        assert found.getexif().get(274, 1) == 1
        assert (found.getexif()[271], found.info["icc_profile"]) == ("maker", b"profile")


def content(function, *arguments, **options):
    file = io.BytesIO()
    function(file, *arguments, **options)
    return file.getvalue()


def png(size, **options):
    return content(Image.fromarray(np.zeros((size, size), np.uint8)).save, "PNG", **options)


def tiff(size=4, **options):
    return content(tifffile.imwrite, np.zeros((size, size), np.uint8), **options)


@pytest.mark.parametrize(
    ("name", "stored", "message"),
    [
        ("a.png", b"no image", "cannot identify"),
        ("a.png", png(4, save_all=True, append_images=[Image.new("L", (4, 4))]), "several frames"),
        ("a.png", png(35), "decompression bomb"),
        ("a.tif", tiff(photometric="miniswhite"), "MINISWHITE, not grey or RGB"),
        ("a.tif", tiff(extratags=[(274, 3, 1, 6, True)]), "turned or mirrored"),
        ("a.tif", tiff(400, compression="zlib"), "unpacks to 160,000 bytes"),
        ("a.npy", b"no array", "pickled"),
    ],
)
def test_what_cannot_be_read_is_an_error(tmp_path, monkeypatch, name, stored, message):
    monkeypatch.setattr(picture_files, "MOST_BYTES", 1000)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    (tmp_path / name).write_bytes(stored)
    with pytest.raises(Exception, match=message):
        read_picture(tmp_path / name)
