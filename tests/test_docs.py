"""The documentation's code runs, and its API page knows every public name."""

import doctest
import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import ell12

ROOT = Path(__file__).parents[1]
BUILT = {ROOT / "docs" / "_build", ROOT / "docs" / "generated"}
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if not BUILT & set(path.parents))


@pytest.fixture(autouse=True)
def examples_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.syspath_prepend(ROOT / "docs" / "extend")


def without_missing_libraries(text):
    """A page without the sections that need an array library that is not installed, as in `make test`."""
    sections = re.split(r"^(?=#)", text, flags=re.MULTILINE)
    needed = [re.findall(r"^>>> import .*\b(torch|jax|cupy)\b", part, flags=re.MULTILINE) for part in sections]
    return "".join(part for part, names in zip(sections, needed, strict=True) if all(map(find_spec, names)))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page):
    text = re.sub(r"^```.*$", "", without_missing_libraries(page.read_text()), flags=re.MULTILINE)  # no output
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    report = []
    doctest.DocTestRunner().run(test, out=report.append)
    assert report == [], "".join(report)


# [test]
@pytest.mark.parametrize("step", [0.3, 1.0, 2.6, 2.7, 5.0, 40.0])
def test_the_prox_of_scad_is_a_global_minimiser(step):
    from scad import SCAD

    penalty = SCAD(alpha=0.8)
    grid = np.linspace(-8, 8, 8001)
    values = np.array([penalty.value(np.array([x])) for x in grid])
    for z in np.linspace(-7, 7, 57):
        found = penalty.prox(np.array([z]), step)
        reached = 0.5 * (found[0] - z) ** 2 + step * penalty.value(found)
        assert reached <= np.min(0.5 * (grid - z) ** 2 + step * values) + 1e-12


# [end]


@pytest.mark.parametrize("knee", [None, 0.5])
def test_scad_is_the_difference_it_says(knee):
    from scad import PiecewiseSCAD

    penalty, x = PiecewiseSCAD(alpha=0.8, knee=knee), np.linspace(-5, 5, 101)
    x = x[(x != 0) & (np.abs(np.abs(x) - penalty.start) > 0.01) & (np.abs(np.abs(x) - penalty.end) > 0.01)]

    def values(x):
        return np.array([penalty.value(np.array([v])) for v in x])

    slopes = (values(x + 1e-6) - values(x - 1e-6)) / 2e-6
    np.testing.assert_allclose(penalty.alpha * np.sign(x) - penalty.subtracted_gradient(x), slopes, atol=1e-6)
    assert penalty.convex.value(np.array([3.0])) == pytest.approx(2.4)
    second = values(x + 1e-3) - 2 * values(x) + values(x - 1e-3)
    np.testing.assert_allclose(penalty.curvature(x).diagonal, second / 1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["scad", "anderson", "gamma"])
def test_the_files_of_the_pages_on_extending_run(name, capsys):
    runpy.run_path(str(ROOT / "docs" / "extend" / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out.count("CONVERGED") == 2


def test_the_solver_of_the_page_agrees_with_scikit_learn():
    from anderson import AndersonProximalGradient
    from sklearn.linear_model import Lasso

    problem = ell12.datasets.correlated_design(0, n_samples=80, n_features=50, n_nonzero=5)
    loss = ell12.SquaredLoss(problem.A, problem.b, scale=1 / 80)
    result = ell12.minimize(loss, ell12.L1(0.05), solver=AndersonProximalGradient(), tol=1e-8)
    theirs = Lasso(alpha=0.05, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(problem.A, problem.b)
    assert result.converged
    np.testing.assert_allclose(result.x, theirs.coef_, atol=1e-6)


def test_the_loss_of_the_page_agrees_with_scikit_learn():
    from gamma import ColumnGammaLoss, GammaLoss, amounts
    from sklearn.linear_model import GammaRegressor

    A, b, _ = amounts(shape=(100, 8))
    theirs = GammaRegressor(alpha=0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(A, b)
    for loss in (GammaLoss(A, b), ColumnGammaLoss(A, b)):
        result = ell12.minimize(loss, ell12.L1(1e-6), tol=1e-2)
        np.testing.assert_allclose(result.x, theirs.coef_, atol=1e-5)


def test_every_public_name_is_on_the_api_page():
    front, _, modules = (ROOT / "docs" / "api.rst").read_text().partition(".. _modules:")
    assert set(re.findall(r"^   (\w+)$", front, flags=re.MULTILINE)) == set(ell12.__all__)
    assert set(ell12._modules) - {"backend", "plots"} <= set(re.findall(r"^   (\w+)$", modules, re.MULTILINE))


def test_the_snippet_of_the_first_page_runs_when_pasted(capsys):
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "index.md").read_text(), flags=re.DOTALL)
    exec(snippet, {})
    assert capsys.readouterr().out.startswith("[")


def test_the_pages_for_users_are_short():
    docs = ROOT / "docs"
    pages = [ROOT / "README.md", docs / "index.md", docs / "quickstart.md", *docs.glob("guide/*.md")]
    assert sum(len(page.read_text().split()) for page in [*pages, *docs.glob("extend/*.md")]) <= 20_000


def test_every_link_to_a_file_and_every_figure_exists():
    target = r"\]\((?!https?:|#)([^)#\s]+)|^```\{image\} (?!.*gallery)(\S+)$"
    for page in (ROOT / "README.md", *PAGES):
        links = re.findall(target, page.read_text(), re.MULTILINE)
        assert [link for link in links if not (page.parent / "".join(link)).exists()] == [], page.name


def test_the_figures_on_prediction_are_those_of_the_study():
    page = (ROOT / "docs" / "guide" / "when_it_helps.md").read_text()
    section = page.partition("## Prediction on real data")[2].partition("## In short")[0]
    said = set(re.findall(r"\b\d\.\d{3}\b", section))
    found = set(re.findall(r"\b\d\.\d{3}\b", (ROOT / "benchmarks" / "results" / "prediction.md").read_text()))
    assert len(said) > 20
    assert said <= found


def test_the_table_script_fits_a_table_of_texts_and_gaps():
    pandas = pytest.importorskip("pandas")
    fitted = runpy.run_path(str(ROOT / "examples" / "fit_table.py"))["fitted"]
    penguins = pandas.read_csv(ROOT / "docs" / "guide" / "penguins.csv").drop(columns="egg_date")
    names = set(fitted(penguins, "body_mass_g").table["feature"])
    assert {"species_Gentoo", "flipper_length_mm"} <= names
    assert names & {"sex_male", "sex_female"}  # the two say the same
