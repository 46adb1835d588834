"""The whole public API, by name: the cases in which it is held to the laws, or why it has none."""

import pytest
from tests.laws.image_cases import IMAGE_CASES
from tests.laws.linear_cases import LINEAR_CASES
from tests.laws.matrix_cases import MATRIX_CASES
from tests.laws.selection_cases import SELECTION_CASES

CASES = [*LINEAR_CASES, *MATRIX_CASES, *IMAGE_CASES, *SELECTION_CASES]

# Names that compute nothing from a user's numbers.
WITHOUT_LAWS = {
    "Result": "what minimize returns",
    "Status": "what minimize returns",
    "Run": "options of minimize",
    "Certificate": "what certify returns",
    "Completion": "what complete_matrix returns",
    "CompletionPath": "what completion_path returns",
    "Recommendations": "what L12Recommender.recommend returns",
    "Restoration": "what the functions of images return",
    "Observed": "what Observed.of returns",
    "CriteriaPath": "what information_criteria returns",
    "Summary": "what summary returns",
    "Intervals": "what confidence_intervals returns",
}


def each(wanted):
    """The law holds for every case that it speaks about."""
    return pytest.mark.parametrize("case", [case for case in CASES if wanted(case)], ids=str)
