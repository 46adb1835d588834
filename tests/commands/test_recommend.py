"""``ell12 predict`` and ``ell12 recommend`` as their user meets them: a model in, lines out."""

import csv
import re

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'report'")

from ell12 import L12Recommender
from ell12.commands import rating_job
from ell12.datasets import Ratings, synthetic_ratings


@pytest.fixture(scope="module")
def model():
    drawn = synthetic_ratings(0, 30, 20, 250, rank=2)
    items = np.array([*(f"film {k:02d}" for k in range(19)), "zz =1+1"])
    ratings = Ratings(drawn.rows, drawn.columns, drawn.values, drawn.users, items)
    return L12Recommender(3.0, max_rank=2).fit(ratings)


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "m.npz")
    return tmp_path / "m.npz"


def lines(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_predictions_are_those_of_the_model(call, model, path, tmp_path):
    pairs = tmp_path / "p.csv"
    pairs.write_text("item,user,rating\nfilm 03,4,5\nfilm 05,7,2\nnothing,7,3\n")
    outcome = call("predict", path, pairs)
    assert outcome.code == 0, outcome
    expected = model.predict([4, 7, 7], ["film 03", "film 05", "nothing"])
    found = lines(tmp_path / "p.predicted.csv")
    assert [row[:2] for row in found] == [["user", "item"], ["4", "film 03"], ["7", "film 05"], ["7", "nothing"]]
    np.testing.assert_allclose([float(row[2]) for row in found[1:]], expected, rtol=1e-5)
    error = np.sqrt(np.mean((expected - [5, 2, 3]) ** 2))
    assert outcome.out.splitlines() == [
        "1 of 3 pairs hold a user or an item without ratings: the mean and the other's bias predict them",
        f"RMSE on the 3 values beside the pairs: {error:.4f}",
        f"Predictions: {tmp_path / 'p.predicted.csv'}",
    ]


def test_recommendations_are_those_of_the_model(call, model, path, tmp_path):
    outcome = call("recommend", path, "-n", "3")
    assert outcome.code == 0, outcome
    best, found = model.recommend(n=3), lines(tmp_path / "m.recommended.csv")
    users, items, scores = best.lines()
    assert found[0] == ["user", "item", "score"]
    assert [row[0] for row in found[1:]] == [str(user) for user in users]
    assert [row[1].removeprefix("'") for row in found[1:]] == items.tolist()
    np.testing.assert_allclose([float(row[2]) for row in found[1:]], scores, rtol=1e-5)


def test_recommendations_for_some_users_and_for_strangers(call, model, path, tmp_path):
    target = tmp_path / "some.csv"
    outcome = call("recommend", path, "--users", "7, eve", "-n", "100", "--include-seen", "--out", target)
    assert outcome.out.splitlines() == [
        "1 of 2 users have no ratings: the items' biases choose",
        "2 of 2 users have fewer than 100 items left",
        f"Recommendations: {target}",
    ]
    assert [row[0] for row in lines(target)[1:]] == ["7"] * 20 + ["eve"] * 20
    (tmp_path / "users.txt").write_text("\ufeff7\n\n4\n", encoding="utf-8")
    outcome = call(
        "recommend", path, "--users-file", tmp_path / "users.txt", "-n", "1", "--out", target, "--force"
    )
    assert outcome.code == 0, outcome
    assert [row[1] for row in lines(target)[1:]] == model.recommend([7, 4], 1).items[:, 0].tolist()


def test_no_id_is_written_that_a_spreadsheet_executes(call, tmp_path):
    ratings = Ratings.from_triples(["=a", "b", "=a", "b"], ["@x", "@x", "y", "z"], [5.0, 4.0, 1.0, 2.0])
    L12Recommender(1.0).fit(ratings).save(tmp_path / "m.npz")
    outcome = call("recommend", tmp_path / "m.npz", "--include-seen")
    assert "ids look like formulas to a spreadsheet" in outcome.out
    assert {cell[0] for row in lines(tmp_path / "m.recommended.csv") for cell in row[:2]}.isdisjoint("=@")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "{0}/no.npz", "{0}/p.csv"), "cannot read {0}/no.npz: No such file or directory"),
        (("predict", "{0}/p.csv", "{0}/p.csv"), "p.csv holds no model of ell12, or is damaged"),
        (("predict", "{0}/m.npz", "{0}/no.csv"), "cannot read {0}/no.csv"),
        (("predict", "{0}/m.npz", "{0}/p.csv", "--out", "{0}/p.txt"), "p.txt has an unknown suffix"),
        (("predict", "{0}/m.npz", "{0}/p.csv", "--out", "{0}/p.csv", "--force"), "p.csv is read from"),
        (("predict", "{0}/m.npz", "{0}/p.csv", "--columns", "a,b"), "--columns must be three names or positions"),
        (("recommend", "{0}"), "{0} is a folder: name a file"),
        (("recommend", "{0}/m.npz", "--out", "{0}/no/r.csv"), "cannot write to the folder {0}/no"),
        (("recommend", "{0}/m.npz", "--users", ","), "there are no users to recommend anything to"),
        (("recommend", "{0}/m.npz", "--users", "1", "--users-file", "{0}/p.csv"), "give one of them"),
        (("recommend", "{0}/m.npz", "--users-file", "{0}/no"), "cannot read {0}/no"),
        (("recommend", "{0}/m.npz", "--users-file", "{0}/m.npz"), "m.npz is no text in utf-8"),
        (("recommend", "{0}/m.npz", "--out", "{0}/there.csv"), "there.csv is there already: add --force"),
    ],
)
def test_bad_use_is_one_clear_line(call, path, tmp_path, arguments, message):
    (tmp_path / "p.csv").write_text("1,film 02\n")
    (tmp_path / "there.csv").write_text("precious")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    outcome = call(*(argument.format(tmp_path) for argument in arguments))
    assert outcome.code == (1 if re.search("^cannot|no model|no text", message) else 2)
    assert outcome.error.startswith("ell12: ")
    assert message.format(tmp_path) in outcome.error
    assert outcome.error.count("\n") == 1
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_model_that_does_not_know_what_was_seen_says_what_to_do(call, model, tmp_path):
    x, offsets = model.completion_.x, model.completion_.offsets
    content = {"U": x.U, "s": x.s, "V": x.V, "users": model.users_, "items": model.items_}
    content |= {"mean": offsets.mean, "user_offsets": offsets.rows, "item_offsets": offsets.columns}
    np.savez(tmp_path / "old.npz", **content, alpha=3.0, l2_weight=0.5, limits=np.array([1.0, 5.0]))
    outcome = call("recommend", tmp_path / "old.npz", "-n", "2")
    assert outcome.code == 1
    assert "fit it again, or add --include-seen" in outcome.error
    assert call("recommend", tmp_path / "old.npz", "-n", "2", "--include-seen").code == 0
    best = model.recommend(n=2, exclude_seen=False)
    assert [
        row[1].removeprefix("'") for row in lines(tmp_path / "old.recommended.csv")[1:]
    ] == best.items.ravel().tolist()


def test_ctrl_c_writes_nothing(call, path, monkeypatch, tmp_path):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(rating_job, "recommend", interrupted)
    outcome = call("recommend", path)
    assert outcome.code == 130
    assert outcome.out == "Stopped: nothing is written.\n"
    assert list(tmp_path.iterdir()) == [path]


def test_from_ratings_to_lists(call, tmp_path):
    source = tmp_path / "r.csv"
    source.write_text("".join(f"u{k % 9},i{k % 7},{1 + k % 5}\n" for k in range(50)))
    assert call("complete", source, "--alpha", "1", "--out", tmp_path / "m.npz").code == 0
    assert call("recommend", tmp_path / "m.npz", "--users", "u3", "-n", "2").code == 0
    seen = {f"i{k % 7}" for k in range(50) if k % 9 == 3}
    assert not seen & {row[1] for row in lines(tmp_path / "m.recommended.csv")[1:]}
