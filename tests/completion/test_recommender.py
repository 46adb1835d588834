"""Ratings with ids: predictions, recommendations, similar items, warm fits."""

from dataclasses import replace

import numpy as np
import pandas
import pytest
import scipy.sparse
from sklearn.metrics import ndcg_score

from ell12 import L12Imputer, L12Recommender, SpectralL12, complete_matrix
from ell12.completion import AlternatingLeastSquares, Recommendations, ranking
from ell12.completion.ranking import best_columns, ndcg
from ell12.datasets import Ratings, synthetic_ratings

GIVEN = {"alpha": 3.0, "penalty": SpectralL12(l2_weight=0.5), "max_rank": 3}


@pytest.fixture(scope="module")
def ratings():
    drawn = synthetic_ratings(0, 60, 40, 700, rank=2, noise=0.3)
    return replace(
        drawn, users=np.char.add("u", np.char.zfill(drawn.users.astype(str), 2)), items=drawn.items + 500
    )


@pytest.fixture(scope="module")
def model(ratings):
    return L12Recommender(**GIVEN).fit(ratings)


def dense(model):
    """All predictions, uncut."""
    return model.completion_.to_array()


def test_predictions_are_those_of_complete_matrix(ratings, model):
    fitted = complete_matrix(ratings.sparse(), **GIVEN, center="biases", scale=None, tol=1e-3).to_array()
    users, items = np.meshgrid(ratings.users, ratings.items, indexing="ij")
    np.testing.assert_allclose(model.predict(users, items), np.clip(fitted, 1, 5), atol=1e-2)
    np.testing.assert_allclose(model.predict("u07", 503), np.clip(dense(model)[7, 3], 1, 5))


@pytest.mark.parametrize("center", ["biases", None, "columns"])
def test_unknown_ids_have_the_offsets_of_the_other(ratings, center):
    model = L12Recommender(**GIVEN, center=center, clip=None).fit(ratings)
    offsets = model.completion_.offsets
    rows, columns = (np.zeros(60) if bias is None else bias for bias in (offsets.rows, offsets.columns))
    found = model.predict(["u03", "nobody", "nobody"], [-1, 505, -1])
    np.testing.assert_allclose(found, offsets.mean + np.array([rows[3], columns[5], 0.0]))
    np.testing.assert_allclose(model.predict(ratings.users, 501), dense(model)[:, 1])
    if center == "biases":  # so has an empty row or column of a sparse matrix
        X = ratings.sparse()
        X.resize((62, 43))
        wide = L12Recommender(**GIVEN, clip=None).fit(X)
        np.testing.assert_allclose(wide.predict([61, 61, 4], [2, 41, 41]), wide.predict([-1, -1, 4], [2, -1, -1]))


@pytest.mark.parametrize("block", [1, 30, 2**22])
def test_recommendations_are_the_best_of_what_was_not_seen(monkeypatch, ratings, model, block):
    monkeypatch.setattr(ranking, "AT_ONCE", block)
    scores = dense(model)
    scores[ratings.rows, ratings.columns] = -np.inf
    order = np.argsort(-scores, axis=1)[:, :4]
    best = model.recommend(n=4, by="rating")
    np.testing.assert_array_equal(best.users, ratings.users)
    np.testing.assert_array_equal(best.items, ratings.items[order])
    np.testing.assert_allclose(best.scores, np.clip(np.take_along_axis(scores, order, axis=1), 1, 5))
    again = model.recommend(n=40, by="rating", exclude_seen=False)
    assert (again.counts == 40).all()
    assert (model.recommend(n=40).counts == 40 - np.bincount(ratings.rows, minlength=60)).all()


def test_recommendations_for_some_users_among_some_items(ratings, model):
    best = model.recommend(["u09", "nobody", "u02"], 3, by="rating", items=[505, 501, 501, 530, 517])
    assert set(best.items.ravel().tolist()) <= {501, 505, 517, 530, -1}
    scores = dense(model)
    scores[ratings.rows, ratings.columns] = -np.inf
    among = np.array([1, 5, 17, 30])
    row = list(ratings.users).index("u09")
    expected = [500 + j for j in among[np.argsort(-scores[row, among])] if scores[row, j] > -np.inf][:3]
    assert best.items[0, : len(expected)].tolist() == expected
    assert (
        best.items[1].tolist() == (500 + among[np.argsort(-model.completion_.offsets.columns[among])[:3]]).tolist()
    )


def test_new_users_are_those_that_transform_completes(ratings, model):
    random = np.random.default_rng(5)
    X = scipy.sparse.csr_array(np.where(random.random((3, 40)) < 0.2, random.integers(1, 6, (3, 40)), 0.0))
    imputer = L12Imputer(**GIVEN, center="biases", scale=None, clip=None, random_state=0).fit(ratings.sparse())
    imputer.completion_ = model.completion_
    completed = imputer.predict(np.where(X.toarray() > 0, X.toarray(), np.nan))
    seen = X.toarray() > 0
    order = np.argsort(-np.where(seen, -np.inf, completed), axis=1)[:, :5]
    rows, columns = X.nonzero()
    frame = Ratings.from_triples(rows, 500 + columns, X.data)
    best = model.recommend(frame, 5, by="rating")
    np.testing.assert_array_equal(best.items, 500 + order)
    np.testing.assert_allclose(best.scores, np.clip(np.take_along_axis(completed, order, axis=1), 1, 5))
    with pytest.warns(UserWarning, match="1 ratings are of items that the fit does not know: left out"):
        other = model.recommend(Ratings.from_triples([1], [9999], [4.0]), 3, by="rating")
    np.testing.assert_array_equal(other.items, model.recommend(["nobody"], 3, by="rating").items)


def test_similar_items_are_those_of_similar_columns(model, ratings):
    X = model.completion_.x.to_array()
    lengths = np.linalg.norm(X, axis=0)
    cosines = X.T @ X / lengths / lengths[:, None]
    np.fill_diagonal(cosines, -np.inf)
    best = model.similar_items([503, 510], 4)
    np.testing.assert_array_equal(best.items, 500 + np.argsort(-cosines[[3, 10]], axis=1)[:, :4])
    np.testing.assert_allclose(best.scores, -np.sort(-cosines[[3, 10]], axis=1)[:, :4])
    one = model.similar_users("u04", 2)
    assert one.items.shape == (1, 2)
    assert "u04" not in one.items
    with pytest.raises(ValueError, match="there is no item 7"):
        model.similar_items([7])


def test_an_item_with_one_excellent_rating_does_not_come_first(ratings):
    """With nothing taken off it does, for nearly everybody."""
    extra = Ratings.from_triples(["u01", "u02"], [998, 999], [5.0, 5.0])
    all_ratings, quick = ratings.updated(extra), {"max_rank": 2}
    share = []
    for center, weight in (("biases", 0.5), (None, 1)):
        model = L12Recommender(**quick, center=center, penalty=SpectralL12(l2_weight=weight)).fit(all_ratings)
        share.append(np.isin(model.recommend(n=1, by="rating").items, [998, 999]).mean())
    assert (share[0] < 0.05, share[1] > 0.5) == (True, True)


def test_containers_of_ratings_give_the_same_model(ratings, model):
    lines = {"stars": ratings.values, "who": ratings.users[ratings.rows], "film": ratings.items[ratings.columns]}
    shuffled = pandas.DataFrame(lines).sample(frac=1, random_state=0)
    named = L12Recommender(**GIVEN, columns=("who", "film", "stars")).fit(shuffled)
    known = L12Recommender(**GIVEN).fit(shuffled.rename(columns={"who": "userId", "film": "movie_id"}))
    by_index = L12Recommender(**GIVEN).fit(ratings.sparse())
    for other in (named, known, by_index):
        np.testing.assert_array_equal(dense(other), dense(model))
    assert by_index.users_.tolist() == list(range(60))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: L12Recommender().fit(np.eye(3)), "a DataFrame or a sparse matrix; got ndarray"),
        (lambda r: Ratings.of(pandas.DataFrame(np.eye(6))), "not known by name among 0, 1, 2, 3, 4, 5"),
        (lambda r: L12Recommender(clip=(5, 1)).fit(r), "clip must be a pair"),
        (lambda r: L12Recommender().fit(replace(r, values=1e200 * r.values)), "ratings holds numbers up to 5e"),
        (lambda r: L12Recommender(**GIVEN).fit(r).recommend(n=None), "n must be a whole number >= 1, got None"),
        (lambda r: L12Recommender(**GIVEN).fit(r).recommend(by="luck"), "by must be"),
        (lambda r: L12Recommender(**GIVEN).fit(r).recommend(["u09"], items=[9]), "there is no item 9"),
    ],
)
def test_what_holds_no_ratings_or_is_no_choice_is_refused(ratings, call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(ratings)


def test_a_warm_fit_is_the_fit_of_all_ratings():
    """Convex, so that there is one solution wherever it begins."""
    drawn = synthetic_ratings(1, 50, 30, 600, rank=2, noise=0.3)
    old = drawn.rows < 45
    old = Ratings.from_triples(drawn.rows[old], drawn.columns[old], drawn.values[old])
    new = np.flatnonzero((drawn.rows >= 45) | (np.arange(600) % 10 == 0))
    new = Ratings.from_triples(drawn.rows[new], drawn.columns[new] + 2, np.full(new.size, 2.0))
    shape = {"alpha": 3.0, "penalty": SpectralL12(l2_weight=0.0), "max_rank": 8}
    settings = shape | {"solver": AlternatingLeastSquares(8), "tol": 1e-5}
    warm = L12Recommender(**settings).fit(old).refit(new, tol=1e-5)
    merged = {}
    for given in (old, new):
        pairs = zip(given.users[given.rows], given.items[given.columns], strict=True)
        merged |= dict(zip(pairs, given.values, strict=True))
    users, items = (np.array(ids) for ids in zip(*merged, strict=True))
    fresh = L12Recommender(**settings).fit(Ratings.from_triples(users, items, list(merged.values())))
    np.testing.assert_array_equal(warm.users_, fresh.users_)
    np.testing.assert_array_equal(warm.ratings_.values, fresh.ratings_.values)
    np.testing.assert_allclose(dense(warm), dense(fresh), atol=1e-3)


def test_a_warm_fit_keeps_choices_and_takes_few_steps(ratings):
    random = np.random.default_rng(0).permutation(len(ratings))
    model = L12Recommender(max_rank=2).fit(ratings.part(np.sort(random[40:])))
    alpha, chosen, first = model.alpha_, (model.penalty_.l2_weight, model.center_, model.max_rank_), model.n_iter_
    model.refit(ratings.part(np.sort(random[:40])))
    assert (model.penalty_.l2_weight, model.center_, model.max_rank_) == chosen
    assert model.alpha_ == pytest.approx(alpha * np.sqrt(len(ratings) / (len(ratings) - 40)))
    assert model.n_iter_ < first / 2
    given = (
        L12Recommender(**GIVEN).fit(ratings.part(np.sort(random[40:]))).refit(ratings.part(np.sort(random[:40])))
    )
    assert given.alpha_ == 3.0


def test_ids_of_another_kind_are_merged_as_text(ratings):
    numbers = synthetic_ratings(2, 30, 20, 200)
    model = L12Recommender(**GIVEN).fit(numbers)
    old = model.predict([3], [4])
    model.refit(Ratings.from_triples(["eve"], [4], [3.0]))
    assert model.users_.tolist() == sorted([*map(str, range(30)), "eve"])
    np.testing.assert_allclose(model.predict(["3"], [4]), old, atol=0.2)


def test_ndcg_is_that_of_scikit_learn():
    drawn = synthetic_ratings(3, 30, 25, 400, rank=2, noise=0.3, round_to=None)
    random = np.random.default_rng(0).permutation(len(drawn))
    train, test = drawn.part(np.sort(random[120:])), drawn.part(np.sort(random[:120]))
    model = L12Recommender(**GIVEN).fit(train)
    scores, gains = dense(model), np.zeros(drawn.shape)
    gains[test.rows, test.columns] = np.maximum(test.values - train.values.min(), 0.0)
    some = gains.max(axis=1) > 0
    scores[train.rows, train.columns] = -1e6
    expected = pytest.approx(ndcg_score(gains[some], scores[some], k=5))
    assert model.ndcg(test, 5, by="rating") == expected
    elsewhere = test.updated(Ratings.from_triples([0, 99], [99, 3], [5.0, train.values.min()]))
    assert model.ndcg(elsewhere, 5, by="rating") == expected  # an item that it does not know is left out


def taste(seed=0, users=200, items=80):
    """Users take up what is near their taste, and rate it by chance."""
    random = np.random.default_rng(seed)
    W, H = random.standard_normal((users, 3)), random.standard_normal((items, 3))
    likely = 1 / (1 + np.exp(1.5 - 1.5 * W @ H.T - 0.7 * random.standard_normal(items)))
    rows, columns = np.nonzero(random.random((users, items)) < likely)
    drawn = Ratings.from_triples(rows, columns, random.integers(2, 6, rows.size).astype(float))
    hidden = random.random(len(drawn)) < 0.2
    return drawn.part(~hidden), drawn.part(hidden)


def test_lists_by_interest_find_what_users_take_up():
    train, test = taste()
    model = L12Recommender(5.0).fit(train)
    popularity = np.bincount(train.columns, minlength=80).astype(float)
    scores = np.where(train.sparse().toarray() > 0, -np.inf, popularity)
    gains = scipy.sparse.csr_array((test.values - train.values.min(), (test.rows, test.columns)), train.shape)
    by_popularity = ndcg(np.argsort(-scores, axis=1)[:, :10], gains)
    assert model.ndcg(test) > 1.15 * by_popularity > model.ndcg(test, by="rating")


def test_interest_is_the_same_for_new_users_in_other_units_and_without_ratings():
    train, _ = taste()
    model = L12Recommender(5.0).fit(train)
    best, again = model.recommend(n=5), model.recommend(train, n=5)
    np.testing.assert_array_equal(best.items, again.items)
    np.testing.assert_allclose(best.scores, again.scores)
    # Of three factors; it is 1 or 32 if hidden ratings are among those that lists are made from.
    assert model._interest.V.shape == (80, 4)
    other = L12Recommender(5.0).fit(replace(train, values=10 * train.values - 7))
    np.testing.assert_array_equal(other.recommend(n=5).items, best.items)
    unknown = model.recommend([10**6], 3).items[0]
    assert set(unknown.tolist()) <= set(np.argsort(-np.bincount(train.columns, minlength=80))[:20].tolist())


def test_no_columns_and_equal_ones():
    assert best_columns(np.ones((2, 3)), np.ones((4, 3)), 4)[0].tolist() == [[0, 1, 2, 3]] * 2
    columns, entries = best_columns(np.ones((2, 3)), np.zeros((0, 3)), 2)
    assert ((columns == -1) & np.isnan(entries)).all()
    gains = scipy.sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    assert ndcg(np.full((2, 3), -1), gains) == 0
    assert np.isnan(ndcg(np.zeros((2, 1), dtype=int), 0 * gains))


@pytest.mark.parametrize(("ids", "nobody"), [(np.array([10, 20, 30]), -1), (np.array(["a", "b", "c"]), "")])
def test_recommendations_as_a_frame_leave_out_what_fills_up(ids, nobody):
    found = np.array([[2, 0], [1, -1]]), np.array([[7.0, 3.0], [4.0, np.nan]])
    best = Recommendations.of(np.array([5, 6]), ids, found)
    assert best.items.tolist() == [[ids[2], ids[0]], [ids[1], nobody]]
    assert best.counts.tolist() == [2, 1]
    frame = best.to_frame()
    assert frame.to_dict("list") == {"user": [5, 5, 6], "item": ids[[2, 0, 1]].tolist(), "score": [7.0, 3.0, 4.0]}
