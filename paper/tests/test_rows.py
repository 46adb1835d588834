"""Rows that survive any end of a run, and damage that is noticed."""

import hashlib
import json
import math
import os

import pytest

from ell12_paper.rows import (
    FIELDS,
    FILE,
    append_row,
    finite,
    key_of,
    make_row,
    read_rows,
    rewrite_rows,
)


def three_rows():
    return [make_row("fake", {"i": i}, {"value": i + 0.1, "name": 'é "\n'}, {"python": "3"}) for i in range(3)]


def test_rows_come_back_as_they_were(tmp_path):
    rows = three_rows()
    with open(tmp_path / FILE, "ab", buffering=0) as file:
        for row in rows:
            append_row(file.fileno(), row)
    assert read_rows(tmp_path) == (rows, [])
    rewrite_rows(tmp_path, rows[1:])
    assert read_rows(tmp_path) == (rows[1:], [])
    assert os.listdir(tmp_path) == [FILE]


def test_a_key_names_the_settings_whatever_their_order():
    assert key_of("a", {"x": 1, "y": 2}) == key_of("a", {"y": 2, "x": 1})
    keys = {key_of("a", {"x": 1}), key_of("b", {"x": 1}), key_of("a", {"x": 2}), key_of("a", {"x": "1"})}
    assert len(keys) == 4


def test_numbers_that_are_not_finite_become_null(tmp_path):
    results = {"a": math.nan, "b": [1.0, -math.inf], "c": {"d": (math.inf, "text")}, "e": 0.5}
    clean = {"a": None, "b": [1.0, None], "c": {"d": [None, "text"]}, "e": 0.5}
    assert finite(results) == clean
    rewrite_rows(tmp_path, [make_row("fake", {}, results, {})])

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    assert json.loads((tmp_path / FILE).read_text(), parse_constant=refuse)["results"] == clean


def test_a_file_cut_anywhere_loses_only_the_row_that_was_cut(tmp_path):
    rows = three_rows()
    rewrite_rows(tmp_path, rows)
    whole = (tmp_path / FILE).read_bytes()
    ends = [position + 1 for position, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        (tmp_path / FILE).write_bytes(whole[:cut])
        complete = sum(end <= cut for end in ends)
        found, damaged = read_rows(tmp_path)
        assert found == rows[:complete]
        assert len(damaged) == (cut not in (0, *ends))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"1.1", b"1.2"),
        (b'"value"', b'"values"'),
        (b'"python":"3"', b'"python":"4"'),
        (b"{", b"["),
        (b"1.1", b"\xff"),
        (b"1.1", b"NaN"),
        (b"1.1", b"1e999"),
    ],
)
def test_a_changed_line_in_the_middle_is_noticed(tmp_path, old, new):
    rows = three_rows()
    rewrite_rows(tmp_path, rows)
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    changed = lines[1].replace(old, new, 1)
    assert changed != lines[1]
    (tmp_path / FILE).write_bytes(lines[0] + changed + lines[2])
    found, damaged = read_rows(tmp_path)
    assert found == [rows[0], rows[2]]
    assert damaged == [f"line 2 of {tmp_path / FILE} is damaged"]


@pytest.mark.parametrize("line", ["\n", "3\n", "{}\n", '{"key": "a"}\n'])
def test_json_that_is_no_row_is_noticed(tmp_path, line):
    (tmp_path / FILE).write_text(line)
    assert read_rows(tmp_path) == ([], [f"line 1 of {tmp_path / FILE} is damaged"])


@pytest.mark.parametrize("levels", [30, 500, 200_000])
def test_rows_nested_too_deep_are_noticed_like_other_damage(tmp_path, levels):
    sound = three_rows()[0]
    nest = "[" * levels + "]" * levels
    whole = {name: sound[name] for name in FIELDS[:-1]} | {"results": "NEST"}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":")).replace('"NEST"', nest)
    check = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]  # so that the check is right
    rewrite_rows(tmp_path, [sound])
    with (tmp_path / FILE).open("a") as file:
        file.write(text[:-1] + f',"check":"{check}"}}\n')
    assert read_rows(tmp_path) == ([sound], [f"line 2 of {tmp_path / FILE} is damaged"])


def test_a_row_written_in_part_stops_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", lambda descriptor, line: len(line) - 1)
    with pytest.raises(OSError, match="disk full"):
        append_row(0, three_rows()[0])
