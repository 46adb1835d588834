"""The claims on the proximal step, judged both ways."""

import pytest

pytest.importorskip("matplotlib", reason="the report needs the extra 'report'")

from tests.experiments.made_rows import prox_rows

from ell12.experiments.findings import Outcome
from ell12.experiments.prox.report import verdicts as prox_verdicts


def test_linear_time_of_the_prox():
    assert [v.outcome for v in prox_verdicts(prox_rows())] == [Outcome.HOLDS, Outcome.HOLDS]
    assert [v.outcome for v in prox_verdicts(prox_rows(power=1.6))] == [Outcome.FAILS, Outcome.HOLDS]
    assert prox_verdicts(prox_rows(power=1.2))[0].outcome is Outcome.OPEN
    assert prox_verdicts(prox_rows(slowdown=0.5))[1].outcome is Outcome.FAILS
