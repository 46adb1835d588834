"""Tables of named columns from lines of text."""

import gzip

import numpy as np
import pytest

from ell12.datasets import table_files
from ell12.datasets.table_files import read_table


@pytest.fixture
def read(tmp_path):
    def of(content, name="t.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, **options)

    return of


def as_lists(table):
    return {name: column.tolist() for name, column in table.columns.items()}


@pytest.mark.parametrize("mark", [",", ";", "\t", "|", " "])
def test_the_separator_is_guessed(read, mark):
    table = read(f"a{mark}b{mark}c\n1{mark}2.5{mark}x\n-3{mark}1e3{mark}y\n")
    assert as_lists(table) == {"a": [1, -3], "b": [2.5, 1000], "c": ["x", "y"]}


def test_a_separator_inside_quotes_is_text(read):
    table = read('name;price\n"Smith; John";1\n"two\nlines";2\n')
    assert as_lists(table) == {"name": ["Smith; John", "two\nlines"], "price": [1, 2]}
    assert table.lines.tolist() == [2, 4]


@pytest.mark.parametrize("mark", ["", "NA", "n/a", "NaN", "null", "?", "-", "."])
def test_marks_of_missing_values_are_known(read, mark):
    table = read(f"a,b\n1,x\n{mark},{mark}\n3,y\n")
    assert np.isnan(table.columns["a"]).tolist() == [False, True, False]
    assert table.columns["b"].tolist() == ["x", None, "y"]
    assert table.missing("b").tolist() == [False, True, False]


def test_decimal_commas_are_numbers_where_the_separator_is_another_mark(read):
    assert as_lists(read("a;b\n1,5;2\n;3\n-0,25;4\n"))["b"] == [2, 3, 4]
    assert read("a;b\n1,5;2\n").columns["a"].tolist() == [1.5]
    assert read('a,b\n"1,5",2\n').columns["a"].tolist() == ["1,5"]


@pytest.mark.parametrize("word", ["1_0", "12 kg", "٣", "0x10"])
def test_what_only_looks_like_a_number_is_a_word(read, word):
    assert read(f"a,b\n{word},1\n7,2\n").columns["a"].tolist() == [word, "7"]


def test_words_further_down_keep_what_stands_above_as_it_was_written(read, monkeypatch):
    monkeypatch.setattr(table_files, "_ROWS", 2)
    table = read("code,b\n007,1\n010,2\n3,3\nx,4\n")
    assert as_lists(table) == {"code": ["007", "010", "3", "x"], "b": [1, 2, 3, 4]}


def test_columns_of_codes_can_be_asked_for_as_words(read):
    assert read("a,b\n01,1\n02,2\n", words=("a",)).columns["a"].tolist() == ["01", "02"]


def test_without_a_header_columns_are_numbered(read):
    with pytest.raises(ValueError, match=r"line 1: numbers where names of the columns should be.*--no-header"):
        read("1,2\n3,4\n")
    assert as_lists(read("1,2\n3,4\n", header=False)) == {"c1": [1, 3], "c2": [2, 4]}


def test_packed_and_wide_text_is_read(read):
    assert as_lists(read(gzip.compress(b"a,b\n1,2\n"), "t.csv.gz")) == {"a": [1], "b": [2]}
    assert as_lists(read("ä,b\n1,ü\n".encode("utf-16"))) == {"ä": [1], "b": ["ü"]}
    assert as_lists(read("ä,b\n1,ü\n".encode("latin-1"), encoding="latin-1")) == {"ä": [1], "b": ["ü"]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no lines of data"),
        ("\n\n", "holds no lines of data"),
        ("a,b\n", "holds names of columns but no row of data"),
        ("a,b,a\n1,2,3\n", "the columns 1 and 3 are both called 'a'; rename one of them"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 2 fields are expected, but there are 3"),
        ("a,b\n1,2\ninf,3\n", "line 3: the column 'a' holds an infinite number"),
        ('a,b\n1,"2\n', "line 2: unexpected end of data"),
        ("a,ü\n1,2\n".encode("latin-1"), "line 1: not utf-8 text"),
        (b"a,b\n1,\0\n", "line 2: a zero byte: is it a binary file"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(read, content, words):
    with pytest.raises(ValueError, match=words):
        read(content)
