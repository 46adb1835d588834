"""The command ``ell12``: denoise, deblur and inpaint images; complete ratings and recommend."""

from __future__ import annotations

import glob
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ell12 import __version__
from ell12.picture_files import SUFFIXES, check_target, read_picture, replacing, write_picture

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
except ImportError as missing:
    raise SystemExit(f"ell12: the command line needs {missing.name}: pip install 'ell12[cli]'") from None

STOPPED = 130  # the exit code after Ctrl-C, as shells have it
Loss = StrEnum("Loss", ["squared", "poisson", "absolute"])


class FileError(Exception):
    """What is wrong with a file or what it holds, in one line."""


application = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the command ``ell12``."""
    try:
        application(prog_name="ell12")
    except FileError as error:
        _say(Console(stderr=True), f"ell12: {error}")
        raise SystemExit(1) from None


def _say(console: Console, text: str) -> None:
    """Print one line; characters that a terminal would obey are escaped: names of files may hold anything."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)
    console.print(plain, markup=False, highlight=False, soft_wrap=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ell12 {__version__}")
        raise typer.Exit


@application.callback()
def ell12(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Learning with the l1-2 regulariser: images under total variation, ratings as a low-rank matrix."""


@contextmanager
def _stopping_at_once() -> Iterator[None]:
    """Ctrl-C ends the command; a solver would only end its own run, and return what it has."""

    def stop(*_: Any) -> None:
        raise SystemExit(STOPPED)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of reading and computing as one line that names the file."""
    try:
        yield
    except (FileError, typer.BadParameter):
        raise
    except MemoryError:
        raise FileError(f"{path}: out of memory") from None
    except ImportError as error:
        raise FileError(f"{path} needs {error.name}: pip install 'ell12[cli]'") from error
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    except Exception as error:  # readers raise what they like on a damaged file
        words = str(error) or type(error).__name__
        raise FileError(words if str(path) in words else f"{path}: {words}") from error


# Images

Sources = Annotated[list[str], typer.Argument(metavar="IN", help="Images, a folder of them, or a pattern.")]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="The restored image, or a folder for several.")]
Alpha = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER|held-out",
        help="Strength, for values in [0, 1] (8 and 16 bits are scaled to it), or held-out: by pixels held out.",
    ),
]
Sigma = Annotated[float | None, typer.Option(min=0.0, help="The noise's standard deviation, if it is known.")]
LossOption = Annotated[Loss, typer.Option(help="White noise (squared), counts (poisson), impulses (absolute).")]
Axes = Annotated[
    str,
    typer.Option(
        metavar="LETTERS",
        help="What the axes of a TIFF or array are, as in TCZYX: Z, Y, X are space, S colours; images along other "
        "axes are restored one by one. By default as the file says; axes of arrays are space.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]


@application.command()
def denoise(
    sources: Sources,
    target: Target,
    alpha: Alpha = None,
    sigma: Sigma = None,
    loss: LossOption = Loss.squared,
    axes: Axes = "",
    force: Force = False,
) -> None:
    """Remove noise from images.

    Example: ell12 denoise noisy.png clean.png
    """
    from ell12.restoration import denoise_tv

    restore = partial(denoise_tv, alpha=_strength(alpha), sigma=sigma, loss=loss.value)
    _restore_files(sources, target, restore, axes, force)


@application.command()
def deblur(
    sources: Sources,
    target: Target,
    psf: Annotated[Path, typer.Option(help="An image or array of the blur; its centre is in the middle.")],
    alpha: Alpha = None,
    sigma: Sigma = None,
    loss: LossOption = Loss.squared,
    axes: Axes = "",
    force: Force = False,
) -> None:
    """Remove a known blur from images.

    Example: ell12 deblur blurred.png sharp.png --psf blur.npy
    """
    from ell12.restoration import deblur_tv

    with _named(psf):
        kernel = read_picture(psf).grey()
        if not 0 < kernel.sum() < np.inf:
            raise ValueError("a blur must have a positive sum")
    restore = partial(deblur_tv, psf=kernel / kernel.sum(), alpha=_strength(alpha), sigma=sigma, loss=loss.value)
    _restore_files(sources, target, restore, axes, force)


@application.command()
def inpaint(
    sources: Sources,
    target: Target,
    mask: Annotated[Path, typer.Option(help="An image or array, bright where pixels are known.")],
    invert: Annotated[bool, typer.Option("--invert", help="The mask is bright where pixels are missing.")] = False,
    alpha: Alpha = None,
    sigma: Sigma = None,
    loss: LossOption = Loss.squared,
    axes: Axes = "",
    force: Force = False,
) -> None:
    """Fill in missing pixels of images.

    Example: ell12 inpaint damaged.png whole.png --mask mask.png
    """
    from ell12.restoration import inpaint_tv

    with _named(mask):
        values = read_picture(mask).grey()
    known = (values > 0.5 * values.max()) != invert
    restore = partial(inpaint_tv, mask=known, alpha=_strength(alpha), sigma=sigma, loss=loss.value)
    _restore_files(sources, target, restore, axes, force)


def _strength(text: str | None) -> float | str | None:
    try:
        return text if text is None or text == "held-out" else float(text)
    except ValueError:
        raise typer.BadParameter(f"--alpha must be a number or held-out, got {text!r}") from None


def _restore_files(
    sources: Sequence[str], target: Path, restore: Callable[..., Any], axes: str, force: bool
) -> None:
    """Restore each image; one that fails does not keep the others from being done."""
    pairs = _pairs(sources, target, force)
    failures = 0
    with _stopping_at_once(), _progress(len(pairs)) as bar:
        for source, path in pairs:
            bar.update(bar.task_ids[0], description=source.name)
            try:
                with _named(source), _warnings_of(source, bar.console):
                    words = _restore_file(source, path, restore, axes)
                _say(bar.console, f"{source} -> {path}: {words}")
            except FileError as error:
                if len(pairs) == 1:
                    raise
                failures += 1
                _say(bar.console, f"ell12: {error}")
            bar.advance(bar.task_ids[0])
    if failures:
        raise FileError(f"{failures} of {len(pairs)} images failed")


def _restore_file(source: Path, path: Path, restore: Callable[..., Any], axes: str) -> str:
    """Read, restore and write one image; what was done, in words."""
    picture = read_picture(source, axes)
    check_target(path, picture)
    begin = time.perf_counter()
    restored, alphas = [], set()
    for values in picture.parts():
        found = restore(values, channel_axis=picture.channel_axis, return_result=True)
        restored.append(np.asarray(found.image))
        alphas.add(f"{found.alpha:.3g}")
    write_picture(path, picture, picture.joined(restored))
    parts = f"{len(restored)} images one by one, " if len(restored) > 1 else ""
    return f"{parts}alpha {', '.join(sorted(alphas))}, {time.perf_counter() - begin:.2g} s"


@contextmanager
def _warnings_of(source: Path, console: Console) -> Iterator[None]:
    """Warnings as lines that name the file, but for NumPy's on single operations."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message=".*encountered in")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        _say(console, f"ell12: {source}: {text}")


def _progress(total: int) -> Progress:
    """A bar over the images; on anything but a terminal it shows nothing."""
    console = Console()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal)
    bar.add_task("", total=total)
    return bar


def _pairs(sources: Sequence[str], target: Path, force: bool) -> list[tuple[Path, Path]]:
    """Which file becomes which; an error if there is none, or one would be overwritten."""
    paths = [path for source in sources for path in _expanded(source)]
    into_folder = len(sources) > 1 or paths != [Path(sources[0])] or target.is_dir()
    if into_folder and target.suffix.lower() in SUFFIXES and not target.is_dir():
        raise typer.BadParameter(f"several images need a folder as OUT; {target} names a file")
    pairs = [(path, target / path.name if into_folder else target) for path in paths]
    targets = [path for _, path in pairs]
    if len(set(targets)) < len(targets):
        raise typer.BadParameter("two images of one name would be written to one file")
    for path in targets:
        if path.suffix.lower() not in SUFFIXES:
            raise typer.BadParameter(f"{path} has an unknown suffix; known are {' '.join(SUFFIXES)}")
        _check_free(path, force)
    with _named(target):
        (target if into_folder else target.parent).mkdir(parents=True, exist_ok=True)
    return pairs


def _expanded(source: str) -> list[Path]:
    """The image files that an argument stands for: itself, those in a folder, or those that match a pattern."""
    path = Path(source)
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())
    else:
        found = [path] if path.exists() else sorted(Path(p) for p in glob.glob(source) if Path(p).is_file())
    if not found:
        raise FileError(f"there is no image {source}")
    return found


def _check_free(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise typer.BadParameter(f"{path} is there already: add --force to overwrite it")


# Ratings

Source = Annotated[Path, typer.Argument(metavar="RATINGS", help="Lines of user, item, rating; .parquet or .mtx.")]
Output = Annotated[Path, typer.Argument(metavar="OUT", help="The .csv file to write.")]
Given = Annotated[str | None, typer.Option(metavar="USER,ITEM,RATING", help="Names, or positions from 0.")]
Strength = Annotated[float | None, typer.Option(min=0.0, help="Strength; hidden ratings choose it by default.")]


@application.command()
def complete(
    source: Source,
    pairs: Annotated[Path, typer.Argument(metavar="PAIRS", help="Lines of user and item to predict.")],
    target: Output,
    columns: Given = None,
    alpha: Strength = None,
    force: Force = False,
) -> None:
    """Predict ratings of pairs of user and item.

    Example: ell12 complete ratings.csv pairs.csv predicted.csv
    """
    from ell12.datasets.rating_files import column_ids, read_table
    from ell12.datasets.ratings import find_columns

    places = _planned(target, force, columns)
    with _stopping_at_once():
        with _named(pairs):
            table = read_table(pairs)
            user, item = (column_ids(table.iloc[:, k]) for k in find_columns(table.columns, places, 2))
        model = _fit(source, places, alpha)
        has_header = isinstance(table.columns[0], str)
        _write_table(target, table.assign(prediction=model.predict(user, item)), has_header)


@application.command()
def recommend(
    source: Source,
    target: Output,
    n: Annotated[int, typer.Option("-n", min=1, help="How many items for each user.")] = 10,
    users: Annotated[str | None, typer.Option(metavar="USER,...", help="Ids; all users by default.")] = None,
    columns: Given = None,
    alpha: Strength = None,
    force: Force = False,
) -> None:
    """Write the best items for each user.

    Example: ell12 recommend ratings.csv lists.csv -n 5
    """
    places = _planned(target, force, columns)
    asked = None if users is None else [name.strip() for name in users.split(",")]
    with _stopping_at_once():
        _write_table(target, _fit(source, places, alpha).recommend(asked, n).to_frame())


def _planned(target: Path, force: bool, columns: str | None) -> Any:
    """Whether the table can be written, and the names or positions of user, item and rating."""
    if target.suffix != ".csv":
        raise typer.BadParameter(f"{target} has an unknown suffix: tables are written as .csv")
    _check_free(target, force)
    return columns and tuple(int(word) if word.isdecimal() else word for word in columns.split(","))


def _write_table(target: Path, table: Any, header: bool = True) -> None:
    with _named(target), replacing(target) as temporary:
        table.to_csv(temporary, index=False, header=header, float_format="%.6g")
    _say(Console(), f"{len(table):,} lines: {target}")


def _fit(source: Path, columns: Any, alpha: float | None) -> Any:
    """A recommender of all ratings; its error is measured on a tenth of them, which is hidden first."""
    from ell12 import L12Recommender
    from ell12.datasets import load_ratings

    console = Console()
    with _named(source), _warnings_of(source, console), console.status("fitting"):
        ratings = load_ratings(source, columns=columns)
        _say(console, f"{len(ratings):,} ratings by {len(ratings.users):,} users of {len(ratings.items):,} items")
        hidden = np.random.default_rng(0).random(len(ratings)) < 0.1
        model = L12Recommender() if alpha is None else L12Recommender(alpha)
        if not 0 < hidden.sum() < len(ratings):
            return model.fit(ratings)
        model.fit(ratings.part(~hidden))
        error = -model.score(ratings.part(hidden))
        mean = np.std(ratings.values[hidden] - ratings.values[~hidden].mean())
        _say(console, f"RMSE on {hidden.sum():,} hidden ratings: {error:.4f} (the mean alone: {mean:.4f})")
        return model.refit(ratings.part(hidden), tol=model.tol)
