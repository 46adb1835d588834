"""Who may import whom: read from the source, so that the architecture cannot drift."""

import importlib
import subprocess
import sys

import pytest
from tests import architecture as plan
from tests.architecture import PACKAGE, ROOT, files, imports, lines_of_code, room_of


def test_a_module_imports_only_the_layers_below_it():
    for path in files():
        if room_of(path) not in plan.FREE:
            assert room_of(path) in plan.ROOMS, f"say in plan.ROOMS what {room_of(path)} may import"
            assert plan.rooms_imported(path) <= set(plan.ROOMS[room_of(path)].split()), path


def test_the_table_of_rooms_is_ordered_from_the_ground_up():
    seen = set()
    for room, below in plan.ROOMS.items():
        assert set(below.split()) <= seen, f"{room} imports what stands above it"
        seen.add(room)


def test_no_modules_import_each_other_even_inside_functions():
    assert plan.cycles() == []


def test_nothing_asks_a_loss_or_a_penalty_what_it_has_outside_the_one_check():
    assert plan.probes() == []


@pytest.mark.parametrize("page", plan.PAGES)
def test_what_pages_show_of_the_plan_is_made_from_it(page):
    mark, make = plan.PAGES[page]
    text = (ROOT / page).read_text()
    assert f"<!-- {mark} -->" in text
    assert plan.page_with(text, mark, make()) == text, "run python -m tests.architecture --write"


def test_tests_speak_to_public_names():
    assert len(plan.private_imports()) <= plan.MOST_PRIVATE_IMPORTS, plan.private_imports()


def test_optional_packages_have_one_importer():
    for path in files():
        file = str(path.relative_to(PACKAGE).with_suffix(""))
        for name in imports(path):
            owner = plan.ONLY_IMPORTER.get(name.split(".")[0])
            assert owner is None or {room_of(path), file} & owner, f"{path.name} imports {name}"


def test_tests_stand_in_the_folders_of_the_package():
    for folder in {path.parent for path in files()}:
        there = ROOT / "tests" / folder.relative_to(PACKAGE)
        assert list(there.glob("test_*.py")), f"{there} holds no tests of {folder.name}"


def test_each_room_keeps_to_its_budget_of_lines():
    code = plan.by_room(lines_of_code)
    assert code.keys() == plan.BUDGET.keys()
    assert {room: count for room, count in code.items() if count > plan.BUDGET[room]} == {}

    assert sum(lines_of_code(path.read_text()) for path in files(ROOT / "paper")) <= plan.MOST_LINES_OF_PAPER


def test_there_are_few_files_and_none_is_long():
    assert len(files()) <= plan.MOST_FILES
    assert len(list(PACKAGE.glob("*.py"))) <= 12
    assert [p.name for p in files() if len(p.read_text().splitlines()) > 400] == []


def test_named_numeric_constants_are_few():
    numbers = plan.by_room(lambda text: len(plan.constants(text)))
    assert sum(numbers.values()) <= plan.MOST_CONSTANTS["of the package"]
    assert sum(numbers[room] for room in plan.NUMERIC_ROOMS) <= plan.MOST_CONSTANTS["of numeric rooms"]


def test_no_file_and_no_class_has_the_name_of_another():
    assert plan.repeated() == {}


# What code does not load, by the start of the names.
DATA = "import ell12, numpy as np; A, b = np.eye(3), np.ones(3); "
UNUSED = {
    "import ell12": "numpy scipy sklearn numba matplotlib torch dask",
    f"{DATA} ell12.minimize(ell12.SquaredLoss(A, b), ell12.L12(0.1))": "numba matplotlib torch jax sklearn pandas "
    "dask ell12.path ell12.linear_model ell12.completion ell12.restoration",
    f"{DATA} ell12.L12Regressor(0.1).fit(A, b)": "numba matplotlib ell12.penalties.spectral ell12.plots "
    "ell12.penalties.separable ell12.losses.cox ell12.solvers.dca ell12.linear_model.classifier "
    "ell12.linear_model.cross_validation",
}


@pytest.mark.parametrize("code", UNUSED)
def test_code_loads_no_library_and_no_module_that_it_does_not_use(code):
    listing = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert [name for name in UNUSED[code].split() for other in loaded if f"{other}.".startswith(f"{name}.")] == []


@pytest.mark.parametrize("package", ["penalties", "losses", "solvers", "linear_model"])
def test_a_package_that_loads_its_names_late_has_all_of_them_and_no_others(package):
    module = importlib.import_module(f"ell12.{package}")
    assert dir(module) == module.__all__ != []
    for name in module.__all__:
        assert getattr(module, name).__name__ == name
    with pytest.raises(AttributeError, match=f"No ell12.{package} attribute L13"):
        _ = module.L13
