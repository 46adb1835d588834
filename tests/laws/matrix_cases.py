"""The cases of matrices: completions, their engines, paths and the imputer."""

from dataclasses import replace

import numpy as np
from tests.laws import certificates
from tests.laws.case import Answer, Case, Interrupted, Order, Unit, interrupting

import ell12

ALPHA, TOL, SHAPE = 1.0, 1e-7, (14, 10)
PLAIN = {"center": None, "scale": None}  # the objective is that of the entries as they are


def ratings(random):
    """A matrix of rank two with noise, of which two thirds are known; NaN is what is not."""
    X = random.standard_normal((SHAPE[0], 2)) @ random.standard_normal((2, SHAPE[1]))
    X += 0.05 * random.standard_normal(SHAPE)
    return {"X": np.where(random.random(SHAPE) < 0.35, np.nan, X)}


def _gradient(X, found):
    return np.where(np.isnan(X), 0.0, found - np.nan_to_num(X))


def _l12_violation(data, answer, l2_weight=0.5):
    def slopes(s):
        return ALPHA * (1 - l2_weight * s / np.linalg.norm(s)), ALPHA

    found = answer.numbers
    return certificates.spectral(found, _gradient(data["X"], found), slopes) / (ALPHA * TOL)


BOTH_WAYS = (Order({"X": 0}, 0), Order({"X": 1}, 1))
# A mask says what is not known, so that masked arrays are taken.
OF_X = {
    "data": ratings,
    "orders": BOTH_WAYS,
    "arrays": ("X",),
    "refused": ("strings", "objects"),
    "frames": ("X",),
}


def _completion(name, solver=None, penalty=None, **changes):
    def solve(X, alpha=ALPHA, interrupt_at=None, **options):
        shape = ell12.SpectralL12(l2_weight=0.5) if penalty is None else penalty
        given = {"tol": TOL, "max_iter": 3000, "penalty": shape, "solver": solver} | PLAIN | options
        if interrupt_at is not None:
            given["run"] = ell12.Run(callback=interrupting(interrupt_at))
        result = ell12.complete_matrix(X, alpha, **given)
        return Answer(result.to_array(), result.n_iter, result.converged, result)

    settings = {"name": name, "solve": solve, "units": (Unit(("X",), 1, lambda c: {"alpha": ALPHA * c}),)} | OF_X
    settings |= {"violation": _l12_violation, "interrupts": True, "single": 3e-3, "loose": {"tol": 1e-3}}
    return Case(**(settings | changes))


def _loss():
    """A loss of known entries, minimised by `minimize` itself."""

    def solve(X, alpha=ALPHA, shared=None, interrupt_at=None, tol=TOL):
        loss = ell12.completion.CompletionLoss(ell12.Observed.of(X)) if shared is None else shared
        given = {"solver": ell12.completion.BlockAPG(), "run": ell12.Run(callback=interrupting(interrupt_at))}
        result = ell12.minimize(loss, ell12.SpectralL12(alpha, 0.5), tol=tol, **given)
        return Answer(result.x.to_array(), result.n_iter, result.converged, result)

    def shared(X):
        return ell12.completion.CompletionLoss(X)

    return replace(_completion("CompletionLoss"), solve=solve, shared=shared)


def _observed():
    def solve(X):
        observed = ell12.Observed.of(X)
        return Answer(observed.sparse().toarray())

    return Case(name="Observed.of", solve=solve, units=(Unit(("X",), 1),), kinds=("numpy",), single=1e-6, **OF_X)


def _low_rank():
    """The product with a vector of a matrix that is kept as its factors."""

    def data(random):
        U, s, Vt = np.linalg.svd(random.standard_normal((6, 4)), full_matrices=False)
        return {"U": U, "s": s, "V": Vt.T.copy()}

    return Case(
        name="LowRank",
        data=data,
        solve=lambda U, s, V: Answer(ell12.LowRank(U, s, V).to_array()),
        units=(Unit(("s",), 1),),
        orders=(Order({"U": 0}, 0), Order({"V": 0}, 1), Order({"U": 1, "s": 0, "V": 1})),
        kinds=("numpy", "tensor"),
        arrays=("U", "s", "V"),
        single=1e-5,
    )


def _path():
    def solve(X, interrupt_at=None, **options):
        given = {"alphas": 3, "eps": 0.1, "held_out": 0, "penalty": ell12.SpectralL12(l2_weight=0.5)}
        given |= {"tol": TOL, "max_iter": 3000} | options
        if interrupt_at is not None:
            given["solver"] = Interrupted(ell12.completion.BlockAPG(), interrupt_at)
        path = ell12.completion_path(X, **given)
        converged = all(result.converged for result in path.results)
        steps = sum(result.n_iter for result in path.results)
        return Answer(path.results[-1].to_array(), steps, converged, path.results[-1])

    return replace(_completion("completion_path"), solve=solve, units=(Unit(("X",), 1),), violation=None)


def _imputer():
    def solve(X):
        return Answer(ell12.L12Imputer(random_state=0).fit_transform(X))

    # What is held out depends on the order.
    return Case(name="L12Imputer", solve=solve, units=(Unit(("X",), 1),), single=0.0, **OF_X | {"orders": ()})


def _recommender():
    """Ratings of users and items by ids; hidden ones choose, whatever their order in the list is."""

    def data(random):
        users, items = np.nonzero(random.random((12, 10)) < 0.5)
        values = random.standard_normal(12)[users] * random.standard_normal(10)[items]
        return {"users": users + 100, "items": items, "values": values + 0.1 * random.standard_normal(values.size)}

    def solve(users, items, values):
        given = ell12.datasets.Ratings.from_triples(users, items, values)
        model = ell12.L12Recommender(max_rank=2, penalty=ell12.SpectralL12(l2_weight=0.5), tol=1e-2).fit(given)
        best = np.nan_to_num(model.recommend(n=3).scores)  # NaN where a user has seen nearly all
        return Answer(np.append(best.ravel(), model.predict([100, 101, -1], [3, -1, 3])), 0, None, model)

    return Case(
        name="L12Recommender",
        data=data,
        solve=solve,
        units=(Unit(("values",), 1),),
        orders=(Order({"users": 0, "items": 0, "values": 0}),),
        kinds=("numpy",),
        arrays=("values",),
        single=0.0,
    )


def _truncated(data, answer):
    """The largest singular value is free, the others cost alpha each."""

    def slopes(s):
        return np.where(np.arange(s.size) < 1, 0.0, ALPHA), ALPHA

    return certificates.spectral(answer.numbers, _gradient(data["X"], answer.numbers), slopes) / (ALPHA * TOL)


MATRIX_CASES = [
    _observed(),
    _low_rank(),
    _loss(),
    _completion("complete_matrix"),
    _completion("BlockAPG", ell12.completion.BlockAPG()),
    _completion("FactoredAPG", ell12.completion.FactoredAPG(), kinds=("numpy",)),
    _completion("AlternatingLeastSquares", ell12.completion.AlternatingLeastSquares(8), kinds=("numpy",)),
    _completion("FullSVD", ell12.completion.FullSVD()),
    _completion("TruncatedNuclear", penalty=ell12.penalties.TruncatedNuclear(rank=1), violation=_truncated),
    _path(),
    _imputer(),
    _recommender(),
]
