"""``ell12 denoise``, ``deblur`` and ``inpaint``: image files restored by total variation."""

import glob
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ell12.commands import CommandError, check_folder, printable, say
from ell12.commands.image_files import SUFFIXES, ImageFileError, Picture, check_target, read_image, write_image
from ell12.minimization import Status
from ell12.restoration import Restoration, deblur_tv, denoise_tv, inpaint_tv
from ell12.wording import number, short_time

Pair = tuple[Path, Path]


Boundary = StrEnum("Boundary", ["neumann", "periodic"])  # what lies beyond the edge of an image


def _strength(text: str | None) -> Any:
    """The number that an option names, or the word."""
    if text is None or text == "held-out":
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"{text!r} is neither a number >= 0 nor 'held-out'")
    return value


Sources = Annotated[
    list[str],
    typer.Argument(metavar="IN", help="Images (PNG, JPEG, TIFF, NPY), a folder of them, or a pattern."),
]
Target = Annotated[
    Path, typer.Argument(metavar="OUT", help="The restored image, or a folder where there are several.")
]
Alpha = Annotated[
    str | None,
    typer.Option(
        callback=_strength,
        metavar="NUMBER|held-out",
        help="Strength, for values in [0, 1], or 'held-out' to choose it by pixels held out. Without it the noise "
        "level decides. What was chosen is said.",
    ),
]
L2Weight = Annotated[float, typer.Option(min=0.0, max=1.0, help="0 is convex total variation, 1 the paper's.")]
Noise = Annotated[
    float | None,
    typer.Option(min=0.0, help="The noise's standard deviation, for values in [0, 1], if it is known."),
]
Smoothing = Annotated[
    float | None,
    typer.Option(min=0.0, help="Steps in value below this count as slopes; by default a hundredth of the range."),
]
BoundaryOption = Annotated[
    Boundary, typer.Option(help="Beyond the edge lies its mirror image, or the image again (periodic).")
]
Channels = Annotated[
    int | None, typer.Option(metavar="AXIS", help="The axis of the colours, for arrays; image files say it.")
]
MaxIter = Annotated[int, typer.Option(min=1, help="The largest number of iterations.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]


def add_to(application: Any) -> None:
    """Add the commands to the application."""
    application.command()(denoise)
    application.command()(deblur)
    application.command()(inpaint)


def denoise(
    sources: Sources,
    target: Target,
    alpha: Alpha = None,
    l2_weight: L2Weight = 0.5,
    noise: Noise = None,
    smoothing: Smoothing = None,
    boundary: BoundaryOption = Boundary.neumann,
    spins: Annotated[int, typer.Option(min=1, help="The number of flipped copies to average over.")] = 1,
    channels: Channels = None,
    max_iter: MaxIter = 1000,
    force: Force = False,
) -> None:
    """Remove noise from images."""
    options: dict[str, Any] = {"l2_weight": l2_weight, "smoothing": smoothing, "noise": noise}
    options |= {"boundary": boundary.value, "spins": spins, "max_iter": max_iter}
    restore_files(sources, target, RestorationJob(denoise_tv, (), alpha, options), channels, force)


def deblur(
    sources: Sources,
    target: Target,
    kernel: Annotated[Path, typer.Option(help="An image or array of the blur; it is divided by its sum.")],
    alpha: Alpha = None,
    l2_weight: L2Weight = 0.5,
    noise: Noise = None,
    smoothing: Smoothing = None,
    boundary: BoundaryOption = Boundary.neumann,
    channels: Channels = None,
    max_iter: MaxIter = 1000,
    force: Force = False,
) -> None:
    """Remove a known blur from images."""
    options: dict[str, Any] = {"l2_weight": l2_weight, "smoothing": smoothing, "noise": noise}
    options |= {"boundary": boundary.value, "max_iter": max_iter}
    restore_files(
        sources, target, RestorationJob(deblur_tv, (read_kernel(kernel),), alpha, options), channels, force
    )


def inpaint(
    sources: Sources,
    target: Target,
    mask: Annotated[Path, typer.Option(help="An image or array: white, or nonzero, where pixels are known.")],
    invert: Annotated[bool, typer.Option("--invert", help="The mask is white where pixels are missing.")] = False,
    alpha: Alpha = None,
    l2_weight: L2Weight = 0.5,
    noise: Noise = None,
    smoothing: Smoothing = None,
    boundary: BoundaryOption = Boundary.neumann,
    channels: Channels = None,
    max_iter: MaxIter = 1000,
    force: Force = False,
) -> None:
    """Fill in missing pixels of images."""
    options: dict[str, Any] = {"l2_weight": l2_weight, "smoothing": smoothing, "noise": noise}
    options |= {"boundary": boundary.value, "max_iter": max_iter}
    known = read_mask(mask) != invert
    restore_files(sources, target, RestorationJob(inpaint_tv, (known,), alpha, options), channels, force)


@dataclass(frozen=True)
class RestorationJob:
    """What is done to every image: a restoration function, its further data, the strength and the options."""

    function: Callable[..., Restoration]
    data: tuple[Any, ...]
    alpha: Any
    options: dict[str, Any]

    def restore(self, picture: Picture) -> Restoration:
        """A picture restored."""
        options = self.options | {"channel_axis": picture.channel_axis, "return_result": True}
        return self.function(picture.values(), *self.data, self.alpha, **options)

    def describe(self, restored: Restoration) -> str:
        """The strength, what it was chosen by, and how the iterations ended."""
        origin = " (chosen by held-out pixels)" if self.alpha == "held-out" else ""
        origin = origin if restored.noise is None else f" (chosen for noise {number(restored.noise)})"
        n_iter = sum(run.n_iter for run in restored.runs)
        ending = "" if restored.converged else " without convergence"
        return f"alpha {number(restored.alpha)}{origin}, {n_iter} iterations{ending}"


def read_kernel(path: Path) -> np.ndarray:
    """The blur in a file, its sum 1.

    Raises
    ------
    CommandError
        If it cannot be read, or has no positive sum.
    """
    kernel = _grey(path)
    total = kernel.sum(dtype=float)
    if not (np.isfinite(total) and total > 0):
        raise CommandError(f"{path} is no blur: its values have the sum {total:g}, not one above 0")
    return kernel / kernel.dtype.type(total)


def read_mask(path: Path) -> np.ndarray:
    """The pixels that a file marks: those that are brighter than half, or nonzero in an array."""
    mask = _grey(path)
    return mask != 0 if path.suffix.lower() == ".npy" else mask > 0.5


def _grey(path: Path) -> np.ndarray:
    """A file's values, averaged over its colours."""
    picture = read_image(path)
    values = picture.values()
    return values if picture.channel_axis is None else values.mean(axis=picture.channel_axis)


def restore_files(
    sources: Sequence[str], target: Path, job: RestorationJob, channels: int | None, force: bool
) -> None:
    """Restore each image; one that fails does not keep the others from being done.

    Raises
    ------
    CommandError
        If the command cannot begin: nothing has been written then.
    typer.Exit
        With code 1 if an image failed, with 130 if the user stopped the command.
    """
    pairs = plan(sources, target, force)
    failures = 0
    with _display(len(pairs)) as show:
        for done, (source, path) in enumerate(pairs):
            try:
                show(f"{source} -> {path}: {_restore_file(source, path, job, channels)}")
            except KeyboardInterrupt:
                show(f"Stopped: {done - failures} of {len(pairs)} images are written.")
                raise typer.Exit(130) from None
            except (ImageFileError, ValueError, TypeError, MemoryError) as error:
                failures += 1
                reason = (
                    str(error) if isinstance(error, ImageFileError) else f"{source}: {error or 'out of memory'}"
                )
                show(f"ell12: {reason}", failed=True)
    if failures and len(pairs) > 1:
        say(f"ell12: {failures} of {len(pairs)} images failed", failed=True)
    raise typer.Exit(1 if failures else 0)


def _restore_file(source: Path, path: Path, job: RestorationJob, channels: int | None) -> str:
    """Read, restore and write one image; what was done, in words."""
    picture = read_image(source, channels)
    check_target(path, picture)
    begin = time.perf_counter()
    restored = job.restore(picture)
    if any(run.status is Status.STOPPED for run in restored.runs):  # the loop's answer to Ctrl-C
        raise KeyboardInterrupt
    seconds = time.perf_counter() - begin
    write_image(path, picture, np.asarray(restored.image))
    return f"{job.describe(restored)}, {short_time(seconds)}"


def plan(sources: Sequence[str], target: Path, force: bool) -> list[Pair]:
    """Which file becomes which.

    Raises
    ------
    CommandError
        If there is nothing to do, a file would be overwritten, or the target cannot be written.
    """
    paths = [path for source in sources for path in expand(source)]
    several = len(sources) > 1 or paths != [Path(sources[0])]
    if several and target.suffix.lower() in SUFFIXES and not target.is_dir():
        raise CommandError(f"several images, a folder or a pattern need a folder as OUT; {target} names a file")
    into_folder = several or target.is_dir()
    pairs = [(path, target / path.name if into_folder else target) for path in paths]
    _check_pairs(pairs, force)
    check_folder(target if into_folder else target.parent, create=into_folder)
    return pairs


def expand(source: str) -> list[Path]:
    """The image files that an argument stands for: itself, those in a folder, or those that match a pattern."""
    path = Path(source)
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())
        if not found:
            raise CommandError(f"the folder {path} holds no image ({' '.join(SUFFIXES)})")
        return found
    if path.exists():
        return [path]
    found = sorted(Path(name) for name in glob.glob(source, recursive=True) if Path(name).is_file())
    if not found:
        kind = "no file matches" if glob.has_magic(source) else "there is no file"
        raise CommandError(f"{kind} {source}")
    return found


def _check_pairs(pairs: Sequence[Pair], force: bool) -> None:
    targets = [path for _, path in pairs]
    for path in targets:
        if path.suffix.lower() not in SUFFIXES:
            raise CommandError(f"{path} has an unknown suffix; known are {' '.join(SUFFIXES)}")
    twice = sorted({str(path) for path in targets if targets.count(path) > 1})
    if twice:
        raise CommandError(f"two images would be written to {twice[0]}")
    there = [path for path in targets if path.exists()]
    if there and not force:
        others = f" (and {len(there) - 1} more)" if len(there) > 1 else ""
        raise CommandError(f"{there[0]} is there already{others}: add --force to overwrite it")


@contextmanager
def _display(total: int) -> Iterator[Callable[..., None]]:
    """A function that shows what became of each image: a line, and on a terminal a bar below the lines."""
    if total == 1 or not sys.stdout.isatty():
        yield say
        return
    from rich import progress as parts
    from rich.console import Console

    columns = (
        parts.TextColumn("images"),
        parts.BarColumn(),
        parts.MofNCompleteColumn(),
        parts.TimeRemainingColumn(),
    )
    with parts.Progress(*columns, console=Console()) as bar:
        task = bar.add_task("images", total=total)

        def show(text: str, failed: bool = False) -> None:
            style = "red" if failed else None
            bar.console.print(printable(text), markup=False, highlight=False, style=style, soft_wrap=True)
            bar.advance(task)

        yield show
