"""The cases of counts, classes and survival times: their losses, and the estimators of survival."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.laws import certificates
from tests.laws.case import Answer, Case, Interrupted, Order, Unit, interrupting

import ell12

ALPHA, L2_WEIGHT, TOL = 1.0, 0.5, 1e-9
ROWS, COLUMNS, CLASSES = 30, 6, 3


def outcomes(random: np.random.Generator) -> dict[str, Any]:
    """Columns of moderate size with counts, classes, and times of which some are equal."""
    A = random.standard_normal((ROWS, COLUMNS)) / 2
    signal = A @ np.array([1.5, -1.0, 1.0, 0.0, 0.0, 0.0])
    return {
        "A": A,
        "b": random.poisson(np.exp(0.5 + signal)).astype(float),
        "classes": np.argmax(np.stack([signal, -signal, 0 * signal]) + random.gumbel(size=(3, ROWS)), axis=0),
        "time": np.ceil(9 * random.exponential(size=ROWS) * np.exp(-signal)),
        "event": (random.random(ROWS) < 0.7).astype(float),
        "sample_weight": random.integers(0, 4, ROWS).astype(float),
    }


def poisson_slope(A: Any, b: Any, x: Any) -> Any:
    """The gradient of the negative log-likelihood of counts."""
    return A.T @ (np.exp(A @ x) - b)


def multinomial_slope(A: Any, classes: Any, x: Any) -> Any:
    """That of classes, x being a matrix as a vector."""
    shares = np.exp(A @ x.reshape(-1, CLASSES))
    shares /= shares.sum(axis=1, keepdims=True)
    return (A.T @ (shares - np.eye(CLASSES)[classes])).ravel()


def breslow_slope(A: Any, time: Any, event: Any, x: Any) -> Any:
    """That of survival times: at each event the mean of those at risk less the one that has it."""
    risk, total = np.exp(A @ x), np.zeros(x.size)
    for i in np.flatnonzero(event):
        at_risk = time >= time[i]
        total += risk[at_risk] @ A[at_risk] / risk[at_risk].sum() - A[i]
    return total


def _loss(name: str, observed: tuple[str, ...], slope: Any, **settings: Any) -> Case:
    """The minimum of one of the losses and the l1-2 penalty."""
    options: dict[str, Any] = {"ties": "breslow"} if name == "CoxLoss" else {}
    arrays = ("A", *(key for key in observed if key != "classes"), "sample_weight")

    def make_loss(A: Any, sample_weight: Any, **data: Any) -> Any:
        given = [data[key] for key in observed]
        return getattr(ell12.losses, name)(A, *given, sample_weight=sample_weight, **options)

    def data(random: np.random.Generator) -> dict[str, Any]:
        return {key: value for key, value in outcomes(random).items() if key in (*arrays, *observed)}

    def solve(
        A: Any,
        sample_weight: Any = None,
        penalty: Any = ell12.L12(ALPHA, L2_WEIGHT),  # noqa: B008
        interrupt_at: int | None = None,
        shared: Any = None,
        tol: float = TOL,
        **data: Any,
    ) -> Answer:
        weight = np.ones(A.shape[0]) if sample_weight is None else sample_weight
        loss = make_loss(A, weight, **data) if shared is None else shared
        stop = interrupting(interrupt_at)
        result = ell12.minimize(loss, penalty, tol=tol, max_iter=5000, run=ell12.Run(callback=stop))
        return Answer(result.x, result.n_iter, result.converged, result)

    def violation(data: dict[str, Any], answer: Answer) -> float:
        rows = np.repeat(np.arange(ROWS), data["sample_weight"].astype(int))
        gradient = slope(data["A"][rows], *(data[key][rows] for key in observed), answer.value)
        return certificates.l12(answer.value, gradient, ALPHA, L2_WEIGHT) / (ALPHA * TOL)

    orders = (Order(dict.fromkeys(("A", *observed, "sample_weight"), 0)),)
    given = {
        "name": name,
        "data": data,
        "solve": solve,
        "units": (Unit(("A",), -1, lambda c: {"penalty": ell12.L12(ALPHA * c, L2_WEIGHT)}),),
        "orders": orders if name == "MultinomialLoss" else (*orders, Order({"A": 1}, 0)),
        "weights": ("A", *observed),
        "sparse": ("A",),
        "arrays": arrays,
        "violation": violation,
        "interrupts": True,
        "single": 3e-4,
        "loose": {"tol": 1e-4},
        "shared": make_loss,
    }
    return Case(**(given | settings))


def _survival(name: str) -> Case:
    """Coefficients of a Cox regression; folds travel with the rows."""
    chooses = name.endswith("CV")
    grid = {"alphas": 3, "eps": 0.1} if chooses else {"alpha": 0.05}

    def data(random: np.random.Generator) -> dict[str, Any]:
        given = outcomes(random)
        times = np.column_stack([given["time"], given["event"]])
        return {"A": given["A"], "y": times, "sample_weight": given["sample_weight"], "fold": np.arange(ROWS) % 2}

    def solve(
        A: Any, y: Any, fold: Any, sample_weight: Any = None, interrupt_at: Any = None, **options: Any
    ) -> Answer:
        given = {"penalty": ell12.L12(l2_weight=L2_WEIGHT), "tol": TOL, "ties": "breslow"} | grid | options
        if chooses:
            given["cv"] = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in (0, 1)]
        if interrupt_at is not None:
            given["solver"] = Interrupted(ell12.NonmonotoneAPG(), interrupt_at)
        model = getattr(ell12, name)(**given).fit(A, y, sample_weight=sample_weight)
        return Answer(model.coef_, model.n_iter_, None, model)

    def violation(data: dict[str, Any], answer: Answer) -> float:
        rows = np.repeat(np.arange(ROWS), data["sample_weight"].astype(int))
        time, event = data["y"][rows].T
        gradient = breslow_slope(data["A"][rows], time, event, answer.value) / rows.size
        alpha = answer.result.alpha_ if chooses else grid["alpha"]
        return certificates.l12(answer.value, gradient, alpha, L2_WEIGHT) / (alpha * TOL)

    rows = {"A": 0, "y": 0, "sample_weight": 0, "fold": 0}
    return Case(
        name=name,
        data=data,
        solve=solve,
        units=(Unit(("A",), -1, lambda c: {} if chooses else {"alpha": c * grid["alpha"]}),),
        orders=(Order(rows), Order({"A": 1}, 0)),
        weights=("A", "y", "fold"),
        kinds=("numpy",),
        sparse=("A",),
        frames=("A", "y"),
        arrays=("A", "y", "sample_weight"),
        named={"A": "X"},
        violation=violation,
        interrupts=not chooses,
        single=1e-3,
        loose={"tol": 1e-4},
    )


FAMILY_CASES = [
    _loss("PoissonLoss", ("b",), poisson_slope),
    _loss("MultinomialLoss", ("classes",), multinomial_slope, named={"classes": "b"}),
    _loss("CoxLoss", ("time", "event"), breslow_slope, kinds=("numpy",)),
    _survival("L12CoxRegressor"),
    _survival("L12CoxRegressorCV"),
]
