"""A plain call of every public function and class, by name, for laws about parameters and objects."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.architecture import public_callables

import ell12
from ell12.datasets import Ratings

random = np.random.default_rng(0)
A = random.standard_normal((24, 4))
b = A[:, 0] + 0.1 * random.standard_normal(24)
SIGNS, COUNTS = np.where(b > 0, 1.0, -1.0), random.poisson(2.0, 24).astype(float)
TIMES = np.column_stack([1 + COUNTS, SIGNS > 0]).astype(float)
IMAGE = np.zeros((20, 20))
IMAGE[5:14, 6:15] = 1
IMAGE += 0.1 * random.standard_normal(IMAGE.shape)
MASK = random.random(IMAGE.shape) < 0.8
TABLE = np.outer(np.arange(1.0, 9.0), np.arange(1.0, 6.0)) + 0.1 * random.standard_normal((8, 5))
TABLE[[0, 3, 5], [1, 2, 4]] = np.nan
SUMS = np.tril(np.ones((96, 96)))
LOSS, L12 = ell12.SquaredLoss(A, b), ell12.L12(0.5)
X_Y = {"X": A, "y": b}
LIST = Ratings.from_triples(*np.nonzero(np.ones((6, 5))), random.standard_normal(30))

# What each function is given. A class that is not listed is made without arguments.
GIVEN = {
    "AbsoluteLoss": {"A": A, "b": b},
    "Columns": {"source": A},
    "CompletionLoss": {"observed": TABLE},
    "CoxLoss": {"A": A, "time": TIMES[:, 0], "event": TIMES[:, 1]},
    "GroupL12": {"groups": [0, 0, 1, 1]},
    "HuberLoss": {"A": A, "b": b},
    "KullbackLeiblerLoss": {"A": np.abs(A), "b": COUNTS},
    "LogisticLoss": {"A": A, "b": SIGNS},
    "LowRank": {"U": np.eye(3)[:, :2], "s": np.array([2.0, 1.0]), "V": np.eye(4)[:, :2]},
    "MultinomialLoss": {"A": A, "b": np.arange(24) % 3},
    "Observed": {"rows": [0, 1], "columns": [1, 0], "values": [1.0, 2.0], "shape": (2, 2)},
    "PoissonLoss": {"A": A, "b": COUNTS},
    "QuadraticLoss": {"G": A.T @ A, "c": A.T @ b},
    "RowsLoss": {"blocks": [(A, b)]},
    "SquaredLoss": {"A": A, "b": b},
    "Checkpoint": {"path": "run.npz"},
    "certify": {"loss": LOSS, "penalty": L12},
    "complete_matrix": {"X": TABLE, "alpha": 1.0},
    "completion_path": {"X": TABLE, "alphas": 2},
    "confidence_intervals": X_Y | {"model": ell12.L12Regressor(0.1)},
    "deblur_tv": {"image": IMAGE, "psf": np.full((3, 3), 1 / 9), "alpha": 0.1},
    "denoise_tv": {"image": IMAGE, "alpha": 0.1, "penalty": ell12.TotalVariationL12(l2_weight=0.0)},
    "estimate_sigma": {"image": IMAGE},
    "information_criteria": X_Y | {"model": ell12.L12Regressor(), "alphas": 3},
    "inpaint_tv": {"image": IMAGE, "mask": MASK, "alpha": 0.1},
    "l12_path": X_Y | {"alphas": 3},
    "minimize": {"loss": LOSS, "penalty": L12},
    "moreau_l12": {"z": b, "t": 1.0},
    "prox_l12": {"z": b, "t": 1.0},
    "prox_l12_groups": {"z": b[:4], "t": 1.0, "groups": [0, 0, 1, 1]},
    "prox_l12_iterative": {"z": b, "t": 1.0},
    "prox_l12_spectral": {"Z": A, "t": 1.0},
    "reconstruct_mri": {"data": np.fft.fft2(IMAGE, norm="ortho"), "mask": MASK, "alpha": 0.1, "real": True},
    "recover_sparse": {"A": A[:3], "b": A[:3, 0], "return_result": True},  # a run that is cut has no error then
    "restore_tv": {"y": A.ravel(), "A": ell12.operators.Reshaped(SUMS, (8, 12)), "alpha": 0.1},
    "soft_threshold": {"z": b, "t": 1.0},
    "solution_path": {"loss": LOSS, "penalty": ell12.MCP(), "alphas": 3},
    "stationarity": {"loss": LOSS, "penalty": L12, "x": np.zeros(4)},
    "summary": {"model": ell12.L12Regressor(0.1).fit(A, b), **X_Y},
    "alpha_max": {"loss": LOSS, "penalty": L12},
    "alpha_grid": {"top": 1.0},
}
# What is done with an object, so that its parameters count.
USED = {
    "L12Regressor": lambda model: model.fit(A, b),
    "L12RegressorCV": lambda model: model.set_params(alphas=_or(model.alphas, 3)).fit(A, b),
    "L12Classifier": lambda model: model.fit(A, SIGNS),
    "L12ClassifierCV": lambda model: model.set_params(alphas=_or(model.alphas, 3)).fit(A, SIGNS),
    "L12CoxRegressor": lambda model: model.fit(A, TIMES),
    "L12CoxRegressorCV": lambda model: model.set_params(alphas=_or(model.alphas, 3)).fit(A, TIMES),
    "L12Imputer": lambda model: model.fit(TABLE),
    "L12Recommender": lambda model: model.fit(LIST),
    "StabilitySelection": lambda model: model.set_params(n_subsamples=_or(model.n_subsamples, 4)).fit(A, b),
    "Run": lambda run: ell12.minimize(LOSS, L12, run=run),
}


def _or(value, short):
    """The value, or a shorter one for the default, so that the laws take seconds."""
    return short if isinstance(value, int) and value in (25, 100) else value


@dataclass(frozen=True)
class Call:
    """How a public name is called plainly."""

    name: str
    function: Callable[..., Any]
    given: Mapping[str, Any]

    @property
    def parameters(self):
        kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        parameters = inspect.signature(self.function).parameters
        return [name for name, value in parameters.items() if not name.startswith("_") and value.kind not in kinds]

    def make(self, **changes):
        return self.function(**(dict(self.given) | changes))

    def __call__(self, **changes):
        made = self.make(**changes)
        return USED[self.name](made) if self.name in USED else made


# Results, which functions make; what is given names by Dask; values of their own.
LEFT_OUT = {
    "Certificate", "CompletionPath", "Intervals", "Offsets", "Path", "Recommendations", "Restoration", "Result",
    "SparseProblem", "Status", "Summary", "Ratings", "Spectral", "Family", "LinearLoss", "PenaltyBase",
    "certificate", "best_on_log_grid", "falling", "first_strength", "grid_size", "one_sparse_fit",
    "path_results", "squared_loss", "WithIntercept", "with_strength",
}  # fmt: skip


def calls():
    """Every public function and class of the package, but for what needs Dask and data by seed."""
    found = {}
    for full, function in public_callables().items():
        name = full.rpartition(".")[2]
        if name not in LEFT_OUT and not full.startswith(("ell12.distributed", "ell12.datasets")):
            found.setdefault(name, Call(name, function, GIVEN.get(name, {})))
    return found


CALLS = calls()
