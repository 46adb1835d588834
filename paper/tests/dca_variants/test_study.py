"""The variants of DCA solve the same problems, and the page says which have the printed ratio."""

# ruff: noqa: RUF001 (mathematical letters are meant)

import pytest

pytest.importorskip("skimage", reason="the photographs need the extra 'images'")

from ell12_paper.dca_variants import report, study
from ell12_paper.denoising.study import ALTMIN
from ell12_paper.findings import Outcome, paper
from ell12_paper.rows import make_row


def small(settings):
    return settings | ({"n_samples": 30} if settings["study"] == study.SENSING else {"size": 24})


def measured(name, i):
    chosen = [s for s in study.trials("quick", 0) if (s["study"], s["i"]) == (name, i)]
    return {s["method"]: study.measure(small(s)) for s in chosen}


def test_every_variant_reaches_the_same_stationary_point():
    found = measured(study.SENSING, 2)
    assert found.keys() == study.SENSING_VARIANTS.keys()
    assert {results["status"] for results in found.values()} == {"CONVERGED"}
    lowest = min(results["objective"] for results in found.values())
    assert max(results["objective"] for results in found.values()) == pytest.approx(lowest, rel=1e-5)


def test_every_variant_of_denoising_lowers_the_same_objective():
    found = measured(study.DENOISING, 4)
    assert found.keys() == study.DENOISING_VARIANTS.keys()
    assert all(results["status"] == "CONVERGED" for results in found.values())
    accurate = [r["objective"] for name, r in found.items() if name.startswith("to 1e-6")]
    assert len(accurate) == 4
    assert max(accurate) == pytest.approx(min(accurate), rel=1e-4)
    assert all(r["objective"] > min(accurate) * (1 - 1e-9) for n, r in found.items() if n.startswith("AltMin"))


def rows_with(seconds):
    """Rows of the quick study in which each method takes so many seconds."""
    rows = []
    for settings in study.trials("quick", 0):
        time = seconds(settings)
        ends = {"cpu_seconds": time, "n_iter": 9, "rmse": 0.1}
        results = ends | {"status": "CONVERGED", "rules": {"loose": ends, "strict": ends}}
        rows.append(make_row(study.NAME, settings, results, {}))
    return rows


def test_the_page_names_the_variants_with_the_printed_ratio():
    def seconds(settings):
        is_dca = settings["method"] not in (study.REFERENCE, ALTMIN, "AltMin(accurate)")
        slow = settings["method"] in ("ρ = 1", "to 1e-6 by conjugate gradients")
        return (25.0 if settings["study"] == study.DENOISING else 17.0) if slow else 2.0 if is_dca else 1.0

    sensing, denoising = report.verdicts(rows_with(seconds))
    assert (sensing.outcome, denoising.outcome) == (Outcome.HOLDS, Outcome.HOLDS)
    assert "appears if ρ = 1 (17)." in sensing.reason
    assert "appears if DCA solves its problems to 1e-6 by conjugate gradients (25 (25))," in denoising.reason
    first, second = report.section(rows_with(seconds)).parts
    cells = dict(first.tables[0].rows)
    assert cells["ρ = 1"][-1].text == "17"
    assert (cells["ρ = 1"][-1].best, cells["ρ = 0.1"][-1].best) == (True, False)
    printed = paper()["compressed-sensing"]["cpu_seconds"]
    assert float(cells[report.PRINTED][-1].text) == pytest.approx(
        printed["DCA"][4][0] / printed[study.REFERENCE][4][0], rel=5e-3
    )
    assert second.tables[0].number == "Figure 5"


def test_the_page_says_so_where_no_variant_has_the_printed_ratio():
    for verdict in report.verdicts(rows_with(lambda settings: 1.0)):
        assert verdict.outcome is Outcome.FAILS
    fewer = [row for row in rows_with(lambda s: 1.0) if "1e-6" not in row["key"] and "0.1" not in row["key"]]
    assert [verdict.outcome for verdict in report.verdicts(fewer)] == [Outcome.OPEN, Outcome.OPEN]
    assert report.verdicts([]) == []
