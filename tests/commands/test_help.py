"""What all commands have in common: help, completion, words for what lacks, and exit codes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'report'")
pytest.importorskip("PIL", reason="image files need the extra 'images'")

import shellingham
import typer
from typer.main import get_command

from ell12 import cli
from ell12.commands import recommend
from ell12.commands.application import STOPPED

COMMANDS = get_command(cli._application()).commands
LACKING = {
    ("complete",): "'RATINGS'",
    ("predict",): "'MODEL'",
    ("predict", "model.npz"): "'DATA'",
    ("fit",): "'DATA'",
    ("fit", "data.csv"): "'--target'",
    ("recommend",): "'MODEL'",
    ("denoise",): "'IN'",
    ("denoise", "in.png"): "'OUT'",
    ("denoise", "in.png", "--alpha", "1"): "'OUT'",
    ("deblur", "--kernel", "k.npy", "in.png"): "'OUT'",
    ("deblur", "in.png", "out.png"): "'--kernel'",
    ("inpaint", "in.png", "out.png"): "'--mask'",
}


# Help


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples(call, name):
    code, out, err = call(name, "-h")
    assert (code, err) == (0, "")
    assert call(name, "--help") == (0, out, "")
    assert out.startswith(f"Usage: ell12 {name} [OPTIONS]")
    examples = out.partition("  Examples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith(f"    ell12 {name} ") for line in examples)
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_help_text_can_be_typed(name):
    context = {"info_name": name, "resilient_parsing": False}
    for line in COMMANDS[name].epilog.splitlines()[2:]:
        made = COMMANDS[name].make_context(args=line.split()[2:], **context)
        assert not made.args


@pytest.mark.parametrize("name", COMMANDS)
def test_what_stands_for_a_value_is_a_plain_word(call, name):
    out = call(name, "-h")[1]
    parameters = [p for p in COMMANDS[name].params if p.name != "help" and not getattr(p, "is_flag", False)]
    assert all(parameter.metavar for parameter in parameters)
    assert not re.search(r"<\w|\\\[|FLOAT|INTEGER|PATH|\{", out)
    for parameter in parameters:
        if parameter.param_type_name == "option":
            assert f"{max(parameter.opts, key=len)} {parameter.metavar}" in out


def test_the_command_alone_shows_its_help(call):
    code, out, err = call()
    assert (code, err) == (0, "")
    assert call("-h") == (0, out, "")
    assert all(f"\n  {name} " in out for name in COMMANDS)
    assert "..." not in out.partition("Commands:")[2]  # no line is cut


# What lacks


@pytest.mark.parametrize(("arguments", "named"), LACKING.items(), ids=map(" ".join, LACKING))
def test_the_argument_that_lacks_is_named(call, arguments, named):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert f"Missing {'option' if '-' in named else 'argument'} {named}" in err
    assert f"ell12 {arguments[0]} -h" in err


# Exit codes


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("denoise", "--no-such-option"),
        ("complete", "r.csv", "--alpha", "-1"),
        ("complete", "r.csv", "--alpha", "inf"),
        ("complete", "r.csv", "--columns", "one"),
        ("complete", "r.csv", "--out", "m.txt"),
        ("complete", "r.csv", "--out", "r.csv", "--force"),
        ("predict", "m.npz", "p.csv", "--out", "p.txt"),
        ("fit", "d.csv", "--target", "y", "--loss", "cubic"),
        ("fit", "d.csv", "--target", "y", "--event", "died"),
        ("fit", "d.csv", "--target", "y", "--l2-weight", "2"),
        ("fit", "d.csv", "--target", "y", "--out", "d.npz", "--out", "folder"),
        ("fit", "d.csv", "--target", "y", "--out", "d.csv"),
        ("fit", "d.csv", "--target", "y", "--encoding", "utf-9"),
        ("recommend", "m.npz", "--users", "a", "--users-file", "f"),
        ("denoise", "a.npy", "b.txt"),
        ("denoise", "a.npy", "a.npy"),
    ],
    ids=" ".join,
)
def test_what_is_typed_wrong_ends_with_2(call, monkeypatch, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.npy").write_bytes(b"")
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith(("ell12: ", "Error: "))


@pytest.mark.parametrize(
    "arguments",
    [
        ("complete", "no.csv"),
        ("complete", "empty.csv"),
        ("complete", "r.csv", "--out", "no/m.npz"),
        ("predict", "no.npz", "r.csv"),
        ("fit", "no.csv", "--target", "y"),
        ("fit", "empty.csv", "--target", "y"),
        ("fit", "r.csv", "--target", "y"),
        ("predict", "r.csv", "r.csv"),
        ("recommend", "no.npz"),
        ("denoise", "no.png", "b.png"),
        ("denoise", "r.csv", "b.png"),
        ("deblur", "r.csv", "b.png", "--kernel", "no.npy"),
        ("inpaint", "r.csv", "b.png", "--mask", "no.npy"),
    ],
    ids=" ".join,
)
def test_what_files_hold_or_refuse_ends_with_1(call, monkeypatch, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text("a,b,3\nc,d,4\n")
    (tmp_path / "empty.csv").write_text("")
    code, _, err = call(*arguments)
    assert code == 1
    assert err.startswith("ell12: ")
    assert err.count("\n") == 1


def test_ctrl_c_before_a_command_has_an_answer_to_it_ends_with_130(call, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(recommend, "_planned", interrupt)
    assert call("recommend", "model.npz") == (STOPPED, "Stopped.\n", "")


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_is_given_a_script_for_completion(call, monkeypatch, shell):
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    code, out, err = call("--show-completion")
    assert (code, err) == (0, "")
    assert f"_ELL12_COMPLETE=complete_{shell}" in out


def test_where_no_shell_is_found_that_is_said(call, monkeypatch):
    def fail():
        raise shellingham.ShellDetectionFailure

    monkeypatch.setattr("shellingham.detect_shell", fail)
    code, out, err = call("--show-completion")
    assert (code, out) == (1, "")
    # Newer versions of typer say it themselves.
    assert err in ("ell12: no shell was found to complete for: start ell12 from one\n", "Shell  not supported.\n")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_names_of_commands_and_options_once_installed(tmp_path):
    """The whole way: the option that installs, the file it writes, and bash that reads it."""
    program = tmp_path / "ell12"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ell12 "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    options = {"env": environment, "capture_output": True, "text": True, "timeout": 60}
    subprocess.run(["bash", "--norc", "-c", "ell12 --install-completion; exit $?"], check=True, **options)
    script = (
        "source $HOME/.bashrc; COMP_WORDS=(ell12 re); COMP_CWORD=1; _ell12_completion ell12; echo ${COMPREPLY[@]};"
        "COMP_WORDS=(ell12 denoise --no); COMP_CWORD=2; _ell12_completion ell12; echo ${COMPREPLY[@]}"
    )
    first, second = subprocess.run(["bash", "--norc", "-c", script], check=True, **options).stdout.splitlines()[
        -2:
    ]
    assert {"recommend"} == set(first.split())
    assert {"--noise", "--no-colour"} == set(second.split())


def test_an_exit_of_a_command_is_passed_on(call, monkeypatch):
    def leave(*_):
        raise typer.Exit(7)

    monkeypatch.setattr(recommend, "_planned", leave)
    assert call("recommend", "model.npz") == (7, "", "")


def test_the_guide_has_every_command_with_an_example_that_can_be_typed():
    page = (Path(__file__).parents[2] / "docs" / "guide" / "command_line.md").read_text()
    typed = [line[2:].split() for line in page.splitlines() if line.startswith("$ ell12 ")]
    assert {words[1] for words in typed} == set(COMMANDS)
    assert set(re.findall(r"^\| \[`ell12 ([\w-]+)`\]", page, flags=re.MULTILINE)) == set(COMMANDS)
    for words in typed:
        COMMANDS[words[1]].make_context(info_name=words[1], args=words[2:])
