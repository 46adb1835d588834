"""The claim on the level curves, judged both ways."""

import pytest

pytest.importorskip("matplotlib", reason="the report needs the extra 'report'")

from paper.tests.made_rows import curve_rows

from ell12_paper.findings import Outcome
from ell12_paper.level_curves.report import verdicts


def test_level_curves_are_measured():
    rows = curve_rows()
    assert verdicts(rows)[0].outcome is Outcome.HOLDS
    flat = [[1.0] * 21] * 21
    ours = next(row for row in rows if row["settings"]["penalty"] == "l1-2")
    ours["results"]["values"] = flat
    assert verdicts(rows)[0].outcome is Outcome.FAILS
    assert verdicts([row for row in rows if row is not ours])[0].outcome is Outcome.OPEN
