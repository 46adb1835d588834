"""``ell12 complete`` as its user meets it: files in, files out, messages and exit codes."""

import csv
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'report'")

from ell12 import cli
from ell12.commands import progress, rating_fit, rating_job
from ell12.completion import LowRank, Observed, complete_matrix, recommender
from ell12.completion.recommender import L12Recommender
from ell12.datasets import synthetic_ratings

QUICK = ("--alpha", "3", "--max-rank", "3", "--center", "biases")


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["ell12", "complete", *map(str, arguments)])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return raised.value.code or 0


def lines_of(ratings, separator=",", name=str):
    users, items = ratings.users[ratings.rows], ratings.items[ratings.columns]
    return [
        f"{name(u)}{separator}{i}{separator}{v:g}\n" for u, i, v in zip(users, items, ratings.values, strict=True)
    ]


@pytest.fixture(scope="module")
def ratings():
    return synthetic_ratings(0, 60, 40, 500, rank=2, noise=0.3)


@pytest.fixture
def source(tmp_path, ratings):
    path = tmp_path / "ratings.csv"
    path.write_text("".join(lines_of(ratings)))
    return path


def predictions(path):
    with path.open() as file:
        return [(row["user"], row["item"], float(row["prediction"])) for row in csv.DictReader(file)]


# What comes out


def test_factors_without_pickles(monkeypatch, capsys, tmp_path, source, ratings):
    exactly = ("--l2-weight", "0", "--tol", "1e-6", "--max-iter", "1000")  # convex: one solution
    assert call(monkeypatch, source, *QUICK, *exactly) == 0
    target = tmp_path / "ratings.completed.npz"
    with np.load(target, allow_pickle=False) as file:
        content = {name: file[name] for name in file.files}
    np.testing.assert_array_equal(content["users"], ratings.users)
    np.testing.assert_array_equal(content["items"], ratings.items)
    assert content["alpha"] == 3
    assert content["limits"].tolist() == [1.0, 5.0]
    assert LowRank.load(target).shape == (60, 40)
    fitted = (content["U"] * content["s"]) @ content["V"].T + content["mean"]
    fitted = fitted + content["user_offsets"][:, None] + content["item_offsets"]
    observed = Observed(ratings.rows, ratings.columns, ratings.values, ratings.shape)
    expected = complete_matrix(observed, 3.0, l2_weight=0.0, center="biases", engine="full", tol=1e-6).to_array()
    np.testing.assert_allclose(fitted, expected, atol=1e-3)
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "500 ratings from 1 to 5 by 60 users of 40 items (20.8 % of the pairs)"
    assert out[-2].startswith("Fit of all ratings: rank ")
    assert out[-1] == f"Model: {target}"


def test_the_error_is_that_on_hidden_ratings(monkeypatch, capsys, source, ratings):
    options = ("--held-out", "0.2", "--seed", "3", "--no-clip", "--tol", "1e-5", "--l2-weight", "0")
    assert call(monkeypatch, source, *QUICK, *options) == 0
    observed = Observed(ratings.rows, ratings.columns, ratings.values, ratings.shape)
    train, hidden = observed.split(0.2, 3)
    fitted = complete_matrix(train, 3.0, l2_weight=0.0, center="biases", engine="full", tol=1e-5)
    errors = [fitted.predict(hidden.rows, hidden.columns) - hidden.values, train.values.mean() - hidden.values]
    expected = [np.sqrt(np.mean(error**2)) for error in errors]
    said = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("RMSE on"))
    assert f"RMSE on {hidden.n_observed} hidden ratings: {expected[0]:.3f}" in said
    assert f"(the mean alone {expected[1]:.4f}, biases of users and items " in said


def test_hidden_ratings_choose_what_is_not_given(monkeypatch, capsys, tmp_path, source):
    assert call(monkeypatch, source, "--out", tmp_path / "m.npz") == 0
    out = capsys.readouterr().out
    found = re.search(r"RMSE on [\d,]+ hidden ratings: ([\d.]+) \(the mean alone ([\d.]+)", out)
    assert float(found[1]) < 0.9 * float(found[2])
    assert LowRank.load(tmp_path / "m.npz").rank <= 16
    with np.load(tmp_path / "m.npz") as file:
        assert f"l2_weight {file['l2_weight']:g}, " in out
        assert file["l2_weight"] in (1.0, 0.5, 0.0)


def test_predictions_for_pairs(monkeypatch, capsys, tmp_path, source, ratings):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("".join(lines_of(ratings)[:50]))
    assert (
        call(
            monkeypatch,
            source,
            *QUICK,
            "--predict",
            pairs,
            "--out",
            tmp_path / "p.csv",
            "--out",
            tmp_path / "m.npz",
        )
        == 0
    )
    found = predictions(tmp_path / "p.csv")
    assert [(u, i) for u, i, _ in found] == [tuple(line.split(",")[:2]) for line in lines_of(ratings)[:50]]
    with np.load(tmp_path / "m.npz") as file:
        fitted = (file["U"] * file["s"]) @ file["V"].T + file["mean"]
        fitted = np.clip(fitted + file["user_offsets"][:, None] + file["item_offsets"], 1, 5)
    expected = fitted[ratings.rows[:50], ratings.columns[:50]]
    np.testing.assert_allclose([p for _, _, p in found], expected, rtol=1e-5)
    error = np.sqrt(np.mean((expected - ratings.values[:50]) ** 2))
    assert f"RMSE on the 50 values beside the pairs: {error:.4f}" in capsys.readouterr().out


def test_pairs_without_values_and_with_strangers(monkeypatch, capsys, tmp_path, source, ratings):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("item user\n7 3\nnobody's 3\n7 stranger\nnobody's stranger\n")
    assert call(monkeypatch, source, *QUICK, "--predict", pairs) == 0
    found = predictions(tmp_path / "pairs.predicted.csv")
    assert [(u, i) for u, i, _ in found] == [
        ("3", "7"), ("3", "nobody's"), ("stranger", "7"), ("stranger", "nobody's"),
    ]  # fmt: skip
    assert found[3][2] == pytest.approx(ratings.values.mean(), abs=1e-4)
    mean_of_item = ratings.values[ratings.columns == 7].mean()
    assert abs(found[2][2] - mean_of_item) < abs(found[3][2] - mean_of_item) + 1e-9
    out = capsys.readouterr().out
    assert "3 of 4 pairs hold a user or an item without ratings" in out
    assert "beside the pairs" not in out


@pytest.mark.parametrize("kind", ["u.data", "ratings.dat", "r.mtx", "named.csv"])
def test_every_format_gives_the_same_fit(monkeypatch, tmp_path, ratings, kind):
    separator = {"u.data": "\t", "ratings.dat": "::"}.get(kind, ",")
    text = "".join(lines_of(ratings, separator, name=(lambda u: f"user {u:03d}") if kind == "named.csv" else str))
    if kind == "r.mtx":
        entries = [
            f"{r + 1} {c + 1} {v:g}\n"
            for r, c, v in zip(ratings.rows, ratings.columns, ratings.values, strict=True)
        ]
        text = f"%%MatrixMarket matrix coordinate real general\n60 40 500\n{''.join(entries)}"
    (tmp_path / kind).write_text(text)
    assert call(monkeypatch, tmp_path / kind, *QUICK, "--out", tmp_path / "m.npz", "--held-out", "0") == 0
    observed = Observed(ratings.rows, ratings.columns, ratings.values, ratings.shape)
    expected = L12Recommender(3.0, max_rank=3, random_state=1).fit(observed.sparse()).completion_.x
    np.testing.assert_allclose(LowRank.load(tmp_path / "m.npz").to_array(), expected.to_array(), atol=1e-8)


def test_duplicates_are_told(monkeypatch, capsys, source):
    source.write_text(source.read_text() + "0,0,5\n0,0,4\n")
    assert call(monkeypatch, source, *QUICK) == 0
    assert (
        "repeat a (user, item) pair, the first user 0, item 0: the last one counts"
        in capsys.readouterr().out.replace("repeats", "repeat")
    )
    assert call(monkeypatch, source, *QUICK, "--duplicates", "error", "--force") == 1


# What is refused


def test_nothing_is_overwritten_without_force(monkeypatch, capsys, tmp_path, source):
    target = tmp_path / "ratings.completed.npz"
    target.write_text("precious")
    assert call(monkeypatch, source, *QUICK) == 2
    assert capsys.readouterr().err == f"ell12: {target} is there already: add --force to overwrite it\n"
    assert target.read_text() == "precious"
    assert call(monkeypatch, source, *QUICK, "--force") == 0
    assert LowRank.load(target).rank > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ratings.completed.npz", "ratings.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{0}/no.csv",), "cannot read {0}/no.csv: No such file or directory"),
        (("{0}/ratings.csv", "--out", "{0}/m.txt"), "m.txt has an unknown suffix: .npz holds the model"),
        (("{0}/ratings.csv", "--out", "{0}/p.csv"), "say for which pairs with --predict FILE"),
        (("{0}/ratings.csv", "--out", "{0}/no/m.npz"), "cannot write to the folder {0}/no: No such file"),
        (
            ("{0}/ratings.csv", "--predict", "{0}/p", "--out", "{0}/m.npz"),
            "--predict needs a .csv file among the --out",
        ),
        (("{0}/ratings.csv", "--predict", "{0}/no.csv"), "cannot read {0}/no.csv"),
        (("{0}/ratings.csv", "--predict", "{0}/p.mtx"), "p.mtx: pairs are read from lines of text, user and item"),
        (
            ("{0}/ratings.csv", "--predict", "{0}/ratings.csv", "--out", "{0}/ratings.csv", "--force"),
            "ratings.csv is read from: choose another --out",
        ),
        (
            ("{0}/ratings.csv", "--predict", "{0}/p", "--out", "{0}/../{1}/ratings.csv", "--force"),
            "ratings.csv is read from: choose another --out",
        ),
        (("{0}/ratings.csv", "--out", "{0}/sub.npz", "--force"), "sub.npz is a folder"),
        (("{0}",), "{0} is a folder: name a file"),
        ((".",), ". is a folder: name a file"),
        (("{0}/ratings.csv", "--predict", "."), ". is a folder: name a file"),
        (("{0}/ratings.csv", "--l2-weight", "inf"), "--l2-weight must be a finite number"),
    ],
)
def test_bad_use_is_one_clear_line(monkeypatch, capsys, tmp_path, source, arguments, message):
    before = source.read_bytes()
    (tmp_path / "sub.npz").mkdir()
    assert call(monkeypatch, *(a.format(tmp_path, tmp_path.name) for a in arguments), *QUICK) == (
        1 if message.startswith("cannot") else 2
    )
    error = capsys.readouterr().err
    assert error.startswith("ell12: ")
    assert message.format(tmp_path) in error
    assert error.count("\n") == 1
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ratings.csv", "sub.npz"]


@pytest.mark.parametrize("content", [b"1,2,3\n1,3\n", b"\x89PNG\r\n\x1a\n", b"", b"1,2,x\n"])
def test_a_damaged_file_is_named_and_nothing_is_written(monkeypatch, capsys, tmp_path, content):
    source = tmp_path / "bad.csv"
    source.write_bytes(content)
    assert call(monkeypatch, source) == 1
    error = capsys.readouterr().err
    assert str(source) in error
    assert ("line " in error) is bool(content)
    assert list(tmp_path.iterdir()) == [source]


def test_too_few_ratings_to_hide_any(monkeypatch, capsys, tmp_path):
    source = tmp_path / "r.csv"
    source.write_text("1,1,3\n2,2,4\n3,3,5\n")
    assert call(monkeypatch, source) == 1
    assert "3 ratings are too few to hide any of them: add --held-out 0" in capsys.readouterr().err
    assert call(monkeypatch, source, "--held-out", "0") == 0
    source.write_text("1,1,3\n")
    assert call(monkeypatch, source, "--force") == 1
    assert "1 items (100 % of the pairs)" in capsys.readouterr().out


@pytest.mark.parametrize("options", [(), QUICK])
def test_ctrl_c_writes_nothing(monkeypatch, capsys, tmp_path, source, options):
    def interrupted(history):
        raise KeyboardInterrupt

    def interrupted_matrix(*arguments, **others):
        return complete_matrix(*arguments, **others, stop=interrupted)

    monkeypatch.setattr(recommender, "complete_matrix", interrupted_matrix)
    assert call(monkeypatch, source, *options) == 130
    assert capsys.readouterr().out.endswith("Stopped: nothing is written.\n")
    assert list(tmp_path.iterdir()) == [source]


# Progress


def test_progress_without_a_terminal_is_a_line_now_and_then(monkeypatch, capsys):
    now = [50.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.progress_bar() as show:
        for k in range(5):
            show(f"step {k}", k / 4)
            now[0] += 6
    assert capsys.readouterr().out.splitlines() == ["step 2 (50 %), 12 s elapsed", "step 4 (100 %), 24 s elapsed"]


def test_progress_that_was_shown_ends_at_the_whole(monkeypatch, capsys):
    now = [50.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.progress_bar() as show:
        now[0] += 11
        show("choosing by hidden ratings", 0.25)
        now[0] += 3
        show("fitting all ratings", 0.95)
    assert capsys.readouterr().out.splitlines() == [
        "choosing by hidden ratings (25 %), 11 s elapsed",
        "done (100 %), 14 s elapsed",
    ]
    with progress.progress_bar() as show:
        show("too short to be shown", 0.25)
    assert capsys.readouterr().out == ""


def test_progress_that_was_stopped_is_not_called_done(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_PER_LINE", 0.0)

    def interrupted():
        with progress.progress_bar() as show:
            show("fitting", 0.25)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "100 %" not in capsys.readouterr().out


def test_the_command_shows_its_progress_to_the_end(monkeypatch, capsys, source):
    monkeypatch.setattr(progress, "SECONDS_PER_LINE", 0.0)
    assert call(monkeypatch, source, "--l2-weight", "0.5", "--max-rank", "2") == 0
    shares = [int(share) for share in re.findall(r"\((\d+) %\), \d+ s elapsed", capsys.readouterr().out)]
    assert shares == sorted(shares)
    assert shares[-1] == 100


def test_the_bar_ends_at_the_whole(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    updates = []
    from rich.progress import Progress

    monkeypatch.setattr(Progress, "update", lambda self, task, **changes: updates.append(changes))
    with progress.progress_bar() as show:
        show("fitting", 0.25)
    assert updates[-1]["completed"] == 1.0


def test_progress_on_a_terminal_is_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress.progress_bar() as show:
        show("fitting all ratings: iteration 3", 0.95)
    shown = capsys.readouterr().out
    assert "fitting all ratings: iteration 3" in shown
    assert "\x1b[" in shown or "━" in shown


def test_the_share_that_is_done_moves_steadily(ratings):
    seen = []
    model = L12Recommender(n_alphas=5, l2_weight=0.5, max_rank=2)
    rating_fit.fit(model, ratings, 0.1, 0, lambda words, done: seen.append((words, done)))
    shares = np.array([done for _, done in seen])
    assert (np.diff(shares) >= 0).all()
    assert np.max(np.diff(shares, prepend=0.0)) < 0.3
    assert shares[-1] == pytest.approx(1.0)
    words = " ".join(words for words, _ in seen)
    assert "hidden" in words
    assert "fitting: iteration" in words


# What is said


def test_a_chosen_strength_grows_with_the_ratings(ratings):
    """Noise grows with the square root of their number, and so does the strength for all of them."""
    given = {"max_rank": 2, "center": "mean", "l2_weight": 1.0, "tol": 1e-2, "n_alphas": 5}
    model = L12Recommender(**given)
    rating_fit.fit(model, ratings, 0.3, 0, lambda *words: None)
    train, _ = rating_fit._split(ratings, 0.3, 0)
    chosen = L12Recommender(**given).fit(train)
    assert model.alpha_ == pytest.approx(chosen.alpha_ * np.sqrt(len(ratings) / len(train)))
    assert len(model.ratings_) == len(ratings)


def test_a_strength_that_is_worse_than_biases_is_said_to_be_so(monkeypatch, capsys, source):
    source.write_text("".join(lines_of(synthetic_ratings(0, 60, 40, 500, rank=0, noise=1.0))))
    assert call(monkeypatch, source, "--alpha", "0.01", "--max-iter", "20", "--held-out", "0.3") == 0
    out = capsys.readouterr().out
    assert out.count("Note: biases of users and items alone predict better than this fit: leave out --alpha") == 1
    assert out.count("Note: L12Recommender did not converge") == 1
    assert call(monkeypatch, source, "--alpha", "0.01", "--max-iter", "20", "--held-out", "0", "--force") == 0
    assert (
        "Note: biases of rows and columns alone predict hidden entries with an error of" in capsys.readouterr().out
    )
    assert call(monkeypatch, source, "--alpha", "30", "--force") == 0
    assert "Note" not in capsys.readouterr().out


def test_the_order_of_hidden_ratings_is_measured(monkeypatch, capsys, source, ratings):
    assert call(monkeypatch, source, *QUICK, "--held-out", "0.2") == 0
    train, hidden = rating_fit._split(ratings, 0.2, 0)
    model = L12Recommender(3.0, max_rank=3).fit(train)
    said = re.search(
        r"NDCG@10 on the same: ([\d.]+) among all items not rated \(biases ([\d.]+)\), ([\d.]+) among the hidden",
        capsys.readouterr().out,
    )
    for found, expected in zip(
        said.groups(),
        (model.ndcg(hidden), model.without_factors().ndcg(hidden), model.ndcg(hidden, candidates="rated")),
        strict=True,
    ):
        assert float(found) == pytest.approx(expected, abs=6e-5)


def test_the_defaults_are_those_of_the_recommender(monkeypatch, source):
    given = {}
    monkeypatch.setattr(rating_job.RatingJob, "run", lambda self, options: given.update(options))
    monkeypatch.setattr(sys, "argv", ["ell12", "complete", str(source)])
    with pytest.raises(SystemExit):
        cli.main()
    defaults = L12Recommender().get_params()
    assert given == {name: defaults[name] for name in given}
    assert {"alpha", "max_rank", "center", "l2_weight", "clip", "tol", "max_iter"} == set(given)


def part(ratings, kept):
    return replace(ratings, rows=ratings.rows[kept], columns=ratings.columns[kept], values=ratings.values[kept])


def spared(ratings, share, seed):
    """Hide a share, but leave each user and each item a rating: rare items are hidden too seldom."""
    order, needed = np.random.default_rng(seed).permutation(len(ratings)), np.zeros(len(ratings), dtype=bool)
    for places in (ratings.rows, ratings.columns):
        needed[order[np.unique(places[order], return_index=True)[1]]] = True
    hidden = np.zeros(len(ratings), dtype=bool)
    hidden[order[~needed[order]][: round(share * len(ratings))]] = True
    return part(ratings, ~hidden), part(ratings, hidden)


def test_the_error_that_is_said_is_that_on_new_ratings():
    """Over many draws the mean difference is no more than chance, where items that are spared make it too low."""
    differences = {rating_fit._split: [], spared: []}
    for seed in range(16):
        drawn = synthetic_ratings(seed, 150, 400, 3000, rank=1, noise=0.5, item_deviation=1.0, round_to=None)
        known = np.random.default_rng(seed).random(len(drawn)) < 0.5
        for split, found in differences.items():
            train, hidden = split(part(drawn, known), 0.2, seed)
            model = L12Recommender(5.0, l2_weight=0.0, max_rank=1).fit(train)
            found.append(model.score(part(drawn, ~known)) - model.score(hidden))
    (mean, error), (spared_mean, spared_error) = (
        (np.mean(found), np.std(found, ddof=1) / 4) for found in differences.values()
    )
    assert abs(mean) < 2 * error
    assert spared_mean < -3 * spared_error
