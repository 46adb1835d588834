"""Every claim as data: whose it is, where the paper has it, what it says, and who judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from ell12_paper import STUDIES, image_judges, judges
from ell12_paper.comparisons import Claim, Reading
from ell12_paper.rows import Row
from ell12_paper.studies import (
    compressed_sensing,
    dca_variants,
    denoising,
    image_completion,
    level_curves,
    prox_race,
    theory,
)
from ell12_paper.trials import Trials

KINDS = {"paper": "The paper claims", "cited": "The paper cites from others", "ours": "We add"}


@dataclass(frozen=True)
class Stated:
    """A claim before it is judged."""

    study: str
    kind: str
    place: str
    text: str
    judge: Callable[..., Iterable[Reading]]


_sensing = partial(Stated, compressed_sensing.NAME)
_completion = partial(Stated, image_completion.NAME)
_denoising = partial(Stated, denoising.NAME)
_theory = partial(Stated, theory.NAME, "paper")
_prox = partial(Stated, prox_race.NAME, "paper", "Section III-B, after Proposition III.5")
_figure_1 = "Section I, Figure 1"
_table_1, _figure_2 = "Section V-A, Table I", "Section V-A, Figure 2 and Table I"
_table_3, _figure_5 = "Section V-B, Table III", "Section V-C, Figures 5 and 6"
_others = (image_judges.NUCLEAR, "FaNCL", image_judges.OURS)
_factorizations = "ARSS-M3F, LMaFit and ER1MP recover worse than AIS-Impute, FaNCL and nmAPG on every image"
_sketchy = "SketchyCGM recovers worse than AIS-Impute on every image"
_lowest = "nmAPG achieves the lowest RMSE of all methods on every image"
_missing = ", over the missing pixels alone"
_better = "restores better than convex total variation (l2_weight 0)"

CLAIMS = (
    _sensing("paper", _table_1, "nmAPG(closed-form) is faster than nmAPG(numerical) at every i",
             partial(judges.faster_than, "nmAPG(numerical)")),
    _sensing("paper", _figure_2, "nmAPG(closed-form) is faster than SCP at every i",
             partial(judges.faster_than, "SCP")),
    _sensing("paper", _figure_2, "nmAPG(closed-form) is faster than DCA at every i",
             partial(judges.faster_than, "DCA", compressed_sensing.RHO_ONE)),
    _sensing("paper", _figure_2,
             "nmAPG(closed-form) is faster than FISTA on its convex problem at i = 1 to 4, as Table I prints",
             partial(judges.faster_than, "FISTA")),
    _sensing("paper", "Section V-A on Table I, also Section II-A", "DCA is the slowest", judges.slowest),
    _sensing("paper", "Section V-A, Table II", "l1-2 recovers with a lower RMSE than l1 at every i",
             judges.more_accurate),
    _sensing("paper", "Section V-A, Figure 2",
             "SCP ends at a larger objective than nmAPG(closed-form) at every i", judges.larger_objective),
    _completion("paper", _table_3, _lowest, partial(image_judges.lowest, "rmse")),
    _completion("paper", "Abstract and conclusion", "l1-2 is superior to other nonconvex regularisers: to log-sum",
                image_judges.best_penalty),
    _completion("paper", _table_3, _factorizations,
                partial(image_judges.worse, image_judges.FACTORIZATIONS, _others, "rmse")),
    _completion("paper", _table_3, _sketchy,
                partial(image_judges.worse, (image_completion.SKETCHY,), (image_judges.NUCLEAR,), "rmse")),
    _completion("paper", _table_3, "Factorizations are fast: ARSS-M3F and ER1MP take less time than nmAPG",
                partial(image_judges.quicker, ("ARSS-M3F", "ER1MP"), image_judges.OURS)),
    _completion("paper", "Abstract and Table III", "nmAPG is faster than FaNCL on every image",
                partial(image_judges.quicker, (image_judges.OURS,), "FaNCL")),
    _completion("paper", "Section V-B, which therefore leaves DCA out",
                "nmAPG(block) is faster than DCA(block) on every image",
                partial(image_judges.quicker, (image_judges.BLOCK,), "DCA(block)")),
    _denoising("paper", _figure_5, "AltMin recovers as well as DCA: RMSE at most 5 % higher at every alpha",
               image_judges.as_accurate),
    _denoising("paper", _figure_5,
               "AltMin is about 20 to 30 times faster than DCA: at least 20 times at every alpha",
               image_judges.twenty_times),
    Stated(level_curves.NAME, "paper", _figure_1,
           "The level curves of l1-2 come closer to the axes as values get smaller, and closer than others",
           judges.closer_to_axes),
    _theory("Proposition III.5", "The closed form is a global minimiser",
            partial(judges.no_violation, theory.CLOSED)),
    _theory("Lemmas III.2 and III.4", "The proximal step is zero only where z is, and keeps signs",
            partial(judges.no_violation, theory.SIGNS)),
    _theory("Proposition IV.1", "The proximal step of a matrix is that of its singular values",
            partial(judges.no_violation, theory.SPECTRAL)),
    _theory("Proposition IV.3", "The row-wise proximal step is one step for each row",
            partial(judges.no_violation, theory.ROWS)),
    _theory("Section III-C", "nmAPG converges to critical points, its averaged objective never rising",
            judges.converges),
    _prox("The closed form takes O(d) time", judges.linear_time),
    _prox("The closed form is faster than the numerical method at every d", judges.closed_is_faster),
    _completion("cited", "Section IV-A, from AIS-Impute and Soft-Impute",
                "nmAPG is faster than nmAPG(full SVD) on every image",
                partial(image_judges.quicker, (image_judges.OURS,), "nmAPG(full SVD)")),
    _denoising("cited", "Section IV-B, from Lou et al. 2015", f"l1-2 total variation (l2_weight 1) {_better}",
               partial(image_judges.outperforms, image_judges.PAPERS)),
    _sensing("ours", "", "WorkingSet, the default of this library, is faster than nmAPG(closed-form) at every i",
             judges.default_is_faster),
    _completion("ours", "", _lowest + _missing, partial(image_judges.lowest, "rmse_missing")),
    _completion("ours", "", _factorizations + _missing,
                partial(image_judges.worse, image_judges.FACTORIZATIONS, _others, "rmse_missing")),
    _completion("ours", "", "l1-2 lowers the RMSE of the nuclear norm by about as much as Table III prints",
                image_judges.gains_as_printed),
    _denoising("ours", "", f"l1-2 total variation with half the weight, our default but for blur, {_better}",
               partial(image_judges.outperforms, image_judges.HALF)),
    Stated(dca_variants.NAME, "ours", "",
           "A choice that the paper leaves open gives its ratio of DCA's time to nmAPG(closed-form)'s at i = 4",
           judges.a_choice_explains),
)  # fmt: skip


def by_study(rows: Sequence[Row]) -> dict[str, Trials]:
    """The rows of each study."""
    return {name: Trials(tuple(row for row in rows if row["experiment"] == name)) for name in STUDIES}


def claims_of(rows: dict[str, Trials]) -> list[Claim]:
    """The claims of the studies that have rows, judged."""
    stated = [claim for claim in CLAIMS if rows[claim.study].rows]
    found = [Claim(c.study, c.kind, c.place, c.text, tuple(c.judge(rows=rows))) for c in stated]
    return [claim for claim in found if claim.readings]


def lines(claims: Sequence[Claim]) -> list[str]:
    """The claims as lines of text, for the command line."""
    found = []
    for kind, title in KINDS.items():
        chosen = [claim for claim in claims if claim.kind == kind]
        found += [f"{title}:"] * bool(chosen)
        for claim in chosen:
            brief = f": {claim.brief}" if claim.brief else ""
            found.append(f"  {claim.outcome.value.upper()}: {claim.text}{brief}")
    return found
