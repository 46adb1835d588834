"""Files of ratings: every format, and an error that names the line for whatever cannot be read."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array

from ell12.datasets import load_ratings, rating_files, synthetic_ratings, text_files


@pytest.fixture
def load(tmp_path):
    """Write a file and load it."""

    def write_and_load(content, name="ratings.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_ratings(path, **options)

    return write_and_load


def entries(ratings):
    users, items = ratings.users[ratings.rows].tolist(), ratings.items[ratings.columns].tolist()
    return list(zip(users, items, ratings.values.tolist(), strict=True))


EXPECTED = [(1, 20, 4.0), (1, 30, 3.5), (2, 20, 5.0)]
TIMED = "1{0}30{0}3.5{0}881250949\n2{0}20{0}5{0}881250950\n1{0}20{0}4{0}881250951\n"


@pytest.mark.parametrize("separator", ["::", "\t", ";", ",", "|", " "])
@pytest.mark.parametrize("header", ["", "user{0}item{0}rating{0}timestamp\n"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_separators_headers_and_line_ends_are_detected(load, separator, header, ends):
    text = (header + TIMED).format(separator).replace("\n", ends)
    assert entries(load(text)) == EXPECTED


@pytest.mark.parametrize(
    "text",
    [
        "1,30,3.5\n2,20,5\n1,20,4",
        "\n1,30,3.5\n\n2,20,5\n1,20,4\n\n\n",
        "# from somewhere\n% more\n1,30,3.5\n2,20,5\n1,20,4\n",
        "\ufeff1,30,3.5\n2,20,5\n1,20,4\n",
        "1, 30, 3.5\n2 ,20 ,5.0\n1,20,+4.0e0\n",
        '"1","30","3.5"\n"2","20","5"\n"1","20","4"\n',
        "userId,movieId,rating\n1,30,3.5\n2,20,5\n1,20,4\n",
        "timestamp,Rating,ISBN,User_ID\n9,3.5,30,1\n9,5,20,2\n9,4,20,1\n",
        "a,b,c\n1,30,3.5\n2,20,5\n1,20,4\n",
    ],
    ids=["no end", "blank", "comments", "mark", "blanks", "quotes", "names", "other order", "unknown names"],
)
def test_what_files_may_look_like(load, text):
    assert entries(load(text)) == EXPECTED


def test_columns_separator_and_header_may_be_given(load):
    assert entries(load("x,y,z\n5,1,3\n", columns=("z", "y", "x"))) == [(3, 1, 5.0)]
    assert entries(load("5,1,3\n", columns=(2, 1, 0))) == [(3, 1, 5.0)]
    assert entries(load("user~item~7\n1~2~3\n", separator="~", header=True)) == [(1, 2, 3.0)]
    assert entries(load("1,2,3\n4,5,6\n", header=True)) == [(4, 5, 6.0)]
    with pytest.raises(ValueError, match="there is no column 'stars'; the first line is x, y, z"):
        load("x,y,z\n5,1,3\n", columns=("x", "y", "stars"))
    with pytest.raises(ValueError, match="there is no column 9; there are 3, from 0 on"):
        load("5,1,3\n", columns=(0, 1, 9))


@pytest.mark.parametrize("columns", [("user", "item"), (0, 1), (0, 1, 2, 2), "uir", (0, None, 2), (0, 1.5, 2), ()])
def test_columns_are_three_names_or_positions(load, columns):
    with pytest.raises(ValueError, match="columns must be three names or positions"):
        load("user,item,rating\n1,30,3.5\n", columns=columns)


@pytest.mark.parametrize("header", ["id,userId,movieId,mine", "time,person,film,rating", "movie,who,rating,time"])
def test_a_header_that_names_only_some_columns_elsewhere_is_no_guess(load, header):
    with pytest.raises(ValueError, match=r"columns .* are named, but not all of user, item and value.*columns="):
        load(f"{header}\n7,1,30,4\n8,2,20,5\n")
    assert entries(load(f"{header}\n7,1,30,4\n", columns=(1, 2, 3))) == [(1, 30, 4.0)]


@pytest.mark.parametrize("separator", ["||", " - ", "§", "→"])
def test_separators_of_any_length(load, separator):
    assert entries(load(TIMED.format(separator), separator=separator)) == EXPECTED


def test_a_tab_is_no_double_colon(load):
    with pytest.raises(ValueError, match="line 2: 4 fields are expected, but there are 3"):
        load("1::2::3::881\n4\t5::6::882\n")


def test_ids_stay_what_they_are(load):
    text = 'user,item,rating\nalice,"Alien, 1979",5\nbob,Up,3\nalice,Up,4.5\n'
    assert entries(load(text)) == [("alice", "Alien, 1979", 5.0), ("alice", "Up", 4.5), ("bob", "Up", 3.0)]
    # Zeros in front, more digits than a number holds, and fractions are kept by staying strings.
    assert load("007,1,3\n7,2,3\n").users.tolist() == ["007", "7"]
    assert load("90071992547409930001,1,3\n90071992547409930002,1,3\n").shape == (2, 1)
    assert load("1.0,1,3\n1,1,3\n").users.tolist() == ["1", "1.0"]
    assert load("-3,1,3\n4,1,3\n").users.tolist() == [-3, 4]
    assert load("grüße,1,3\n".encode("latin-1"), encoding="latin-1").users.tolist() == ["grüße"]


def test_ids_in_quotes_between_blanks(load):
    text = '1  "Alien, 1979" 5\n"2" "say ""hi""" 3 \n'
    assert entries(load(text)) == [(1, "Alien, 1979", 5.0), (2, 'say "hi"', 3.0)]


@pytest.mark.parametrize(
    ("header", "expected"),
    [("title,count,userId,movieId,rating", (3, 4, 5.0)), ("weight,ISBN,username,item,score", (3, 4, 5.0))],
)
def test_of_several_known_names_the_plainest_counts(load, header, expected):
    assert entries(load(f"{header}\n1,2,3,4,5\n")) == [expected]


@pytest.mark.parametrize("columns", [(0, 0, 2), (0, 1, 1), ("user", 0, "rating")])
def test_columns_are_three_different_ones(load, columns):
    with pytest.raises(ValueError, match="columns must be three different ones"):
        load("user,item,rating\n1,30,3.5\n", columns=columns)


def test_blocks_join_to_the_same_ratings(load, monkeypatch, tmp_path):
    ratings = synthetic_ratings(0, 50, 40, 900)
    lines = [f"{u},{i},{v:g}" for u, i, v in entries(ratings)]
    text = "\n".join(lines)
    whole = load(text)
    monkeypatch.setattr(text_files, "_BLOCK", 97)
    assert entries(load(text)) == entries(whole) == entries(ratings)
    named = [f"user {line}" if k > 600 else line for k, line in enumerate(lines)]  # strings from some block on
    assert set(load("\n".join(named)).users[:3]) <= {str(k) for k in range(50)} | {f"user {k}" for k in range(50)}
    lines[700] = "3,4,x"
    with pytest.raises(ValueError, match="line 701: the rating 'x' is not a finite number"):
        load("\n".join(lines))


def test_both_readers_agree(load):
    ratings = synthetic_ratings(1, 300, 200, 5000, round_to=None)
    plain = "".join(f"{u},{i},{v!r}\n" for u, i, v in entries(ratings))
    assert entries(load(plain)) == entries(ratings)
    assert entries(load(plain.replace(",", " , "))) == entries(ratings)  # blanks: line by line


@pytest.mark.parametrize("packer", [gzip, bz2, lzma])
@pytest.mark.parametrize("capitals", [False, True])
def test_compressed_text(load, packer, capitals):
    suffix = {gzip: ".gz", bz2: ".bz2", lzma: ".xz"}[packer]
    name = f"ratings.csv{suffix.upper() if capitals else suffix}"
    assert entries(load(packer.compress(TIMED.format(",").encode()), name)) == EXPECTED
    assert len(load(packer.compress(MATRIX.encode()), name.replace("csv", "mtx"))) == 2
    whole = packer.compress(TIMED.format(",").encode() * 50)
    for content in (whole[:-12], b"no archive"):
        with pytest.raises(ValueError, match=rf"{name} is damaged or cut off"):
            load(content, name)
    with pytest.raises(FileNotFoundError):
        load_ratings(f"missing{suffix}")


GOOD = "".join(f"{k},{k % 7},3\n" for k in range(100))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2", "line 101: 3 fields are expected, but there are 2 in '1,2'"),
        ("1,2,3,4", "line 101: 3 fields are expected, but there are 4"),
        ("1,2,", "line 101: the rating '' is not a finite number"),
        ("1,2,nan", "line 101: the rating 'nan' is not a finite number"),
        ("1,2,1e999", "line 101: the rating '1e999' is not a finite number"),
        ("1,2,1_0", "line 101: the rating '1_0' is not a finite number"),
        ("1,,3", "line 101: an id is missing in '1,,3'"),
        ('1,"2,3', "line 101: unexpected end of data"),
        ("1,2,3\r4,5,6", "line 101: 3 fields are expected, but there are 5"),
        ("1,2,3\0", "line 101: a zero byte: is it a binary file"),
        (b"1,2\xff,3", "line 101: not utf-8 text"),
    ],
)
def test_a_bad_line_is_named(load, line, message):
    raw = line if isinstance(line, bytes) else line.encode()
    with pytest.raises(ValueError, match=rf"ratings\.csv, {message}"):
        load(GOOD.encode() + raw + b"\n" + GOOD.encode())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no ratings"),
        (b"\n\n", "holds no ratings"),
        (b"user,item,rating\n", "holds no ratings"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "line 1: not utf-8 text: .*; is it a binary file"),
        (b"PK\x03\x04\0\0", "line 1: a zero byte: is it a binary file"),
        (b"hello world\n", "line 1: no user, item and value found in 'hello world'"),
        (b"1,2\n3,4\n", "line 1: no user, item and value found"),
        (b"1,2,abc\n", "line 1: the rating 'abc' is not a finite number"),
    ],
)
def test_what_is_no_file_of_ratings(load, content, message):
    with pytest.raises(ValueError, match=message):
        load(content)


def test_a_line_without_end_is_refused(load, monkeypatch):
    monkeypatch.setattr(text_files, "_BLOCK", 1000)
    with pytest.raises(ValueError, match="line 1: a line of more than 1000 bytes is no rating"):
        load("1" * 5000)


def test_a_file_cut_off_within_a_line_is_an_error(load):
    text = "1::30::3::881250949\n2::20::5::881250950\n"
    for end in range(text.index("2::20") + 1, text.index("881250950")):
        with pytest.raises(ValueError, match=r"ratings\.dat, line 2: 4 fields are expected"):
            load(text[:end], "ratings.dat")
    assert len(load(text[:-1], "ratings.dat")) == 2


def test_duplicates_are_told(load):
    with pytest.warns(UserWarning, match="1 rating repeats a .* the first user 1, item 2: the last one counts"):
        assert entries(load("1,2,3\n1,3,1\n1,2,5\n")) == [(1, 2, 5.0), (1, 3, 1.0)]
    with pytest.raises(ValueError, match="choose duplicates='last'"):
        load("1,2,3\n1,2,5\n", duplicates="error")


# Matrix Market


def test_matrix_market_as_scipy_writes_it(tmp_path):
    matrix = coo_array(([4.0, 3.5, -1.25], ([0, 2, 2], [1, 0, 3])), shape=(4, 5))
    mmwrite(tmp_path / "m.mtx", matrix, comment="two\nlines")
    ratings = load_ratings(tmp_path / "m.mtx")
    assert ratings.shape == (4, 5)  # rows and columns without entries are kept
    np.testing.assert_array_equal(ratings.sparse().toarray(), matrix.toarray())
    assert entries(ratings) == [(1, 2, 4.0), (3, 1, 3.5), (3, 4, -1.25)]


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric"])
def test_symmetric_matrices_are_completed(tmp_path, symmetry):
    from scipy.io import mmread

    path = tmp_path / "m.mtx"
    diagonal = "2 2 7\n" if symmetry == "symmetric" else ""
    path.write_text(
        f"%%MatrixMarket matrix coordinate integer {symmetry}\n3 3 {1 + bool(diagonal)}\n3 1 5\n{diagonal}"
    )
    np.testing.assert_array_equal(load_ratings(path).sparse().toarray(), mmread(path).toarray())


MATRIX = "%%MatrixMarket matrix coordinate real general\n% words\n3 2 2\n1 2 4.5\n3 1 2\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("3 1 2\n", ""), "line 3: 2 entries are announced, but 1 follow: is it cut off"),
        (("3 1 2\n", "3 1\n"), "line 5: 3 fields are expected, but there are 2"),
        (("3 1 2\n", "4 1 2\n"), r"line 5: row 4 is not in 1\.\.3"),
        (("3 1 2\n", "3 0 2\n"), r"line 5: column 0 is not in 1\.\.2"),
        (("3 1 2\n", "\n \n3 x 2\n"), r"line 7: column x is not in 1\.\.2"),
        (("1 2 4.5\n", "1.0 2 4.5\n"), r"line 4: row 1\.0 is not in 1\.\.3"),
        (("3 1 2\n", f"{10**30} 1 2\n"), r"line 5: row 10{30} is not in 1\.\.3"),
        (("3 2 2", f"{10**13} 2 2"), f"line 3: a matrix of {10**13} x 2 is too large"),
        (("general", "symmetric"), "line 3: a symmetric matrix of 3 x 2 is not square"),
        (("3 2 2\n1 2 4.5\n3 1 2\n", "3 2 0\n"), r"m\.mtx: there are no ratings"),
        (("3 2 2", "3 2"), "line 3: rows, columns and entries are to stand here"),
        (("coordinate real", "array real"), "line 1: ratings need 'coordinate real' or 'coordinate integer'"),
        (("coordinate real", "coordinate pattern"), "line 1: ratings need .* not 'coordinate pattern'"),
        (("general", "hermitian"), "line 1: unknown symmetry 'hermitian'"),
        (("%%MatrixMarket", "%%Market"), "line 1: a Matrix Market file begins with"),
        ((MATRIX[46:], ""), "ends before the line with its size"),
    ],
)
def test_a_bad_matrix_market_file(load, change, message):
    assert len(load(MATRIX, "m.mtx")) == 2
    with pytest.raises(ValueError, match=message):
        load(MATRIX.replace(*change), "m.mtx")


def test_matrix_market_numbers_may_begin_with_zeros(load):
    padded = load(MATRIX.replace("3 1 2\n", "03 001 2\n"), "m.mtx")
    assert entries(padded) == entries(load(MATRIX, "m.mtx")) == [(1, 2, 4.5), (3, 1, 2.0)]


# Parquet


def test_parquet_by_its_names(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas reads Parquet")
    pytest.importorskip("pyarrow", reason="pandas needs pyarrow for Parquet")
    frame = pandas.DataFrame({"rating": [3.5, 5.0, 4.0], "item": [30, 20, 20], "user": ["b", "c", "b"]})
    frame.to_parquet(tmp_path / "r.parquet")
    assert entries(load_ratings(tmp_path / "r.parquet")) == [("b", 20, 4.0), ("b", 30, 3.5), ("c", 20, 5.0)]


@pytest.mark.parametrize("damage", ["cut", "short", "empty", "within", "text", "packed"])
def test_a_damaged_parquet_file_is_named(tmp_path, damage):
    pandas = pytest.importorskip("pandas", reason="pandas reads Parquet")
    pytest.importorskip("pyarrow", reason="pandas needs pyarrow for Parquet")
    ids = np.arange(20_000)
    frame = pandas.DataFrame({"user": ids % 97, "item": ids // 97, "rating": np.sin(ids)})
    path = tmp_path / ("r.parquet.gz" if damage == "packed" else "r.parquet")
    frame.to_parquet(path)
    whole = path.read_bytes()
    damaged = {
        "cut": whole[: len(whole) // 2],
        "short": whole[:-1],
        "empty": b"",
        "within": whole[:2000] + bytes(200) + whole[2200:],
        "text": b"1,2,3\n",
        "packed": gzip.compress(whole),
    }
    path.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match=rf"{path.name} is no Parquet file, damaged or cut off: "):
        load_ratings(path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        load_ratings(path)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("rating", [3.5, None], "every rating must be a finite number, but entry 1 is nan"),
        ("rating", ["3", "x"], "could not convert string to float: 'x'"),
        ("rating", [np.datetime64("2020-01-01")] * 2, "ratings must be numbers, got datetime64"),
        ("rating", [[1], [2, 3]], "ratings must be numbers|setting an array element"),
        ("user", ["a", None], "ids must be whole numbers or strings, got a missing one"),
        ("item", [1.5, 2.0], "ids must be whole numbers or strings, got numbers with a fraction"),
        ("user", [], "there are no ratings"),
    ],
)
def test_what_parquet_holds_is_checked(tmp_path, column, values, message):
    pandas = pytest.importorskip("pandas", reason="pandas reads Parquet")
    pytest.importorskip("pyarrow", reason="pandas needs pyarrow for Parquet")
    frame = pandas.DataFrame({"user": [1, 2], "item": [3, 4], "rating": [3.0, 4.0]}).iloc[: len(values)]
    frame.assign(**{column: values}).to_parquet(tmp_path / "r.parquet")
    with pytest.raises(ValueError, match=rf"r\.parquet: ({message})"):
        load_ratings(tmp_path / "r.parquet")


def test_parquet_without_its_readers_is_a_clear_error(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"r\.parquet needs pandas and pyarrow"):
        load_ratings(tmp_path / "r.parquet")


# Pairs


@pytest.mark.parametrize(
    ("text", "expected", "values"),
    [
        ("1,20\n2,30\n", [(1, 20), (2, 30)], None),
        ("1\t20\t4.5\n2\t30\t3\n", [(1, 20), (2, 30)], [4.5, 3.0]),
        ("alice,Up\nbob,Alien\n", [("alice", "Up"), ("bob", "Alien")], None),  # the first line is no header
        ("movieId,userId\n20,1\n", [(1, 20)], None),
        ("user,item,when,rating\n1,20,9,4\n", [(1, 20)], [4.0]),
        ("user,item,when\n1,20,9\n", [(1, 20)], None),
    ],
)
def test_pairs_with_and_without_values(tmp_path, text, expected, values):
    path = tmp_path / "pairs"
    path.write_text(text)
    users, items, found = rating_files.read_pairs(path)
    assert list(zip(users.tolist(), items.tolist(), strict=True)) == expected
    assert (found is None) if values is None else found.tolist() == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,20\n2\n", "line 2: 2 fields are expected, but there are 1"),
        ("1,20,4\n2,30,x\n", "line 2: the rating 'x' is not a finite number"),
        ("hello\n", "line 1: no user and item found in 'hello'"),
        ("", "holds no ratings"),
        ("user,when\n1,2\n", "no user and item among the columns user, when"),
    ],
)
def test_bad_pairs_are_named(tmp_path, text, message):
    path = tmp_path / "pairs"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        rating_files.read_pairs(path)
