"""Ratings from columns, by seed and from files as people have them: ids, repeated pairs, formats, damage."""

import bz2
import gzip
import lzma

import numpy as np
import pandas
import pytest
import scipy.io
import scipy.sparse

from ell12.datasets import Ratings, load_ratings, synthetic_ratings


def triples(ratings):
    """The ratings as a set of (user, item, value) by id."""
    users, items = ratings.users[ratings.rows].tolist(), ratings.items[ratings.columns].tolist()
    return set(zip(users, items, ratings.values.tolist(), strict=True))


# From columns


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        (["u7", "u3", "u7"], ["u3", "u7"]),
        ([7, 3, 7], [3, 7]),
        ([-7, 2**60, -7], [-7, 2**60]),
        ([7.0, 3.0, 7.0], [3, 7]),
        (np.array([2**64 - 1, 3, 2**64 - 1], dtype=np.uint64), ["18446744073709551615", "3"]),
        (["ä", "日本", "ä"], ["ä", "日本"]),
    ],
)
def test_ids_are_mapped_and_mapped_back(users, expected):
    ratings = Ratings.from_triples(users, [1, 1, 2], [1.0, 2.0, 3.0])
    assert ratings.users.tolist() == expected
    back = ratings.users[ratings.rows_of(users)].astype(str).tolist()
    assert back == [str(int(u)) if isinstance(u, float) else str(u) for u in users]
    assert len(triples(ratings)) == 3


def test_entries_are_sorted_and_hold_the_triples_zeros_too():
    random = np.random.default_rng(0)
    keys = random.choice(40 * 30, 300, replace=False)
    users, items, values = keys // 30 * 11 + 5, keys % 30, random.standard_normal(300)
    ratings = Ratings.from_triples(users, items, values)
    assert triples(ratings) == set(zip(users.tolist(), items.tolist(), values.tolist(), strict=True))
    position = ratings.rows.astype(int) * len(ratings.items) + ratings.columns
    assert np.all(np.diff(position) > 0)
    ratings = Ratings.from_triples([0, 2, 2], ["a", "b", "c"], [0.0, 1.5, 0.0])
    matrix = ratings.sparse()
    assert (matrix.shape, matrix.nnz) == ((2, 3), 3)
    np.testing.assert_array_equal(matrix.toarray(), [[0, 0, 0], [0, 1.5, 0]])
    assert matrix.indices.tolist() == [0, 1, 2]


def test_of_a_pair_that_occurs_again_the_last_value_counts():
    with pytest.warns(UserWarning, match=r"2 ratings repeat .* the first user a, item 1"):
        ratings = Ratings.from_triples(["a", "b", "a", "a"], [1, 1, 1, 1], [2.0, 9.0, 3.0, 5.0])
    assert triples(ratings) == {("a", 1, 5.0), ("b", 1, 9.0)}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([1, 2], [1, 2], [1.0, np.nan]), "every rating must be a finite number, but entry 1 is nan"),
        (([1, 2], [1, 2], [np.inf, 1.0]), "entry 0 is inf"),
        (([], [], []), "there are no ratings"),
        (([1], [1, 2], [1.0, 2.0]), r"users must have one id per value \(2\)"),
        (([1, 2], [1.5, 2], [1.0, 2.0]), "ids must be whole numbers or strings"),
        (([1, 2], ["a", None], [1.0, 2.0]), "got a missing one"),
        ((["a", pandas.NA], [1, 2], [1.0, 2.0]), "got a missing one"),
        (([1, 2], [1, 2], [[1.0, 2.0]]), "values must be one column"),
    ],
)
def test_what_is_no_rating_is_an_error(columns, message):
    users, items, values = columns
    with pytest.raises(ValueError, match=message):
        Ratings.from_triples(users, np.array(items, dtype=object) if None in items else items, values)


def test_unknown_ids_are_named():
    ratings = Ratings.from_triples([10, 20], ["a", "b"], [1.0, 2.0])
    assert ratings.columns_of(["b", "a"]).tolist() == [1, 0]
    assert ratings.rows_of(["20"]).tolist() == [1]  # as a file of pairs may have it
    with pytest.raises(ValueError, match=r"there is no user 15 \(2 of 3 ids are unknown\)"):
        ratings.rows_of([10, 15, 99])
    with pytest.raises(ValueError, match="there is no item 7"):
        ratings.columns_of([7])
    with pytest.raises(ValueError, match=r"there is no user 15 \(1 of 1 ids are unknown\)"):
        ratings.rows_of(15)


# By seed


def test_a_seed_names_the_ratings():
    first, again, other = (synthetic_ratings(seed, 60, 40, 500) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.values, again.values)
    np.testing.assert_array_equal(first.columns, again.columns)
    assert not np.array_equal(first.columns, other.columns)


@pytest.mark.parametrize("n_ratings", [1, 50, 300, 1190, 1200])
def test_no_pair_twice_at_any_density(n_ratings):
    ratings = synthetic_ratings(0, 40, 30, n_ratings)
    position = ratings.rows.astype(int) * 30 + ratings.columns
    assert (len(ratings), np.unique(position).size) == (n_ratings, n_ratings)
    assert np.all(np.diff(position) > 0)
    if n_ratings >= 70:
        assert np.unique(ratings.rows).size == 40
        assert np.unique(ratings.columns).size == 30


def test_activity_follows_the_power_law():
    ratings = synthetic_ratings(0, 20_000, 10_000, 500_000, exponent=0.6)
    counts = np.sort(np.bincount(ratings.rows))[::-1]
    ranks = np.arange(30, 5000)  # beyond the few that noise orders, before those that have hardly any
    slope = np.polyfit(np.log(ranks), np.log(counts[ranks]), 1)[0]
    assert slope == pytest.approx(-0.6, abs=0.05)
    even = synthetic_ratings(0, 200, 100, 10_000, exponent=0.0)
    assert np.bincount(even.rows).max() < 90  # of 50 on average


def test_values_have_the_parts_that_were_asked_for():
    def spread(**only):
        parts = {"bias_deviations": (0.0, 0.0), "factor_deviation": 0.0, "noise": 0.0}
        ratings = synthetic_ratings(3, 3000, 2000, 200_000, scale=None, round_to=None, mean=7.0, **parts | only)
        assert ratings.values.mean() == pytest.approx(7.0, abs=0.15)
        return ratings.values.std()

    assert spread() == 0
    for part in ({"bias_deviations": (0.3, 0.4)}, {"factor_deviation": 0.5}, {"noise": 0.5}):
        assert spread(**part) == pytest.approx(0.5, rel=0.1)
    values = synthetic_ratings(0, scale=(0.5, 4.0), round_to=0.5).values
    assert set(np.unique(values)) == set(np.arange(1, 9) / 2)


@pytest.mark.parametrize(
    ("count", "exponent", "message"),
    [(0, 0.5, "n_ratings must be from 1 to 6, got 0"), (7, 0.5, "got 7"), (2, 1.0, "exponent must be at least 0")],
)
def test_sizes_that_cannot_be_are_named(count, exponent, message):
    with pytest.raises(ValueError, match=message):
        synthetic_ratings(0, 3, 2, count, exponent=exponent)


# Files

USERS, ITEMS, VALUES = ["7", "3", "7"], ["30", "10", "10"], ["4", "3.5", "5"]
LINES = list(zip(USERS, ITEMS, VALUES, strict=True))
EXPECTED = {(7, 30, 4.0), (3, 10, 3.5), (7, 10, 5.0)}


@pytest.fixture
def load(tmp_path):
    def write_and_load(content, name="ratings.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_ratings(path, **options)

    return write_and_load


@pytest.mark.parametrize("separator", [",", "\t", ";", "|", " ", "::"])
@pytest.mark.parametrize("header", [None, ("user_id", "movieId", "rating")])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_separators_headers_and_line_ends_are_found(load, separator, header, ends):
    lines = [*([header] if header else []), *LINES]
    assert triples(load(ends.join(map(separator.join, lines)) + ends)) == EXPECTED


def test_the_files_of_movielens(load):
    stamps = ["978300760", "978302109", "978301968"]
    rows = [(*line, stamp) for line, stamp in zip(LINES, stamps, strict=True)]
    assert triples(load("\n".join(map("\t".join, rows)), "u.data")) == EXPECTED
    assert triples(load("\n".join(map("::".join, rows)), "ratings.dat")) == EXPECTED
    header = "userId,movieId,rating,timestamp\n"
    assert triples(load(header + "\n".join(map(",".join, rows)) + "\n\n", "ratings.csv")) == EXPECTED


def test_ids_stay_what_they_are(load):
    found = load('user,isbn,rating\n007,"0155061224",5\n7,"08, A",3\nNA,ä,1\n')
    assert triples(found) == {("007", "0155061224", 5.0), ("7", "08, A", 3.0), ("NA", "ä", 1.0)}
    assert load("1,2,3\n").users.dtype == np.int64


def test_columns_separator_and_header_may_be_given(load):
    text = "film#who#stars\n30#7#4\n10#3#3.5\n10#7#5\n"
    assert triples(load(text, columns=("who", "film", "stars"), separator="#")) == EXPECTED
    assert triples(load(text, columns=(1, 0, 2), separator="#", header=True)) == EXPECTED
    assert load("a,b,2\n", header=False).values.tolist() == [2.0]


@pytest.mark.parametrize("name", ["r.csv.gz", "r.CSV.GZ", "r.csv.bz2", "r.csv.xz"])
def test_compressed_text(load, name):
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[name.lower().rpartition(".")[2]]
    assert triples(load(pack("\n".join(map(",".join, LINES)).encode()), name)) == EXPECTED


def test_other_encodings_may_be_named(load):
    text = "user,item,rating\nä,1,2\n"
    for encoding in ("latin-1", "utf-16"):
        assert triples(load(text.encode(encoding), encoding=encoding)) == {("ä", 1, 2.0)}
    assert triples(load(b"\xef\xbb\xbf" + text.encode())) == {("ä", 1, 2.0)}


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_matrix_market(load, tmp_path, suffix):
    matrix = scipy.sparse.coo_array(([4.0, 3.5, 5.0], ([0, 1, 0], [1, 2, 2])), shape=(3, 3))
    scipy.io.mmwrite(tmp_path / "plain.mtx", matrix)
    content = (tmp_path / "plain.mtx").read_bytes()
    found = load(gzip.compress(content) if suffix.endswith("gz") else content, f"r{suffix}")
    np.testing.assert_array_equal(found.sparse().toarray(), matrix.toarray()[:2, 1:])
    assert found.users.tolist() == [1, 2]
    symmetric = load("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 3\n2 1 4\n", "s.mtx")
    np.testing.assert_array_equal(symmetric.sparse().toarray(), [[3, 4], [4, 0]])


def test_parquet_by_its_names(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"rating": [4.0, 3.5, 5.0], "user": [7, 3, 7], "item": ["x", "y", "y"], "time": 0})
    frame.to_parquet(tmp_path / "r.parquet")
    assert triples(load_ratings(tmp_path / "r.parquet")) == {(7, "x", 4.0), (3, "y", 3.5), (7, "y", 5.0)}


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("1,2,3\n4,5,x\n", "r.csv", "values must be numbers: .*x"),
        ("1,2,3\n4,5,inf\n", "r.csv", "entry 1 is inf"),
        ("1,2,3\n,5,1\n", "r.csv", "an id is missing"),
        ("1,2,3\n4,5\n", "r.csv", "values must be numbers"),
        ("1,2\n", "r.csv", "columns must be"),
        ("", "r.csv", "[Nn]o columns"),
        ("user,item,rating\n", "r.csv", "there are no ratings"),
        ("who,item,x,rating\n1,2,3,4\n", "r.csv", "say columns="),
        ("a,b,c,d,e\n1,2,3,4,5\n", "r.csv", "say columns="),
        (gzip.compress(b"1,2,3\n" * 99, mtime=0)[:-9], "r.csv.gz", "end-of-stream"),
        (b"no gzip", "r.csv.gz", "gzip"),
        (b"no bzip", "r.csv.bz2", "Invalid"),
        (gzip.compress(b"\n" * 10**7, mtime=0), "r.csv.gz", "unpacks to more than"),
        (bytes(range(256)), "r.csv", "codec can't decode"),
        ("%%MatrixMarket matrix array real general\n1 1\n1\n", "r.mtx", "dense"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n", "r.mtx", "Truncated"),
        (b"PAR1 damaged", "r.parquet", "."),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_the_file(load, content, name, message):
    with pytest.raises(ValueError, match=rf"{name}: (.|\n)*{message}"):
        load(content, name)


@pytest.mark.parametrize("columns", ["abc", (0, 1), (0, 0, 1), (0, 1, 9), ("x", 1, 2), (True, 1, 2)])
def test_columns_are_three_different_names_or_positions(load, columns):
    with pytest.raises(ValueError, match="column"):
        load("1,2,3\n", columns=columns)
