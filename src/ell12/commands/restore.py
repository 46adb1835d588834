"""``ell12 denoise``, ``deblur`` and ``inpaint``: image files restored by total variation."""

import math
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ell12.commands.application import add_command
from ell12.commands.given_images import kernel_for, mask_for, read_kernels, read_mask
from ell12.commands.pictures import SPACE
from ell12.commands.restoration_job import Reading, RestorationJob, restore_files
from ell12.restoration import deblur_tv, denoise_tv, inpaint_tv

Boundary = StrEnum("Boundary", ["neumann", "periodic"])  # what lies beyond the edge of an image
ImageLoss = StrEnum("ImageLoss", ["squared", "poisson", "absolute"])  # how far from its data an image may be


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


def _spacing(text: str | None) -> Any:
    """The numbers that an option names."""
    try:
        return None if text is None else tuple(map(float, text.split(",")))
    except ValueError:
        raise typer.BadParameter(f"{text!r} must be numbers with commas between them, as in 2,0.5,0.5") from None


def _axes(text: str) -> str:
    """Letters in capitals, one for each axis."""
    letters = text.upper()
    if letters and not (letters.isalpha() and letters.isascii() and len(set(letters)) == len(letters)):
        raise typer.BadParameter(f"{text!r} must have a letter for each axis, no letter twice, as in TCZYX")
    if letters and not set(letters) & set(SPACE):
        raise typer.BadParameter(f"{text!r} has no axis of space ({', '.join(SPACE)})")
    return letters


Sources = Annotated[
    list[str],
    typer.Argument(metavar="IN", help="Images (PNG, JPEG, WebP, BMP, TIFF, NPY), a folder of them, or a pattern."),
]
Target = Annotated[
    Path, typer.Argument(metavar="OUT", help="The restored image, or a folder where there are several.")
]
Alpha = Annotated[
    str | None,
    typer.Option(
        callback=_strength,
        metavar="NUMBER|held-out",
        help="Strength, for values in [0, 1] (to which 8 and 16 bits are scaled; other numbers are taken as they "
        "are), or 'held-out' to choose it by pixels held out. Without it the noise level decides. What was chosen "
        "is said.",
    ),
]
L2Weight = Annotated[
    float, typer.Option(metavar="NUMBER", min=0.0, max=1.0, help="0 is convex total variation, 1 the paper's.")
]
Noise = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        min=0.0,
        help="The noise's standard deviation, if it is known, for values as --alpha has them.",
    ),
]
Smoothing = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        min=0.0,
        help="Steps in value below this count as slopes; by default a hundredth of the range.",
    ),
]
Isotropic = Annotated[
    bool, typer.Option("--isotropic", help="Let edges cost the same in any direction, not least along the axes.")
]
LossOption = Annotated[
    ImageLoss,
    typer.Option(
        metavar="|".join(ImageLoss),
        help="How the noise came: white (squared), as counts (poisson), as impulses (absolute).",
    ),
]
BoundaryOption = Annotated[
    Boundary,
    typer.Option(
        metavar="|".join(Boundary), help="Beyond the edge lies its mirror image, or the image again (periodic)."
    ),
]
Channels = Annotated[
    int | None, typer.Option(metavar="AXIS", help="The axis of the colours, for arrays; image files say it.")
]
NoColour = Annotated[
    bool, typer.Option("--no-colour", help="Restore red, green and blue one by one, not brightness and chroma.")
]
Axes = Annotated[
    str,
    typer.Option(
        callback=_axes,
        metavar="LETTERS",
        help="What the axes of a TIFF or array are, as in TCZYX: Z, Y, X are space, S colours; images along any "
        "other letter are restored each by itself. OME-TIFF and ImageJ files say it. Pages of other TIFFs are "
        "separate images (ZYX makes them a volume), axes of arrays are space.",
    ),
]
Spacing = Annotated[
    str | None,
    typer.Option(
        callback=_spacing,
        metavar="NUMBERS",
        help="The distances between pixels along the axes of space, as in 2,0.5,0.5; files of microscopes say it.",
    ),
]
Lossless = Annotated[
    bool, typer.Option("--lossless", help="Write WebP without loss, even if the source has some.")
]
MaxIter = Annotated[int, typer.Option(metavar="COUNT", min=1, help="The largest number of iterations.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]


def add_to(application: Any) -> None:
    """Add the commands to the application."""
    add_command(
        application,
        denoise,
        ["ell12 denoise noisy.png clean.png", "ell12 denoise scans/ denoised/ --noise 0.1 --isotropic"],
    )
    examples = ["ell12 deblur blurred.png sharp.png --kernel blur.npy"]
    add_command(application, deblur, examples)
    examples = ["ell12 inpaint damaged.png whole.png --mask mask.png"]
    add_command(application, inpaint, examples)


def denoise(
    sources: Sources,
    target: Target,
    alpha: Alpha = None,
    l2_weight: L2Weight = 0.5,
    noise: Noise = None,
    smoothing: Smoothing = None,
    isotropic: Isotropic = False,
    loss: LossOption = ImageLoss.squared,
    boundary: BoundaryOption = Boundary.neumann,
    spins: Annotated[
        int, typer.Option(metavar="COUNT", min=1, help="The number of flipped copies to average over.")
    ] = 1,
    channels: Channels = None,
    no_colour: NoColour = False,
    axes: Axes = "",
    spacing: Spacing = None,
    max_iter: MaxIter = 1000,
    lossless: Lossless = False,
    force: Force = False,
) -> None:
    """Remove noise from images."""
    options: dict[str, Any] = {"l2_weight": l2_weight, "smoothing": smoothing, "noise": noise}
    options |= {
        "isotropic": isotropic,
        "loss": loss.value,
        "boundary": boundary.value,
        "spins": spins,
        "max_iter": max_iter,
    }
    options |= {"colour": False if no_colour else None, "spacing": spacing}
    job = RestorationJob(denoise_tv, lambda *_: (), alpha, options)
    restore_files(sources, target, job, Reading(channels, axes, lossless, force))


def deblur(
    sources: Sources,
    target: Target,
    kernel: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="An image or array of the blur; it is divided by its sum. Its middle is its centre.",
        ),
    ],
    alpha: Alpha = None,
    l2_weight: L2Weight = 0.0,
    noise: Noise = None,
    smoothing: Smoothing = None,
    isotropic: Isotropic = False,
    loss: LossOption = ImageLoss.squared,
    boundary: BoundaryOption = Boundary.neumann,
    channels: Channels = None,
    no_colour: NoColour = False,
    axes: Axes = "",
    spacing: Spacing = None,
    max_iter: MaxIter = 1000,
    lossless: Lossless = False,
    force: Force = False,
) -> None:
    """Remove a known blur from images."""
    options: dict[str, Any] = {"l2_weight": l2_weight, "smoothing": smoothing, "noise": noise}
    options |= {"isotropic": isotropic, "loss": loss.value, "boundary": boundary.value, "max_iter": max_iter}
    options |= {"colour": False if no_colour else None, "spacing": spacing}
    kernels = read_kernels(kernel)
    job = RestorationJob(deblur_tv, partial(kernel_for, kernels), alpha, options, by_colour=len(kernels) > 1)
    restore_files(sources, target, job, Reading(channels, axes, lossless, force))


def inpaint(
    sources: Sources,
    target: Target,
    mask: Annotated[
        Path, typer.Option(metavar="FILE", help="An image or array: white, or nonzero, where pixels are known.")
    ],
    invert: Annotated[bool, typer.Option("--invert", help="The mask is white where pixels are missing.")] = False,
    alpha: Alpha = None,
    l2_weight: L2Weight = 0.5,
    noise: Noise = None,
    smoothing: Smoothing = None,
    isotropic: Isotropic = False,
    loss: LossOption = ImageLoss.squared,
    boundary: BoundaryOption = Boundary.neumann,
    channels: Channels = None,
    no_colour: NoColour = False,
    axes: Axes = "",
    spacing: Spacing = None,
    max_iter: MaxIter = 1000,
    lossless: Lossless = False,
    force: Force = False,
) -> None:
    """Fill in missing pixels of images."""
    options: dict[str, Any] = {"l2_weight": l2_weight, "smoothing": smoothing, "noise": noise}
    options |= {"isotropic": isotropic, "loss": loss.value, "boundary": boundary.value, "max_iter": max_iter}
    options |= {"colour": False if no_colour else None, "spacing": spacing}
    job = RestorationJob(inpaint_tv, partial(mask_for, read_mask(mask) != invert), alpha, options)
    restore_files(sources, target, job, Reading(channels, axes, lossless, force))
