"""The cases of sparse vectors: prox, penalties, losses, solvers, paths and estimators."""

from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse
from tests.laws import certificates
from tests.laws.case import Answer, Case, Interrupted, Order, Unit, interrupting

import ell12
from ell12.backend import as_numpy
from ell12.penalties import SCAD, TransformedL1

ALPHA, L2_WEIGHT, TOL = 2.0, 0.5, 1e-9
ROWS, COLUMNS = 30, 6


SAMPLES = Order({"A": 0, "b": 0, "sample_weight": 0})
BOTH = (SAMPLES, Order({"A": 1}, 0))  # columns permute the answer
FIT = {"weights": ("A", "b"), "sparse": ("A",), "arrays": ("A", "b", "sample_weight")}
AS_X_Y = {"A": "X", "b": "y"}  # what errors call them
ROUGH = {"single": 1e-3, "loose": {"tol": 1e-4}}
UNITS = (Unit(("A",), -1), Unit(("b",), 1))


def linear(random):
    """A well-conditioned problem, so that it has one solution; weights are small whole numbers."""
    A = random.standard_normal((ROWS, COLUMNS)) + 2 * np.eye(ROWS, COLUMNS)
    x = np.where(np.arange(COLUMNS) < 3, random.uniform(1, 2, COLUMNS), 0)
    b = A @ x + 0.1 * random.standard_normal(ROWS)
    return {"A": A, "b": b, "sample_weight": random.integers(0, 4, ROWS).astype(float)}


def of_rows(name, solve, **changes):
    """A function of a design, a response and weights."""
    settings = {"data": linear, "units": UNITS, "orders": BOTH, "named": AS_X_Y} | FIT | ROUGH | changes
    return Case(name=name, solve=solve, **settings)


def signs(random):
    data = linear(random)
    return data | {"b": np.where(data["b"] + 2 * random.standard_normal(ROWS) > 0, 1.0, -1.0)}


def _outcomes(kind):
    """Columns of moderate size with counts, classes, or times of which some are equal."""

    def make(random):
        A = random.standard_normal((ROWS, COLUMNS)) / 2
        signal = A @ np.array([1.5, -1.0, 1.0, 0.0, 0.0, 0.0])
        scores = np.stack([signal, -signal, 0 * signal])
        times = np.ceil(9 * random.exponential(size=ROWS) * np.exp(-signal))
        b = {
            "poisson": random.poisson(np.exp(0.5 + signal)).astype(float),
            "multinomial": np.argmax(scores + random.gumbel(size=(3, ROWS)), axis=0),
            "cox": np.column_stack([times, random.random(ROWS) < 0.7]),
        }[kind]
        return {"A": A, "b": b, "sample_weight": random.integers(0, 4, ROWS).astype(float)}

    return make


DATA = {"squared": linear, "logistic": signs, "huber": linear}
DATA |= {kind: _outcomes(kind) for kind in ("poisson", "multinomial", "cox")}


def in_units(penalty, of_x, of_value):
    """The penalty whose value at ``of_x * x`` is ``of_value`` times that of the given one at x."""
    slope, alpha = of_value / of_x, getattr(penalty, "alpha", 0.0)
    kind = type(penalty).__name__
    changes = {"alpha": alpha * slope}
    if kind in ("LogSum", "SpectralLogSum"):
        changes = {"alpha": alpha * of_value, "theta": penalty.theta * of_x}
    elif kind == "TransformedL1":
        changes = {"alpha": alpha * of_value * (penalty.a + 1) / (penalty.a * of_x + 1), "a": penalty.a * of_x}
    elif kind in OTHER_UNITS:
        changes |= OTHER_UNITS[kind](penalty, of_x, slope)
    if hasattr(penalty, "ridge"):
        changes["ridge"] = penalty.ridge / of_x
    changes.pop("alpha") if kind == "NoPenalty" else None
    return replace(penalty, **changes)


OTHER_UNITS = {
    "CappedL1": lambda penalty, of_x, slope: {"theta": penalty.theta * of_x},
    "Lp": lambda penalty, of_x, slope: {"alpha": penalty.alpha * slope * of_x ** (1 - penalty.p)},
    "MCP": lambda penalty, of_x, slope: {"gamma": penalty.gamma * of_x / slope},
    "TotalVariationL12": lambda penalty, of_x, slope: {"smoothing": penalty.smoothing * of_x},
}


# Proximal maps


def _prox(name, call, power=1, columns=True, shape=(7,)):
    argument = "Z" if "spectral" in name else "z"

    def solve(t=0.7, **data):
        return Answer(call(data[argument], t))

    axes = (Order({argument: 0}, 0),) + ((Order({argument: 1}, 1),) if len(shape) > 1 else ())
    return Case(
        name=name,
        data=lambda random: {argument: random.standard_normal(shape) * 2},
        solve=solve,
        units=(Unit((argument,), power, lambda c: {"t": 0.7 * c}),),
        orders=axes if columns else (),
        arrays=(argument,),
        single=1e-5,
    )


GROUPS = np.array([0, 0, 1, 1, 1, 2, 2])
PROX = [
    _prox("prox_l12", ell12.prox_l12),
    _prox(
        "prox_l12", lambda z, t: ell12.prox_l12(z, t, l2_weight=0.5, weights=[1, 2, 3, 0.5], axis=1), shape=(5, 4)
    ),
    _prox("prox_l12_groups", lambda z, t: ell12.prox.prox_l12_groups(z, t, GROUPS), columns=False),
    _prox("prox_l12_iterative", lambda z, t: ell12.prox.prox_l12_iterative(z, t)[0]),
    _prox("prox_l12_spectral", ell12.prox.prox_l12_spectral, shape=(4, 3)),
    _prox("moreau_l12", lambda z, t: np.atleast_1d(ell12.prox.moreau_l12(z, t)), power=2, columns=False),
]
PROX[1] = replace(PROX[1], orders=(Order({"z": 0}, 0),))  # the weights belong to the columns


# Penalties

PENALTIES = {
    "L12": ell12.L12(0.8, L2_WEIGHT),
    "L1": ell12.L1(0.8),
    "GroupL12": ell12.GroupL12(GROUPS, 0.8, L2_WEIGHT),
    "RowsL12": ell12.RowsL12(0.8, L2_WEIGHT),
    "SpectralL12": ell12.SpectralL12(0.8, L2_WEIGHT),
    "LogSum": ell12.penalties.LogSum(0.8, 1.5),
    "CappedL1": ell12.penalties.CappedL1(0.8, 1.5),
    "Lp": ell12.penalties.Lp(0.8),
    "MCP": ell12.MCP(0.8, 3.0),
    "SpectralLogSum": ell12.penalties.SpectralLogSum(0.8, 1.5),
    "SCAD": SCAD(0.8),
    "TransformedL1": TransformedL1(0.8, 1.5),
    "TruncatedNuclear": ell12.penalties.TruncatedNuclear(0.8, 1),
    "NoPenalty": ell12.penalties.NoPenalty(),
}
MATRICES = ("RowsL12", "SpectralL12", "SpectralLogSum", "TruncatedNuclear")


def _penalty(name):
    penalty, shape = PENALTIES[name], (7, 3) if name in MATRICES else (7,)

    def value_and_prox(x, penalty=penalty, unit=1.0):
        """The prox, and behind it the value in the square of the unit, times the unit of x."""
        moved = penalty.prox(x, 0.7)
        return Answer(np.append(np.ravel(ell12.backend.as_numpy(moved)), penalty.value(x) / unit))

    return Case(
        name=name,
        data=lambda random: {"x": random.standard_normal(shape) * 2},
        solve=value_and_prox,
        units=(Unit(("x",), 1, lambda c: {"penalty": in_units(penalty, c, c * c), "unit": c}),),
        arrays=("x",),
        refused=() if name == "NoPenalty" else ("masked", "strings", "objects"),  # it does not use x
        single=0.0,
    )


# Losses and solvers


LOSSES = {
    "squared": ell12.SquaredLoss,
    "logistic": ell12.LogisticLoss,
    "huber": ell12.HuberLoss,
    "poisson": ell12.PoissonLoss,
    "multinomial": ell12.losses.MultinomialLoss,
    "cox": lambda A, b, **options: ell12.losses.CoxLoss(A, b[:, 0], b[:, 1], ties="breslow", **options),
}


def _minimize(name, loss="squared", penalty=None, solver=None, *, streamed=False, matrix=lambda A: A, **changes):
    """The minimum of a loss and a penalty by a solver; ``shared`` is the loss of an earlier call."""
    penalty = ell12.L12(ALPHA, L2_WEIGHT) if penalty is None else penalty
    kind = LOSSES[loss]

    def make_loss(A, b, sample_weight, **options):
        if not streamed:
            return kind(matrix(A), b, sample_weight=sample_weight, **options)
        half = ROWS // 2
        parts = [(A[:half], b[:half], sample_weight[:half]), (A[half:], b[half:], sample_weight[half:])]
        return ell12.losses.RowsLoss(parts, kind, scale=1.0, **options)

    def solve(A, b, sample_weight=None, penalty=penalty, interrupt_at=None, shared=None, tol=TOL, **options):
        weight = np.ones(A.shape[0]) if sample_weight is None else sample_weight
        problem = make_loss(A, b, weight, **options) if shared is None else shared
        return _run(problem, penalty, tol, interrupt_at, solver() if callable(solver) else solver)

    def violation(data, answer):
        x = np.asarray(answer.value)
        gradient = certificates.weighted_gradient(loss, data, x) + penalty.alpha * penalty.ridge * x
        return certificates.l12(x, gradient, penalty.alpha, penalty.l2_weight) / (penalty.alpha * TOL)

    def of_b(c):
        return {"penalty": in_units(penalty, c, c * c)} | ({"delta": 1.35 * c} if loss == "huber" else {})

    units = [Unit(("A",), -1, lambda c: {"penalty": in_units(penalty, 1 / c, 1.0)})]
    settings = {
        "name": name,
        "data": DATA[loss],
        "solve": solve,
        "units": (*units, Unit(("b",), 1, of_b)) if loss in ("squared", "huber") else tuple(units),
        "orders": BOTH,
        "named": {name: rf"block 0: {name}" for name in "Ab"} if streamed else {},
        "violation": violation if hasattr(penalty, "l2_weight") else None,
        "interrupts": True,
        "single": 3e-4,
        "loose": {"tol": 1e-4},
        "shared": make_loss,
    }
    in_one_piece = {"weights": (), "kinds": ("numpy",), "sparse": (), "shared": None}
    return Case(**(settings | FIT | (in_one_piece if streamed else {}) | changes))


def _run(loss, penalty, tol, interrupt_at, solver=None):
    """The answer of `minimize`."""
    run = ell12.Run(callback=interrupting(interrupt_at))
    result = ell12.minimize(loss, penalty, solver=solver, tol=tol, max_iter=5000, run=run)
    return Answer(result.x, result.n_iter, result.converged, result)


def _with_slope(phi):
    """The violation of a squared loss with a penalty that is a sum of phi(|x_i|), by its derivative."""

    def violation(data, answer):
        gradient = certificates.weighted_gradient("squared", data, answer.value)
        return certificates.separable(phi)(answer.value, gradient) / (0.8 * TOL)

    return violation


def _of_groups(data, answer):
    """The violation of a squared loss with l1-2 of groups."""
    x = np.asarray(answer.value)
    gradient = certificates.weighted_gradient("squared", data, x)
    gradient -= 0.8 * L2_WEIGHT * x / (np.linalg.norm(x) or 1.0)
    left = []
    for g in range(3):
        own = g == PAIRS
        size, rest = np.linalg.norm(x[own]), gradient[own]
        left.append(np.linalg.norm(rest + 0.8 * x[own] / size) if size else max(np.linalg.norm(rest) - 0.8, 0.0))
    return max(left) / (0.8 * TOL)


PAIRS = np.array([0, 0, 1, 1, 2, 2])
# Columns keep their order, which the groups name.
GROUPED = ell12.GroupL12(PAIRS, 0.8, L2_WEIGHT)
OF_GROUPS = {"violation": _of_groups, "orders": (SAMPLES,)}
MINIMIZE = [
    _minimize("minimize"),
    _minimize("SquaredLoss"),
    _minimize("LogisticLoss", "logistic"),
    _minimize("HuberLoss", "huber"),
    _minimize("PoissonLoss", "poisson"),
    _minimize("MultinomialLoss", "multinomial", orders=(SAMPLES,), arrays=("A", "sample_weight")),
    _minimize("CoxLoss", "cox", kinds=("numpy",), named={"b": "time|event"}),
    _minimize("RowsLoss", streamed=True),
    _minimize("Columns", matrix=ell12.Columns, kinds=("numpy",), named={"A": "source of columns", "b": "b"}),
    _minimize("Columns", "logistic", matrix=ell12.Columns, kinds=("numpy",), named={"A": "source of columns"}),
    _minimize("L1", penalty=ell12.L1(ALPHA)),
    _minimize("L12", penalty=ell12.L12(ALPHA, L2_WEIGHT, ridge=0.4)),
    _minimize("LogSum", penalty=PENALTIES["LogSum"], violation=_with_slope(lambda s: 0.8 / (1.5 + s))),
    _minimize("CappedL1", penalty=PENALTIES["CappedL1"], violation=_with_slope(lambda s: 0.8 * (s < 1.5))),
    _minimize("MCP", penalty=PENALTIES["MCP"], violation=_with_slope(lambda s: np.maximum(0.8 - s / 3, 0))),
    _minimize("ProximalGradient", solver=ell12.solvers.ProximalGradient()),
    _minimize("FISTA", penalty=ell12.L1(ALPHA), solver=ell12.FISTA()),
    _minimize("NonmonotoneAPG", solver=ell12.NonmonotoneAPG()),
    _minimize("NonmonotoneAPG", "logistic", solver=ell12.NonmonotoneAPG(step="backtracking")),
    _minimize("SequentialConvex", solver=ell12.SequentialConvex()),
    _minimize("DCA", solver=ell12.DCA()),
    _minimize("SupportNewton", solver=ell12.solvers.SupportNewton()),
    _minimize("SupportNewton", "huber", solver=ell12.solvers.SupportNewton()),
    _minimize("GroupNewton", penalty=GROUPED, solver=ell12.solvers.GroupNewton(), **OF_GROUPS),
    _minimize("ProxSVRG", solver=ell12.solvers.ProxSVRG(batch_size=8)),
    _minimize("SAGA", solver=ell12.solvers.SAGA(batch_size=8)),
    _minimize("WorkingSet", solver=ell12.WorkingSet(), kinds=("numpy",)),
    _minimize("WorkingSet", "logistic", solver=ell12.WorkingSet(), kinds=("numpy",)),
]


def _quadratic():
    def solve(G, c, alpha=ALPHA, interrupt_at=None, **_):
        return _run(ell12.losses.QuadraticLoss(G, c), ell12.L12(alpha, L2_WEIGHT), TOL, interrupt_at)

    def data(random):
        given = linear(random)
        return {"G": given["A"].T @ given["A"], "c": given["A"].T @ given["b"]}

    def violation(data, answer):
        gradient = data["G"] @ answer.value - data["c"]
        return certificates.l12(answer.value, gradient, ALPHA, L2_WEIGHT) / (ALPHA * TOL)

    units = [Unit(given, power, lambda c: {"alpha": ALPHA * c}) for given, power in ((("c",), 1), (("G", "c"), 0))]
    kinds = {"kinds": ("numpy",), "arrays": ("G", "c"), "interrupts": True, "single": 0.0}
    return Case(name="QuadraticLoss", data=data, solve=solve, units=units, violation=violation, **kinds)


def _stationarity():
    def solve(A, b, sample_weight=None, penalty=None):
        penalty = penalty or ell12.L12(ALPHA, L2_WEIGHT)
        loss = ell12.SquaredLoss(A, b, sample_weight=sample_weight)
        return Answer(np.atleast_1d(ell12.stationarity(loss, penalty, loss.start())))

    scaled = ell12.L12(ALPHA, L2_WEIGHT)
    of_A = Unit(("A",), 0, lambda c: {"penalty": in_units(scaled, 1 / c, 1.0)})
    of_b = Unit(("b",), 0, lambda c: {"penalty": in_units(scaled, c, c * c)})
    changes = {"units": (of_A, of_b), "orders": (SAMPLES, Order({"A": 1})), "arrays": ("A", "b"), "named": {}}
    return of_rows("stationarity", solve, **changes, single=0.0)


def _recovery():
    """An exact system, whose sparse solution is the only one."""

    def data(random):
        given = linear(random)
        x = np.where(np.arange(COLUMNS) < 3, random.uniform(1, 2, COLUMNS), 0)
        return {"A": given["A"], "b": given["A"] @ x}

    def solve(A, b):
        return Answer(ell12.recover_sparse(A, b, return_result=True).x)

    orders, arrays = (Order({"A": 0, "b": 0}), Order({"A": 1}, 0)), ("A", "b")
    given = {"data": data, "units": UNITS, "orders": orders, "sparse": ("A",), "arrays": arrays}
    return Case(name="recover_sparse", solve=solve, **given)


def _certificate():
    """The global minimum of a small problem, at a tenth of the largest strength."""

    def solve(A, b, sample_weight=None):
        rows = A if scipy.sparse.issparse(A) else as_numpy(A)
        pull = rows.T @ (as_numpy(b) if sample_weight is None else as_numpy(b) * as_numpy(sample_weight))
        loss = ell12.SquaredLoss(A, b, sample_weight=sample_weight)
        found = ell12.certify(loss, ell12.L12(0.1 * float(np.abs(pull).max())))
        return Answer(found.x, converged=found.proved)

    return of_rows("certify", solve, arrays=("A", "b"), refused=(), single=1e-4, loose={})


def _mcp_path(A, b, sample_weight=None, **options):
    """Strengths of a penalty of another kind."""
    loss = ell12.SquaredLoss(A, b, sample_weight=sample_weight)
    return ell12.solution_path(loss, PENALTIES["MCP"], **options)


def _path(name, find, violation=None, **changes):
    def solve(A, b, sample_weight=None, tol=TOL):
        alphas, coefs, results = find(A, b, sample_weight=sample_weight, alphas=3, eps=0.1, tol=tol)
        converged = all(result.converged for result in results)
        return Answer(coefs, sum(result.n_iter for result in results), converged, alphas)

    return of_rows(name, solve, violation=violation, **changes)


def _of_every_strength(data, answer):
    n = data["sample_weight"].sum()
    pairs = zip(answer.value.T, answer.result, strict=True)
    gradients = ((x, a, certificates.weighted_gradient("squared", data, x) / n) for x, a in pairs)
    return max(certificates.l12(x, gradient, a, L2_WEIGHT) / (a * TOL) for x, a, gradient in gradients)


def _estimator(name, **settings):
    """Coefficients and intercepts of a fit; folds travel with the rows."""
    chooses = name.endswith("CV")
    loss = "logistic" if "Classifier" in name else "cox" if "Cox" in name else "squared"
    grid = {"alphas": 3, "eps": 0.1} if chooses else {"alpha": 0.1 if loss == "squared" else 0.05}
    settings |= {"ties": "breslow"} if loss == "cox" else {}

    def data(random):
        given = DATA[loss](random)
        given["b"] = {"logistic": given["b"].astype(int), "squared": given["b"] + 3}.get(loss, given["b"])
        return given | {"fold": np.arange(ROWS) % 2}

    def solve(A, b, fold, sample_weight=None, interrupt_at=None, **options):
        given = {"penalty": ell12.L12(l2_weight=L2_WEIGHT), "tol": TOL} | grid | settings | options
        if chooses:
            given["cv"] = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in (0, 1)]
        if interrupt_at is not None:
            given["solver"] = Interrupted(ell12.NonmonotoneAPG(), interrupt_at)
        model = getattr(ell12, name)(**given).fit(A, b, sample_weight=sample_weight)
        parts = [model.coef_] if loss == "cox" else [model.coef_, model.intercept_]
        value = np.concatenate([np.ravel(part) for part in parts])
        return Answer(value, int(np.max(model.n_iter_)), None, model)

    def violation(data, answer):
        """Of the coefficients, and of the intercept, which is not penalised."""
        alpha = answer.result.alpha_ if chooses else grid["alpha"]
        columns = data["A"] if loss == "cox" else np.column_stack([data["A"], np.ones(ROWS)])
        given = data | {"A": columns, "b": data["b"].astype(float)}
        gradient = certificates.weighted_gradient(loss, given, answer.value) / data["sample_weight"].sum()
        l2_weight = answer.result.penalty_.l2_weight if chooses else L2_WEIGHT
        coef = certificates.l12(answer.value[:COLUMNS], gradient[:COLUMNS], alpha, l2_weight)
        return max(coef, *np.abs(gradient[COLUMNS:]), 0.0) / (alpha * TOL)

    def with_alpha(c):
        return {} if chooses else {"alpha": c * grid["alpha"]}

    samples = Order({"A": 0, "b": 0, "sample_weight": 0, "fold": 0})
    unit = {"squared": (Unit(("b",), 1, with_alpha),), "cox": (Unit(("A",), -1, with_alpha),), "logistic": ()}
    return Case(
        name=name,
        data=data,
        solve=solve,
        units=unit[loss],
        orders=(samples, Order({"A": 1}, 0)) if loss == "cox" else (samples,),
        weights=("A", "b", "fold"),
        kinds=("numpy",) if loss == "cox" else ("numpy", "tensor"),
        sparse=("A",),
        frames=("A", "b") if loss == "cox" else ("A",),
        arrays=("A", "sample_weight") if loss == "logistic" else FIT["arrays"],
        named=AS_X_Y,
        violation=violation,
        interrupts=not chooses,
        **ROUGH,
    )


def _coefficients(case):
    """The same without an intercept, so that the laws of columns and of their units can be stated."""
    solve = case.solve

    def without(**data):
        answer = solve(**data, fit_intercept=False)
        return replace(answer, value=np.ravel(answer.result.coef_))

    scale = case.units[0].options if case.units else lambda c: {} if "CV" in case.name else {"alpha": 0.05 * c}
    units = (Unit(("A",), -1, scale), *case.units)
    order = (*case.orders, Order({"A": 1}, 0))
    return replace(case, solve=without, units=units, orders=order, violation=None, interrupts=False, arrays=())


def _intervals(**settings):
    """Estimates and standard errors of a model at one strength: by few features exactly, else nodewise."""

    def solve(A, b, sample_weight=None, **options):
        given = {"alpha": 0.1, "penalty": ell12.L12(l2_weight=L2_WEIGHT), "tol": TOL} | options
        model = ell12.L12Regressor(**given)
        found = ell12.confidence_intervals(A, b, model, sample_weight=sample_weight, **settings)
        return Answer(np.stack([found.estimate, found.standard_error], axis=1))

    units = tuple(Unit((name,), power, lambda c: {"alpha": 0.1 * c}) for name, power in (("b", 1), ("A", -1)))
    # intervals are found in double precision
    return of_rows("confidence_intervals", solve, units=units, weights=(), frames=("A",), single=0)


_WITH = [_estimator(name) for name in ("L12Regressor", "L12Classifier", "L12ClassifierCV")]
_WITH.append(replace(_estimator("L12RegressorCV"), violation=None))  # a refit is no solution of the problem
LINEAR_CASES = [
    _recovery(),
    _certificate(),
    *PROX,
    *map(_penalty, PENALTIES),
    *MINIMIZE,
    _quadratic(),
    _stationarity(),
    _path("l12_path", partial(ell12.l12_path, penalty=ell12.L12(l2_weight=L2_WEIGHT)), _of_every_strength),
    _path("solution_path", _mcp_path, units=(), named={}),
    *_WITH,
    *map(_coefficients, _WITH),
    _estimator("L12CoxRegressor"),
    _estimator("L12CoxRegressorCV", relax=False),  # a refit is no solution of the problem
    _intervals(inverse="exact"),
    _intervals(inverse="nodewise"),
    _estimator("L12RegressorCV", penalty=[ell12.L1(), ell12.L12(l2_weight=L2_WEIGHT)], relax=False),
    replace(_estimator("L12Classifier", penalty=ell12.L12(ridge=0.3), class_weight="balanced"), violation=None),
]
