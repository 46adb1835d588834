"""``ell12 denoise``, ``deblur`` and ``inpaint`` as their users meet them: files, messages and exit codes."""

import inspect
import io
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'report'")
pytest.importorskip("PIL", reason="image files need the extra 'images'")

from ell12 import cli
from ell12.commands import CommandError, progress, restoration_job, restore
from ell12.commands.image_files import Picture, read_image, write_image
from ell12.minimization import Status
from ell12.restoration import deblur_tv, denoise_tv, inpaint_tv
from ell12.wording import number

KNOWN = np.random.default_rng(1).random((20, 26)) < 0.7
BLUR = np.outer([1, 2, 1], [1, 3, 1])


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["ell12", *map(str, arguments)])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return raised.value.code or 0


def noisy(kind=np.uint8, n_channels=1, seed=0):
    """A rectangle with noise of standard deviation 0.1."""
    values = np.full((20, 26, n_channels), 0.3)
    values[5:15, 8:20] = 0.7
    values += 0.1 * np.random.default_rng(seed).standard_normal(values.shape)
    pixels = np.rint(np.clip(values, 0, 1) * np.iinfo(kind).max).astype(kind)
    return Picture(pixels[..., 0]) if n_channels == 1 else Picture(pixels, -1)


def save(path, picture):
    write_image(path, picture, picture.values())
    return path


# What comes out


@pytest.mark.parametrize("suffix", [".png", ".tif", ".npy"])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_the_file_holds_what_the_function_returns(tmp_path, monkeypatch, capsys, suffix, kind, n_channels):
    picture = noisy(kind, n_channels)
    source = save(tmp_path / "in.png", picture)
    assert call(monkeypatch, "denoise", source, tmp_path / f"out{suffix}") == 0
    expected = denoise_tv(picture.values(), channel_axis=picture.channel_axis, return_result=True)
    found = read_image(tmp_path / f"out{suffix}")
    if suffix == ".npy":
        np.testing.assert_array_equal(found.pixels, expected.image)
    else:
        assert found.pixels.dtype == kind
        np.testing.assert_allclose(found.values(), expected.image, atol=0.51 / np.iinfo(kind).max)
    said = capsys.readouterr().out
    assert said.startswith(f"{source} -> {tmp_path / f'out{suffix}'}: alpha {expected.alpha:.3g} ")
    assert f"chosen for noise {number(expected.noise)} ({number(np.iinfo(kind).max * expected.noise)} of " in said


def test_options_reach_the_function(tmp_path, monkeypatch, capsys):
    picture = noisy()
    source, out = save(tmp_path / "in.png", picture), tmp_path / "out.npy"
    options = ("--alpha", "0.1", "--l2-weight", "0.8", "--smoothing", "0.02", "--boundary", "periodic")
    assert call(monkeypatch, "denoise", source, out, *options, "--spins", "2", "--max-iter", "7") == 0
    expected = denoise_tv(
        picture.values(),
        0.1,
        l2_weight=0.8,
        smoothing=0.02,
        boundary="periodic",
        spins=2,
        max_iter=7,
        return_result=True,
    )
    np.testing.assert_array_equal(np.load(out), expected.image)
    assert ": alpha 0.1, " in capsys.readouterr().out
    assert call(monkeypatch, "denoise", source, out, "--noise", "0.2", "--force") == 0
    np.testing.assert_array_equal(np.load(out), denoise_tv(picture.values(), noise=0.2))


@pytest.mark.parametrize(
    ("words", "option"),
    [(("--isotropic",), {"isotropic": True}), (("--loss", "absolute"), {"loss": "absolute"})],
    ids=["isotropic", "loss"],
)
def test_every_command_takes_the_isotropic_penalty_and_other_losses(tmp_path, monkeypatch, capsys, words, option):
    picture, kernel, out = noisy(), np.full((3, 3), 1 / 9), tmp_path / "out.npy"
    source, mask = save(tmp_path / "in.png", picture), np.random.default_rng(0).random(picture.pixels.shape) < 0.7
    np.save(tmp_path / "kernel.npy", kernel)
    np.save(tmp_path / "mask.npy", mask)
    y, options = picture.values(), ("--alpha", "0.1", *words, "--force")
    for command, expected, more in (
        ("denoise", denoise_tv(y, 0.1, **option), ()),
        ("deblur", deblur_tv(y, kernel, 0.1, **option), ("--kernel", tmp_path / "kernel.npy")),
        ("inpaint", inpaint_tv(y, mask, 0.1, **option), ("--mask", tmp_path / "mask.npy")),
    ):
        assert call(monkeypatch, command, source, out, *options, *more) == 0
        np.testing.assert_allclose(np.load(out), expected, atol=1e-12)
    assert "without convergence" not in capsys.readouterr().out


def test_colours_are_one_problem_unless_they_are_not_to_be(tmp_path, monkeypatch):
    picture, kernel, out = noisy(n_channels=3), np.full((3, 3), 1 / 9), tmp_path / "out.npy"
    source, mask = save(tmp_path / "in.png", picture), np.random.default_rng(0).random((20, 26)) < 0.7
    np.save(tmp_path / "kernel.npy", kernel)
    np.save(tmp_path / "mask.npy", mask)
    for command, function, more in (
        ("denoise", denoise_tv, ()),
        ("deblur", lambda y, a, **o: deblur_tv(y, kernel, a, **o), ("--kernel", tmp_path / "kernel.npy")),
        ("inpaint", lambda y, a, **o: inpaint_tv(y, mask, a, **o), ("--mask", tmp_path / "mask.npy")),
    ):
        for colour, flags in ((True, ()), (False, ("--no-colour",))):
            assert call(monkeypatch, command, source, out, "--alpha", "0.1", "--force", *more, *flags) == 0
            expected = function(picture.values(), 0.1, channel_axis=-1, colour=colour)
            np.testing.assert_allclose(np.load(out), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["denoise", "deblur", "inpaint"])
def test_an_option_has_the_default_of_the_function(name):
    command = inspect.signature(getattr(restore, name)).parameters
    function = inspect.signature(getattr(restore, f"{name}_tv")).parameters
    shared = sorted(set(command) & set(function) - {"kernel", "mask", "max_iter"})  # a user waits less long
    assert {"alpha", "boundary", "isotropic", "l2_weight", "loss", "noise", "smoothing", "spacing"} <= set(shared)
    assert {key: command[key].default for key in shared} == {key: function[key].default for key in shared}


def test_the_strength_may_be_chosen_by_held_out_pixels(tmp_path, monkeypatch, capsys):
    picture = noisy()
    source = save(tmp_path / "in.png", picture)
    assert call(monkeypatch, "denoise", source, tmp_path / "out.npy", "--alpha", "held-out") == 0
    expected = denoise_tv(picture.values(), "held-out", return_result=True)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected.image)
    chosen = f"alpha {expected.alpha:.3g} ({255 * expected.alpha:.3g} of 255), chosen by held-out pixels, "
    assert chosen in capsys.readouterr().out


def test_a_strength_without_unit_is_said_without(tmp_path):
    picture = noisy()
    job = restoration_job.RestorationJob(denoise_tv, lambda *_: (), None, {"loss": "absolute", "max_iter": 5})
    found = job.restore(picture, lambda *_: None)[1]
    assert " of 255" not in job.describe(picture, found)


def test_a_run_cut_short_is_said(tmp_path, monkeypatch, capsys):
    source = save(tmp_path / "in.png", noisy())
    assert call(monkeypatch, "denoise", source, tmp_path / "out.png", "--max-iter", "2") == 0
    assert "2 iterations without convergence" in capsys.readouterr().out


@pytest.mark.parametrize("n_channels", [1, 3])
def test_opacity_passes_through(tmp_path, monkeypatch, n_channels):
    opacity = np.random.default_rng(3).integers(0, 256, (20, 26), dtype=np.uint8)
    picture = replace(noisy(n_channels=n_channels), opacity=opacity)
    source = save(tmp_path / "in.png", picture)
    assert call(monkeypatch, "denoise", source, tmp_path / "out.png") == 0
    found = read_image(tmp_path / "out.png")
    np.testing.assert_array_equal(found.opacity, opacity)
    expected = denoise_tv(picture.values(), channel_axis=picture.channel_axis)
    np.testing.assert_allclose(found.values(), expected, atol=0.51 / 255)


def test_channels_of_an_array(tmp_path, monkeypatch):
    values = np.moveaxis(noisy(n_channels=3).values(), -1, 0)
    np.save(tmp_path / "in.npy", values)
    assert call(monkeypatch, "denoise", tmp_path / "in.npy", tmp_path / "volume.npy", "--alpha", "0.1") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "volume.npy"), denoise_tv(values, 0.1))
    arguments = (tmp_path / "in.npy", tmp_path / "colours.png", "--alpha", "0.1", "--channels", "0")
    assert call(monkeypatch, "denoise", *arguments) == 0
    expected = np.moveaxis(denoise_tv(values, 0.1, channel_axis=0), 0, -1)
    np.testing.assert_allclose(read_image(tmp_path / "colours.png").values(), expected, atol=1e-5)


@pytest.mark.parametrize("suffix", [".png", ".npy"])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_deblur_divides_the_kernel_by_its_sum(tmp_path, monkeypatch, suffix, n_channels):
    picture, out = noisy(n_channels=n_channels), tmp_path / "out.npy"
    source = save(tmp_path / "in.png", picture)
    save(tmp_path / f"kernel{suffix}", Picture((BLUR * 20).astype(np.uint8)))
    arguments = (
        source,
        out,
        "--kernel",
        tmp_path / f"kernel{suffix}",
        "--alpha",
        "0.1",
    )  # small alphas enlarge rounding
    assert call(monkeypatch, "deblur", *arguments) == 0
    kernel = (BLUR / BLUR.sum()).astype(np.float32)
    expected = deblur_tv(picture.values(), kernel, 0.1, channel_axis=picture.channel_axis)
    np.testing.assert_allclose(np.load(out), expected, atol=1e-4)


@pytest.mark.parametrize("n_channels", [1, 3])
def test_inpaint_takes_white_as_known_unless_told_otherwise(tmp_path, monkeypatch, n_channels):
    picture, out = noisy(n_channels=n_channels), tmp_path / "out.npy"
    source = save(tmp_path / "in.png", picture)
    save(tmp_path / "mask.png", Picture(np.where(KNOWN, 255, 0).astype(np.uint8)))
    np.save(tmp_path / "missing.npy", ~KNOWN)
    expected = inpaint_tv(picture.values(), KNOWN, 0.05, channel_axis=picture.channel_axis)
    for options in (("--mask", tmp_path / "mask.png"), ("--mask", tmp_path / "missing.npy", "--invert")):
        assert call(monkeypatch, "inpaint", source, out, *options, "--alpha", "0.05", "--force") == 0
        np.testing.assert_array_equal(np.load(out), expected)


def test_missing_pixels_may_be_nan(tmp_path, monkeypatch):
    values = noisy().values()
    values[~KNOWN] = np.nan
    np.save(tmp_path / "in.npy", values)
    np.save(tmp_path / "known.npy", KNOWN)
    arguments = (tmp_path / "in.npy", tmp_path / "out.png", "--mask", tmp_path / "known.npy", "--alpha", "0.05")
    assert call(monkeypatch, "inpaint", *arguments) == 0
    expected = inpaint_tv(values, KNOWN, 0.05)
    np.testing.assert_allclose(read_image(tmp_path / "out.png").values(), expected, atol=1e-5)


# Several images


@pytest.fixture
def folder(tmp_path):
    """Three images, one of them cut off, and something else."""
    path = tmp_path / "in"
    path.mkdir()
    for seed, name in enumerate(["a.png", "b.PNG", "c.tif"]):
        save(path / name, noisy(seed=seed))
    (path / "b.PNG").write_bytes((path / "b.PNG").read_bytes()[:-60])
    (path / "notes.txt").write_text("")
    return path


def test_a_folder_is_done_but_for_what_fails(folder, tmp_path, monkeypatch, capsys):
    assert call(monkeypatch, "denoise", folder, tmp_path / "new" / "out") == 1
    captured = capsys.readouterr()
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == ["a.png", "c.tif"]
    assert len(captured.out.splitlines()) == 2
    assert captured.err.splitlines()[0].startswith(f"ell12: cannot read {folder / 'b.PNG'}: ")
    assert captured.err.splitlines()[1:] == ["ell12: 1 of 3 images failed"]


def test_a_pattern_stands_for_its_files(folder, tmp_path, monkeypatch, capsys):
    assert call(monkeypatch, "denoise", folder / "[ac].*", tmp_path / "out") == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.png", "c.tif"]
    assert capsys.readouterr().err == ""


def test_what_goes_where(folder, tmp_path, monkeypatch):
    a, c = folder / "a.png", folder / "c.tif"
    (tmp_path / "there").mkdir()
    assert restoration_job.plan([str(a)], tmp_path / "x.jpg", False) == [(a, tmp_path / "x.jpg")]
    assert restoration_job.plan([str(a)], tmp_path / "there", False) == [(a, tmp_path / "there" / "a.png")]
    several = [(a, tmp_path / "new" / "a.png"), (c, tmp_path / "new" / "c.tif")]
    assert restoration_job.plan([str(a), str(c)], tmp_path / "new", False) == several
    monkeypatch.chdir(folder)
    (folder / "a[1].png").write_bytes(b"")
    assert restoration_job.expand("a[1].png") == [folder.__class__("a[1].png")]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_several_images_have_a_bar_on_a_terminal(folder, tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "300")
    assert call(monkeypatch, "denoise", folder, tmp_path / "out") == 1
    shown = terminal.getvalue()
    assert "3/3" in shown
    assert f"{folder / 'a.png'} -> {tmp_path / 'out' / 'a.png'}: alpha" in shown
    assert f"cannot read {folder / 'b.PNG'}" in shown


# What is refused


def test_nothing_is_overwritten_unless_that_is_asked_for(tmp_path, monkeypatch, capsys):
    source = save(tmp_path / "in.png", noisy())
    out = tmp_path / "out.png"
    out.write_bytes(b"precious")
    assert call(monkeypatch, "denoise", source, out) == 2
    assert capsys.readouterr().err == f"ell12: {out} is there already: add --force to overwrite it\n"
    assert out.read_bytes() == b"precious"
    assert call(monkeypatch, "denoise", source, out, "--force") == 0
    assert read_image(out).pixels.shape == (20, 26)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.png", "out.png"]


@pytest.mark.parametrize(
    ("sources", "target", "words"),
    [
        (["in/none.png"], "out.png", "there is no file .*none.png"),
        (["in/*.jpg"], "out", r"no file matches .*in/\*\.jpg"),
        (["in"], "out.png", "a folder or a pattern need a folder as OUT; .*out.png names a file"),
        (["in/a.png"], "out.gif", r"out.gif has an unknown suffix; known are \.png"),
        (["in/notes.txt"], "out", r"out has an unknown suffix"),
        (["in/a.png", "in/a.png"], "out", "two images would be written to .*out/a.png"),
        (["in"], "in", r"in/a.png is there already \(and 2 more\): add --force"),
        (["in/a.png"], "nowhere/out.png", "cannot write to the folder .*nowhere: No such file"),
        (["in"], "in/notes.txt", "cannot write to the folder .*notes.txt: "),
        (["empty"], "out", "the folder .*empty holds no image"),
    ],
)
def test_bad_use_is_one_line_and_nothing_is_written(folder, tmp_path, monkeypatch, capsys, sources, target, words):
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    code = 1 if words.startswith(("there is no", "no file", "cannot", "the folder")) else 2
    assert call(monkeypatch, "denoise", *(tmp_path / name for name in sources), tmp_path / target) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n"), captured.err[:7]) == ("", 1, "ell12: ")
    with pytest.raises(CommandError, match=words):
        raise CommandError(captured.err)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "option",
    [
        ("--alpha", "-1"),
        ("--alpha", "x"),
        ("--alpha", "nan"),
        ("--l2-weight", "2"),
        ("--spins", "0"),
        ("--boundary", "round"),
        ("--channels", "x"),
    ],
)
def test_bad_options_are_refused(tmp_path, monkeypatch, capsys, option):
    source = save(tmp_path / "in.png", noisy())
    assert call(monkeypatch, "denoise", source, tmp_path / "out.png", *option) == 2
    assert option[0] in capsys.readouterr().err
    assert not (tmp_path / "out.png").exists()


def test_what_the_function_refuses_is_told_with_the_file(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "in.npy", np.array([[0.0, np.nan], [1.0, 2.0]]))
    assert call(monkeypatch, "denoise", tmp_path / "in.npy", tmp_path / "out.npy") == 1
    assert capsys.readouterr().err.startswith(f"ell12: {tmp_path / 'in.npy'}: image holds NaN")
    assert not (tmp_path / "out.npy").exists()


def test_a_mask_or_kernel_that_does_not_fit(tmp_path, monkeypatch, capsys):
    source = save(tmp_path / "in.png", noisy())
    np.save(tmp_path / "zero.npy", np.zeros((3, 3)))
    np.save(tmp_path / "large.npy", np.ones((21, 3)))
    np.save(tmp_path / "wrong.npy", KNOWN[:-1])
    out = tmp_path / "out.png"
    cases = {
        ("deblur", "--kernel", "none.png"): (1, "cannot read /none.png"),
        ("deblur", "--kernel", "zero.npy"): (1, "/zero.npy is no blur"),
        ("deblur", "--kernel", "large.npy"): (1, "kernel"),
        ("inpaint", "--mask", "wrong.npy"): (1, "mask"),
    }
    for (command, option, name), (code, words) in cases.items():
        assert call(monkeypatch, command, source, out, option, tmp_path / name) == code
        assert words in capsys.readouterr().err.replace(str(tmp_path), "")
        assert not out.exists()


def test_ctrl_c_ends_the_command_and_writes_no_unfinished_image(folder, tmp_path, monkeypatch, capsys):
    done = []

    def interrupted(values, alpha, **options):
        result = denoise_tv(values, alpha, **options)
        done.append(1)
        stopped = tuple(replace(run, status=Status.STOPPED) for run in result.runs)
        return result if len(done) == 1 else replace(result, runs=stopped)

    (folder / "b.PNG").unlink()
    monkeypatch.setattr(restore, "denoise_tv", interrupted)
    assert call(monkeypatch, "denoise", folder, tmp_path / "out") == 130
    assert capsys.readouterr().out.splitlines()[-1] == "Stopped: 1 of 2 images are written."
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.png"]


@pytest.mark.parametrize(("package", "name"), [("PIL", "in.png"), ("tifffile", "in.tif")])
def test_a_missing_package_is_named_with_the_remedy(tmp_path, monkeypatch, capsys, package, name):
    source = save(tmp_path / name, noisy())
    monkeypatch.setitem(sys.modules, package, None)
    assert call(monkeypatch, "denoise", source, tmp_path / "out.npy") == 1
    assert f"needs {package}, which cannot be found: pip install 'ell12[images]'" in capsys.readouterr().err


def test_the_only_image_has_a_bar_when_it_takes_long(tmp_path, monkeypatch):
    source = save(tmp_path / "in.png", noisy())

    def slow(values, alpha, *, stop, **options):
        def follow(history):
            time.sleep(0.02)
            return stop(history)

        time.sleep(0.3)  # the bar is drawn ten times a second
        return denoise_tv(values, alpha, stop=follow, **options)

    monkeypatch.setattr(restore, "denoise_tv", slow)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "300")
    shown = {}
    for patience in (0.01, 60.0):
        monkeypatch.setattr(progress, "PATIENCE", patience)
        monkeypatch.setattr(sys, "stdout", Terminal())
        assert call(monkeypatch, "denoise", source, tmp_path / "out.png", "--force") == 0
        shown[patience] = sys.stdout.getvalue()
    assert "in.png: choosing the strength" in shown[0.01]
    assert "in.png: iteration " in shown[0.01]
    assert f"{source} -> {tmp_path / 'out.png'}: alpha" in shown[0.01].splitlines()[-1]
    assert shown[60.0].startswith(f"{source} -> ")
    assert shown[60.0].count("\n") == 1


def test_ctrl_c_within_a_stack_writes_nothing(tmp_path, monkeypatch, capsys):
    done = []

    def interrupted(values, alpha, **options):
        done.append(1)
        if len(done) == 2:
            raise KeyboardInterrupt
        return denoise_tv(values, alpha, **options)

    np.save(tmp_path / "in.npy", np.stack([noisy(seed=k).values() for k in range(3)]))
    monkeypatch.setattr(restore, "denoise_tv", interrupted)
    assert call(monkeypatch, "denoise", tmp_path / "in.npy", tmp_path / "out.npy", "--axes", "TYX") == 130
    assert capsys.readouterr().out == "Stopped: 0 of 1 images are written.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in.npy"]
