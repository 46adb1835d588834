"""The claims on the proximal step, judged both ways."""

import pytest

pytest.importorskip("matplotlib", reason="the report needs the extra 'report'")

from paper.tests.made_rows import prox_rows

from ell12_paper.findings import Outcome
from ell12_paper.prox.report import verdicts as prox_verdicts


def test_linear_time_of_the_prox():
    assert [v.outcome for v in prox_verdicts(prox_rows())] == [Outcome.HOLDS, Outcome.HOLDS]
    assert [v.outcome for v in prox_verdicts(prox_rows(power=1.6))] == [Outcome.FAILS, Outcome.HOLDS]
    assert prox_verdicts(prox_rows(power=1.2))[0].outcome is Outcome.OPEN
    assert prox_verdicts(prox_rows(slowdown=0.5))[1].outcome is Outcome.FAILS


def test_sizes_that_another_level_of_the_memory_holds_do_not_count():
    rows = prox_rows()
    for row in rows:
        if row["settings"]["d"] >= 10**6:
            row["results"] |= {name: 8 * row["results"][name] for name in ("seconds", "copy_seconds")}
    (verdict, _) = prox_verdicts([row for row in rows if row["settings"]["d"] < 10**7])
    assert verdict.outcome is Outcome.OPEN  # two sizes of one level are no line
    more = [row | {"settings": row["settings"] | {"d": 30_000}} for row in rows if row["settings"]["d"] == 10**4]
    for row in more:
        row["results"] = row["results"] | {n: 3 * row["results"][n] for n in ("seconds", "copy_seconds")}
    (verdict, _) = prox_verdicts(rows + more)
    assert (verdict.outcome, "1.00 from d = 10,000 to 100,000 " in verdict.numbers) == (Outcome.HOLDS, True)


def test_one_slow_repeat_leaves_the_slope_open():
    rows = prox_rows()
    for row in rows:
        if row["settings"]["repeat"] == 1:
            row["results"]["seconds"] *= row["settings"]["d"] ** 0.25
    assert prox_verdicts(rows)[0].outcome is Outcome.OPEN
