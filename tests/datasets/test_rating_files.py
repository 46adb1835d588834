"""Files of ratings as people have them: formats, ids, damage."""

import bz2
import gzip
import lzma

import numpy as np
import pandas
import pytest
import scipy.io
import scipy.sparse

from ell12.datasets import Ratings, load_ratings

USERS, ITEMS, VALUES = ["7", "3", "7"], ["30", "10", "10"], ["4", "3.5", "5"]
LINES = list(zip(USERS, ITEMS, VALUES, strict=True))
EXPECTED = {(7, 30, 4.0), (3, 10, 3.5), (7, 10, 5.0)}


def triples(ratings):
    users, items = ratings.users[ratings.rows].tolist(), ratings.items[ratings.columns].tolist()
    return set(zip(users, items, ratings.values.tolist(), strict=True))


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


def test_duplicates_are_reported(load):
    with pytest.warns(UserWarning, match="1 ratings repeat a"):
        assert triples(load("1,2,3\n1,2,4\n")) == {(1, 2, 4.0)}


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


def test_frames_and_sparse_matrices_are_ratings_too():
    frame = pandas.DataFrame({"stars": [4.0, 2.0], "who": ["a", "b"], "film": [1, 2]})
    assert triples(Ratings.of(frame, ("who", "film", "stars"))) == {("a", 1, 4.0), ("b", 2, 2.0)}
    assert triples(Ratings.of(scipy.sparse.csr_array([[0, 2.0]]))) == {(0, 1, 2.0)}
    with pytest.raises(TypeError, match="ratings must be Ratings, a DataFrame or a sparse matrix; got list"):
        Ratings.of([1, 2, 3])
