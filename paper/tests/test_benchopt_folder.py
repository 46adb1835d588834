"""The folder for benchopt: its files run with a stand-in here, and really by benchmarks/benchopt_run.py."""

import importlib.util
import itertools
import sys
import types

import numpy as np
import pytest

from ell12 import L12, SquaredLoss, minimize, solvers
from ell12.commands import CommandError
from ell12.datasets import compressed_sensing
from ell12_paper.benchopt_folder import SOLVERS, export_benchopt
from ell12_paper.compressed_sensing.study import METHODS, PRESETS, SETUPS


class StoppingCriterion:
    """As benchopt's: names of metrics get a prefix, and every option goes to the constructor of the base."""

    def __init__(self, strategy=None, key_to_monitor=None, minimize=True, **options):
        self.key_to_monitor_ = f"objective_{key_to_monitor}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchopt") / "l12"
    export_benchopt(folder)
    return folder


@pytest.fixture
def load(folder, monkeypatch):
    """A function that imports a written file as benchopt does, and gives its class an instance of parameters."""
    modules = {name: types.ModuleType(name) for name in ("benchopt", "benchopt.stopping_criterion")}
    for name in ("BaseObjective", "BaseDataset", "BaseSolver"):
        setattr(modules["benchopt"], name, type(name, (), {}))
    modules["benchopt.stopping_criterion"].StoppingCriterion = StoppingCriterion
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(str(folder))

    def instance(file, kind, **parameters):
        spec = importlib.util.spec_from_file_location(f"written_{kind}", folder / file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made = getattr(module, kind)()
        vars(made).update(parameters)
        return made

    yield instance
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmark_utils"]:
        del sys.modules[name]


def run(objective, solver):
    """One solver to its end, with metrics at iterations that grow by half, as benchopt does; the metrics."""
    solver.set_objective(**objective.get_objective())
    solver.warm_up()
    seen, numbers = [], itertools.count()

    def callback():
        if next(numbers) < 1.5 ** len(seen) - 1:
            return True
        metrics = objective.evaluate_result(**solver.get_result())
        seen.append({f"objective_{name}": value for name, value in metrics.items()})
        stop, progress = solver.stopping_criterion.check_convergence(seen)
        assert 0 <= progress <= 1
        return not stop and len(seen) < 30

    solver.run(callback)
    return seen


def test_every_solver_reaches_its_minimum_and_stops_there(load):
    problem = compressed_sensing(1, n_samples=20)
    dataset = load("datasets/paper.py", "Dataset", setup="stated", n_samples=20, seed=1)
    objective = load("objective.py", "Objective", i=0)
    objective.set_data(**dataset.get_data())
    assert np.array_equal(objective.A, problem.A)
    for known in SOLVERS:
        seen = run(objective, load(f"solvers/{known.file}", "Solver"))
        penalty, method = L12(0.01, known.l2_weight), METHODS.get(known.method)
        oracle = minimize(SquaredLoss(problem.A, problem.b), penalty, solver=method, tol=1e-4)
        key = "objective_value" if known.l2_weight else "objective_value_l1"
        assert seen[-1][key] == pytest.approx(oracle.objective, rel=1e-4), known.name
        assert seen[0]["objective_n_nonzero"] == 0
        name = "objective_stationarity" + "_l1" * (known.l2_weight == 0)
        assert seen[-1][name] <= 1e-3 < min(metrics[name] for metrics in seen[:-1])
        assert seen[-1]["objective_relative_error"] == pytest.approx(problem.relative_error(oracle.x), rel=0.02)
    assert objective.evaluate_result(**objective.get_one_result())["relative_error"] == 1.0


def test_the_solvers_are_those_of_the_study_and_our_default():
    made = {known.method: eval(known.solver, {"methods": solvers}) for known in SOLVERS}  # our own words
    assert made.pop(None) is None
    assert made == {
        name: METHODS[name] for name in ("DCA", "SCP", "nmAPG(numerical)", "nmAPG(closed-form)", "FISTA")
    }


def test_the_data_are_those_of_the_study(load, folder):
    parameters = load("datasets/paper.py", "Dataset").parameters
    quick, paper = PRESETS["quick"], PRESETS["paper"]
    assert parameters == {
        "setup": list(SETUPS),
        "n_samples": [quick.n_samples],
        "seed": list(range(quick.n_repeats)),
    }
    assert load("objective.py", "Objective").parameters == {"i": list(quick.grid)}
    seeds = ", ".join(map(str, range(paper.n_repeats)))
    assert f"paper[n_samples={paper.n_samples},seed=[{seeds}]]" in (folder / "paper.yml").read_text()


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine.py").write_text("")
    with pytest.raises(CommandError, match="is not empty: choose another folder"):
        export_benchopt(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]
