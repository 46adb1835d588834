"""Numbers in words, where they round over a border."""

import re

import numpy as np
import pytest

from ell12_paper.wording import (
    duration,
    listed,
    number,
    percent,
    plus_minus,
    power_of_ten,
    scientific,
    short_time,
    span,
)

SIZES = [*np.geomspace(1e-3, 1e5, 400), 9.996, 99.96, 999.4, 999.5, 999.6, 999.96, 1000.0]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_reads_as_itself_to_three_figures_without_powers_of_ten(sign):
    for size in SIZES:
        text = number(sign * size)
        assert "e" not in text, size
        assert float(text) == pytest.approx(sign * size, rel=6e-3)


def test_small_numbers_are_powers_of_ten():
    for size in np.geomspace(1e-9, 0.09, 50):
        assert re.fullmatch(r"\d(\.\d)?e-\d", scientific(size))
        assert float(scientific(size)) == pytest.approx(size, rel=0.06)


def test_a_short_time_is_a_number_below_a_thousand_of_its_unit():
    units = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
    for seconds in [*np.geomspace(1e-8, 900, 400), 0.9996, 0.9994, 9.996e-4, 9.999e-7]:
        value, unit = short_time(seconds).split()
        assert "e" not in value, seconds
        assert 1 <= float(value) < 1000, seconds
        assert float(value) * units[unit] == pytest.approx(seconds, rel=6e-3)


def test_a_duration_never_says_sixty():
    for seconds in [*np.linspace(0, 200, 401), 59.94, 59.96, 59.99, 3599.4, 3599.6, 7199.9, 86_399.7]:
        text = duration(seconds)
        assert "60" not in text, seconds
        sizes = {"s": 1, "min": 60, "h": 3600}
        parts = text.split()
        total = sum(float(value) * sizes[unit] for value, unit in zip(parts[::2], parts[1::2], strict=True))
        assert total == pytest.approx(seconds, abs=0.051 if seconds < 59.9 else 0.51 if seconds < 3599 else 60)


def test_percent_has_a_sign_and_never_a_minus_zero():
    assert [percent(f) for f in (0.5, -0.031, 0.00004, -0.00004, 0.0)] == [
        "+50 %",
        "-3.10 %",
        "0.00 %",
        "0.00 %",
        "0.00 %",
    ]


def test_ranges_and_lists_are_as_short_as_they_can_be():
    assert span([1.0, 1.0001]) == "1"
    assert span(iter([5.0, 2.0]), show=lambda v: f"<{v:.0f}>") == "<2> to <5>"
    assert [listed(v) for v in ([], [4], [4, 5], [4, 5, 6], [4, 6, 5])] == ["", "4", "4, 5", "4 to 6", "4, 6, 5"]


def test_a_deviation_has_the_decimals_of_its_mean():
    found = [plus_minus(mean, 0.7) for mean in (0.0, 123.4, 12.34, -1.234)]
    assert found == ["0.00 ± 0.70", "123 ± 1", "12.3 ± 0.7", "-1.23 ± 0.70"]


def test_powers_of_ten_are_written_with_small_figures():
    assert [power_of_ten(10.0**k) for k in (-12, -1, 0, 3, 4)] == ["10⁻¹²", "0.1", "1", "1000", "10⁴"]
