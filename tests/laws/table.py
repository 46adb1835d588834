"""The whole public API, by name: the cases in which it is held to the laws, or why it has none."""

from __future__ import annotations

from tests.laws.case import Case
from tests.laws.image_cases import IMAGE_CASES
from tests.laws.linear_cases import LINEAR_CASES
from tests.laws.matrix_cases import MATRIX_CASES
from tests.laws.selection_cases import SELECTION_CASES

CASES: list[Case] = [*LINEAR_CASES, *MATRIX_CASES, *IMAGE_CASES, *SELECTION_CASES]

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


def cases(wanted=lambda case: True) -> list[Case]:
    """The cases that a law speaks about, each with a name of its own."""
    return [case for case in CASES if wanted(case)]


def names(chosen: list[Case]) -> list[str]:
    """Names for the tests, with a number where a name has several cases."""
    seen: dict[str, int] = {}
    for case in chosen:
        seen[case.name] = seen.get(case.name, 0) + 1
    found: dict[str, int] = {}
    labels = []
    for case in chosen:
        found[case.name] = found.get(case.name, 0) + 1
        labels.append(case.name if seen[case.name] == 1 else f"{case.name}-{found[case.name]}")
    return labels
