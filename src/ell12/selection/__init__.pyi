"""The names of this package, and where they live: for type checkers and the package itself."""

from .confidence import Intervals as Intervals
from .confidence import confidence_intervals as confidence_intervals
from .criteria_path import CriteriaPath as CriteriaPath
from .criteria_path import information_criteria as information_criteria
from .stability import StabilitySelection as StabilitySelection
from .summary_table import Summary as Summary
from .summary_table import summary as summary
