"""Encodings of rating files: text in each, marks of byte order, and errors that name the line."""

import gzip
import os

import pytest

from ell12.datasets import load_ratings, text_files

TEXT = "user;item;rating\r\ngrüße;Alien;3.5\r\n→ 7;Up;4\r\n"


def values(path, **options):
    ratings = load_ratings(path, **options)
    return dict(zip(ratings.users[ratings.rows].tolist(), ratings.values.tolist(), strict=True))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_every_encoding_gives_the_same_ratings(tmp_path, encoding):
    path = tmp_path / "r.csv"
    path.write_bytes(TEXT.encode(encoding))
    assert values(path, encoding=encoding) == {"grüße": 3.5, "→ 7": 4.0}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_mark_of_byte_order_names_the_encoding(tmp_path, encoding, packed):
    content = ("\ufeff" + TEXT).encode(encoding)
    path = tmp_path / ("r.csv.gz" if packed else "r.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert values(path) == {"grüße": 3.5, "→ 7": 4.0}


def test_matrix_market_with_a_mark(tmp_path):
    path = tmp_path / "r.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 4.5\n", encoding="utf-16")
    assert values(path) == {1: 4.5}


def test_letters_of_one_byte(tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes("1§grüße§3\n".encode("latin-1"))
    assert values(path, encoding="latin-1", separator="§") == {1: 3.0}
    with pytest.raises(ValueError, match=r"r\.csv, line 1: not utf-8 text"):
        load_ratings(path)


@pytest.mark.parametrize("encoding", ["utf-9", "hex", ""])
def test_an_unknown_encoding_is_named(tmp_path, encoding):
    path = tmp_path / "r.csv"
    path.write_text("1,2,3\n")
    with pytest.raises(ValueError, match=f"encoding: .*{encoding}"):
        load_ratings(path, encoding=encoding)


@pytest.mark.parametrize("wrong", [b"\x00\xd8\x31\x00", b"\x31"])  # half a pair of code units; half a code unit
def test_what_is_no_wide_text_is_named_with_its_line(tmp_path, wrong):
    path = tmp_path / "r.csv"
    path.write_bytes("1,2,3\n4,5,6\n".encode("utf-16") + wrong)
    with pytest.raises(ValueError, match=r"r\.csv, line 3: not utf-16 text: .*; is it a binary file"):
        load_ratings(path)
    path.write_bytes("1,2,3\n4,5,6\n4,5\n".encode("utf-16"))
    with pytest.raises(ValueError, match=r"r\.csv, line 3: 3 fields are expected, but there are 2"):
        load_ratings(path)


def test_wide_text_in_blocks(tmp_path, monkeypatch):
    path = tmp_path / "r.csv"
    path.write_text("".join(f"{k},{k % 7},3\n" for k in range(200)), encoding="utf-16")
    monkeypatch.setattr(text_files, "_BLOCK", 97)
    assert values(path) == dict.fromkeys(range(200), 3.0)


@pytest.mark.parametrize("header", ["", "user,item,rating\r"])
def test_lines_may_end_in_a_carriage_return_alone(tmp_path, header, monkeypatch):
    monkeypatch.setattr(text_files, "_BLOCK", 97)
    path = tmp_path / "r.csv"
    path.write_bytes((header + "".join(f"{k},{k % 7},3\r" for k in range(200))).encode())
    assert values(path) == dict.fromkeys(range(200), 3.0)
    path.write_bytes(path.read_bytes() + b"1,2\r")
    with pytest.raises(
        ValueError, match=f"line {201 + bool(header)}: 3 fields are expected, but there are 2 in '1,2'"
    ):
        load_ratings(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
@pytest.mark.parametrize("suffix", [".csv", ".mtx", ".csv.gz"])
def test_what_cannot_be_read_twice_is_refused(tmp_path, suffix):
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    with pytest.raises(ValueError, match=rf"pipe{suffix} is no file: .* write it to one first"):
        load_ratings(path)
    with pytest.raises(IsADirectoryError):
        load_ratings(tmp_path)
