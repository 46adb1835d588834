"""The command as its user meets it: messages and exit codes."""

import subprocess
import sys

import pytest

import ell12
from ell12 import cli


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["ell12", *map(str, arguments)])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return raised.value.code or 0


# Messages and exit codes


def test_version(monkeypatch, capsys):
    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"ell12 {ell12.__version__}\n"


def test_the_package_can_be_run_as_a_module():
    result = subprocess.run(
        [sys.executable, "-m", "ell12", "--version"], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert ell12.__version__ in result.stdout


@pytest.mark.parametrize("package", cli.NEEDED)
def test_a_missing_package_is_named_with_the_remedy(monkeypatch, capsys, package):
    monkeypatch.setitem(sys.modules, package, None)
    assert call(monkeypatch, "denoise") == 1
    error = capsys.readouterr().err
    assert (
        error == f"ell12: the command line needs {package}, which cannot be found: pip install 'ell12[report]'\n"
    )


def test_the_module_loads_without_the_optional_packages():
    blocked = "import sys; sys.modules.update(dict.fromkeys(('typer', 'rich', 'matplotlib', 'jinja2')))"
    command = [sys.executable, "-c", f"{blocked}; from ell12.cli import main; main()"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 1
    assert "needs typer and rich and matplotlib and jinja2" in result.stderr
    assert len(result.stderr.splitlines()) == 1
