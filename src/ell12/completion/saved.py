"""Fitted models as .npz files without pickles: arrays, and a description of what they belong to."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed, as_real
from ell12.completion.offsets import Offsets
from ell12.completion.solve import Completion, Strangers
from ell12.completion.table_columns import Range, as_dtype, is_dtype
from ell12.datasets import Ratings
from ell12.files import packed_arrays, write_atomically
from ell12.minimization import Status

FORMAT = 1  # Files of a higher one were written by a later version of the package, and are refused.
DESCRIPTION = "ell12"  # the array that says what the others are
KNOWN: dict[str, Any] = {
    kind.__name__: kind for kind in (LowRank, Observed, Offsets, Strangers, Completion, Range, Ratings)
}
NOT_KEPT = ("search", "search_", "history")  # what led to a fit is not part of it
FOUND_AGAIN = ("_calibrations",)  # what is made from the rest when it is asked for


def encode_model(kind: str, state: dict[str, Any]) -> bytes:
    """The content of a .npz file; arrays of the state keep their names."""
    arrays: dict[str, Any] = {}
    tree = {name: _pack(value, name, arrays) for name, value in state.items() if name not in NOT_KEPT}
    text = json.dumps({"format": FORMAT, "kind": kind, "state": tree})
    arrays[DESCRIPTION] = np.frombuffer(text.encode(), dtype=np.uint8)
    return packed_arrays(arrays)


def read_model(path: Any, kind: str) -> dict[str, Any]:
    """The state that a file holds. Without a description, which files of old lack, its arrays.

    Raises
    ------
    ValueError
        If it holds no such model, or is damaged.
    """
    with open(path, "rb") as file:  # which names the file where it cannot be opened
        try:
            with np.lib.npyio.NpzFile(file, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            described = json.loads(arrays.pop(DESCRIPTION).tobytes()) if DESCRIPTION in arrays else None
            if described is None:
                return arrays
            _check_kind(described["format"], described["kind"], kind)
            return {name: _unpack(value, arrays) for name, value in described["state"].items()}
        except Exception as error:  # a damaged archive fails in many ways
            raise ValueError(f"{path} holds no model of ell12, or is damaged: {error}") from error


def model_kind(path: Any) -> str:
    """What kind of model a file holds; those without a description, as files of old are, hold recommenders."""
    with open(path, "rb") as file:
        try:
            with np.lib.npyio.NpzFile(file, allow_pickle=False) as content:
                if DESCRIPTION not in content.files:
                    return "L12Recommender"
                return str(json.loads(content[DESCRIPTION].tobytes())["kind"])
        except Exception as error:  # a damaged archive fails in many ways
            raise ValueError(f"{path} holds no model of ell12, or is damaged: {error}") from error


def _check_kind(version: Any, found: str, wanted: str) -> None:
    if version != FORMAT:
        raise ValueError(f"its format {version} is not {FORMAT}; another version of ell12 wrote it")
    if found != wanted:
        raise ValueError(f"it is that of an {found}, not of an {wanted}: use {found}.load")


def _pack(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """A description of a value; arrays are put aside."""
    if isinstance(value, tuple | list):
        return {"sequence": [_pack(part, f"{name}.{k}", arrays) for k, part in enumerate(value)]}
    if isinstance(value, dict):
        return {"mapping": [(key, _pack(part, f"{name}.{key}", arrays)) for key, part in value.items()]}
    if is_dataclass(value) and type(value).__name__ in KNOWN:
        kept = {part.name: getattr(value, part.name) for part in fields(value) if part.name not in NOT_KEPT}
        return {"class": type(value).__name__, "parts": _pack(kept, name, arrays)}
    if isinstance(value, np.ndarray):
        arrays[name] = value.astype(str) if value.dtype.kind == "O" else value
        return {"objects" if value.dtype.kind == "O" else "array": name}
    return _pack_plain(value, name)


def _pack_plain(value: Any, name: str) -> Any:
    if isinstance(value, Status):
        return {"status": value.name}
    if is_dtype(value):
        return {"dtype": str(value)}
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{name} is a {type(value).__name__}, which cannot be saved")


def _unpack(value: Any, arrays: dict[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    if "class" in value:
        parts = _unpack(value["parts"], arrays)
        return KNOWN[value["class"]](**parts | ({"history": {}} if value["class"] == "Completion" else {}))
    ((kind, content),) = value.items()
    return UNPACKED[kind](content, arrays)


UNPACKED: dict[str, Any] = {
    "sequence": lambda content, arrays: tuple(_unpack(part, arrays) for part in content),
    "mapping": lambda content, arrays: {key: _unpack(part, arrays) for key, part in content},
    "array": lambda content, arrays: arrays[content],
    "objects": lambda content, arrays: arrays[content].astype(object),
    "status": lambda content, _: Status[content],
    "dtype": lambda content, _: as_dtype(content),
}


# Estimators


def parameters(estimator: Any) -> dict[str, Any]:
    """Those of its parameters that a file can hold; a solver or a generator is left out."""
    plain = bool | int | float | str | np.generic | tuple | list | None
    return {name: value for name, value in estimator.get_params().items() if isinstance(value, plain)}


def write_estimator(path: Any, estimator: Any) -> None:
    """Write the parameters and all that was fitted."""
    given = estimator.get_params()
    fitted = {name: value for name, value in vars(estimator).items() if name not in given}
    fitted |= {name: {} for name in FOUND_AGAIN if name in fitted}
    content = encode_model(type(estimator).__name__, {"parameters": parameters(estimator)} | fitted)
    write_atomically(Path(path), content)


def read_estimator(path: Any, kind: Any) -> Any:
    """The estimator of a class that `write_estimator` wrote."""
    state = read_model(path, kind.__name__)
    if "parameters" not in state:
        raise ValueError(f"{path} holds no {kind.__name__}")
    estimator = kind(**state.pop("parameters"))
    for name, value in state.items():
        setattr(estimator, name, value)
    estimator.search_ = None
    return estimator


# Recommenders: the arrays that `ell12 complete` has always written, and what it lacked beside them

RESULT = ("objective", "stationarity", "status", "n_iter", "max_rank", "center")


def recommender_state(model: Any) -> dict[str, Any]:
    """``U diag(s) V' + mean + user_offsets + item_offsets``, the ids, the choices and the ratings."""
    completion, ratings = model.completion_, model.ratings_
    x, offsets = completion.x, completion.offsets
    state = {"U": x.U, "s": x.s, "V": x.V, "users": ratings.users, "items": ratings.items}
    for name, values, size in (("user", offsets.rows, x.shape[0]), ("item", offsets.columns, x.shape[1])):
        state[f"{name}_offsets"] = np.zeros(size) if values is None else values
    for name, value in (("mean", offsets.mean), ("alpha", completion.alpha), ("l2_weight", completion.l2_weight)):
        state[name] = np.array(float(value))
    state |= {"limits": np.array(model.clip_), "parameters": parameters(model), "biases": model.biases_}
    state |= {"rows": ratings.rows, "columns": ratings.columns, "values": ratings.values, "lowest": model.lowest_}
    return state | {name: getattr(completion, name) for name in RESULT}


def read_recommender(path: Any) -> dict[str, Any]:
    """The fitted attributes of a recommender, and its parameters."""
    state = read_model(path, "L12Recommender")
    try:
        return _recommender_of(state)
    except KeyError as error:
        raise ValueError(f"{path} holds no model of ell12, or is damaged: {error} is missing") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no model of ell12, or is damaged: {error}") from error


def _recommender_of(state: dict[str, Any]) -> dict[str, Any]:
    x = LowRank(*(as_real(state[name], name) for name in ("U", "s", "V")))
    offsets = Offsets(float(state["mean"]), state["user_offsets"], state["item_offsets"])
    biases = state.get("biases", _guessed_biases(x, offsets))
    none = np.zeros(0, dtype=np.int32)
    places = Observed(
        state.get("rows", none), state.get("columns", none), state.get("values", np.zeros(0)), x.shape
    )
    ratings = Ratings(places.rows, places.columns, places.values, state["users"], state["items"])
    low, high = map(float, state["limits"])
    _check_sizes(x, offsets, ratings)
    result: dict[str, Any] = {name: state.get(name) for name in RESULT}
    result |= {"center": state.get("center", "biases"), "status": state.get("status", Status.CONVERGED)}
    result |= {name: float(state[name]) for name in ("alpha", "l2_weight")}
    result |= {"tol": float("nan"), "solver": ""}
    return {
        "parameters": state.get("parameters", {}),
        "completion_": Completion(x, offsets=offsets, history={}, **result),
        "ratings_": ratings,
        "biases_": biases,
        "clip_": (low, high),
        "lowest_": state.get("lowest", low if np.isfinite(low) else 0.0),
    }


def _guessed_biases(x: LowRank, offsets: Offsets) -> Offsets:
    """Biases for strangers where a file of old holds none: the offsets, with the mean of the fitted matrix."""
    level = float(np.mean(x.weighted, axis=0) @ np.mean(x.V, axis=0)) if offsets.mean == 0 else 0.0
    return replace(offsets, mean=offsets.mean + level)


def _check_sizes(x: LowRank, offsets: Offsets, ratings: Ratings) -> None:
    parts: Any = (ratings.users, ratings.items, offsets.rows, offsets.columns)
    sizes = tuple(map(np.shape, parts))
    if sizes != 2 * ((x.shape[0],), (x.shape[1],)):
        raise ValueError(f"the ids and offsets do not fit the factors of shape {x.shape}")
    if not x.is_finite() or not all(np.isfinite(part).all() for part in parts[2:]):
        raise ValueError("the factors or offsets hold NaN or infinity")
