"""The command ``ell12``: denoise, deblur and inpaint images; complete ratings and recommend."""

from __future__ import annotations

import glob
import inspect
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from ell12 import __version__
from ell12.picture_files import SAMPLES, SPACE, SUFFIXES, check_target, read_picture, replacing, write_picture

try:
    import typer
    from rich.console import Console
    from rich.progress import track
except ImportError as missing:
    raise SystemExit(f"ell12: the command line needs {missing.name} (ell12's extra cli)") from None


class FileError(Exception):
    """What is wrong with a file or its content, in one line."""


HELP = {"help_option_names": ["-h", "--help"]}
application = typer.Typer(no_args_is_help=True, rich_markup_mode=None, context_settings=HELP)


def main() -> None:
    """Entry point of the command ``ell12``. Ctrl-C ends it; a solver would only end its own run."""
    before = signal.signal(signal.SIGINT, lambda *_: sys.exit(128 + signal.SIGINT))
    try:
        application(prog_name="ell12")
    except FileError as error:
        _say(Console(stderr=True), f"ell12: {error}")
        raise SystemExit(1) from None
    finally:
        signal.signal(signal.SIGINT, before)


def _say(console: Console, text: str) -> None:
    """Print one line; control characters are escaped, since the name of a file may contain them."""
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
def _named(path: Path, console: Console | None = None) -> Iterator[None]:
    """Turn errors and warnings into lines that name the file, but for NumPy's warnings of single operations."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message=".*encountered in")
        try:
            yield
        except (FileError, typer.BadParameter):
            raise
        except Exception as error:  # readers raise what they like on a damaged file
            words = getattr(error, "strerror", None) or str(error) or type(error).__name__
            if isinstance(error, ImportError):
                words = f"it needs {error.name} (ell12's extra cli)"
            raise FileError(words if words.startswith(str(path)) else f"{path}: {words}") from error
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        _say(console or Console(), f"ell12: {path}: {text}")


def _check_free(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise typer.BadParameter(f"{path} is there already: add --force to overwrite it")


# Images

Sources = Annotated[list[str], typer.Argument(metavar="IN", help="Images, a folder of them, or a pattern.")]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="The restored image, or a folder for several.")]


def _strength(text: str) -> float | str:
    return text if text == "held-out" else float(text)


ALPHA = "Strength for values in [0, 1], or held-out, which chooses it by held-out pixels."
Alpha = Annotated[Any, typer.Option(parser=_strength, metavar="NUMBER|held-out", help=ALPHA)]
Sigma = Annotated[float | None, typer.Option(min=0.0, help="The noise's standard deviation, if it is known.")]
Loss = Annotated[Literal["squared", "poisson", "absolute"], typer.Option(help="White noise, counts, or impulses.")]
AXES = "The axes of a TIFF or array, such as TCZYX: Z, Y, X are space, S colours, others separate images."
Axes = Annotated[str, typer.Option(metavar="LETTERS", help=AXES)]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]


def _image_command(make: Callable[..., Callable[..., Any]]) -> None:
    """Add a command with the options of all image commands and those of ``make``, which returns what restores."""

    def command(
        sources: Sources,
        target: Target,
        alpha: Alpha = None,
        sigma: Sigma = None,
        loss: Loss = "squared",
        axes: Axes = "",
        force: Force = False,
        **own: Any,
    ) -> None:
        restore = partial(make(**own), alpha=alpha, sigma=sigma, loss=loss)
        _restore_files(sources, target, restore, axes, force)

    parameters = [inspect.signature(each, eval_str=True).parameters.values() for each in (command, make)]
    signature = inspect.Signature([*list(parameters[0])[:2], *parameters[1], *list(parameters[0])[2:-1]])
    command.__signature__ = signature  # type: ignore[attr-defined]
    application.command(make.__name__, help=make.__doc__)(command)


@_image_command
def denoise() -> Callable[..., Any]:
    """Remove noise from images.

    Example: ell12 denoise noisy.png clean.png
    """
    from ell12.restoration import denoise_tv

    return denoise_tv


@_image_command
def deblur(
    psf: Annotated[Path, typer.Option(help="An image or array of the blur; its centre is in the middle.")],
) -> Callable[..., Any]:
    """Remove a known blur from images.

    Example: ell12 deblur blurred.png sharp.png --psf blur.npy
    """
    from ell12.restoration import deblur_tv

    with _named(psf):
        kernel = read_picture(psf).grey()
        if not 0 < kernel.sum() < np.inf:
            raise ValueError("a blur must have a positive sum")
    return partial(deblur_tv, psf=kernel / kernel.sum())


@_image_command
def inpaint(
    mask: Annotated[Path, typer.Option(help="An image or array, bright where pixels are known.")],
    invert: Annotated[bool, typer.Option("--invert", help="The mask is bright where pixels are missing.")] = False,
) -> Callable[..., Any]:
    """Fill in missing pixels of images.

    Example: ell12 inpaint damaged.png whole.png --mask mask.png
    """
    from ell12.restoration import inpaint_tv

    with _named(mask):
        values = read_picture(mask).grey()
        return partial(inpaint_tv, mask=(values > 0.5 * values.max()) != invert)


def _restore_files(
    sources: Sequence[str], target: Path, restore: Callable[..., Any], axes: str, force: bool
) -> None:
    """Restore each image; after an error the others are still restored."""
    pairs, errors, console = _pairs(sources, target, force), [], Console()
    for source, path in track(pairs, "", console=console, transient=True, disable=not console.is_terminal):
        try:
            with _named(source, console):
                words = _restore_file(source, path, restore, axes)
            _say(console, f"{source} -> {path}: {words}")
        except FileError as error:
            if len(pairs) == 1:
                raise
            errors.append(error)
            _say(console, f"ell12: {error}")
    if errors:
        raise FileError(f"{len(errors)} of {len(pairs)} images failed")


def _restore_file(source: Path, path: Path, restore: Callable[..., Any], axes: str) -> str:
    """Read, restore and write one image; what was done, in words. Images along other axes are separate."""
    begin, picture, alphas = time.perf_counter(), read_picture(source, axes), []
    check_target(path, picture)
    values = picture.values
    restored = np.empty_like(values)
    separate = [k for k, letter in enumerate(picture.axes) if letter not in SPACE + SAMPLES]
    given, found = (np.moveaxis(every, separate, range(len(separate))) for every in (values, restored))
    for index in np.ndindex(given.shape[: len(separate)]):
        result = restore(given[index], channel_axis=-1 if picture.has_colours else None, return_result=True)
        found[index] = result.image
        alphas.append(f"{result.alpha:.3g}")
    write_picture(path, picture, restored)
    parts = f"{len(alphas)} images one by one, " if len(alphas) > 1 else ""
    return f"{parts}alpha {', '.join(dict.fromkeys(alphas))}, {time.perf_counter() - begin:.2g} s"


def _pairs(sources: Sequence[str], target: Path, force: bool) -> list[tuple[Path, Path]]:
    """Which file becomes which; an error if there is none, or one would be overwritten."""
    paths = [path for source in sources for path in _expanded(source)]
    into_folder = len(sources) > 1 or paths != [Path(sources[0])] or target.is_dir()
    if into_folder and target.suffix.lower() in SUFFIXES and not target.is_dir():
        raise typer.BadParameter(f"several images need a folder as OUT; {target} names a file")
    targets = [target / path.name if into_folder else target for path in paths]
    if len(set(targets)) < len(targets):
        raise typer.BadParameter("two images of one name would be written to one file")
    for path in targets:
        if path.suffix.lower() not in SUFFIXES:
            raise typer.BadParameter(f"{path} has an unknown suffix; known are {' '.join(SUFFIXES)}")
        _check_free(path, force)
    with _named(target):
        targets[0].parent.mkdir(parents=True, exist_ok=True)
    return list(zip(paths, targets, strict=True))


def _expanded(source: str) -> list[Path]:
    """The image files that an argument stands for: itself, those in a folder, or those that match a pattern."""
    path = Path(source)
    found = [path] if path.exists() else [Path(name) for name in glob.glob(source)]
    if path.is_dir():
        found = [inside for inside in path.iterdir() if inside.suffix.lower() in SUFFIXES]
    found = sorted(path for path in found if path.is_file())
    if not found:
        raise FileError(f"there is no image {source}")
    return found


# Ratings

Source = Annotated[Path, typer.Argument(metavar="RATINGS", help="Lines of user, item, rating; .parquet or .mtx.")]
Table = Annotated[Path, typer.Argument(metavar="OUT", help="The .csv file to write.")]
Given = Annotated[str | None, typer.Option(metavar="USER,ITEM,RATING", help="Names, or positions from 0.")]
Number = Annotated[float | None, typer.Option(min=0.0, help="Strength; hidden ratings choose it by default.")]
Pairs = Annotated[Path, typer.Argument(metavar="PAIRS", help="Lines of user and item to predict.")]


@application.command()
def complete(
    source: Source, pairs: Pairs, target: Table, columns: Given = None, alpha: Number = None, force: Force = False
) -> None:
    """Predict ratings of pairs of user and item.

    Example: ell12 complete ratings.csv pairs.csv predicted.csv
    """
    from ell12.datasets.rating_files import column_ids, read_table
    from ell12.datasets.ratings import find_columns

    names = _planned(target, force, columns)
    with _named(pairs):
        table = read_table(pairs)
        user, item = (column_ids(table.iloc[:, k]) for k in find_columns(table.columns, names, 2))
    table = table.assign(prediction=_fit(source, names, alpha).predict(user, item))
    _write_table(target, table, isinstance(table.columns[0], str))


@application.command()
def recommend(
    source: Source,
    target: Table,
    n: Annotated[int, typer.Option("-n", min=1, help="How many items for each user.")] = 10,
    users: Annotated[str | None, typer.Option(metavar="USER,...", help="Ids; all users by default.")] = None,
    columns: Given = None,
    alpha: Number = None,
    force: Force = False,
) -> None:
    """Write the best items for each user.

    Example: ell12 recommend ratings.csv lists.csv -n 5
    """
    names = _planned(target, force, columns)
    asked = None if users is None else [name.strip() for name in users.split(",")]
    _write_table(target, _fit(source, names, alpha).recommend(asked, n).to_frame())


def _planned(target: Path, force: bool, columns: str | None) -> Any:
    """Check that the table can be written; the names or positions of user, item and rating."""
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
    with _named(source, console), console.status("fitting"):
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
