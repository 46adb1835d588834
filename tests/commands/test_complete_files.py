"""``ell12 complete`` on files of every kind: how lines are said to be written, and what is refused in one line."""

import csv
import io
import sys
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'report'")

from ell12 import cli
from ell12.commands import rating_job
from ell12.commands.outputs import encode_lines

LINES = [(f"ü{k % 5}", f"film {k // 5}", 1 + (k * k) % 5) for k in range(30)]


class Outcome(NamedTuple):
    """What the command left."""

    code: int
    out: str
    error: str


@pytest.fixture
def complete(monkeypatch, capsys):
    """Call the command with a small model."""

    def run(source, *options):
        model = ("--alpha", "1", "--max-rank", "2", "--held-out", "0")
        monkeypatch.setattr(sys, "argv", ["ell12", "complete", str(source), *model, *map(str, options)])
        with pytest.raises(SystemExit) as raised:
            cli.main()
        return Outcome(raised.value.code or 0, *capsys.readouterr())

    return run


def written(path, separator=",", header="", encoding="utf-8", order=(0, 1, 2)):
    lines = [separator.join(str(line[k]) for k in order) for line in LINES]
    path.write_bytes("".join(f"{line}\n" for line in [*([header] if header else []), *lines]).encode(encoding))
    return path


def users_and_items(path):
    with np.load(path) as file:
        return file["users"].tolist(), file["items"].tolist()


EXPECTED = (sorted({user for user, _, _ in LINES}), sorted({item for _, item, _ in LINES}))


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ({"encoding": "latin-1"}, ("--encoding", "latin-1")),
        ({"encoding": "utf-16"}, ()),
        ({"encoding": "utf-16-le"}, ("--encoding", "utf-16-le")),
        ({"separator": "~"}, ("--separator", "~")),
        ({"separator": "\t"}, ("--separator", r"\t")),
        ({"order": (1, 2, 0)}, ("--columns", "2,0,1")),
        ({"order": (1, 2, 0), "header": "film,stars,who"}, ("--columns", "who, film, stars")),
        ({"order": (1, 2, 0), "header": '"the, film",stars,who'}, ("--columns", 'who,"the, film",stars')),
    ],
)
def test_how_lines_are_written_may_be_said(complete, tmp_path, form, options):
    source, target = written(tmp_path / "r.txt", **form), tmp_path / "m.npz"
    outcome = complete(source, *options, "--out", target)
    assert outcome.out.startswith("30 ratings from 1 to 5 by 5 users of 6 items"), outcome
    assert outcome.code == 0
    assert users_and_items(target) == EXPECTED


@pytest.mark.parametrize(
    ("pairs", "options"),
    [
        ("ü1~film 2\nü3~film 4\n", ("--separator", "~")),
        ("ü1,film 2\nü3,film 4\n", ("--separator", "~")),  # another than the ratings' own is found
        ("film,who\nfilm 2,ü1\nfilm 4,ü3\n", ("--columns", "who,film,stars", "--separator", "~")),
        ("film 2,x,ü1\nfilm 4,x,ü3\n", ("--columns", "2,0,1", "--separator", "~")),
        ("item,user\nfilm 2,ü1\nfilm 4,ü3\n", ("--columns", "2,0,1")),
    ],
)
def test_pairs_are_written_alike_or_say_so(complete, tmp_path, pairs, options):
    form = {"separator": "~"} if "--separator" in options else {}
    if "--columns" in options:
        form |= {"order": (1, 2, 0), "header": "film~stars~who" if "who,film,stars" in options else ""}
    source, pairs_file = written(tmp_path / "r.txt", encoding="latin-1", **form), tmp_path / "p.txt"
    pairs_file.write_bytes(pairs.encode("latin-1"))
    outcome = complete(source, *options, "--encoding", "latin-1", "--predict", pairs_file)
    assert outcome.code == 0, outcome
    assert "without ratings" not in outcome.out
    with (tmp_path / "p.predicted.csv").open(encoding="utf-8") as file:
        assert [row[:2] for row in csv.reader(file)][1:] == [["ü1", "film 2"], ["ü3", "film 4"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--columns", "user,item"), "--columns must be three names or positions, as in user,item,rating; got "),
        (("--columns", ""), "--columns must be three names or positions"),
        (("--columns", "a,,c"), "--columns must be three names or positions"),
        (("--columns", "who,film,stars"), "r.txt: there is no column 'who'; the first line is ü0, film 0, 1"),
        (("--columns", "0,1,7"), "r.txt: there is no column 7; there are 3, from 0 on"),
        (("--separator", ""), "separator must be characters other than quotes and ends of lines, got ''"),
        (("--separator", '"'), "separator must be characters other than quotes"),
        (("--separator", "~"), "r.txt: user, item and value are needed, but there are 1 columns"),
        (("--encoding", "utf-9"), "encoding: unknown encoding: utf-9"),
        (("--encoding", "ascii"), "r.txt, line 1: not ascii text"),
    ],
)
def test_a_wrong_form_is_one_clear_line(complete, tmp_path, options, message):
    source = written(tmp_path / "r.txt")
    outcome = complete(source, *options)
    assert outcome.code == (2 if message.startswith(("separator", "encoding", "--")) else 1)
    assert outcome.error.startswith("ell12: ")
    assert message in outcome.error
    assert outcome.error.count("\n") == 1
    assert list(tmp_path.iterdir()) == [source]


def test_matrix_market_takes_no_form(complete, tmp_path):
    source = tmp_path / "r.mtx"
    source.write_text("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 4.5\n2 1 3\n")
    outcome = complete(source, "--columns", "1,0,2")
    assert outcome.code == 1
    assert "r.mtx: columns is not for Matrix Market files" in outcome.error


@pytest.mark.parametrize(("exponent", "size"), [("e307", "large"), ("e160", "large"), ("e-200", "small")])
def test_ratings_whose_squares_cannot_be_held_are_named(complete, tmp_path, exponent, size):
    source = tmp_path / "r.csv"
    source.write_text("".join(f"{k % 5},{k // 5},{1 + k % 4}{exponent}\n" for k in range(30)))
    outcome = complete(source)
    assert outcome.code == 1
    assert (
        f"r.csv holds numbers up to 4{exponent.replace('e', 'e+').replace('+-', '-')}, too {size}" in outcome.error
    )
    assert outcome.error.count("\n") == 1


def test_a_link_to_itself_is_one_clear_line(complete, tmp_path):
    source = tmp_path / "loop.csv"
    source.symlink_to(source)
    outcome = complete(source)
    assert outcome.code == 1
    assert f"cannot read {source}: " in outcome.error


def test_ids_that_the_terminal_cannot_show_are_no_failure(complete, tmp_path, monkeypatch):
    source = written(tmp_path / "r.csv")
    source.write_bytes(source.read_bytes() + source.read_bytes())  # the note on pairs rated twice names a user
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert complete(source).code == 0
    terminal.flush()
    assert rb"the first user \xfc0, item film 0" in terminal.buffer.getvalue()


def test_ctrl_c_while_predicting_writes_nothing(complete, tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(rating_job, "predict_pairs", interrupted)
    source, pairs = written(tmp_path / "r.csv"), written(tmp_path / "p.csv")
    outcome = complete(source, "--predict", pairs, "--out", tmp_path / "m.npz", "--out", tmp_path / "p.out.csv")
    assert outcome.code == 130
    assert outcome.out.endswith("Stopped: nothing is written.\n")
    assert sorted(tmp_path.iterdir()) == [pairs, source]


# Predictions that are opened in a spreadsheet

NAMES = ("user", "item", "prediction")
FORMULAS = ["=HYPERLINK(1)", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\uff1d1"]


def test_no_id_is_written_that_a_spreadsheet_executes(complete, tmp_path):
    names = [*FORMULAS, "film -1", "-5", "+7.5e3"]
    lines = [f'{k % 4},"{name}",{1 + k % 5}\n' for k, name in enumerate(names * 4)]
    source, pairs = tmp_path / "r.csv", tmp_path / "p.csv"
    source.write_text("user,item,value\n" + "".join(lines), encoding="utf-8")
    pairs.write_text("user,item\n" + "".join(f'1,"{name}"\n' for name in names), encoding="utf-8")
    outcome = complete(source, "--predict", pairs)
    assert outcome.code == 0, outcome
    with (tmp_path / "p.predicted.csv").open(encoding="utf-8", newline="") as file:
        written = [row[1] for row in csv.reader(file)][1:]
    assert not [name for name in written if name.startswith(("=", "@", "\t", "\r", "\uff1d", "+1", "-1"))]
    assert [name.removeprefix("'").strip() for name in written] == [name.strip() for name in names]
    assert written[-3:] == names[-3:]  # text and plain numbers stay as they are
    assert "ids look like formulas to a spreadsheet: an apostrophe stands before each of them" in outcome.out


@pytest.mark.parametrize("name", ["=1", "+x", "-x", "@x", "\tx", "\rx", "\nx", "\uff0b1", "-inf", "+1;2"])
def test_what_looks_like_a_formula_is_quoted(name):
    content, notes = encode_lines(dict(zip(NAMES, (np.array([name]), ["a"], [1.5]), strict=True)))
    assert next(csv.reader(io.StringIO(content.decode(), newline="").readlines()[1:]))[0].startswith("'")
    assert len(notes) == 1


def test_harmless_ids_are_written_as_they_are():
    content, notes = encode_lines(dict(zip(NAMES, ([-3, 4], ["-3", "a=b"], [1.5, 2.0]), strict=True)))
    assert content == b"user,item,prediction\n-3,-3,1.5\n4,a=b,2\n"
    assert notes == []
