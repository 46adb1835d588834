"""Encodings of rating files, marks of byte order, files that are meant to do harm; errors name the line."""

import bz2
import gzip
import lzma
import os
import tracemalloc

import numpy as np
import pytest

from ell12.datasets import Ratings, load_ratings, text_files

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


SUFFIXES = {gzip: "gz", bz2: "bz2", lzma: "xz"}


@pytest.mark.parametrize("packer", SUFFIXES)
@pytest.mark.parametrize("line", [b"0,0,0\n", b"\0", b"0,0,0\r", b"\n"])
def test_a_packed_file_of_zeros_is_refused_before_it_takes_memory(tmp_path, packer, line):
    path = tmp_path / f"r.csv.{SUFFIXES[packer]}"
    first = packer.compress(b"1,2,3\n" if line == b"\n" else b"")
    path.write_bytes(first + 40 * packer.compress(line * (2**20 // len(line))))  # one stream after the other
    assert path.stat().st_size < 2**20 / 5
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"r\.csv\.\w+ unpacks to more than 100 times its size"):
            load_ratings(path)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_an_endless_line_among_others_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_BLOCK", 1000)
    (tmp_path / "r.csv").write_text("1,2,3\n" * 60 + "0" * 5000)
    with pytest.raises(ValueError, match=r"r\.csv, line 61: a line of more than 1000 bytes is no rating"):
        load_ratings(tmp_path / "r.csv")


def test_blank_lines_without_end_are_refused(tmp_path):
    (tmp_path / "r.csv").write_text("\n" * 200_000 + "1,2,3\n")
    with pytest.raises(ValueError, match=r"r\.csv holds no ratings in its first 100000 lines"):
        load_ratings(tmp_path / "r.csv")


def test_one_endless_id_does_not_take_the_memory(tmp_path):
    lines = [f"u{k},i{k % 7},3" for k in range(20_000)]
    lines[7000] = "x" * 100_000 + ",i1,3"
    (tmp_path / "r.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(
        ValueError, match=r"r\.csv: the id 'x{30}'... of 100000 letters is too long beside 20000 ids"
    ):
        load_ratings(tmp_path / "r.csv")
    with pytest.raises(ValueError, match="of 100000 letters is too long beside 20000 ids"):
        Ratings.from_triples([line.split(",")[0] for line in lines], np.zeros(20_000, int), np.ones(20_000))
    (tmp_path / "r.csv").write_text("\n".join(lines[6990:7010]))
    assert len(load_ratings(tmp_path / "r.csv")) == 20  # where there is room, any id will do


def test_a_matrix_of_few_entries_is_not_too_large(tmp_path):
    head = "%%MatrixMarket matrix coordinate real general\n"
    (tmp_path / "r.mtx").write_text(f"{head}2000000000 1 1\n1 1 5.0\n")
    with pytest.raises(ValueError, match=r"line 2: a matrix of 2000000000 x 1 is too large for 1 entries"):
        load_ratings(tmp_path / "r.mtx")
