"""The calls of fuzz.py: good arguments, ways to spoil them, and formulas that refute answers."""

from __future__ import annotations

import decimal
import fractions
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse

import ell12
from ell12.path.columnwise import ColumnsL12, ColumnwiseAPG

ROWS, COLUMNS, SIDE = 14, 5, 10


@dataclass(frozen=True)
class Call:
    """One call: what to call with what, and what is wrong with an answer, if anything."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    spoilt: str
    check: Callable[[dict[str, Any], Any], str]


# Ways to spoil an array x


def _tensor(x: Any, dtype: str | None = None, **options: Any) -> Any:
    import torch

    tensor = torch.as_tensor(np.array(x), **options)
    return tensor if dtype is None else tensor.to(getattr(torch, dtype))


def _frame(x: Any) -> Any:
    import pandas

    return pandas.DataFrame(x) if np.ndim(x) == 2 else pandas.Series(np.ravel(x))


def _sparse(x: Any, kind: str = "csr_array") -> Any:
    return getattr(scipy.sparse, kind)(np.atleast_2d(x))


def _doubled(x: Any) -> Any:
    x = np.atleast_2d(x)
    rows, columns = (np.tile(index.ravel(), 2) for index in np.indices(x.shape))
    return scipy.sparse.coo_array((np.tile(x.ravel(), 2) / 2, (rows, columns)), x.shape)


def _with(x: Any, value: float) -> Any:
    x = np.array(x, dtype=complex if np.iscomplexobj(x) else float)
    x.flat[:1] = value
    return x


def _locked(x: Any) -> Any:
    x = np.array(x)
    x.flags.writeable = False
    return x


ARRAYS: dict[str, Callable[[Any], Any]] = {
    "masked": lambda x: np.ma.array(x, mask=np.arange(np.size(x)).reshape(np.shape(x)) % 3 == 1),
    "masked, nothing under": lambda x: np.ma.array(x, mask=False),
    "NaN": lambda x: _with(x, np.nan),
    "all NaN": lambda x: np.full(np.shape(x), np.nan),
    "infinite": lambda x: _with(x, np.inf),
    "minus infinity": lambda x: _with(x, -np.inf),
    "huge": lambda x: np.asarray(x) * 1e200,
    "one huge": lambda x: _with(x, 1e250),
    "largest": lambda x: _with(x, np.finfo(float).max),
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
    "five axes": lambda x: np.asarray(x).reshape(1, 1, 1, *np.shape(x)),
    "complex": lambda x: np.asarray(x) * (1 + 1j),
    "integers": lambda x: np.asarray(np.real(x) * 10).astype(int),
    "unsigned bytes": lambda x: np.asarray(np.abs(x) * 10).astype(np.uint8),
    "truth values": lambda x: np.asarray(x).real > 0,
    "half": lambda x: np.asarray(np.real(x)).astype(np.float16),
    "single": lambda x: np.asarray(np.real(x)).astype(np.float32),
    "long double": lambda x: np.asarray(np.real(x)).astype(np.longdouble),
    "foreign bytes": lambda x: np.asarray(np.real(x)).astype(">f8"),
    "read-only": _locked,
    "Fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    "backwards": lambda x: np.asarray(x)[::-1],
    "np.matrix": lambda x: np.asmatrix(np.atleast_2d(x)),
    "strings": lambda x: np.full(np.shape(x), "word"),
    "numbers as strings": lambda x: np.asarray(x).astype(str),
    "bytes": lambda x: np.full(np.shape(x), b"word"),
    "objects": lambda x: np.full(np.shape(x), object()),
    "numbers as objects": lambda x: np.asarray(x).astype(object),
    "dates": lambda x: np.full(np.shape(x), np.datetime64("2020-01-01")),
    "records": lambda x: np.zeros(np.shape(x), dtype=[("a", float), ("b", int)]),
    "list": lambda x: np.asarray(x).tolist(),
    "ragged list": lambda x: [[1.0, 2.0], [3.0]],
    "list with None": lambda x: [None, *np.ravel(x).tolist()[1:]],
    "csr": _sparse,
    "csc matrix": lambda x: _sparse(x, "csc_matrix"),
    "dok": lambda x: _sparse(x, "dok_array"),
    "sparse with duplicates": _doubled,
    "sparse with NaN": lambda x: _sparse(_with(x, np.nan)),
    "frame": _frame,
    "frame of words": lambda x: _frame(np.full(np.shape(x), "word", dtype=object)),
    "tensor": _tensor,
    "tensor in half": lambda x: _tensor(np.real(x), "float16"),
    "tensor of integers": lambda x: _tensor(np.real(x), "int64"),
    "tensor with gradient": lambda x: _tensor(x).clone().requires_grad_(),
    "sparse tensor": lambda x: _tensor(x).to_sparse(),
}
# What stands where a number, a word or an array should.
ANYTHING: dict[str, Any] = {
    "None": None,
    "NaN": np.nan,
    "inf": np.inf,
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "1e300": 1e300,
    "1e-300": 1e-300,
    "10**30": 10**30,
    "10**400": 10**400,
    "'word'": "word",
    "''": "",
    "b'word'": b"word",
    "object()": object(),
    "[1, 2]": [1, 2],
    "[]": [],
    "{}": {},
    "a set": {1, 2},
    "array(0.5)": np.array(0.5),
    "array([0.5, 2])": np.array([0.5, 2.0]),
    "array([[1]])": np.array([[1.0]]),
    "True": True,
    "False": False,
    "1j": 1j,
    "float32(0.5)": np.float32(0.5),
    "float16(0.5)": np.float16(0.5),
    "longdouble(0.5)": np.longdouble(0.5),
    "int64(3)": np.int64(3),
    "Fraction(1, 2)": fractions.Fraction(1, 2),
    "Decimal('0.5')": decimal.Decimal("0.5"),
    "a function": len,
    "a class": int,
    "a masked number": np.ma.masked,
    "a date": np.datetime64("2020-01-01"),
    "a range": range(3),
    "a slice": slice(2),
}


# Formulas that refute answers


def _numbers(answer: Any) -> list[np.ndarray]:
    """The arrays of numbers in an answer."""
    if isinstance(answer, tuple | list):
        return [x for part in answer for x in _numbers(part)]
    if type(answer).__name__ == "Completion":
        return [answer.to_array()]
    for name in ("image", "x", "coef_"):
        if hasattr(answer, name) and (is_dataclass(answer) or name == "coef_"):
            return _numbers(getattr(answer, name))
    if hasattr(answer, "to_array"):
        return [answer.to_array()]
    if isinstance(answer, np.ndarray | float | np.floating) or hasattr(answer, "detach"):
        x = np.asarray(ell12.backend.as_numpy(answer))
        return [x] if x.dtype.kind in "fc" else []
    return []


def finite(arguments: dict[str, Any], answer: Any) -> str:
    """NaN or infinity in an answer is wrong."""
    return "" if all(np.isfinite(x).all() for x in _numbers(answer)) else "NaN or infinity in the answer"


def plain(value: Any) -> np.ndarray | None:
    """``value`` as an array of numbers, if it is one without doubt."""
    if scipy.sparse.issparse(value):
        value = value.toarray()
    if hasattr(value, "detach"):
        value = value.detach().to_dense().cpu()
    try:
        x = np.asarray(value)
        return x.astype(complex if x.dtype.kind == "c" else float) if x.dtype.kind in "biufc" else None
    except (ValueError, TypeError, RuntimeError):
        return None


def lowest(objective: Callable[[dict[str, np.ndarray], np.ndarray], float], start: Callable[..., Any]) -> Any:
    """The answer must be finite, and its objective no higher than at a start and at points near the answer."""

    def check(arguments: dict[str, Any], answer: Any) -> str:
        trouble = finite(arguments, answer)
        found = _numbers(answer)
        given = {name: plain(value) for name, value in arguments.items()}
        if trouble or not found or any(given[name] is None for name in ("z", "t", "l2_weight")):
            return trouble
        if 0 < np.abs(given["z"]).max(initial=0) < 1e-100:  # whose squares the formula loses
            return ""
        with np.errstate(all="ignore"):
            reached, first = objective(given, found[0]), objective(given, start(given, found[0]))
        worse = reached > first + 1e-3 * abs(first)
        return f"objective {reached:.6g} where the start has {first:.6g}" if worse else ""

    return check


def _prox_objective(given: dict[str, Any], x: np.ndarray) -> float:
    t, l2 = float(given["t"].ravel()[0]), float(given["l2_weight"].ravel()[0])
    z = given["z"].reshape(x.shape)
    return 0.5 * float((np.abs(x - z) ** 2).sum()) + t * float(np.abs(x).sum() - l2 * np.linalg.norm(x))


def same_prox(arguments: dict[str, Any], answer: Any) -> str:
    """Where the threshold and the weight are single, usual numbers the prox beats z and zero."""
    single = all(np.size(arguments[name]) == 1 for name in ("t", "l2_weight"))
    if not single or arguments.get("weights") is not None or arguments.get("axis") is not None:
        return finite(arguments, answer)
    if arguments.get("positive"):
        return finite(arguments, answer)
    if not _are_usual(arguments):
        return ""
    at_zero = lowest(_prox_objective, lambda given, x: np.zeros_like(x))(arguments, answer)
    return at_zero or lowest(_prox_objective, lambda given, x: given["z"].reshape(x.shape))(arguments, answer)


def stationary(arguments: dict[str, Any], answer: Any) -> str:
    """A squared loss with l1-2 that claims to have converged fulfils the first-order condition."""
    A, b = plain(arguments["A"]), plain(arguments["b"])
    trouble = finite(arguments, answer)
    if trouble or not answer.converged or A is None or b is None or np.iscomplexobj(A) or np.iscomplexobj(b):
        return trouble
    alpha, l2, x = float(arguments["alpha"]), float(arguments["l2_weight"]), np.asarray(_numbers(answer)[0], float)
    length, gradient = np.linalg.norm(x), A.T @ (A @ x - b)
    pull = gradient - (alpha * l2 * x / length if length else 0)
    bound = alpha if length else alpha * (1 + l2)
    violation = np.where(x != 0, np.abs(pull + alpha * np.sign(x)), np.maximum(np.abs(pull) - bound, 0)).max(
        initial=0
    )
    tol = float(min(arguments["tol"], 1e300))
    single = 1e-3 * np.abs(A.T @ b).max(initial=0) if np.asarray(x).dtype == np.float32 else 0
    rounding = 1e-10 * np.abs(A.T @ b).max(initial=0) + 1e-4 * single
    claimed = tol * (alpha or 1.0) + max(rounding, 2e-5 * np.abs(A.T @ b).max(initial=0) * _is_single(arguments))
    return "" if violation <= 1.01 * claimed else f"claims {claimed:.3g}, violates by {violation:.3g}"


def _length(x: np.ndarray) -> float:
    """The Euclidean norm, 1 at zero; no square underflows."""
    size = np.abs(x).max(initial=0) or 1.0
    return size * np.linalg.norm(x / size) or 1.0


def _same_stationarity(arguments: dict[str, Any], answer: float) -> str:
    """The largest violation over alpha; it may be infinite where a product overflows, but not NaN."""
    A, b, x, alpha = (plain(arguments[name]) for name in ("A", "b", "x", "alpha"))
    if A is None or b is None or x is None or alpha is None or any(map(np.iscomplexobj, (A, b, x, alpha))):
        return finite(arguments, answer)
    strength = float(alpha)
    with np.errstate(all="ignore"):
        slope = A.T @ (A @ x - b) - strength * x / _length(x)
        on, off = np.abs(slope + strength * np.sign(x)), np.maximum(np.abs(slope) - strength, 0)
        found = np.where(x != 0, on, off).max() / (strength or 1)
    if not np.isfinite(found):
        return "" if answer == np.inf else f"{answer} at an x whose stationarity overflows"
    if not np.any(x):
        return finite(arguments, answer)
    kinds = " ".join(str(getattr(value, "dtype", "")) for value in arguments.values())
    rough = "float32" in kinds or "float16" in kinds or "torch.int" in kinds  # of which single precision is made
    margin = (1e-2 if rough else 1e-9) * (found + np.abs(A.T @ b).max() / (strength or 1))
    return "" if abs(answer - found) <= margin else f"{answer:.6g} where the formula says {found:.6g}"


def _is_single(arguments: dict[str, Any]) -> bool:
    return any("float32" in str(getattr(value, "dtype", "")) for value in arguments.values())


# Good arguments


def _linear(random: np.random.Generator) -> dict[str, Any]:
    A = random.standard_normal((ROWS, COLUMNS))
    return {"A": A, "b": A[:, 0] - A[:, 1] + 0.1 * random.standard_normal(ROWS)}


def _samples(random: np.random.Generator, labels: bool = False) -> dict[str, Any]:
    given = _linear(random)
    return {"X": given["A"], "y": np.where(given["b"] > 0, 1, 0) if labels else given["b"]}


def _ratings(random: np.random.Generator) -> dict[str, Any]:
    X = random.standard_normal((9, 2)) @ random.standard_normal((2, 7))
    return {"X": np.where(random.random(X.shape) < 0.3, np.nan, X)}


def _picture(random: np.random.Generator) -> np.ndarray:
    image = np.zeros((SIDE, SIDE))
    image[3:7, 2:8] = 1
    return image + 0.05 * random.standard_normal(image.shape)


def _minimize(A: Any, b: Any, alpha: Any, l2_weight: Any, **options: Any) -> Any:
    kind = options.pop("loss", ell12.SquaredLoss)
    of_loss = {name: options.pop(name) for name in ("sample_weight", "scale", "delta") if name in options}
    of_penalty = {name: options.pop(name) for name in ("weights", "positive") if name in options}
    return ell12.minimize(kind(A, b, **of_loss), ell12.L12(alpha, l2_weight, **of_penalty), **options)


def _fit(kind: Any) -> Callable[..., Any]:
    def fit(X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
        return kind(**options).fit(X, y, sample_weight=sample_weight)

    return fit


def _solve(kind: Any) -> Callable[..., Any]:
    """A solver with options on a small problem."""

    def solve(**options: Any) -> Any:
        A = np.random.default_rng(0).standard_normal((ROWS, COLUMNS))
        penalty: Any = ell12.L1(0.5) if kind is ell12.FISTA else ell12.L12(0.5, 0.5)
        loss = ell12.SquaredLoss(A, A[:, 0])
        if kind is ColumnwiseAPG:
            loss, penalty = ell12.SquaredLoss(A, A[:, :2]), ColumnsL12([0.5, 1.0])
        return ell12.minimize(loss, penalty, solver=kind(**options), max_iter=30)

    return solve


def _engine(kind: Any) -> Callable[..., Any]:
    def complete(X: Any, alpha: Any, **options: Any) -> Any:
        return ell12.complete_matrix(X, alpha, solver=kind(**options), max_iter=30)

    return complete


def _restorer(kind: Any) -> Callable[..., Any]:
    def denoise(image: Any, alpha: Any, **options: Any) -> Any:
        return ell12.denoise_tv(image, alpha, solver=kind(**options), max_iter=5, return_result=True)

    return denoise


def _penalty(kind: Any) -> Callable[..., Any]:
    """The value of a penalty and its prox."""

    def use(x: Any, step: Any, **options: Any) -> Any:
        penalty = kind(**options)
        value = float(penalty.value(x))  # infinite where x is not allowed
        return [np.asarray(value if value < np.inf else 0.0), penalty.prox(x, step)]

    return use


def _spread(arguments: dict[str, Any], answer: Any) -> str:
    """Maps of numbers may pass NaN and infinity on, and overflow."""
    return finite(arguments, answer) if _are_usual(arguments) else ""


def _are_usual(arguments: dict[str, Any]) -> bool:
    """Whether all numbers among the arguments are finite, and their squares too."""
    options = [value for value in arguments.values() if value is not None and not isinstance(value, str)]
    arrays = list(map(plain, options))
    return all(x is not None and np.isfinite(x).all() and np.abs(x).max(initial=0) < 1e100 for x in arrays)


def _targets() -> dict[str, tuple[Any, Callable[[np.random.Generator], dict[str, Any]], Any]]:
    """By name: the function, what makes good arguments, and what refutes an answer."""
    prox = {"t": 0.7, "l2_weight": 1.0}
    weighted = {"weights": None, "positive": False}
    found: dict[str, Any] = {
        "prox_l12": (ell12.prox_l12, lambda r: _z(r) | prox | weighted | {"axis": None}, _prox_check),
        "prox_l12, rows": (ell12.prox_l12, lambda r: _z(r, 4) | prox | weighted | {"axis": 1}, _spread),
        "moreau_l12": (ell12.prox.moreau_l12, lambda r: _z(r) | prox | weighted | {"axis": None}, _spread),
        "prox_l12_groups": (
            ell12.prox.prox_l12_groups,
            lambda r: _z(r) | prox | {"groups": np.array([0, 0, 1, 1, 2, 2]), "weights": None},
            _spread,
        ),
        "prox_l12_iterative": (
            ell12.prox.prox_l12_iterative,
            lambda r: _z(r) | prox | weighted | {"start": None, "tol": 1e-10, "max_iter": 100},
            _spread,
        ),
        "prox_l12_spectral": (
            ell12.prox.prox_l12_spectral,
            lambda r: {"Z": r.standard_normal((4, 3))} | prox,
            _spread,
        ),
        "minimize": (
            _minimize,
            lambda r: (
                _linear(r)
                | {"alpha": 0.5, "l2_weight": 0.5, "tol": 1e-4, "max_iter": 300, "x0": None, "max_seconds": 5.0}
                | {"sample_weight": None, "scale": 1.0, "weights": None, "positive": False, "stop": None}
            ),
            _minimize_check,
        ),
        "l12_path": (
            ell12.l12_path,
            lambda r: (
                _samples(r)
                | {
                    "alphas": None,
                    "n_alphas": 3,
                    "eps": 0.1,
                    "l2_weight": 0.5,
                    "weights": None,
                    "positive": False,
                }
                | {"sample_weight": None, "warm_start": True, "together": None, "tol": 1e-4, "max_iter": 300}
            ),
            finite,
        ),
        "stationarity": (
            lambda A, b, x, alpha: ell12.stationarity(ell12.SquaredLoss(A, b), ell12.L12(alpha), x),
            lambda r: _linear(r) | {"x": np.ones(COLUMNS), "alpha": 0.5},
            _same_stationarity,
        ),
        "QuadraticLoss": (
            lambda G, c, constant, alpha: ell12.minimize(
                ell12.losses.QuadraticLoss(G, c, constant), ell12.L12(alpha), max_iter=300
            ),
            lambda r: {"G": np.eye(4), "c": r.standard_normal(4), "constant": 0.0, "alpha": 0.5},
            finite,
        ),
        "RowsLoss": (
            lambda A, b, chunks, scale: ell12.minimize(
                ell12.losses.RowsLoss(
                    [(A, b)] if isinstance(chunks, str) and chunks == "good" else chunks, scale=scale
                ),
                ell12.L12(0.5),
                max_iter=50,
            ),
            lambda r: _linear(r) | {"chunks": "good", "scale": None},
            finite,
        ),
    }
    for kind in (ell12.LogisticLoss, ell12.HuberLoss):
        delta = {"delta": 1.0} if kind is ell12.HuberLoss else {}
        found[kind.__name__] = (
            lambda A, b, kind=kind, **options: _minimize(A, b, 0.5, 0.5, loss=kind, max_iter=200, **options),
            lambda r, kind=kind, delta=delta: (
                _linear(r)
                | ({"b": np.sign(r.standard_normal(ROWS))} if kind is ell12.LogisticLoss else {})
                | {"sample_weight": None, "scale": 1.0}
                | delta
            ),
            finite,
        )
    return found | _penalties() | _solvers() | _estimators() | _completions() | _images()


def _z(random: np.random.Generator, columns: int = 0) -> dict[str, Any]:
    return {"z": random.standard_normal((6, columns) if columns else 6)}


def _prox_check(arguments: dict[str, Any], answer: Any) -> str:
    return _spread(arguments, answer) or (
        same_prox(arguments, answer) if plain(arguments["z"]) is not None else ""
    )


def _minimize_check(arguments: dict[str, Any], answer: Any) -> str:
    special = ("sample_weight", "weights", "scale", "positive")
    good = (None, None, 1.0, False)
    usual = all(arguments[name] is value for name, value in zip(special, good, strict=True))
    return stationary(arguments, answer) if usual else finite(arguments, answer)


def _penalties() -> dict[str, Any]:
    l12 = {"alpha": 0.8, "l2_weight": 0.5}
    options = {
        "L12": l12 | {"weights": None, "positive": False},
        "L1": {"alpha": 0.8, "weights": None, "positive": False},
        "GroupL12": l12 | {"groups": np.array([0, 0, 1, 1, 2, 2]), "weights": None},
        "RowsL12": l12 | {"weights": None, "positive": False},
        "ColumnsL12": {"alphas": np.array([0.5, 1.0]), "l2_weight": 0.5, "weights": None, "units": None},
        "SpectralL12": l12,
        "LogSum": {"alpha": 0.8, "theta": 1.0},
        "CappedL1": {"alpha": 0.8, "theta": 1.0},
        "Lp": {"alpha": 0.8, "p": 0.5},
        "MCP": {"alpha": 0.8, "gamma": 3.0},
        "SpectralLogSum": {"alpha": 0.8, "theta": 1.0},
        "TruncatedNuclear": {"alpha": 0.8, "rank": 1},
        "NoPenalty": {},
        "TotalVariationL12": {"alpha": 0.8, "l2_weight": 0.5, "smoothing": 0.1, "ndim": 2, "bounds": None},
    }
    matrices = ("RowsL12", "ColumnsL12", "SpectralL12", "SpectralLogSum", "TruncatedNuclear", "TotalVariationL12")
    found = {}
    for name, given in options.items():
        shape = (6, 2) if name in matrices else (6,)
        use = _penalty(getattr(ell12.penalties, name))
        if name == "TotalVariationL12":
            use = _value_of(ell12.TotalVariationL12)
        found[name] = (use, lambda r, s=shape, g=given: {"x": r.standard_normal(s), "step": 0.7} | g, _spread)
    return found


def _value_of(kind: Any) -> Callable[..., Any]:
    def use(x: Any, step: Any, **options: Any) -> Any:
        value = float(kind(**options).value(x))  # infinite where x is not allowed
        return [np.asarray(value if value < np.inf else 0.0)]

    return use


def _solvers() -> dict[str, Any]:
    step = {"step": "lipschitz"}
    options: dict[str, dict[str, Any]] = {
        "ProximalGradient": step,
        "FISTA": step,
        "NonmonotoneAPG": step | {"eta": 0.8, "delta": 1e-4},
        "SequentialConvex": step,
        "DCA": {"penalty_weight": "auto", "inner_tol": 0.1, "inner_max_iter": 50},
        "SupportNewton": step | {"switch": 0.1},
        "ColumnwiseAPG": {"eta": 0.8, "delta": 1e-4, "rest": 0.0},
        "ProxSVRG": step | {"batch_size": 4, "passes": 1, "random_state": 0},
        "SAGA": step | {"batch_size": 4, "random_state": 0},
    }
    return {
        name: (_solve(getattr(ell12, name)), lambda r, g=given: dict(g), finite) for name, given in options.items()
    }


def _estimators() -> dict[str, Any]:
    shared = {"l2_weight": 0.5, "fit_intercept": True, "positive": False, "penalty_factors": None}
    shared |= {
        "warm_start": False,
        "tol": 1e-4,
        "max_iter": 300,
        "verbose": 0,
        "sample_weight": None,
        "solver": None,
    }
    grid = {"alphas": None, "n_alphas": 3, "eps": 0.1, "cv": 2, "selection": "min", "together": None}
    found = {}
    for kind in (ell12.L12Regressor, ell12.L12RegressorCV, ell12.L12Classifier, ell12.L12ClassifierCV):
        labels, chooses = "Classifier" in kind.__name__, kind.__name__.endswith("CV")
        options = shared | (grid if chooses else {"alpha": 0.05})
        found[kind.__name__] = (
            _fit(kind),
            lambda r, labels=labels, options=options: _samples(r, labels) | options,
            finite,
        )
    imputer = {
        "alpha": 0.5,
        "penalty": ell12.SpectralL12(l2_weight=0.5),
        "max_rank": "auto",
        "center": "auto",
        "clip": "observed",
        "tol": 1e-3,
    }
    imputer |= {"solver": None, "max_iter": 100, "random_state": 0}
    found["L12Imputer"] = (
        lambda X, **options: ell12.L12Imputer(**options).fit_transform(X),
        lambda r: _ratings(r) | imputer,
        finite,
    )
    return found


def _completions() -> dict[str, Any]:
    shared = {"penalty": ell12.SpectralL12(l2_weight=0.5), "max_rank": None, "center": None, "tol": 1e-4}
    shared |= {"max_iter": 100, "random_state": 0}
    path = {"alphas": 3, "eps": 0.1, "held_out": 0.1}
    engines: dict[str, dict[str, Any]] = {
        "BlockAPG": {"max_rank": None, "random_state": 0},
        "FactoredAPG": {"max_rank": None, "random_state": 0},
        "AlternatingLeastSquares": {"max_rank": 3, "n_threads": 1, "random_state": 0},
        "FullSVD": {"max_rank": None},
    }
    found = {
        "complete_matrix": (
            ell12.complete_matrix,
            lambda r: _ratings(r) | {"alpha": 0.5, "solver": None, "x0": None} | shared,
            finite,
        ),
        "completion_path": (ell12.completion_path, lambda r: _ratings(r) | path | shared, finite),
        "Observed.of": (lambda X: ell12.Observed.of(X).values, _ratings, finite),
        "Observed": (
            lambda **given: ell12.Observed(**given).values,
            lambda r: {"rows": [1, 0], "columns": [0, 2], "values": np.array([5.0, 3.0]), "shape": (2, 3)},
            finite,
        ),
        "CompletionLoss": (
            lambda observed: ell12.completion.CompletionLoss(observed).observed.values,
            lambda r: {"observed": ell12.Observed.of(_ratings(r)["X"])},
            finite,
        ),
        "LowRank": (
            lambda U, s, V: ell12.LowRank(U, s, V).to_array(),
            lambda r: {"U": np.eye(4)[:, :2], "s": np.array([2.0, 1.0]), "V": np.eye(3)[:, :2]},
            _spread,
        ),
    }
    for name, given in engines.items():
        found[name] = (
            _engine(getattr(ell12.completion, name)),
            lambda r, g=given: _ratings(r) | {"alpha": 0.5} | g,
            finite,
        )
    return found


def _images() -> dict[str, Any]:
    shared = {"alpha": 0.1, "l2_weight": 0.5, "smoothing": 0.02, "noise": None, "channel_axis": None, "tol": 0.05}
    shared |= {"colour": None, "batch_axis": None}
    shared |= {"boundary": "neumann", "spins": 1, "bounds": None, "solver": "accelerated", "max_iter": 50}
    shared |= {"return_result": True}
    kernel, mask = np.full((3, 3), 1 / 9), np.random.default_rng(0).random((SIDE, SIDE)) < 0.7
    solvers: dict[str, dict[str, Any]] = {
        "SmoothedGradient": {"threads": None},
        "AlternatingMinimization": {"inner": "cg", "accelerated": False, "cg_tol": 1e-4, "cg_max_iter": 20},
        "TotalVariationDCA": {"penalty_weight": "auto", "inner_tol": 1e-4, "inner_max_iter": 20},
        "GrowingADMM": {"growth": 1.05, "first_threshold": 1.0},
    }
    found = {
        "denoise_tv": (ell12.denoise_tv, lambda r: {"image": _picture(r)} | shared, finite),
        "deblur_tv": (ell12.deblur_tv, lambda r: {"image": _picture(r), "kernel": kernel} | shared, finite),
        "inpaint_tv": (ell12.inpaint_tv, lambda r: {"image": _picture(r), "mask": mask} | shared, finite),
        "reconstruct_mri": (
            ell12.reconstruct_mri,
            lambda r: {"data": np.fft.fft2(_picture(r), norm="ortho"), "mask": mask, "real": None} | shared,
            finite,
        ),
        "restore_tv": (
            ell12.restore_tv,
            lambda r: {"y": _picture(r).ravel(), "A": np.eye(SIDE**2), "shape": (SIDE, SIDE)} | shared,
            finite,
        ),
    }
    for name, given in solvers.items():
        found[name] = (
            _restorer(getattr(ell12, name)),
            lambda r, g=given: {"image": _picture(r), "alpha": 0.1} | g,
            finite,
        )
    return found


TARGETS = _targets()


def make_call(random: np.random.Generator) -> Call:
    """A call with one or two arguments spoilt."""
    name = list(TARGETS)[random.integers(len(TARGETS))]
    function, good, check = TARGETS[name]
    arguments = good(random)
    spoilt = []
    if arguments:
        for chosen in random.choice(
            list(arguments), min(len(arguments), 1 + int(random.random() < 0.3)), replace=False
        ):
            value = arguments[chosen]
            is_array = isinstance(value, np.ndarray)
            ways = ARRAYS if is_array and random.random() < 0.85 else ANYTHING
            way = list(ways)[random.integers(len(ways))]
            try:
                arguments[str(chosen)] = ways[way](value) if ways is ARRAYS else ways[way]
            except (TypeError, ValueError, RuntimeError, ImportError):  # it cannot be spoilt in this way
                continue
            spoilt.append(f"{chosen}: {way}")
    return Call(name, function, arguments, "; ".join(spoilt), check)
