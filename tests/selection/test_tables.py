"""Tables for people: what a cell says, what is left out, and that nothing of the data becomes markup."""

import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from ell12.selection.summary_table import Table, significant


class Cells(HTMLParser):
    """The text of the cells of a table, row by row, with their classes."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.kinds, self.tags = [], [], set()
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        self.inside = tag in ("td", "th")
        if self.inside:
            self.rows[-1].append("")
            self.kinds.append(dict(attrs).get("class"))

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


@pytest.mark.parametrize("value", [0.0123456, -98.76, 99999.5, 1234567.0, 3e-5, 2.5e12, 9.996, 1e-300])
def test_a_number_keeps_its_significant_digits(value):
    assert float(significant(value, 4)) == pytest.approx(value, rel=5.1e-4)


def test_points_stand_below_each_other_and_nan_is_empty():
    table = Table({"a": ["x", "yy", "z"], "b": np.array([1.5, float("nan"), -12.25]), "c": [1, 20, 300]})
    head, line, *rows = str(table).splitlines()
    assert head.split() == ["a", "b", "c"]
    assert set(line) == {"-"}
    assert [row.split() for row in rows] == [["x", "1.50", "1"], ["yy", "20"], ["z", "-12.2", "300"]]
    assert rows[0].index(".") == rows[2].index(".")
    assert len({len(row) for row in rows}) == 1  # the last column ends in one line


def test_formats_are_kept():
    columns = {"a": [0.12345, 2.0], "b": [0.12345, 2.0], "c": [0.5, 1.0], "d": ["x", None]}
    table = Table(columns, formats={"a": 2, "b": ".4f", "c": lambda share: f"{share:.0%}"})
    rows = [row.split() for row in str(table).splitlines()[2:]]
    assert rows == [["0.12", "0.1235", "50%", "x"], ["2.0", "2.0000", "100%"]]


def test_html_escapes_what_the_data_say_and_says_what_is_left_out():
    names = ["<script>alert(1)</script>", "a & b", *map(str, range(40))]
    table = Table({"<b>": names, "value": np.arange(42.0)}, caption="x < y", max_rows=3)
    found = Cells(table._repr_html_())
    assert found.rows == [
        ["<b>", "value"],
        [names[0], "0"],
        ["a & b", "1.00"],
        ["0", "2.00"],
        ["... and 39 more rows"],
    ]
    assert found.kinds[:4] == ["ell12-text", None] * 2  # numbers on the right
    assert "script" not in found.tags
    assert "b" not in found.tags
    assert str(table).splitlines()[-1] == "... and 39 more rows"
    assert "x &lt; y" in table._repr_html_()


def test_long_words_are_cut_to_the_width_in_text_alone():
    name = "a very long name of a feature " * 5
    table = Table({"feature": [name, "short"], "x": [1.0, 2.0], "y": [3.0, 4.0]})
    assert max(map(len, str(table).splitlines())) == 80
    assert "..." in str(table)
    assert name in table._repr_html_()
    assert "..." not in str(Table({"feature": ["short"], "x": [1.0]}, width=10))  # no word is worth cutting


def test_pandas_has_all_rows_as_they_are():
    columns = {"name": ["a", "b", "c"], "x": np.array([0.123456, np.nan, 1.0]), "n": [1, 2, 3]}
    frame = Table(columns, max_rows=1).to_pandas()
    assert list(frame.columns) == list(columns)
    np.testing.assert_array_equal(frame["x"], columns["x"])
    assert frame["n"].dtype.kind == "i"


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        Table({"a": [1]}).to_pandas()


def test_empty_tables_and_wrong_ones():
    assert str(Table({"a": [], "b": []})).splitlines()[-1] == "(no rows)"
    assert "(no rows)" in Table({"a": np.zeros(0)})._repr_html_()
    with pytest.raises(ValueError, match=r"columns must be of equal length, got \{'a': 1, 'b': 2\}"):
        Table({"a": [1], "b": [1, 2]})
    with pytest.raises(ValueError, match="max_rows"):
        Table({"a": [1]}, max_rows=0)
