"""``ell12 fit`` and ``ell12 predict`` on tables, as their user meets them."""

import contextlib
import csv
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'report'")

from ell12.commands import table_fit
from ell12.commands.table_model import read_table_model
from ell12.datasets.table_files import read_table

QUICK = ("--l2-weight", "1", "--folds", "3")


def columns_of(seed=0, n=90):
    """Size and age count, and the colour; noise does not."""
    random = np.random.default_rng(seed)
    size, age = 100 + 20 * random.standard_normal(n), random.uniform(0, 5, n)
    colour = random.choice(["red", "green", "blue"], n, p=[0.5, 0.3, 0.2])
    signal = 0.05 * (size - 100) - 0.6 * (age - 2.5) + 1.5 * (colour == "blue")
    columns = {"size": size, "age": age, "colour": colour}
    columns |= {f"noise{k}": random.standard_normal(n) for k in range(4)}
    return columns, signal, random


def written(path, columns, separator=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture
def source(tmp_path):
    columns, signal, random = columns_of()
    return written(tmp_path / "d.csv", columns | {"y": 10 + 3 * signal + 0.3 * random.standard_normal(90)})


def lines(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def predicted(path):
    return np.array([float(row["prediction"]) for row in lines(path)])


def features(out):
    """The names and coefficients of the table that is printed."""
    body = out.partition("-----\n")[2].partition("\n\n")[0]
    return {row.split()[0]: float(row.split()[1]) for row in body.splitlines()}


# What comes out


def test_a_number_is_predicted_and_the_columns_that_count_are_shown(call, tmp_path, source):
    code, out, error = call("fit", source, "--target", "y", *QUICK)
    assert (code, error) == (0, "")
    found = features(out)
    assert list(found)[:3] == ["size", "age", "colour=blue"]
    assert found["size"] == pytest.approx(0.15, abs=0.01)  # in the units of the file
    assert found["age"] == pytest.approx(-1.8, abs=0.15)
    assert "colour: 3 categories, each compared with 'red'" in out
    error, constant = map(float, re.search(r"RMSE ([\d.]+) \(the mean alone ([\d.]+)\)", out).groups())
    rows = lines(tmp_path / "d.fit" / "predictions.csv")
    truth = np.array([float(row["y"]) for row in rows])
    left_out = predicted(tmp_path / "d.fit" / "predictions.csv")
    assert error == pytest.approx(np.sqrt(np.mean((truth - left_out) ** 2)), rel=1e-3)
    assert error < 0.4 < 5 * error < constant * 2
    assert [path.name for path in sorted((tmp_path / "d.fit").iterdir())] == [
        "model.npz",
        "page.html",
        "predictions.csv",
    ]


@pytest.mark.parametrize(
    ("names", "loss"), [(["no", "yes"], "yes against no"), (["a", "b", "c"], "each of 3 classes")]
)
def test_words_are_classes(call, tmp_path, names, loss):
    columns, signal, _ = columns_of()
    labels = np.array(names)[np.digitize(signal, [0] if len(names) == 2 else [-1, 1])]
    source = written(tmp_path / "d.csv", columns | {"kind": labels})
    code, out, _ = call("fit", source, "--target", "kind", *QUICK)
    assert code == 0
    assert loss in out
    share = float(re.search(r"Rows left out: ([\d.]+)% right", out)[1])
    rows = lines(tmp_path / "d.fit" / "predictions.csv")
    assert share == pytest.approx(100 * np.mean([row["kind"] == row["prediction"] for row in rows]), abs=0.06)
    assert share > 80
    for row in rows:
        shares = {name: float(row[f"P({name})"]) for name in names}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
        assert max(shares, key=shares.get) == row["prediction"]


def test_two_numbers_are_classes_too(call, tmp_path):
    columns, signal, _ = columns_of()
    source = written(tmp_path / "d.csv", columns | {"ill": (signal > 0).astype(int)})
    out = call("fit", source, "--target", "ill", *QUICK).out
    assert "logistic loss: 1 against 0" in out


def test_counts_and_survival_times_are_fitted_where_that_is_asked_for(call, tmp_path):
    columns, signal, random = columns_of()
    times, limits = random.exponential(np.exp(-signal)), random.exponential(3, 90)
    columns |= {"n": random.poisson(np.exp(0.5 * signal)), "t": np.minimum(times, limits)}
    source = written(tmp_path / "d.csv", columns | {"seen": (times <= limits).astype(int)})
    out = call("fit", source, "--target", "n", "--loss", "poisson", "--drop", "t,seen", *QUICK).out
    assert "Poisson's loss" in out
    assert next(iter(features(out))) == "size"
    options = ("--loss", "cox", "--event", "seen", "--drop", "n", "--out", tmp_path / "cox")
    out = call("fit", source, "--target", "t", *options, *QUICK).out
    assert float(re.search(r"Rows left out: concordance ([\d.]+)", out)[1]) > 0.7
    assert set(features(out)) >= {"size", "age"}
    assert call("predict", tmp_path / "cox" / "model.npz", source).code == 0
    assert call("fit", source, "--target", "t", "--loss", "cox", "--force").code == 2


def test_stability_and_intervals_stand_in_the_table(call, source):
    out = call("fit", source, "--target", "y", "--stability", "--intervals", "--one-se", *QUICK).out
    head = next(line for line in out.splitlines() if line.startswith("feature  "))
    assert head.split() == ["feature", "coef", "per", "sd", "freq.", "lower", "upper", "p", "adj.", "p"]
    row = next(line for line in out.splitlines() if line.startswith("size ")).split()
    _, coef, _, frequency, lower, upper, *_ = row
    assert float(frequency) == 1
    assert float(lower) < 0.15 < float(upper)
    assert float(coef) == pytest.approx(0.15, abs=0.02)
    assert "within one standard error" in out


def test_where_there_are_no_intervals_that_is_said(call, tmp_path):
    columns, signal, random = columns_of()
    source = written(tmp_path / "d.csv", columns | {"n": random.poisson(np.exp(0.5 * signal))})
    code, out, error = call("fit", source, "--target", "n", "--loss", "poisson", "--intervals", *QUICK)
    assert (code, error) == (0, "")
    assert "Note: no intervals: model must have loss='squared' for intervals, got 'poisson'" in out


def test_one_column_in_tiny_units_is_found(call, tmp_path):
    random = np.random.default_rng(0)
    x, noise = random.standard_normal((2, 40))
    source = written(tmp_path / "d.csv", {"x": 1e12 + 1e8 * x, "y": 1e-9 * (5 + x + 0.1 * noise)})
    out = call("fit", source, "--target", "y", *QUICK).out
    assert features(out)["x"] == pytest.approx(1e-17, rel=0.05)


def test_columns_that_tell_nothing_are_not_selected(call, tmp_path):
    random = np.random.default_rng(1)
    source = written(tmp_path / "d.csv", dict(zip("abcy", random.standard_normal((4, 40)), strict=True)))
    out = call("fit", source, "--target", "y", "--l2-weight", "0", "--one-se").out
    assert "No feature is selected." in out
    assert out.count("no better than the mean") == 1
    assert "No feature is selected" in (tmp_path / "d.fit" / "page.html").read_text()
    assert call("predict", tmp_path / "d.fit" / "model.npz", source).code == 0
    assert len(set(predicted(tmp_path / "d.predicted.csv"))) == 1


# The model


def test_a_model_predicts_the_same_after_loading(call, tmp_path, source, monkeypatch):
    made = []
    whole = table_fit.fit_table
    monkeypatch.setattr("ell12.commands.fit_job.fit_table", lambda *given: made.append(whole(*given)) or made[-1])
    call("fit", source, "--target", "y", *QUICK)
    table, loaded = read_table(source), read_table_model(tmp_path / "d.fit" / "model.npz")
    before, after = made[0].model.predict(table)[0], loaded.predict(table)[0]
    np.testing.assert_allclose(after["prediction"], before["prediction"], rtol=1e-12)
    np.testing.assert_array_equal(made[0].model.used().predict(table)[0]["prediction"], after["prediction"])
    with np.load(tmp_path / "d.fit" / "model.npz", allow_pickle=False) as file:
        assert {name: file[name].dtype.kind for name in file.files if file[name].dtype.kind not in "fUu"} == {}


def test_new_rows_need_the_selected_columns_only(call, tmp_path, source):
    call("fit", source, "--target", "y", "--one-se", *QUICK)
    model, table = tmp_path / "d.fit" / "model.npz", read_table(source)
    new = {name: table.columns[name][:5] for name in ("colour", "age", "size")}
    assert call("predict", model, written(tmp_path / "new.csv", new, ";")).code == 0
    assert call("predict", model, source).out.startswith("RMSE ")
    np.testing.assert_array_equal(
        predicted(tmp_path / "new.predicted.csv"), predicted(tmp_path / "d.predicted.csv")[:5]
    )
    del new["age"]
    outcome = call("predict", model, written(tmp_path / "new.csv", new | {"Age ": new["size"]}), "--force")
    assert (outcome.code, outcome.error.count("\n")) == (1, 1)
    assert "has no column 'age'; did you mean 'Age'?" in outcome.error
    written(tmp_path / "new.csv", new | {"age": ["old"] * 5})
    outcome = call("predict", model, tmp_path / "new.csv", "--force")
    assert "new.csv, line 2: the column 'age' must hold numbers, not 'old'" in outcome.error


def test_a_column_in_other_units_gives_the_same_predictions(call, tmp_path, source):
    call("fit", source, "--target", "y", *QUICK)
    table = read_table(source)
    other = table.columns | {"size": 1000 * table.columns["size"] - 7, "noise1": table.columns["noise1"] / 64}
    call("fit", written(tmp_path / "e.csv", other), "--target", "y", *QUICK)
    here, there = (predicted(tmp_path / name / "predictions.csv") for name in ("d.fit", "e.fit"))
    np.testing.assert_allclose(there, here, rtol=2e-5)


def test_the_same_seed_gives_the_same_files(call, tmp_path, source):
    for name in ("a", "b"):
        call("fit", source, "--target", "y", "--seed", "3", "--out", tmp_path / name, *QUICK)
    assert (tmp_path / "a/predictions.csv").read_bytes() == (tmp_path / "b/predictions.csv").read_bytes()


def test_a_damaged_model_is_named(call, tmp_path, source):
    call("fit", source, "--target", "y", *QUICK)
    model = tmp_path / "d.fit" / "model.npz"
    model.write_bytes(model.read_bytes()[:-200])
    outcome = call("predict", model, source)
    assert (outcome.code, outcome.error.count("\n")) == (1, 1)
    assert "holds no model of ell12" in outcome.error


def test_a_model_of_a_table_recommends_nothing(call, tmp_path, source):
    call("fit", source, "--target", "y", *QUICK)
    outcome = call("recommend", tmp_path / "d.fit" / "model.npz")
    assert outcome.code == 1
    assert "is a model of ell12 fit, not of ratings" in outcome.error
    assert call("predict", tmp_path / "d.fit" / "model.npz", source, "--columns", "a,b,c").code == 2


# The data


def test_missing_values_are_told_and_filled_in_dropped_or_refused(call, tmp_path, source):
    table = read_table(source)
    columns = {name: column.astype(object) for name, column in table.columns.items()}
    columns["size"][3], columns["colour"][[5, 6]] = "", "NA"
    source = written(tmp_path / "holes.csv", columns)
    out = call("fit", source, "--target", "y", *QUICK).out
    mean = np.delete(table.columns["size"], 3).mean()
    assert f"size: 1 value missing, filled in by the mean {mean:.4g}" in out
    assert "colour: 4 categories" in out
    out = call("fit", source, "--target", "y", "--missing", "drop", "--force", *QUICK).out
    assert "3 of 90 rows lack a value; left out" in out
    assert len(lines(tmp_path / "holes.fit" / "predictions.csv")) == 87
    outcome = call("fit", source, "--target", "y", "--missing", "refuse", "--force")
    assert outcome.code == 1
    assert "line 5: the column 'size' has no value; 3 rows lack one" in outcome.error


def test_rows_without_a_target_are_predicted_by_the_model(call, tmp_path, source):
    columns = read_table(source).columns
    columns["y"] = columns["y"].astype(object)
    columns["y"][7] = ""
    source = written(tmp_path / "d.csv", columns)
    out = call("fit", source, "--target", "y", *QUICK).out
    assert "y: 1 rows without it are predicted, not fitted" in out.replace("1 row ", "1 rows ")
    row = lines(tmp_path / "d.fit" / "predictions.csv")[7]
    assert (row["y"], row["by"]) == ("", "the model")
    call("predict", tmp_path / "d.fit" / "model.npz", source)
    assert row["prediction"] == lines(tmp_path / "d.predicted.csv")[7]["prediction"]


def test_words_are_categories_up_to_a_limit(call, tmp_path, source):
    columns = read_table(source).columns
    columns |= {"name": [f"n{k}" for k in range(90)], "code": np.arange(90) % 3, "one": ["x"] * 90, "k": range(90)}
    source = written(tmp_path / "d.csv", columns)
    out = call("fit", source, "--target", "y", "--categories", "code", *QUICK).out
    assert "name: 90 different words, as 'n0'; left out (--max-categories 90 keeps it)" in out
    assert "code: 3 categories, each compared with '0'" in out
    assert "one: one word only ('x'); left out" in out
    assert "k: it only counts the rows; left out" in out
    call("fit", source, "--target", "y", "--id", "name", "--columns", "size,colour", "--force", *QUICK)
    assert lines(tmp_path / "d.fit" / "predictions.csv")[4]["name"] == "n4"
    new = {name: columns[name][:3] for name in ("size", "name")} | {"colour": ["red", "pink", "blue"]}
    out = call("predict", tmp_path / "d.fit" / "model.npz", written(tmp_path / "new.csv", new)).out
    assert "colour: 1 value of words that the fit has not seen, taken as 'red'" in out
    assert [row["name"] for row in lines(tmp_path / "new.predicted.csv")] == ["n0", "n1", "n2"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": ["3"] * 90}, "the target 'y' is 3 in all rows: there is nothing to predict"),
        ({"y": ["a"] * 90}, "the target 'y' is 'a' in all rows: there is nothing to predict"),
        ({"y": ["a"] * 89 + ["b"]}, "the target 'y' is 'b' in one row only"),
        ({"y": [""] * 89 + ["4"]}, "has 1 row where the target 'y' is known: 6 are needed"),
        ({"y": [f"{k} kg" for k in range(90)]}, "has 90 different words, as '0 kg' in line 2"),
        ({"Y": ["1"] * 90}, "has no target 'price'; there are 'size', 'age'"),
    ],
)
def test_a_target_that_teaches_nothing_is_refused(call, tmp_path, source, change, words):
    columns = read_table(source).columns
    name = "price" if "Y" in change else "y"
    outcome = call("fit", written(tmp_path / "d.csv", columns | change), "--target", name)
    assert (outcome.code, outcome.error.count("\n")) == (1, 1)
    assert words in outcome.error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv"]


def test_near_names_are_offered(call, source):
    assert "has no target 'Y'; did you mean 'y'?" in call("fit", source, "--target", "Y").error
    assert "did you mean 'colour'?" in call("fit", source, "--target", "y", "--drop", "color").error


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no lines of data"),
        (b"a,y\n1,2\n", "has 1 row where the target 'y' is known: 6 are needed"),
        (b"a,a,y\n1,2,3\n", "the columns 1 and 2 are both called 'a'"),
        (b"\xe4,y\n1,2\n", "say which with --encoding, for example --encoding latin-1"),
        (
            b"a,y\n" + b"".join(b"5,%d\n" % k for k in range(9)),
            "no column left to predict from: a: one value only (5)",
        ),
    ],
)
def test_a_file_that_teaches_nothing_is_refused(call, tmp_path, content, words):
    (tmp_path / "d.csv").write_bytes(content)
    outcome = call("fit", tmp_path / "d.csv", "--target", "y")
    assert (outcome.code, outcome.error.count("\n")) == (1, 1)
    assert words in outcome.error
    assert not (tmp_path / "d.fit").exists()


# Files and page


def test_files_can_be_named(call, tmp_path, source):
    outputs = [tmp_path / "m.npz", tmp_path / "p.html"]
    assert call("fit", source, "--target", "y", "--out", outputs[0], "--out", outputs[1], *QUICK).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv", "m.npz", "p.html"]
    outcome = call("fit", source, "--target", "y", "--out", outputs[0])
    assert (outcome.code, "m.npz is there already: add --force" in outcome.error) == (2, True)


def test_the_page_needs_no_network_and_takes_names_for_text(call, tmp_path):
    columns, signal, random = columns_of()
    columns["<script>alert(1)</script>"] = columns.pop("size")
    source = written(tmp_path / "d.csv", columns | {"y & z": 3 * signal + 0.3 * random.standard_normal(90)})
    assert call("fit", source, "--target", "y & z", *QUICK).code == 0
    page = (tmp_path / "d.fit" / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "y &amp; z: a sparse model of d.csv" in page
    assert not re.search(r"(src|href)=\"(?!#|data:)|url\((?!#)|@import|https?://(?!www\.w3\.org)", page)
    assert re.search(r"ell12 fit \S+d\.csv --target &#39;y &amp; z&#39; --l2-weight 1 --folds 3", page)
    assert page.count("<svg") == 2
    assert "var(--series-1)" in page
    assert not re.search(r"(fill|stroke): #(000000|ffffff)", page)  # which a dark page, or a light one, would hide
    assert 'name="viewport"' in page


def test_the_page_of_classes_counts_them(call, tmp_path):
    columns, signal, _ = columns_of()
    source = written(tmp_path / "d.csv", columns | {"kind": np.where(signal > 0, "high", "low")})
    call("fit", source, "--target", "kind", *QUICK)
    rows = lines(tmp_path / "d.fit" / "predictions.csv")
    right = [sum(row["kind"] == row["prediction"] == name for row in rows) for name in ("high", "low")]
    page = (tmp_path / "d.fit" / "page.html").read_text(encoding="utf-8")
    assert [int(count) for count in re.findall(r'class="hit">(\d+)<', page)] == right


def test_ctrl_c_writes_nothing(call, tmp_path, source, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ell12.commands.fit_job.fit_table", interrupted)
    outcome = call("fit", source, "--target", "y")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (130, "Stopped: nothing is written.")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv"]


def test_ctrl_c_that_a_solver_answers_by_itself_ends_the_command_too(call, tmp_path, source, monkeypatch):
    class Interrupted(table_fit.L12RegressorCV):
        def _score_path(self, *given):
            with contextlib.suppress(KeyboardInterrupt):  # as the loop of a solver does
                signal.raise_signal(signal.SIGINT)
            return super()._score_path(*given)

    monkeypatch.setattr(table_fit, "L12RegressorCV", Interrupted)
    outcome = call("fit", source, "--target", "y", *QUICK)
    assert (outcome.code, outcome.out.splitlines()[-1]) == (130, "Stopped: nothing is written.")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_progress_is_shown_fold_by_fold(call, source, monkeypatch):
    monkeypatch.setattr("ell12.commands.progress.SECONDS_PER_LINE", 0.0)
    out = call("fit", source, "--target", "y", *QUICK).out
    assert [line.split(" (")[0] for line in out.splitlines() if "fold " in line and "choosing" in line] == [
        f"choosing the strength: fold {k} of 3" for k in (1, 2, 3)
    ]


# The guide


def test_the_guide_shows_what_the_command_prints(call, tmp_path, monkeypatch):
    guide = Path(__file__).parents[2] / "docs" / "guide"
    shutil.copy(guide / "penguins.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = re.search(r"\$ ell12 (fit penguins\.csv .*)\n([^`]*)```", (guide / "command_line.md").read_text())
    assert call(*shown[1].split()).out == shown[2]
