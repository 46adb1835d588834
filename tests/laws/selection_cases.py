"""The cases of how sure a selection is."""

import numpy as np
from tests.laws.case import Answer, Order, Unit
from tests.laws.linear_cases import L2_WEIGHT, SAMPLES, TOL, linear, of_rows

import ell12
from ell12.backend import as_numpy


def _criteria():
    """The coefficients of a path, and next to them the refit of what BIC chooses."""

    def solve(A, b, sample_weight=None, tol=TOL):
        model = ell12.L12Regressor(penalty=ell12.L12(l2_weight=L2_WEIGHT), tol=tol)
        path = ell12.information_criteria(A, b, model, alphas=3, eps=0.1, sample_weight=sample_weight)
        return Answer(np.column_stack([as_numpy(path.coefs), as_numpy(path.refit("bic").coef_)]))

    return of_rows("information_criteria", solve, frames=("A",), weights=())


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

    units, orders = (Unit(("A",), 0), Unit(("b",), 0)), (Order({"A": 1}, 1),)
    given = {"data": data, "units": units, "orders": orders, "weights": (), "frames": ("A", "b")}
    return of_rows("StabilitySelection", solve, **given, single=0.0)


def _summary():
    """Coefficients per standard deviation, the largest first: whatever the order and the units of the columns."""

    def solve(A, b, sample_weight=None, alpha=0.1, tol=TOL):
        model = ell12.L12Regressor(alpha, penalty=ell12.L1(), tol=tol, relax=True).fit(A, b, sample_weight)
        found = ell12.summary(model, A, b, sample_weight=sample_weight, intervals=False)
        return Answer(found.table["per_sd"].to_numpy())

    units = tuple(Unit((name,), power, lambda c: {"alpha": 0.1 * c}) for name, power in (("A", 0), ("b", 1)))
    return of_rows("summary", solve, units=units, orders=(SAMPLES, Order({"A": 1})), frames=("A",))


SELECTION_CASES = [_criteria(), _stability(), _summary()]
