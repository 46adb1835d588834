"""Random hostile calls of the public API: every answer right, or an error that names the argument.

``python benchmarks/fuzz.py`` makes 20,000 calls from a seed in two worker processes, ten seconds each at most,
and writes ``benchmarks/results/fuzz.md``. ``--call 1234`` repeats one of them here, with its traceback.

The arguments of a call and their good values are read from the signatures, so that new arguments are tried too.
One or two of them are spoilt. A call ends as one of:

- right: an answer without NaN, which the formulas below do not refute;
- clear: an error that names an argument of the call;
- raw: an error that names none, as of NumPy or SciPy;
- internal: AttributeError, IndexError, LinAlgError and the like, which no user's mistake should bring about;
- wrong: NaN in the answer, or a claim that a formula refutes;
- hang: no end within ten seconds;
- died: the process ended.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import decimal
import fractions
import inspect
import multiprocessing
import os
import re
import time
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import ell12
import ell12.completion
import ell12.losses
import ell12.penalties
import ell12.prox
import ell12.restoration
import ell12.solvers
import study

MEMORY = 8 * 2**30
OUTCOMES = ("right", "clear", "raw", "internal", "wrong", "hang", "died")
ROWS, COLUMNS, SIDE = 14, 5, 16
HURRY = {"max_iter": 200, "run": ell12.Run(max_seconds=5.0), "alphas": 3, "cv": 2, "n_subsamples": 4}
Arguments = dict[str, Any]


# Ways to spoil an array, and what may stand where a number, a word or an array should


def _with(x: Any, value: float) -> Any:
    x = np.array(x, dtype=complex if np.iscomplexobj(x) else float)
    x.flat[:1] = value
    return x


def _frame(x: Any) -> Any:
    import pandas

    return pandas.DataFrame(x) if np.ndim(x) == 2 else pandas.Series(np.ravel(x))


def _sparse_with_index(index: int) -> Callable[[Any], Any]:
    def spoil(x: Any) -> Any:
        X = scipy.sparse.csr_array(np.atleast_2d(x))
        X.indices[:1] = index
        return X

    return spoil


ARRAYS: dict[str, Callable[[Any], Any]] = {
    "masked": lambda x: np.ma.array(x, mask=np.arange(np.size(x)).reshape(np.shape(x)) % 3 == 1),
    "NaN": lambda x: _with(x, np.nan),
    "all NaN": lambda x: np.full(np.shape(x), np.nan),
    "infinite": lambda x: _with(x, np.inf),
    "minus infinity": lambda x: _with(x, -np.inf),
    "huge": lambda x: np.asarray(x) * 1e200,
    "one huge": lambda x: _with(x, 1e250),
    "tiny": lambda x: np.asarray(x) * 1e-200,
    "subnormal": lambda x: np.asarray(x) * 1e-310,
    "zeros": np.zeros_like,
    "constant": np.ones_like,
    "negative": lambda x: -np.abs(np.asarray(x).real),
    "empty": lambda x: np.asarray(x)[:0],
    "no columns": lambda x: np.atleast_2d(x)[:, :0],
    "number": lambda x: 3.0,
    "0-d": lambda x: np.array(2.0),
    "one entry": lambda x: np.ravel(x)[:1],
    "shorter": lambda x: np.asarray(x)[:-1],
    "longer": lambda x: np.concatenate([x, x]),
    "transposed": lambda x: np.asarray(x).T,
    "flat": np.ravel,
    "an axis more": lambda x: np.asarray(x)[..., None],
    "complex": lambda x: np.asarray(x) * (1 + 1j),
    "integers": lambda x: np.asarray(np.real(x) * 10).astype(int),
    "unsigned bytes": lambda x: np.asarray(np.abs(x) * 10).astype(np.uint8),
    "truth values": lambda x: np.asarray(x).real > 0,
    "half": lambda x: np.asarray(np.real(x)).astype(np.float16),
    "single": lambda x: np.asarray(np.real(x)).astype(np.float32),
    "long double": lambda x: np.asarray(np.real(x)).astype(np.longdouble),
    "foreign bytes": lambda x: np.asarray(np.real(x)).astype(">f8"),
    "Fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    "np.matrix": lambda x: np.asmatrix(np.atleast_2d(x)),
    "strings": lambda x: np.full(np.shape(x), "word"),
    "numbers as strings": lambda x: np.asarray(x).astype(str),
    "objects": lambda x: np.full(np.shape(x), object()),
    "numbers as objects": lambda x: np.asarray(x).astype(object),
    "dates": lambda x: np.full(np.shape(x), np.datetime64("2020-01-01")),
    "list": lambda x: np.asarray(x).tolist(),
    "ragged list": lambda x: [[1.0, 2.0], [3.0]],
    "list with None": lambda x: [None, *np.ravel(x).tolist()[1:]],
    "csr": lambda x: scipy.sparse.csr_array(np.atleast_2d(x)),
    "csc matrix": lambda x: scipy.sparse.csc_matrix(np.atleast_2d(x)),
    "sparse with NaN": lambda x: scipy.sparse.csr_array(np.atleast_2d(_with(x, np.nan))),
    "sparse, index out of range": _sparse_with_index(10**6),
    "sparse, negative index": _sparse_with_index(-3),
    "frame": _frame,
    "frame of words": lambda x: _frame(np.full(np.shape(x), "word", dtype=object)),
}
ANYTHING: dict[str, Any] = {
    **{repr(value): value for value in (None, -1, 0, 1.5, 1e300, 1e-300, 10**30, 10**400, "word", "", b"word")},
    **{repr(value): value for value in ([1, 2], [], {}, True, False, 1j, np.nan, np.inf, range(3), slice(2))},
    **{f"{kind.__name__}(0.5)": kind(0.5) for kind in (np.float32, np.float16, np.longdouble, decimal.Decimal)},
    "int64(3)": np.int64(3),
    "Fraction(1, 2)": fractions.Fraction(1, 2),
    "array(0.5)": np.array(0.5),
    "array([0.5, 2])": np.array([0.5, 2.0]),
    "array([[1]])": np.array([[1.0]]),
    "object()": object(),
    "a set": {1, 2},
    "a function": len,
    "a class": ell12.L12,
    "a penalty": ell12.L12(),
    "a solver": ell12.FISTA(),
    "a masked number": np.ma.masked,
    "a date": np.datetime64("2020-01-01"),
}


# Formulas that refute answers


def numbers(answer: Any) -> list[np.ndarray]:
    """The arrays of numbers in an answer."""
    if isinstance(answer, tuple | list):
        return [x for part in answer for x in numbers(part)]
    if hasattr(answer, "to_array"):
        return [answer.to_array()]
    for name in ("image", "x", "coef_"):
        if hasattr(answer, name):
            return numbers(getattr(answer, name))
    x = np.asarray(answer) if isinstance(answer, np.ndarray | float | np.floating) else np.zeros(0)
    return [x] if x.dtype.kind in "fc" else []


def finite(arguments: Arguments, answer: Any) -> str:
    """NaN or infinity in an answer is wrong."""
    return "" if all(np.isfinite(x).all() for x in numbers(answer)) else "NaN or infinity in the answer"


def plain(value: Any) -> np.ndarray | None:
    """``value`` as an array of numbers, if it is one without doubt."""
    if scipy.sparse.issparse(value):
        value = value.toarray()
    try:
        x = np.asarray(value)
    except (ValueError, TypeError):
        return None
    return x.astype(complex if x.dtype.kind == "c" else float) if x.dtype.kind in "biufc" else None


def usual(arguments: Arguments) -> bool:
    """Whether all numbers among the arguments are finite, and their squares too."""
    given = [
        v for v in arguments.values() if isinstance(v, np.ndarray | list | float | int) or scipy.sparse.issparse(v)
    ]
    arrays = list(map(plain, given))
    return all(x is not None and np.isfinite(x).all() and np.abs(x).max(initial=0) < 1e100 for x in arrays)


def passes(arguments: Arguments, answer: Any) -> str:
    """Maps of numbers may pass NaN and infinity on, and overflow."""
    return finite(arguments, answer) if usual(arguments) else ""


def least_prox(arguments: Arguments, answer: Any) -> str:
    """The prox has an objective no higher than z and zero have."""
    z, t, l2 = (plain(arguments[name]) for name in ("z", "t", "l2_weight"))
    special = (
        arguments.get("weights") is not None or arguments.get("positive") or arguments.get("axis") is not None
    )
    if special or z is None or t is None or l2 is None or t.size != 1 or l2.size != 1 or not usual(arguments):
        return passes(arguments, answer)
    if 0 < np.abs(z).max(initial=0) < 1e-100:  # their squares underflow
        return ""
    x = numbers(answer)[0]

    def objective(x: np.ndarray) -> float:
        lengths = np.abs(x).sum() - float(l2.item()) * np.linalg.norm(x)
        return 0.5 * float((np.abs(x - z.reshape(x.shape)) ** 2).sum()) + float(t.item()) * float(lengths)

    lowest = min(objective(np.zeros_like(x)), objective(z.reshape(x.shape)))
    worse = objective(x) > lowest + 1e-3 * abs(lowest)
    return f"objective {objective(x):.6g} where another point has {lowest:.6g}" if worse else ""


def stationary(arguments: Arguments, answer: Any) -> str:
    """A squared loss with l1-2 that claims to have converged fulfils the first-order condition."""
    A, b = plain(arguments["A"]), plain(arguments["b"])
    special = any(arguments[name] is not None for name in ("sample_weight", "weights")) or arguments["ridge"] != 0
    trouble = finite(arguments, answer)
    if trouble or special or not answer.converged or A is None or b is None or arguments["positive"] is not False:
        return trouble
    if np.iscomplexobj(A) or np.iscomplexobj(b) or plain(arguments["scale"]) is None:
        return ""
    alpha, l2, x = float(arguments["alpha"]), float(arguments["l2_weight"]), np.asarray(numbers(answer)[0], float)
    length, gradient = np.linalg.norm(x), float(arguments["scale"]) * (A.T @ (A @ x - b))
    slope = gradient - (alpha * l2 * x / length if length else 0)
    bound = alpha if length else alpha * (1 + l2)
    off = np.maximum(np.abs(slope) - bound, 0)
    violation = np.where(x != 0, np.abs(slope + alpha * np.sign(x)), off).max(initial=0)
    single = any("float32" in str(getattr(value, "dtype", "")) for value in arguments.values())
    rounding = (2e-5 if single else 1e-10) * np.abs(A.T @ b).max(initial=0) * float(arguments["scale"])
    claimed = float(min(arguments["tol"], 1e300)) * (alpha or 1.0) + rounding
    return "" if violation <= 1.01 * claimed else f"claims {claimed:.3g}, violates by {violation:.3g}"


# What is called: good data, and options from the signatures


@dataclasses.dataclass(frozen=True)
class Target:
    """A function, what makes good data for it, the options it takes, and what refutes an answer."""

    function: Callable[..., Any]
    data: Callable[[np.random.Generator], Arguments]
    options: Arguments
    check: Callable[[Arguments, Any], str] = finite


def options_of(call: Any, *without: str, **good: Any) -> Arguments:
    """The options of a callable with their defaults, or the good values that are given."""
    found = {}
    for name, parameter in inspect.signature(call).parameters.items():
        if name in without or name.startswith("_") or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if name in good or name in HURRY or parameter.default is not parameter.empty:
            found[name] = good.get(name, HURRY.get(name, parameter.default))
    return found


def linear(random: np.random.Generator) -> Arguments:
    A = random.standard_normal((ROWS, COLUMNS))
    return {"A": A, "b": A[:, 0] + 0.1 * random.standard_normal(ROWS)}


def table(kind: str) -> Callable[[np.random.Generator], Arguments]:
    """X and y of a task."""

    def make(random: np.random.Generator) -> Arguments:
        X = random.standard_normal((3 * ROWS, COLUMNS))
        y: Any = X[:, 0] + 0.3 * random.standard_normal(3 * ROWS)
        if kind == "classes":
            y = np.where(y > 0, "yes", "no")
        elif kind == "survival":
            y = np.rec.fromarrays([y > -1, np.exp(-y)], names=["event", "time"])
        return {"X": X, "y": y, "sample_weight": None}

    return make


def gaps(random: np.random.Generator) -> Arguments:
    X = random.standard_normal((ROWS, 2)) @ random.standard_normal((2, 6))
    X[random.random(X.shape) < 0.3] = np.nan
    return {"X": X}


def picture(random: np.random.Generator) -> np.ndarray:
    return np.kron(random.random((2, 2)), np.ones((SIDE // 2, SIDE // 2))) + 0.1 * random.standard_normal(
        (SIDE, SIDE)
    )


def fit(kind: Any) -> Callable[..., Any]:
    def call(X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
        return kind(**options).fit(X, y, sample_weight=sample_weight)

    return call


def use_penalty(kind: Any) -> Callable[..., Any]:
    def call(x: Any, step: Any, **options: Any) -> Any:
        penalty = kind(**options)
        value = float(penalty.value(x))  # infinite where x is not allowed
        prox = [penalty.prox(x, step)] if hasattr(penalty, "prox") else []
        return [np.asarray(value if value < np.inf else 0.0), *prox]

    return call


def use_loss(kind: Any) -> Callable[..., Any]:
    def call(**options: Any) -> Any:
        return ell12.minimize(kind(**options), ell12.L12(0.5, 0.5), max_iter=100, run=HURRY["run"])

    return call


def use_solver(kind: Any) -> Callable[..., Any]:
    def call(**options: Any) -> Any:
        A = np.random.default_rng(0).standard_normal((ROWS, COLUMNS))
        penalty: Any = ell12.L1(0.5) if kind is ell12.FISTA else ell12.L12(0.5, 0.5)
        penalty = ell12.GroupL12([0, 0, 1, 1, 2], 0.5) if kind.__name__ == "GroupNewton" else penalty
        return ell12.minimize(ell12.SquaredLoss(A, A[:, 0]), penalty, solver=kind(**options), max_iter=30)

    return call


def minimize(A: Any, b: Any, alpha: Any, l2_weight: Any, **options: Any) -> Any:
    of_loss = {name: options.pop(name) for name in ("sample_weight", "scale")}
    of_penalty = {name: options.pop(name) for name in ("weights", "positive", "ridge")}
    loss, penalty = ell12.SquaredLoss(A, b, **of_loss), ell12.L12(alpha, l2_weight, **of_penalty)
    return ell12.minimize(loss, penalty, **options)


def _core() -> dict[str, Target]:
    def z(random: np.random.Generator) -> Arguments:
        return {"z": random.standard_normal(6), "t": 0.7}

    prox = ell12.prox
    found = {
        "prox_l12": Target(prox.prox_l12, z, options_of(prox.prox_l12), least_prox),
        "moreau_l12": Target(prox.moreau_l12, z, options_of(prox.moreau_l12), passes),
        "prox_l12_iterative": Target(prox.prox_l12_iterative, z, options_of(prox.prox_l12_iterative), passes),
        "prox_l12_groups": Target(
            prox.prox_l12_groups,
            lambda r: z(r) | {"groups": np.array([0, 0, 1, 1, 2, 2])},
            {"weights": None},
            passes,
        ),
        "prox_l12_spectral": Target(
            prox.prox_l12_spectral,
            lambda r: {"Z": r.standard_normal((4, 3)), "t": 0.7},
            {"l2_weight": 1.0},
            passes,
        ),
        "minimize": Target(
            minimize,
            lambda r: linear(r) | {"alpha": 0.5, "l2_weight": 0.5},
            options_of(ell12.minimize)
            | {"sample_weight": None, "scale": 1.0, "weights": None, "positive": False, "ridge": 0.0},
            stationary,
        ),
        "certify": Target(
            lambda A, b, alpha, **options: ell12.certify(ell12.SquaredLoss(A, b), ell12.L12(alpha), **options),
            lambda r: linear(r) | {"alpha": 0.5},
            options_of(ell12.certify, "loss", "penalty", max_seconds=2.0),
        ),
        "recover_sparse": Target(
            ell12.recover_sparse,
            lambda r: (data := linear(r)) | {"b": data["A"][:, 0]},
            options_of(ell12.recover_sparse),
        ),
        "l12_path": Target(ell12.l12_path, table("numbers"), options_of(ell12.l12_path, "sample_weight")),
        "solution_path": Target(
            lambda A, b, **options: ell12.solution_path(ell12.SquaredLoss(A, b), **options),
            linear,
            options_of(ell12.solution_path, "loss", penalty=ell12.MCP()),
        ),
    }
    for name in ("SquaredLoss", "LogisticLoss", "HuberLoss", "PoissonLoss", "MultinomialLoss"):
        kind = getattr(ell12.losses, name)

        def data(r: np.random.Generator, name: str = name) -> Arguments:
            counts = {"LogisticLoss": r.choice([-1.0, 1.0], ROWS), "PoissonLoss": r.poisson(2.0, ROWS) * 1.0}
            return linear(r) | ({"b": counts[name]} if name in counts else {}) | _labels(name)

        found[name] = Target(use_loss(kind), data, options_of(kind, "A", "b"))
    return found


def _labels(name: str) -> Arguments:
    return {"b": np.arange(ROWS) % 3} if name == "MultinomialLoss" else {}


def _parts() -> dict[str, Target]:
    """Penalties and solvers."""
    found = {}
    matrices = ("RowsL12", "SpectralL12", "SpectralLogSum", "TruncatedNuclear", "TotalVariationL12")
    names = "L12 L1 GroupL12 RowsL12 SpectralL12 SpectralLogSum TruncatedNuclear TotalVariationL12 MCP LogSum "
    for name in (names + "CappedL1 Lp SCAD TransformedL1").split():
        kind = getattr(ell12, name, None) or getattr(ell12.penalties, name)
        shape = (6, 2) if name in matrices else (6,)
        given: Arguments = {"alpha": 0.8, "groups": np.array([0, 0, 1, 1, 2, 2])}
        found[name] = Target(
            use_penalty(kind),
            lambda r, shape=shape: {"x": r.standard_normal(shape), "step": 0.7},
            options_of(kind, **given),
            passes,
        )
    solvers = "ProximalGradient FISTA NonmonotoneAPG SequentialConvex DCA SupportNewton ProxSVRG SAGA Restarts"
    for name in solvers.split():
        kind = getattr(ell12.solvers, name)
        found[name] = Target(use_solver(kind), lambda r: {}, options_of(kind, "inner", "solver", batch_size=4))
    return found


def _estimators() -> dict[str, Target]:
    found = {}
    for name, kind in (("Regressor", "numbers"), ("Classifier", "classes"), ("CoxRegressor", "survival")):
        for chosen in ("", "CV"):
            estimator = getattr(ell12, f"L12{name}{chosen}")
            found[estimator.__name__] = Target(fit(estimator), table(kind), options_of(estimator))
    imputer, recommender, stability = ell12.L12Imputer, ell12.L12Recommender, ell12.StabilitySelection
    regression = table("numbers")

    def unweighted(random: np.random.Generator) -> Arguments:
        return {name: value for name, value in regression(random).items() if name != "sample_weight"}

    return found | {
        "L12Imputer": Target(
            lambda X, **o: imputer(**o).fit_transform(X), gaps, options_of(imputer, random_state=0)
        ),
        "L12Recommender": Target(
            lambda ratings, **o: recommender(**o).fit(ratings).predict([0, 1], [1, 0]),
            lambda r: {"ratings": scipy.sparse.csr_array(np.nan_to_num(gaps(r)["X"]))},
            options_of(recommender),
        ),
        "StabilitySelection": Target(
            lambda X, y, **o: stability(**o).fit(X, y).get_support(), unweighted, options_of(stability)
        ),
        "confidence_intervals": Target(
            lambda X, y, **o: [ell12.confidence_intervals(X, y, **o).estimate],
            unweighted,
            options_of(ell12.confidence_intervals),
        ),
        "information_criteria": Target(
            lambda X, y, **o: ell12.information_criteria(X, y, **o).aic,
            unweighted,
            options_of(ell12.information_criteria),
        ),
        "complete_matrix": Target(ell12.complete_matrix, gaps, options_of(ell12.complete_matrix)),
        "completion_path": Target(ell12.completion_path, gaps, options_of(ell12.completion_path)),
        "Observed": Target(
            lambda **given: ell12.Observed(**given).values,
            lambda r: {"rows": [1, 0], "columns": [0, 2], "values": np.array([5.0, 3.0]), "shape": (2, 3)},
            {},
        ),
    }


def _images() -> dict[str, Target]:
    psf, mask = np.full((3, 3), 1 / 9), np.random.default_rng(0).random((SIDE, SIDE)) < 0.7
    given: dict[str, Callable[[np.random.Generator], Arguments]] = {
        "denoise_tv": lambda r: {"image": picture(r)},
        "deblur_tv": lambda r: {"image": picture(r), "psf": psf},
        "inpaint_tv": lambda r: {"image": picture(r), "mask": mask},
        "reconstruct_mri": lambda r: {"data": np.fft.fft2(picture(r), norm="ortho"), "mask": mask},
    }
    functions = {name: getattr(ell12, name) for name in given}
    return {name: Target(call, given[name], options_of(call, sigma=0.1)) for name, call in functions.items()}


@cache
def targets() -> dict[str, Target]:
    """All that is called, by name."""
    return _core() | _parts() | _estimators() | _images()


def make_call(seed: int, number: int) -> tuple[str, Target, Arguments, str]:
    """The call of this number, with one or two arguments spoilt."""
    random = np.random.default_rng([seed, number])
    name = list(targets())[random.integers(len(targets()))]
    target = targets()[name]
    arguments = target.data(random) | target.options
    spoilt = []
    for chosen in random.choice(
        list(arguments), min(len(arguments), 1 + int(random.random() < 0.3)), replace=False
    ):
        is_array = isinstance(arguments[chosen], np.ndarray)
        ways: dict[str, Any] = ARRAYS if is_array and random.random() < 0.85 else ANYTHING
        way = list(ways)[random.integers(len(ways))]
        try:
            arguments[str(chosen)] = ways[way](arguments[chosen]) if ways is ARRAYS else ways[way]
        except (TypeError, ValueError, ImportError):  # it cannot be spoilt in this way
            continue
        spoilt.append(f"{chosen}: {way}")
    return name, target, arguments, "; ".join(spoilt)


def call(seed: int, number: int, *, raises: bool = False) -> tuple[str, str, str, str]:
    """Make the call of this number: its outcome, the name called, what was spoilt, and words about the outcome."""
    name, target, arguments, spoilt = make_call(seed, number)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trouble = target.check(arguments, target.function(**arguments))
    except Exception as error:
        if raises:
            traceback.print_exc()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        words = f"{type(error).__name__}: {' '.join(str(error).split())[:110]}"
        return outcome_of(error, arguments), name, spoilt, f"{words} ({Path(frame.filename).name}:{frame.lineno})"
    return ("wrong" if trouble else "right"), name, spoilt, trouble


def outcome_of(error: Exception, arguments: Arguments) -> str:
    if not isinstance(error, TypeError | ValueError) or isinstance(error, np.linalg.LinAlgError):
        return "internal"
    names = "|".join(map(re.escape, arguments))
    return "clear" if re.search(rf"(?<![\w'.])({names})(?!\w|\.(?!shape))", str(error)) else "raw"


def work(seed: int, numbers: list[int], pipe: Any) -> None:
    """Make calls in a process of its own."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # verbose is an option too
        for number in numbers:
            pipe.send((number, *call(seed, number)))
    pipe.close()


def run(seed: int, numbers: list[int], rows: list[Any], seconds: float) -> None:
    """Make the calls in a worker, and in a new one after each that has no end."""
    context = multiprocessing.get_context("spawn")
    while numbers:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=work, args=(seed, numbers, theirs), daemon=True)
        worker.start()
        theirs.close()
        limit, outcome = 90.0, "hang"  # the first call imports the package
        try:
            while numbers and ours.poll(limit):
                rows.append(ours.recv())
                numbers, limit = numbers[1:], seconds
        except EOFError:
            outcome = "died"
        worker.kill()
        worker.join()
        if numbers:
            name, _, _, spoilt = make_call(seed, numbers[0])
            rows.append((numbers[0], outcome, name, spoilt, "no answer"))
            numbers = numbers[1:]


def page(rows: list[Any], seed: int, seconds: float) -> str:
    """The table of outcomes by name, and the first calls of each class that should be empty."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for _, outcome, name, _, _ in rows:
        counts[name][outcome] += 1
        counts["**all**"][outcome] += 1
    made = f"{len(rows)} calls from seed {seed} in {seconds / 60:.1f} minutes, made by `python benchmarks/fuzz.py`"
    about = f"{made} at commit {study.commit()}. The script says what the outcomes mean."
    names = ["**all**", *sorted(counts.keys() - {"**all**"})]
    lines = [[name, *(str(counts[name][outcome]) for outcome in OUTCOMES)] for name in names]
    parts = ["# Random hostile calls", about, study.table(["name", *OUTCOMES], lines)]
    for outcome in OUTCOMES[2:]:
        shown = {(row[2], row[4][:60]): row for row in reversed(rows) if row[1] == outcome}.values()
        cells = [
            [str(n), name, spoilt.replace("|", "/"), words.replace("|", "/")]
            for n, _, name, spoilt, words in shown
        ]
        if cells:
            parts += [
                f"## Calls that ended as {outcome}",
                study.table(["call", "name", "spoilt", "outcome"], cells[:40]),
            ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10, help="of one call; more on a busy machine")
    parser.add_argument("--out", type=Path, default=study.RESULTS / "fuzz.md")
    parser.add_argument("--call", type=int, help="repeat the call of this number here")
    given = parser.parse_args()
    if given.call is not None:
        print(*call(given.seed, given.call, raises=True), sep="\n")
        return
    from concurrent.futures import ThreadPoolExecutor

    began, rows = time.monotonic(), []
    with ThreadPoolExecutor(given.jobs) as pool:
        shares = [list(range(k, given.calls, given.jobs)) for k in range(given.jobs)]
        list(pool.map(lambda share: run(given.seed, share, rows, given.seconds), shares))
    rows.sort()
    text = page(rows, given.seed, time.monotonic() - began)
    study.replace(given.out, text)
    print(text)


if __name__ == "__main__":
    main()
