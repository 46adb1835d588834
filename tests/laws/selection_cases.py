"""The cases of how sure a selection is."""

import numpy as np
from tests.laws.case import Answer, Case, Order, Unit
from tests.laws.linear_cases import AS_X_Y, BOTH, FIT, L2_WEIGHT, ROUGH, SAMPLES, TOL, linear

import ell12
from ell12.backend import as_numpy


def _criteria():
    """The coefficients of a path, and beside them the refit of what BIC chooses."""

    def solve(A, b, sample_weight=None, tol=TOL):
        model = ell12.L12Regressor(penalty=ell12.L12(l2_weight=L2_WEIGHT), tol=tol)
        path = ell12.information_criteria(A, b, model, alphas=3, eps=0.1, sample_weight=sample_weight)
        return Answer(np.column_stack([as_numpy(path.coefs), as_numpy(path.refit("bic").coef_)]))

    return Case(
        name="information_criteria",
        data=linear,
        solve=solve,
        units=(Unit(("A",), -1), Unit(("b",), 1)),
        orders=BOTH,
        frames=("A",),
        named=AS_X_Y,
        **FIT | {"weights": ()},
        **ROUGH,
    )


def _stability():
    """Frequencies along a path: they have no units, and halves are drawn of the rows as they stand."""

    def data(random):
        given = linear(random)
        noise = np.random.default_rng(0).standard_normal(given["b"].shape)
        return given | {"b": given["b"] + 3 * noise}

    def solve(A, b, sample_weight=None):
        model = ell12.L12Regressor(penalty=ell12.L12(l2_weight=L2_WEIGHT))
        options = {"n_subsamples": 4, "alphas": 20, "eps": 0.1, "most_selected": 3, "random_state": 0}
        return Answer(ell12.StabilitySelection(model, **options).fit(A, b, sample_weight).path_frequencies_)

    return Case(
        name="StabilitySelection",
        data=data,
        solve=solve,
        units=(Unit(("A",), 0), Unit(("b",), 0)),
        orders=(Order({"A": 1}, 1),),
        sparse=("A",),
        frames=("A", "b"),
        arrays=("A", "b", "sample_weight"),
        named=AS_X_Y,
        single=0.0,
    )


def _summary():
    """Coefficients per standard deviation, the largest first: whatever the order and the units of the columns."""

    def solve(A, b, sample_weight=None, alpha=0.1, tol=TOL):
        model = ell12.L12Regressor(alpha, penalty=ell12.L1(), tol=tol, relax=True).fit(A, b, sample_weight)
        found = ell12.summary(model, A, b, sample_weight=sample_weight, intervals=False)
        return Answer(found.table["per_sd"].to_numpy())

    return Case(
        name="summary",
        data=linear,
        solve=solve,
        units=(Unit(("A",), 0, lambda c: {"alpha": 0.1 * c}), Unit(("b",), 1, lambda c: {"alpha": 0.1 * c})),
        orders=(SAMPLES, Order({"A": 1})),
        frames=("A",),
        named=AS_X_Y,
        **FIT,
        **ROUGH,
    )


SELECTION_CASES = [_criteria(), _stability(), _summary()]
