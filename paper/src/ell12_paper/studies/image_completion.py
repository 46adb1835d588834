"""The paper's image completion: half of a photograph's pixels are known, the others are to be found.

Every method starts at zero and ends when two iterations change its objective by less than a fraction ``change``,
when its stationarity falls to ``tol``, or at its limit. Besides the paper's table there are
two studies of what it does not show: the strength (or rank), and log-sum's theta.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from ell12 import Run
from ell12.completion import BlockAPG, CompletionLoss, FactoredAPG, FullSVD, Observed
from ell12.minimization import Status, minimize
from ell12.penalties import NoPenalty, SpectralL12, SpectralLogSum
from ell12_paper.rivals import ARSSM3F, ER1MP, AISImpute, FaNCL, LMaFit, MatrixDCA, SketchyCGM
from ell12_paper.studies import size_of
from ell12_paper.studies.images import may_be_shown, names, photograph

NAME = "completion"
OBSERVED_FRACTION = 0.5
ALPHA_FACTOR = 0.1  # alpha as a fraction of the largest observed pixel
SKETCHY = "SketchyCGM"
PAPER_SIZE, PAPER_RANK = 512, 200
ALPHA_FACTORS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
RANK_FRACTIONS = (0.02, 0.05, 0.1, 0.2, 0.4)  # of the side
THETAS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)  # and sqrt(alpha), FaNCL's own
PICTURE_SIDE, PICTURE_SCALE = 128, 0.2  # a difference image: its pixels a side, and the difference drawn black


@dataclass(frozen=True)
class CompletionMethod:
    """A method: what it minimises and how, for a strength alpha, a rank and the matrix to be completed."""

    make: Callable[[Any], tuple[Any, Any]]
    setting: str = "alpha_factor"  # what it is tuned by, or "rank"
    end: str = "change"  # what ends it besides its limit: the objective's "change", or its own "rank"


def _l12(solver: Any, l2_weight: float = 1.0) -> Callable[[Any], tuple[Any, Any]]:
    return lambda problem: (SpectralL12(problem.alpha, l2_weight), solver)


def _log_sum(solver: Any) -> Callable[[Any], tuple[Any, Any]]:
    return lambda problem: (SpectralLogSum(problem.alpha, problem.theta), solver)


def _sketchy(problem: Any) -> tuple[Any, Any]:
    """SketchyCGM in the ball of the nuclear norm's solution for this alpha; the paper does not name its ball."""
    penalty, solver = METHODS["nuclear norm(block)"].make(problem)
    solution = minimize(problem.loss, penalty, solver=solver, tol=1e-3, max_iter=2000)
    return NoPenalty(), SketchyCGM(radius=max(solution.x.nuclear_norm(), 1e-12), rank=problem.rank)


# The paper's methods under the paper's names, then ours.
METHODS: dict[str, CompletionMethod] = {
    "AIS-Impute": CompletionMethod(_l12(AISImpute(), l2_weight=0.0)),
    SKETCHY: CompletionMethod(_sketchy),
    "ARSS-M3F": CompletionMethod(lambda p: (NoPenalty(), ARSSM3F(max_rank=p.rank)), "rank"),
    "LMaFit": CompletionMethod(lambda p: (NoPenalty(), LMaFit(p.rank)), "rank"),
    "ER1MP": CompletionMethod(lambda p: (NoPenalty(), ER1MP(p.rank, steps_per_iterate=10)), "rank", "rank"),
    "FaNCL": CompletionMethod(_log_sum(FaNCL())),
    "nmAPG": CompletionMethod(_l12(FactoredAPG())),
    "nmAPG(block)": CompletionMethod(_l12(BlockAPG())),
    "nmAPG(full SVD)": CompletionMethod(_l12(FullSVD())),
    "nuclear norm(block)": CompletionMethod(_l12(BlockAPG(), l2_weight=0.0)),
    "log-sum(block)": CompletionMethod(_log_sum(BlockAPG())),
    "LMaFit(growing rank)": CompletionMethod(lambda p: (NoPenalty(), LMaFit(p.rank, "increasing")), "rank"),
    "DCA(block)": CompletionMethod(_l12(MatrixDCA())),
}
# Several methods minimise one objective: one of them stands for all in curves and pictures.
IN_TABLE = tuple(method for method in METHODS if method != "log-sum(block)")
ALONG_PATH = tuple(m for m in METHODS if m not in ("nmAPG", "nmAPG(full SVD)", "DCA(block)", "FaNCL"))
PICTURED = tuple(method for method in IN_TABLE if method not in ("nmAPG(block)", "nmAPG(full SVD)", "DCA(block)"))


def trials(preset: str, seed: int) -> list[dict[str, Any]]:
    """The settings of every trial."""
    size, images = size_of(NAME, preset), names()
    table = product(range(size.n_repeats), images, IN_TABLE)
    found = [settings_of(size, seed, "table", image, method, repeat) for repeat, image, method in table]
    for repeat, image, method in product(range(1), images, ALONG_PATH):
        limits = {"max_cpu_seconds": size.path_seconds}
        limits |= {} if method == SKETCHY else {"max_iter": size.path_max_iter}
        ranks = [max(round(share * size.size), 1) for share in RANK_FRACTIONS]
        for value in ranks if METHODS[method].setting == "rank" else ALPHA_FACTORS:
            changed = {METHODS[method].setting: value} | limits
            found.append(settings_of(size, seed, "path", image, method, repeat, **changed))
    for image, theta in product(images, (*THETAS, None)):
        for repeat in range(1 if theta else size.n_repeats):
            found.append(settings_of(size, seed, "theta", image, "log-sum(block)", repeat, theta=theta))
    return found


def settings_of(
    size: Any, seed: int, study: str, image: str, method: str, repeat: int, **changed: Any
) -> dict[str, Any]:
    """The settings of a trial; ``changed`` replaces those of the paper's table."""
    trial = {"study": study, "image": image, "method": method, "repeat": repeat, "seed": seed + repeat}
    trial |= {"size": size.size, "rank": round(PAPER_RANK * size.size / PAPER_SIZE), "alpha_factor": ALPHA_FACTOR}
    ends = {"tol": 1e-3, "change": 3e-6, "max_cpu_seconds": size.max_cpu_seconds}
    ends["max_iter"] = size.sketchy_max_iter if method == SKETCHY else size.max_iter
    return trial | {"theta": None, "center": False} | ends | changed


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Complete one image by one method."""
    method = METHODS[settings["method"]]
    _warm_up(settings["method"])
    image, known = photograph(settings["image"], settings["size"]), observed_pixels(settings)
    alpha = settings["alpha_factor"] * float(np.abs(image[known]).max())
    theta = settings["theta"] or math.sqrt(alpha)
    loss = CompletionLoss(Observed.from_mask(image, known))
    problem = SimpleNamespace(loss=loss, alpha=alpha, rank=settings["rank"], theta=theta)
    penalty, solver = method.make(problem)

    def is_late(history: dict[str, list[float]]) -> bool:
        return history["cpu_seconds"][-1] >= settings["max_cpu_seconds"]

    def stop(history: dict[str, list[float]]) -> bool:
        """At the limit of time, or where the objective hardly changes over two iterations."""
        last, before = history["objective"][-1], history["objective"][max(len(history["objective"]) - 3, 0)]
        settled = len(history["objective"]) > 3 and abs(last - before) <= settings["change"] * abs(before)
        return is_late(history) or (method.end == "change" and settled)

    options = {"tol": settings["tol"], "max_iter": settings["max_iter"], "run": Run(callback=stop)}
    result = minimize(loss, penalty, solver=solver, **options)
    is_first = settings["study"] == "table" and settings["repeat"] == 0 and settings["method"] in PICTURED
    is_shown = is_first and may_be_shown(settings["image"])
    difference = result.x.to_array() - image
    clean = pack_picture(image, 1.0) if is_shown and settings["method"] == PICTURED[0] else None
    return {
        **{name: result.history[name][-1] for name in ("seconds", "cpu_seconds")},
        **{name: getattr(result, name) for name in ("n_iter", "objective", "stationarity")},
        "status": result.status.name,
        "is_limited": is_late(result.history) or result.status in (Status.MAX_ITER, Status.NOT_FINITE),
        "rank": result.x.rank,
        "alpha": alpha,
        "theta": theta,
        "rmse": float(np.sqrt(np.mean(difference**2))),
        "rmse_missing": float(np.sqrt(np.mean(difference[~known] ** 2))),
        "difference": pack_picture(difference) if is_shown else None,
        "clean": clean,
    }


def observed_pixels(settings: dict[str, Any]) -> Any:
    """Which pixels are known: exactly half of them, by the seed, the same for every method."""
    size = settings["size"]
    order = np.random.default_rng(settings["seed"]).permutation(size * size)
    return (order < OBSERVED_FRACTION * size * size).reshape(size, size)


@cache
def _warm_up(method: str) -> None:
    """Let the process load, outside any timing, what a method's first run loads."""
    image = np.random.default_rng(0).random((40, 40))
    known = image > 0.4
    loss = CompletionLoss(Observed.from_mask(image, known))
    penalty, solver = METHODS[method].make(SimpleNamespace(loss=loss, alpha=0.5, rank=5, theta=1.0))
    minimize(loss, penalty, solver=solver, max_iter=3)


def pack_picture(difference: Any, scale: float = PICTURE_SCALE) -> dict[str, Any]:
    """The size of a difference, averaged to a small picture of 8 bits up to the scale, as lines of text."""
    side = min(PICTURE_SIDE, len(difference))
    step = len(difference) // side
    blocks = np.asarray(difference)[: side * step, : side * step].reshape(side, step, side, step)
    size = np.sqrt(np.mean(blocks**2, axis=(1, 3)))
    pixels = np.rint(255 * np.minimum(size / scale, 1)).astype(np.uint8)
    return {"side": side, "pixels": base64.encodebytes(zlib.compress(pixels.tobytes(), 9)).decode().split()}


def unpack_picture(packed: dict[str, Any]) -> Any:
    """The picture as fractions of its scale, 1 being that or more.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12_paper.studies.image_completion import pack_picture, unpack_picture
    >>> unpack_picture(pack_picture(np.array([[0.2, 0.0], [0.0, -0.3]]))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    pixels = np.frombuffer(zlib.decompress(base64.b64decode("".join(packed["pixels"]))), dtype=np.uint8)
    return pixels.reshape(packed["side"], packed["side"]) / 255
