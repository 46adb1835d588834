"""The command ``ell12`` as its users meet it: files in, files out, messages and exit codes."""

import os
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'cli'")
pytest.importorskip("PIL", reason="image files need the extra 'images'")

import pandas

from ell12 import L12Recommender, __version__, cli
from ell12.datasets import synthetic_ratings
from ell12.picture_files import Picture, read_picture, write_picture
from ell12.restoration import deblur_tv, denoise_tv, inpaint_tv

COMMANDS = ("denoise", "deblur", "inpaint", "complete", "recommend")


@pytest.fixture
def call(monkeypatch, capsys):
    """Run `ell12` with arguments in this process: exit code, output, errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ell12", *map(str, arguments)])
        with pytest.raises(SystemExit) as raised:
            cli.main()
        return raised.value.code or 0, *capsys.readouterr()

    return run


def noisy(kind=np.uint8, seed=0, size=(16, 20)):
    """A rectangle with noise of standard deviation 0.1."""
    values = np.full(size, 0.3)
    values[4:12, 6:15] = 0.7
    values += 0.1 * np.random.default_rng(seed).standard_normal(size)
    if kind == np.float32:
        return Picture(values.astype(kind), "YX")
    return Picture(np.rint(np.clip(values, 0, 1) * np.iinfo(kind).max).astype(kind), "YX")


def save(path, picture):
    write_picture(path, picture, picture.values)
    return path


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "scans"
    folder.mkdir()
    save(folder / "a.png", noisy())
    save(folder / "b.tif", noisy(np.uint16, 1))
    (folder / "notes.txt").write_text("no image")
    return folder


# The command


def test_the_help_of_every_command_has_an_example(call):
    code, out, _ = call("-h")
    assert code == 0
    for name in COMMANDS:
        assert name in out
        code, text, _ = call(name, "-h")
        assert code == 0
        assert f"Example: ell12 {name} " in " ".join(text.split())


def test_version_and_module(call):
    assert call("--version")[:2] == (0, f"ell12 {__version__}\n")
    found = subprocess.run(
        [sys.executable, "-m", "ell12", "--version"], capture_output=True, text=True, check=False
    )
    assert found.stdout == f"ell12 {__version__}\n"


def test_a_missing_package_is_named_with_the_remedy():
    code = "import sys; sys.modules['typer'] = None; import ell12.cli"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (
        1,
        "ell12: the command line needs typer: pip install 'ell12[cli]'\n",
    )


# Images


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("suffix", [".png", ".tif", ".npy"])
def test_the_file_holds_what_the_function_returns(call, tmp_path, kind, suffix):
    picture = noisy(kind)
    source = save(tmp_path / "in.png", picture)
    code, out, error = call("denoise", source, tmp_path / f"out{suffix}")
    assert (code, error) == (0, "")
    result = denoise_tv(picture.values, return_result=True)
    assert f"out{suffix}: alpha {result.alpha:.3g}" in out.replace("\n", "")
    found = read_picture(tmp_path / f"out{suffix}").pixels
    assert found.dtype == (np.float32 if suffix == ".npy" else kind)
    unit = 1 if suffix == ".npy" else np.iinfo(kind).max
    np.testing.assert_allclose(found / unit, np.clip(result.image, 0, 1), atol=0.51 / unit if unit > 1 else 1e-6)


def test_deblur_divides_the_kernel_by_its_sum(call, tmp_path):
    picture, psf = noisy(np.float32), np.outer([1.0, 2, 1], [1, 3, 1])
    np.save(tmp_path / "in.npy", picture.pixels)
    np.save(tmp_path / "psf.npy", psf)
    arguments = (tmp_path / "in.npy", tmp_path / "out.npy", "--psf", tmp_path / "psf.npy", "--alpha", "0.01")
    assert call("deblur", *arguments)[0] == 0
    expected = deblur_tv(picture.pixels, psf / psf.sum(), 0.01)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)
    np.save(tmp_path / "psf.npy", -psf)
    code, _, error = call("deblur", *arguments, "--force")
    assert (code, error) == (1, f"ell12: {tmp_path / 'psf.npy'}: a blur must have a positive sum\n")


@pytest.mark.parametrize("invert", [False, True])
def test_inpaint_takes_bright_as_known(call, tmp_path, invert):
    picture, known = noisy(), np.random.default_rng(1).random((16, 20)) < 0.7
    save(tmp_path / "in.png", picture)
    save(tmp_path / "mask.png", Picture(np.where(known != invert, 255, 0).astype(np.uint8), "YX"))
    options = ("--mask", tmp_path / "mask.png", "--alpha", "0.01", *(["--invert"] if invert else []))
    assert call("inpaint", tmp_path / "in.png", tmp_path / "out.npy", *options)[0] == 0
    expected = inpaint_tv(picture.values, known, 0.01)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)


def test_options_reach_the_function(call, tmp_path):
    source = save(tmp_path / "in.tif", noisy(np.float32))
    for options, given in [
        (("--alpha", "0.2", "--loss", "absolute"), {"alpha": 0.2, "loss": "absolute"}),
        (("--sigma", "0.05"), {"sigma": 0.05}),
        (("--alpha", "held-out"), {"alpha": "held-out"}),
    ]:
        assert call("denoise", source, tmp_path / "out.npy", "--force", *options)[0] == 0
        expected = denoise_tv(noisy(np.float32).pixels, **given)
        np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)


def test_images_along_other_axes_are_restored_one_by_one(call, tmp_path):
    pages = np.stack([noisy(seed=k).pixels for k in range(2)])
    picture = Picture(pages, "TYX")
    source = save(tmp_path / "in.tif", picture)
    assert "2 images one by one" in call("denoise", source, tmp_path / "out.tif", "--alpha", "0.1")[1]
    call("denoise", source, tmp_path / "volume.tif", "--alpha", "0.1", "--axes", "zyx")
    found, volume = (read_picture(tmp_path / name) for name in ("out.tif", "volume.tif"))
    assert (found.axes, volume.axes) == ("TYX", "ZYX")
    expected = denoise_tv(picture.values[1], 0.1)
    np.testing.assert_allclose(found.values[1], expected, atol=0.51 / 255)
    expected = denoise_tv(picture.values, 0.1)
    np.testing.assert_allclose(volume.values, expected, atol=0.51 / 255)


# Many files


def test_a_folder_is_done_but_for_what_fails(call, folder, tmp_path):
    (folder / "damaged.png").write_bytes(b"no image")
    code, out, error = call("denoise", folder, tmp_path / "clean", "--alpha", "0.1")
    assert code == 1
    assert sorted(os.listdir(tmp_path / "clean")) == ["a.png", "b.tif"]
    assert f"ell12: {folder / 'damaged.png'}: " in out
    assert error == "ell12: 1 of 3 images failed\n"
    assert sorted(os.listdir(folder)) == ["a.png", "b.tif", "damaged.png", "notes.txt"]


def test_a_pattern_and_several_files_need_a_folder(call, folder, tmp_path):
    assert call("denoise", f"{folder}/*.png", tmp_path / "one", "--alpha", "0.1")[0] == 0
    assert call("denoise", folder / "a.png", folder / "b.tif", tmp_path / "two", "--alpha", "0.1")[0] == 0
    assert [sorted(os.listdir(tmp_path / name)) for name in ("one", "two")] == [["a.png"], ["a.png", "b.tif"]]
    code, _, error = call("denoise", folder, tmp_path / "all.png")
    assert code == 2
    assert "need a folder" in error


def test_several_images_have_a_bar_on_a_terminal(folder, tmp_path):
    pty = pytest.importorskip("pty")
    main, other = pty.openpty()
    command = [sys.executable, "-m", "ell12", "denoise", str(folder), str(tmp_path / "clean"), "--alpha", "0.1"]
    process = subprocess.Popen(command, stdout=other, stderr=other, env=os.environ | {"TERM": "xterm"})
    os.close(other)
    shown = b""
    try:
        while part := os.read(main, 4096):
            shown += part
    except OSError:  # the terminal is closed
        pass
    assert process.wait() == 0
    assert b"\x1b[" in shown
    assert b"/2" in shown


def test_nothing_is_overwritten_unless_that_is_asked_for(call, folder, tmp_path):
    target = tmp_path / "out.png"
    target.write_bytes(b"mine")
    code, _, error = call("denoise", folder / "a.png", target)
    assert (code, target.read_bytes()) == (2, b"mine")
    assert "is there already: add --force to overwrite it" in " ".join(error.split())
    assert call("denoise", folder, folder)[0] == 2
    assert call("denoise", folder / "a.png", target, "--force", "--alpha", "0.1")[0] == 0
    assert read_picture(target).pixels.shape == (16, 20)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("denoise", "in.png"), 2, "Missing argument"),
        (("denoise", "in.png", "out.gif"), 2, "unknown suffix"),
        (("denoise", "none.png", "out.png"), 1, "there is no image none.png"),
        (("denoise", "in.png", "out.png", "--alpha", "much"), 2, "--alpha must be a number or held-out"),
        (("denoise", "in.png", "out.png", "--alpha", "-1"), 1, "in.png: alpha"),
        (("denoise", "large.npy", "out.png"), 1, "large.npy: .*out.png holds values in"),
        (("denoise", "four.npy", "out.npy"), 1, "four.npy: .*--axes"),
        (("denoise", "in.npy", "out.npy", "--axes", "CT"), 1, "in.npy: .*--axes"),
        (("denoise", "in.png", "out.png", "--sigma", "-1"), 2, "--sigma"),
        (("denoise", "damaged.tif", "out.png"), 1, "damaged.tif: "),
        (("inpaint", "in.png", "out.png"), 2, "--mask"),
        (("inpaint", "in.png", "out.png", "--mask", "four.npy"), 1, "four.npy: .*--axes"),
        (("inpaint", "in.png", "out.png", "--mask", "large.npy"), 1, "in.png: mask"),
        (("deblur", "in.png", "out.png", "--psf", "none.npy"), 1, "none.npy: No such file"),
    ],
)
def test_bad_use_is_one_line_that_names_the_file(call, tmp_path, monkeypatch, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "in.png", noisy())
    np.save("in.npy", np.ones((4, 4)))
    np.save("large.npy", np.arange(40.0).reshape(4, 10))
    np.save("four.npy", np.ones((2, 2, 4, 4)))
    (tmp_path / "damaged.tif").write_bytes(b"II*\0 no more")
    before = sorted(os.listdir(tmp_path))
    found, out, error = call(*arguments)
    assert (found, out) == (code, "")
    assert re.search(words, " ".join(error.split()))
    assert sorted(os.listdir(tmp_path)) == before


def test_warnings_name_the_file(call, tmp_path, monkeypatch):
    def restored(values, **_):
        warnings.warn("this is odd", stacklevel=1)
        return denoise_tv(values, 0.1, return_result=True)

    monkeypatch.setattr("ell12.restoration.denoise_tv", restored)
    code, out, _ = call("denoise", save(tmp_path / "in.png", noisy()), tmp_path / "out.png")
    assert code == 0
    assert f"ell12: {tmp_path / 'in.png'}: this is odd" in out


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["images", "ratings"])
def test_ctrl_c_ends_the_command_and_leaves_no_half_written_file(tmp_path, name):
    if name == "images":
        save(tmp_path / "in.tif", noisy(np.float32, size=(3000, 3000)))
        arguments = ["denoise", "in.tif", "out.tif", "--loss", "absolute", "--alpha", "0.3"]
    else:
        write_ratings(tmp_path / "r.csv", synthetic_ratings(0, 3000, 2000, 200_000))
        arguments = ["recommend", "r.csv", "out.csv"]
    before = sorted(os.listdir(tmp_path))
    process = subprocess.Popen([sys.executable, "-m", "ell12", *arguments], cwd=tmp_path, stderr=subprocess.PIPE)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, b"")
    assert sorted(os.listdir(tmp_path)) == before


# Ratings


def write_ratings(path, ratings, n=None):
    users, items = ratings.users[ratings.rows[:n]], ratings.items[ratings.columns[:n]]
    pandas.DataFrame({"user": users, "item": items, "rating": ratings.values[:n]}).to_csv(path, index=False)
    return path


@pytest.fixture
def ratings():
    return synthetic_ratings(0, 60, 40, 500, rank=2, noise=0.3)


def test_pairs_are_predicted_as_the_recommender_does(call, tmp_path, ratings):
    source = write_ratings(tmp_path / "ratings.csv", ratings)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,item\n0,3\n5,7\n999,3\n")
    code, out, error = call("complete", source, pairs, tmp_path / "out.csv", "--alpha", "3")
    assert (code, error) == (0, "")
    assert "500 ratings by 60 users of 40 items" in out
    assert "hidden ratings: " in out
    found = pandas.read_csv(tmp_path / "out.csv")
    assert list(found.columns) == ["user", "item", "prediction"]
    expected = L12Recommender(3.0, tol=1e-5).fit(ratings).predict([0, 5, 999], [3, 7, 3])
    np.testing.assert_allclose(found["prediction"], expected, atol=0.05)


def test_pairs_without_header_and_named_columns(call, tmp_path, ratings):
    source = write_ratings(tmp_path / "ratings.csv", ratings)
    text = source.read_text().replace("user,item,rating", "who,film,stars")
    (tmp_path / "named.csv").write_text(text)
    (tmp_path / "pairs.tsv").write_text("3\t0\n7\t5\n")
    code, *_ = call(
        "complete", tmp_path / "named.csv", tmp_path / "pairs.tsv", tmp_path / "out.csv", "--columns", "1,0,2"
    )
    assert code == 0
    assert [line.count(",") for line in (tmp_path / "out.csv").read_text().splitlines()] == [2, 2]


def test_the_best_items_of_each_user(call, tmp_path, ratings):
    source = write_ratings(tmp_path / "ratings.csv", ratings)
    code, out, _ = call("recommend", source, tmp_path / "out.csv", "-n", "3", "--users", "0, 7,stranger")
    assert code == 0
    assert "9 lines" in out
    found = pandas.read_csv(tmp_path / "out.csv")
    assert found["user"].tolist() == [*["0"] * 3, *["7"] * 3, *["stranger"] * 3]
    for _, rows in found.groupby("user"):
        assert rows["score"].is_monotonic_decreasing
    seen = set(ratings.items[ratings.columns[ratings.rows == 7]])
    assert not seen & set(found["item"][found["user"] == "7"])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("complete", "none.csv", "pairs.csv", "out.csv"), 1, "none.csv: No such file"),
        (("complete", "r.csv", "none.csv", "out.csv"), 1, "none.csv: No such file"),
        (("complete", "damaged.csv", "pairs.csv", "out.csv"), 1, "damaged.csv: the rating 'x' in row 1"),
        (("complete", "r.csv", "pairs.csv", "out.npz"), 2, "unknown suffix"),
        (("complete", "r.csv", "pairs.csv", "pairs.csv"), 2, "add --force"),
        (("complete", "r.csv", "pairs.csv", "out.csv", "--columns", "who,1,2"), 1, "there is no column 'who'"),
        (("recommend", "r.csv", "out.csv", "-n", "0"), 2, "-n"),
        (("recommend", "r.csv", "no/folder/out.csv"), 1, "no/folder/out.csv: Cannot save"),
    ],
)
def test_bad_ratings_are_named_and_nothing_is_written(
    call, tmp_path, monkeypatch, ratings, arguments, code, words
):
    monkeypatch.chdir(tmp_path)
    write_ratings(tmp_path / "r.csv", ratings)
    (tmp_path / "pairs.csv").write_text("user,item\n0,3\n")
    (tmp_path / "damaged.csv").write_text("user,item,rating\n0,3,1\n0,4,x\n")
    before = sorted(os.listdir(tmp_path))
    found, _, error = call(*arguments)
    assert found == code
    assert words in " ".join(error.split())
    assert sorted(os.listdir(tmp_path)) == before
