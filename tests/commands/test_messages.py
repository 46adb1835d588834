"""Messages name files and ids that may hold anything: no command lets a terminal obey them."""

import ast
import io
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'report'")
pytest.importorskip("PIL", reason="image files need the extra 'images'")

import ell12
from ell12 import cli
from ell12.commands import printable, say

EVIL = "a\x1b[31mred\x07\x9b5m\u202e"
SHOWN = "a\\x1b[31mred\\x07\\x9b5m\\u202e"


@pytest.fixture
def call(call):
    """What the command printed, both streams together, and its exit code."""

    def run(*arguments):
        code, out, error = call(*arguments)
        return code, out + error

    return run


def ratings_file(path, user="u"):
    lines = [f"{user}{k % 5},film {k // 5},{1 + (k * k) % 5}\n" for k in range(30)]
    path.write_text("".join([*lines, lines[0]]), encoding="utf-8")
    return path


def image_file(path):
    np.save(path, 0.5 + 0.1 * np.random.default_rng(0).standard_normal((24, 26)))
    return path


def is_safe(text):
    colourless = SHOWN.replace("\\x1b[31m", "")  # so typer before 0.28 writes an option that it does not know
    assert SHOWN in text or colourless in text, text
    return not any(character in text for character in "\x1b\x07\x9b\u202e")


@pytest.mark.parametrize(
    "arguments",
    [
        ("complete", "{0}/no.csv"),
        ("complete", "{0}"),
        ("complete", "{0}/r.csv", "--out", "{0}/m.txt"),
        ("complete", "{0}/r.csv", "--out", "{0}/no/m.npz"),
        ("complete", "{0}/r.csv", "--predict", "{0}/no.csv", "--out", "{0}/p.csv"),
        ("complete", "{0}/r.csv", "--columns", "{1},a,b"),
        ("complete", "{0}/r.csv", "--encoding", "{1}"),
        ("fit", "{0}/no.csv", "--target", "y"),
        ("fit", "{0}/r.csv", "--target", "{1}"),
        ("predict", "{0}/r.csv", "{0}/r.csv"),
        ("denoise", "{0}/no.png", "{0}/x.png"),
        ("denoise", "{0}/bad.png", "{0}/x.png"),
        ("denoise", "{0}/i.npy", "{0}/x.txt"),
        ("denoise", "{0}/i.npy", "{0}/i.npy"),
        ("denoise", "{0}/*.nothing", "{0}/x.png"),
        ("deblur", "{0}/i.npy", "{0}/x.npy", "--kernel", "{0}/no.npy"),
        ("inpaint", "{0}/i.npy", "{0}/x.npy", "--mask", "{0}/no.npy"),
        ("{1}",),
    ],
    ids=" ".join,
)
def test_an_error_shows_escapes_as_text(call, tmp_path, arguments):
    folder = tmp_path / EVIL
    folder.mkdir()
    ratings_file(folder / "r.csv")
    image_file(folder / "i.npy")
    (folder / "bad.png").write_bytes(b"no image")
    code, shown = call(*(argument.format(folder, EVIL) for argument in arguments))
    assert code in (1, 2)
    assert is_safe(shown)


def test_what_was_written_is_named_with_escapes_as_text(call, tmp_path):
    folder = tmp_path / EVIL
    folder.mkdir()
    model = ("--alpha", "1", "--max-rank", "2", "--held-out", "0")
    code, shown = call("complete", ratings_file(folder / "r.csv", EVIL), *model)
    assert (code, is_safe(shown)) == (0, True)
    assert f"the first user {SHOWN}0" in shown  # the note on a pair that is rated twice
    code, shown = call("denoise", image_file(folder / "i.npy"), folder / "x.npy")
    assert (code, is_safe(shown)) == (0, True)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_lines_above_a_bar_are_as_safe(tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / EVIL).mkdir()
    images = [image_file(tmp_path / EVIL / name) for name in ("i.npy", "j.npy")]
    monkeypatch.setattr(sys, "argv", ["ell12", "denoise", *map(str, images), str(tmp_path / "out")])
    with pytest.raises(SystemExit):
        cli.main()
    shown = terminal.getvalue()
    assert shown.count(SHOWN) == 2
    assert "\x1b[31mred" not in shown
    assert not any(character in shown for character in "\x07\x9b\u202e")


@pytest.mark.parametrize("text", ["plain", "ü 電影 ½", "emoji 👩‍🚀", "back\\slash"])
def test_what_can_be_shown_stays(text, capsys):
    assert printable(text) == text
    say(text)
    assert capsys.readouterr().out == f"{text}\n"


def test_a_message_is_one_line_whatever_it_names():
    assert printable("a\nb\rc\u2028d\udcff") == "a\\nb\\rc\\u2028d\\udcff"


def test_nothing_prints_past_the_one_function():
    package = Path(ell12.__file__).parent
    for path in (package / "cli.py", *sorted((package / "commands").glob("*.py"))):
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        for call in calls:
            name = ast.unparse(call.func)
            if name == "print" or name.endswith("console.print"):
                assert ast.unparse(call.args[0]) == "printable(text)", f"{path.name}: {ast.unparse(call)}"
