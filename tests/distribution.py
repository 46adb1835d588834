"""Checks of what `make dist` has built: ``python -m tests.distribution FOLDER [TESTS ...]``.

The wheel holds the whole package and nothing else; in an empty environment, with what it requires, the quickstart
runs. The sdist holds the documentation, examples and benchmarks too; the tests that are named pass in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
NEEDED = (
    "docs/quickstart.md",
    "examples",
    "benchmarks/results",
    "tests/laws",
    "Makefile",
    "CITATION.cff",
    "LICENSE",
    "constraints.txt",
)
# The pages' examples, as a user pastes them; a copy of the source must not be found.
RUN_PAGE = """
import doctest, pathlib, re, sys
import ell12
assert "site-packages" in ell12.__file__, ell12.__file__
text = re.sub(r"^```.*$", "", pathlib.Path(sys.argv[1]).read_text("utf-8"), flags=re.MULTILINE)
test = doctest.DocTestParser().get_doctest(text, {}, "quickstart", None, 0)
result = doctest.DocTestRunner().run(test)
assert result.attempted > 10 and not result.failed, result
print(f"{result.attempted} examples of the quickstart, with ell12 {ell12.__version__}")
"""


def environment(folder: Path) -> tuple[Path, Path]:
    """An environment without packages: where its packages stand, and its Python."""
    venv.create(folder, symlinks=os.name != "nt")
    paths = sysconfig.get_paths("venv", {"base": str(folder), "platbase": str(folder)})
    (python,) = (path for path in Path(paths["scripts"]).iterdir() if path.stem == "python")
    return Path(paths["purelib"]), python


def check_wheel(wheel: Path) -> None:
    """Raise where the wheel lacks a file of the package, or has others."""
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "src"
    expected = {
        path.relative_to(package).as_posix()
        for path in (package / "ell12").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    if found != expected:
        raise SystemExit(f"{wheel.name} differs from the source in {sorted(found ^ expected)}")


def check_sdist(sdist: Path, folder: Path, tests: list[str]) -> None:
    """Unpack the sdist, check what it must hold, and run tests in it."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    root = folder / sdist.name.removesuffix(".tar.gz")
    missing = [name for name in NEEDED if not (root / name).exists()]
    if missing:
        raise SystemExit(f"{sdist.name} lacks {', '.join(missing)}")
    if tests:
        settings = os.environ | {"PYTHONPATH": str(root / "src"), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "logical", "-p", "no:cacheprovider", *tests]
        subprocess.run(command, cwd=root, env=settings, check=True)


def run_quickstart(wheel: Path, folder: Path) -> None:
    """Install the wheel, with what it requires and nothing more, and run the examples of the quickstart."""
    _, python = environment(folder)
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel]
    subprocess.run(install, check=True)
    command = [python, "-I", "-c", RUN_PAGE, ROOT / "docs" / "quickstart.md"]
    subprocess.run(command, cwd=folder, check=True)


def main() -> None:
    """Check the wheel and the sdist of a folder."""
    dist, *tests = sys.argv[1:]
    (wheel,), (sdist,) = Path(dist).resolve().glob("*.whl"), Path(dist).resolve().glob("*.tar.gz")
    check_wheel(wheel)
    with tempfile.TemporaryDirectory() as folder:
        run_quickstart(wheel, Path(folder) / "user")
        check_sdist(sdist, Path(folder), tests)
    for built in (wheel, sdist):
        print(f"{built.name}: {built.stat().st_size / 1e6:.1f} MB, checked")


if __name__ == "__main__":
    main()
