"""Every public name stands in the table of laws."""

from tests.laws.table import CASES, WITHOUT_LAWS

import ell12


def test_every_public_name_has_a_case_or_a_reason_to_have_none():
    covered = {case.name for case in CASES}
    assert not covered & WITHOUT_LAWS.keys()
    missing = set(ell12.__all__) - covered - WITHOUT_LAWS.keys()
    assert not missing, f"add cases to tests/laws/table.py for {sorted(missing)}"
