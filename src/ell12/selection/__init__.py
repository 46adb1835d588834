"""How sure a selection of features is: stability, intervals, criteria, and a table of it all.

With `ell12.linear_model` an importer of scikit-learn.
"""

from ell12.selection.confidence import Intervals, confidence_intervals
from ell12.selection.criteria_path import CriteriaPath, information_criteria
from ell12.selection.stability import StabilitySelection
from ell12.selection.summary_table import Summary, summary

__all__ = [
    "CriteriaPath",
    "Intervals",
    "StabilitySelection",
    "Summary",
    "confidence_intervals",
    "information_criteria",
    "summary",
]
