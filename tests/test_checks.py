"""Checks of arguments, each by what it lets pass and by the name in its error."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import ell12
from ell12 import checks

NO_NUMBERS = ["word", None, object(), [1.0], {}, 1j, math.nan, -1.0, math.inf, 10**400, np.array([1.0, 2.0])]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_finite_number_is_refused_by_name(value):
    for check in (
        lambda: checks.set_numbers(SimpleNamespace(alpha=value), "alpha"),
        lambda: checks.check_positive(value, "alpha"),
        lambda: checks.check_scalars(alpha=value),
        lambda: checks.check_share(value, "alpha"),
    ):
        with pytest.raises(ValueError, match=r"^alpha must"):
            check()


@pytest.mark.parametrize("value", [2, 0.5, np.float32(0.5), np.int64(2), True])
def test_numbers_of_any_type_become_floats(value):
    thing = SimpleNamespace(alpha=value)
    checks.set_numbers(thing, positive="alpha")
    assert type(thing.alpha) is float
    assert thing.alpha == value


def test_a_word_may_stand_for_a_number():
    checks.check_positive("auto", "step", "auto")
    with pytest.raises(ValueError, match="step must be a finite number > 0 or one of auto; got 'word'"):
        checks.check_positive("word", "step", "auto")
    with pytest.raises(ValueError, match="prox must be 'a' or 'b', got"):
        checks.check_word(np.array(["a", "b"]), "prox", "a", "b")


@pytest.mark.parametrize("value", [1.5, "3", True, -1, [3], math.nan])
def test_what_is_no_count_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"^n must be a whole number >= 0"):
        checks.check_counts(n=value)


def test_none_is_a_count_only_where_it_may_be():
    checks.check_counts(n=None)
    with pytest.raises(ValueError, match=r"^n must be a whole number >= 1, got None"):
        checks.check_counts(n=None, least=1, optional=False)


@pytest.mark.parametrize("value", ["word", 1.5, -1, object(), np.ma.masked, {}])
def test_what_seeds_nothing_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"^random_state must be"):
        checks.generator(value)
    for solver in (ell12.SAGA, ell12.ProxSVRG, ell12.BlockAPG, ell12.MatrixDCA, ell12.AlternatingLeastSquares):
        with pytest.raises(ValueError, match=r"^random_state must be"):
            solver(random_state=value)


OPTIONS = [
    (ell12.SupportNewton, "switch"),
    (ell12.SupportNewton, "step"),
    (ell12.DCA, "penalty_weight"),
    (ell12.DCA, "inner_tol"),
    (ell12.DCA, "inner_max_iter"),
    (ell12.NonmonotoneAPG, "eta"),
    (ell12.NonmonotoneAPG, "delta"),
    (ell12.NonmonotoneAPG, "prox_tol"),
    (ell12.NonmonotoneAPG, "prox"),
    (ell12.ColumnwiseAPG, "eta"),
    (ell12.ColumnwiseAPG, "delta"),
    (ell12.ColumnwiseAPG, "rest"),
    (ell12.ProxSVRG, "batch_size"),
    (ell12.ProxSVRG, "passes"),
    (ell12.MatrixDCA, "inner_tol"),
    (ell12.MatrixDCA, "inner_max_iter"),
    (ell12.MatrixDCA, "triplets"),
    (ell12.AlternatingMinimization, "inner"),
    (ell12.AlternatingMinimization, "cg_tol"),
    (ell12.AlternatingMinimization, "cg_max_iter"),
    (ell12.TotalVariationDCA, "penalty_weight"),
    (ell12.TotalVariationDCA, "inner_max_iter"),
    (ell12.GrowingADMM, "growth"),
    (ell12.GrowingADMM, "first_threshold"),
]


@pytest.mark.parametrize("value", ["word", None, [], np.array([0.5, 2.0]), -1])
@pytest.mark.parametrize(("solver", "option"), OPTIONS)
def test_a_bad_option_of_a_solver_is_refused_by_name(solver, option, value):
    with pytest.raises(ValueError, match=rf"^{option} must"):
        solver(**{option: value})
