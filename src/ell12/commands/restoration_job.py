"""Image files restored one after the other: which becomes which, what is done to each, and what is said."""

import glob
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ell12.commands import CommandError, UsageError, check_folder, say
from ell12.commands.application import STOPPED
from ell12.commands.image_files import SUFFIXES, check_target, read_image, write_image
from ell12.commands.pictures import ImageFileError, Index, Picture
from ell12.commands.progress import ImageDisplay, image_display
from ell12.minimization import Status
from ell12.restoration import Restoration
from ell12.wording import short_time, span

Pair = tuple[Path, Path]
Data = Callable[[Picture, Index], tuple[Any, ...]]  # what the function needs besides a part of the picture


@dataclass(frozen=True)
class Reading:
    """How files are read and written, as far as the user says it."""

    channels: int | None = None
    axes: str = ""
    lossless: bool = False
    force: bool = False

    def read(self, path: Path) -> Picture:
        """The content of a file."""
        picture = read_image(path, self.channels, self.axes)
        lossless = self.lossless or picture.notes.lossless
        return replace(picture, notes=replace(picture.notes, lossless=lossless))


@dataclass(frozen=True)
class RestorationJob:
    """What is done to every image: a restoration function, its further data, the strength and the options.

    ``by_colour`` restores each colour by itself, as a blur with colours needs it.
    """

    function: Callable[..., Restoration]
    data: Data
    alpha: Any
    options: dict[str, Any]
    by_colour: bool = False

    def restore(
        self, picture: Picture, follow: Callable[[str, float], None]
    ) -> tuple[np.ndarray, list[Restoration]]:
        """The values of a picture restored, and how each of its parts went."""
        whole = picture.colour_by_colour() if self.by_colour else picture
        parts = list(whole.parts())
        found: list[Restoration] = []
        image = None
        for done, (index, part) in enumerate(parts):
            stop = _follower(follow, done, len(parts), isinstance(self.alpha, float))
            restored = self._restore_part(whole, index, part, stop)
            values = np.asarray(restored.image)
            if len(parts) == 1:
                return values, [restored]
            image = np.empty(picture.pixels.shape, values.dtype) if image is None else image
            image[index] = values
            runs = tuple(replace(run, x=None) for run in restored.runs)  # else the stack would be held three times
            found.append(replace(restored, image=None, runs=runs))
        return np.asarray(image), found

    def _restore_part(self, whole: Picture, index: Index, part: Picture, stop: Any) -> Restoration:
        options = self.options | {"channel_axis": part.channel_axis, "return_result": True, "stop": stop}
        if options.get("spacing") is None:
            options["spacing"] = part.distances
        restored = self.function(part.values(), *self.data(whole, index), self.alpha, **options)
        if any(run.status is Status.STOPPED for run in restored.runs):  # the loop's answer to Ctrl-C
            raise KeyboardInterrupt
        return restored

    def describe(self, picture: Picture, found: Sequence[Restoration]) -> str:
        """The strength, what it was chosen by, and how the iterations ended."""
        words = [_parts_in_words(picture, len(found))] if len(found) > 1 else []
        alphas, noises = [r.alpha for r in found], [r.noise for r in found if r.noise is not None]
        if self.alpha is not None and self.alpha != "held-out":
            words.append(f"alpha {span(alphas)}")
        else:
            has_unit = self.options.get("loss", "squared") == "squared"
            words.append(f"alpha {span(alphas)}{_of_file(alphas, picture) if has_unit else ''}")
            words.append("chosen by held-out pixels" if self.alpha == "held-out" else "chosen")
        if noises:
            words[-1] += f" for noise {span(noises)}{_of_file(noises, picture)}"
        runs = [run for restored in found for run in restored.runs]
        ended = all(run.status in (Status.CONVERGED, Status.ROUNDING, Status.ENDED) for run in runs)
        words.append(f"{sum(run.n_iter for run in runs)} iterations" + ("" if ended else " without convergence"))
        return ", ".join(words)


def _follower(follow: Callable[[str, float], None], done: int, n_parts: int, given: bool) -> Callable[[Any], bool]:
    """A ``stop`` that never stops, and shows how far the iterations are; until then the strength is chosen."""
    part = f"image {done + 1} of {n_parts}, " if n_parts > 1 else ""
    follow(part + ("preparing" if given else "choosing the strength"), done / n_parts)

    def stop(history: dict[str, list[float]]) -> bool:
        follow(f"{part}iteration {len(history['objective']) - 1}", done / n_parts)
        return False

    return stop


def _of_file(values: Sequence[float], picture: Picture) -> str:
    """Values in [0, 1] as the file counts them.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.commands.pictures import Picture
    >>> from ell12.commands.restoration_job import _of_file
    >>> _of_file([0.1], Picture(np.zeros((2, 2), np.uint8)))
    ' (25.5 of 255)'
    """
    unit = picture.unit
    return "" if unit == 1 else f" ({span([unit * value for value in values])} of {unit})"


def _parts_in_words(picture: Picture, count: int) -> str:
    """What was restored each by itself; how to say that pages are a volume."""
    letters = {picture.axes[k] for k in picture.separate}
    if len(picture.separate) == 1 and letters <= {"I", "Q"}:
        volume = picture.axes.replace("I", "Z").replace("Q", "Z")
        return f"{count} pages each by itself (--axes {volume} for a volume)"
    names = {"T": "times", "C": "channels"}
    return f"{count} {names.get(letters.pop(), 'images') if len(letters) == 1 else 'images'} each by itself"


def restore_files(sources: Sequence[str], target: Path, job: RestorationJob, reading: Reading) -> None:
    """Restore each image; one that fails does not keep the others from being done.

    Raises
    ------
    CommandError
        If the command cannot begin: nothing has been written then.
    typer.Exit
        With code 1 if an image failed, with 130 if the user stopped the command.
    """
    pairs = plan(sources, target, reading.force)
    failures = 0
    with image_display(len(pairs)) as display:
        for done, (source, path) in enumerate(pairs):
            try:
                display.line(f"{source} -> {path}: {_restore_file(source, path, job, reading, display)}")
            except KeyboardInterrupt:
                display.line(f"Stopped: {done - failures} of {len(pairs)} images are written.")
                raise typer.Exit(STOPPED) from None
            except (ImageFileError, ValueError, TypeError, MemoryError) as error:
                failures += 1
                name = "" if isinstance(error, ImageFileError) else f"{source}: "  # which such an error has
                display.line(f"ell12: {name}{error or 'out of memory'}", failed=True)
            display.next()
    if failures and len(pairs) > 1:
        say(f"ell12: {failures} of {len(pairs)} images failed", failed=True)
    raise typer.Exit(1 if failures else 0)


def _restore_file(source: Path, path: Path, job: RestorationJob, reading: Reading, display: ImageDisplay) -> str:
    """Read, restore and write one image; what was done, in words."""
    with _told(source, display):
        picture = reading.read(source)
        check_target(path, picture)
        begin = time.perf_counter()
        values, found = job.restore(picture, lambda words, done: display.follow(f"{source.name}: {words}", done))
        seconds = time.perf_counter() - begin
        write_image(path, picture, values)
    return f"{job.describe(picture, found)}, {short_time(seconds)}"


@contextmanager
def _told(source: Path, display: ImageDisplay) -> Iterator[None]:
    """Warnings become lines that name the file. NumPy's on single operations say nothing to a user."""
    with warnings.catch_warnings(record=True) as caught:
        for category in (UserWarning, RuntimeWarning):
            warnings.filterwarnings("always", category=category)
        warnings.filterwarnings("ignore", message=".*encountered in")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        display.line(f"ell12: {source}: {text}", failed=True)


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
        raise UsageError(f"several images, a folder or a pattern need a folder as OUT; {target} names a file")
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
            raise UsageError(f"{path} has an unknown suffix; known are {' '.join(SUFFIXES)}")
    twice = sorted({str(path) for path in targets if targets.count(path) > 1})
    if twice:
        raise UsageError(f"two images would be written to {twice[0]}")
    there = [path for path in targets if path.exists()]
    if there and not force:
        others = f" (and {len(there) - 1} more)" if len(there) > 1 else ""
        raise UsageError(f"{there[0]} is there already{others}: add --force to overwrite it")
