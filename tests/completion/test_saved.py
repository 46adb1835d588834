"""Models as files without pickles."""

import json

import numpy as np
import pytest

from ell12 import BlockAPG, L12Imputer, L12Recommender, LowRank
from ell12.completion import saved
from ell12.datasets import Ratings, synthetic_ratings

GIVEN = {"alpha": 3.0, "l2_weight": 0.5, "max_rank": 3}


@pytest.fixture(scope="module", params=["numbers", "text"])
def model(request):
    drawn = synthetic_ratings(0, 40, 30, 400, rank=2)
    users = drawn.users if request.param == "numbers" else np.char.add("ü ", drawn.users.astype(str))
    ratings = Ratings(drawn.rows, drawn.columns, drawn.values, np.sort(users), drawn.items)
    return L12Recommender(**GIVEN, clip=(1, 4), columns=("a", "b", "c")).fit(ratings)


def test_a_recommender_comes_back_to_the_bit(model, tmp_path):
    model.save(tmp_path / "m.npz")
    loaded = L12Recommender.load(tmp_path / "m.npz")
    assert loaded.get_params() == model.get_params()
    for name in ("alpha_", "l2_weight_", "max_rank_", "center_", "clip_", "n_iter_", "lowest_"):
        assert getattr(loaded, name) == getattr(model, name), name
    assert loaded.completion_.status is model.completion_.status
    assert loaded.users_.dtype == model.users_.dtype
    users = [*model.users_[:3], "nobody"]
    np.testing.assert_array_equal(loaded.predict(users, [1, 2, -5, 3]), model.predict(users, [1, 2, -5, 3]))
    for call in (lambda m: m.recommend(n=5), lambda m: m.similar_items([3], 4), lambda m: m.recommend(m.ratings_)):
        ours, theirs = call(model), call(loaded)
        np.testing.assert_array_equal(ours.items, theirs.items)
        np.testing.assert_array_equal(ours.scores, theirs.scores)
    new = Ratings.from_triples([model.users_[0], "new"], [0, 1], [5.0, 1.0])
    refitted = [L12Recommender.load(tmp_path / "m.npz").refit(new).completion_ for _ in range(2)]
    np.testing.assert_array_equal(refitted[0].to_array(), refitted[1].to_array())


@pytest.mark.parametrize("center", [None, "columns"])
def test_strangers_come_back_whatever_was_taken_off(tmp_path, center):
    X = synthetic_ratings(1, 30, 20, 200).sparse()
    X.resize((31, 21))
    model = L12Recommender(**GIVEN, center=center).fit(X)
    model.save(tmp_path / "m.npz")
    loaded = L12Recommender.load(tmp_path / "m.npz")
    everyone = np.arange(-1, 31)[:, None], np.arange(-1, 21)[None, :]
    np.testing.assert_array_equal(loaded.predict(*everyone), model.predict(*everyone))


def old_file(model, path):
    """What `ell12 complete` wrote before models could be loaded."""
    x, offsets = model.completion_.x, model.completion_.offsets
    content = {"U": x.U, "s": x.s, "V": x.V, "users": model.users_, "items": model.items_}
    content |= {"mean": np.float64(offsets.mean), "user_offsets": offsets.rows, "item_offsets": offsets.columns}
    content |= {"alpha": np.float64(3.0), "l2_weight": np.float64(0.5), "limits": np.array(model.clip_)}
    np.savez_compressed(path, **content)


def test_files_of_old_are_read(model, tmp_path):
    old_file(model, tmp_path / "old.npz")
    loaded = L12Recommender.load(tmp_path / "old.npz")
    users = [*model.users_[:3], "nobody"]
    np.testing.assert_allclose(loaded.predict(users, [1, 2, 3, 3]), model.predict(users, [1, 2, 3, 3]))
    best = loaded.recommend(model.users_[:2], 3, exclude_seen=False)
    np.testing.assert_array_equal(best.items, model.recommend(model.users_[:2], 3, exclude_seen=False).items)
    for call in (loaded.recommend, lambda: loaded.refit(model.ratings_), lambda: loaded.ndcg(model.ratings_)):
        with pytest.raises(ValueError, match="the file of this model does not hold the ratings"):
            call()


def test_the_arrays_of_old_are_still_there(model, tmp_path):
    model.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        i, j = 4, 7
        value = file["mean"] + file["user_offsets"][i] + file["item_offsets"][j]
        value = np.clip(value + (file["U"][i] * file["s"]) @ file["V"][j], *file["limits"])
        assert value == pytest.approx(model.predict(file["users"][i], file["items"][j]))
        assert (file["alpha"], file["l2_weight"]) == (3.0, 0.5)
    assert LowRank.load(tmp_path / "m.npz").rank == model.completion_.x.rank


def test_damaged_and_foreign_files_are_said_to_be_so(model, tmp_path):
    path = tmp_path / "m.npz"
    model.save(path)
    whole = path.read_bytes()
    inside = whole.index(b"values.npy") + 40  # of packed numbers
    flipped = whole[:inside] + bytes([whole[inside] ^ 0xFF]) + whole[inside + 1 :]
    for content in (whole[:-100], whole[: len(whole) // 2], flipped, b"", b"PK no", b"user,item\n"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"m\.npz holds no model of ell12, or is damaged"):
            L12Recommender.load(path)
    np.savez(path, a=np.arange(3))
    with pytest.raises(ValueError, match="'U' is missing"):
        L12Recommender.load(path)
    with pytest.raises(FileNotFoundError):
        L12Recommender.load(tmp_path / "no.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"users": np.arange(3)}, "the ids and offsets do not fit the factors"),
        ({"rows": np.full(400, 99, dtype=np.int32)}, "rows must lie in 0 .. 39"),
        ({"V": np.full((30, 3), np.nan)}, "hold NaN or infinity"),
        ({"U": np.array([object()])}, "damaged"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(model, tmp_path, change, message):
    path = tmp_path / "m.npz"
    model.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | change)
    with pytest.raises(ValueError, match=message):
        L12Recommender.load(path)


def test_another_format_and_another_kind_are_named(model, tmp_path):
    path = tmp_path / "m.npz"
    model.save(path)
    with pytest.raises(ValueError, match=r"it is that of an L12Recommender, not of an L12Imputer: use L12Rec"):
        L12Imputer.load(path)
    with np.load(path) as file:
        arrays = dict(file)
    described = json.loads(arrays[saved.DESCRIPTION].tobytes()) | {"format": 99}
    arrays[saved.DESCRIPTION] = np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="its format 99 is not 1"):
        L12Recommender.load(path)


def test_an_imputer_comes_back_to_the_bit(tmp_path):
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    X = random.standard_normal((20, 2)) @ random.standard_normal((2, 5)) * [1, 10, 100, 1, 1]
    X[random.random(X.shape) < 0.3] = np.nan
    X = pandas.DataFrame(X, columns=list("abcde")).assign(f=np.arange(20), g=pandas.array([1, None] * 10, "Int8"))
    imputer = L12Imputer(alpha=1.0, random_state=0, engine=BlockAPG()).fit(X).set_output(transform="pandas")
    imputer.save(tmp_path / "i.npz")
    loaded = L12Imputer.load(tmp_path / "i.npz")
    assert loaded.engine == "auto"  # a solver is not written
    pandas.testing.assert_frame_equal(loaded.transform(X), imputer.transform(X))
    assert loaded.transform(X)["g"].dtype == "Int8"
    np.testing.assert_allclose(loaded.intervals([0, 1], [2, 3]), imputer.intervals([0, 1], [2, 3]))
    np.testing.assert_array_equal(loaded.predict([0, 1], [2, 3]), imputer.predict([0, 1], [2, 3]))
    assert loaded.get_feature_names_out().tolist() == imputer.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(X[list("gfedcba")])
