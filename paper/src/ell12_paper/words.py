"""Numbers in words, as the page and the command line show them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable


def number(value: float) -> str:
    """A number with three significant figures, without powers of ten where they can be avoided.

    Examples
    --------
    >>> from ell12_paper.words import number
    >>> number(0.01234), number(12.34), number(1234.5)
    ('0.0123', '12.3', '1234')
    """
    return f"{value:.0f}" if abs(value) >= 999.5 else _plain(f"{value:.3g}")


def scientific(value: float) -> str:
    """A number with two significant figures, as a power of ten where it is small.

    Examples
    --------
    >>> from ell12_paper.words import scientific
    >>> scientific(1e-6), scientific(0.00031), scientific(1.83)
    ('1e-6', '3.1e-4', '1.8')
    """
    return f"{value:.2g}" if value >= 0.1 else _plain(f"{value:.1e}").replace(".0e", "e")


def percent(fraction: float) -> str:
    """A fraction in percent, with its sign.

    Examples
    --------
    >>> from ell12_paper.words import percent
    >>> percent(0.000123), percent(1.234), percent(-1e-9)
    ('+0.01 %', '+123 %', '0.00 %')
    """
    value = 100 * fraction
    text = f"{value:+.0f}" if abs(value) >= 10 else f"{value:+.2f}"
    return (text if abs(value) >= 0.005 else "0.00") + " %"


def _plain(text: str) -> str:
    return text.replace("e-0", "e-").replace("e+0", "e")


def span(values: Iterable[float], show: Callable[[float], str] = number) -> str:
    """The range of some numbers, or one number where both ends read the same.

    Examples
    --------
    >>> from ell12_paper.words import span
    >>> span([3.4, 1.2, 2.0]), span([2.0])
    ('1.2 to 3.4', '2')
    """
    numbers = list(values)
    return " to ".join(dict.fromkeys((show(min(numbers)), show(max(numbers)))))


class RangeInWords(str):
    """The range of some numbers in words, such as "1.2 to 3.4 times", which several ranges of one unit share.

    Examples
    --------
    >>> from ell12_paper.words import RangeInWords
    >>> RangeInWords([3.4, 1.2], unit="{} times"), RangeInWords([])
    ('1.2 to 3.4 times', '')
    """

    values: tuple[float, ...]
    show: Callable[[float], str]
    unit: str

    def __new__(
        cls, values: Iterable[float], show: Callable[[float], str] = number, unit: str = "{}"
    ) -> RangeInWords:
        """Keep the numbers next to the words."""
        known = tuple(values)
        new = super().__new__(cls, unit.format(span(known, show)) if known else "")
        new.values, new.show, new.unit = known, show, unit
        return new


def listed(values: Iterable[int]) -> str:
    """Whole numbers as a list, in which more than two consecutive ones are a range.

    Examples
    --------
    >>> from ell12_paper.words import listed
    >>> listed([0, 1, 2, 3]), listed([0, 2]), listed([1, 2, 4, 5, 6, 9])
    ('0 to 3', '0, 2', '1, 2, 4 to 6, 9')
    """
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def plus_minus(mean: float, deviation: float | None, decimals: int | None = None) -> str:
    """A mean and its deviation, where there is one, to the same decimals: three figures of the mean by default.

    Examples
    --------
    >>> from ell12_paper.words import plus_minus
    >>> plus_minus(0.3104, 0.0302), plus_minus(15.291, 1.28, 2), plus_minus(1.5, None)
    ('0.310 ± 0.030', '15.29 ± 1.28', '1.50')
    """
    if decimals is None:
        decimals = max(0, 2 - math.floor(math.log10(abs(mean)))) if mean else 2
    numbers = (mean,) if deviation is None else (mean, deviation)
    return " ± ".join(f"{value:.{decimals}f}" for value in numbers)


def duration(seconds: float) -> str:
    """A time as people say it.

    Examples
    --------
    >>> from ell12_paper.words import duration
    >>> duration(4.24), duration(60), duration(75), duration(7300)
    ('4.2 s', '1 min', '1 min 15 s', '2 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min".removesuffix(" 0 min")
    short = f"{seconds:.1f}".removesuffix(".0") + " s"
    return f"{minutes} min {rest} s".removesuffix(" 0 s") if minutes else short
