"""Dragster's comparison (ICPP 2022, section 6): Figures 4 and 5, Tables 2 and 3; regret and fit over 400 slots."""

from __future__ import annotations

from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.dragster.conclusions import checks, findings
from rheostat.lab.papers.dragster.figures import drawings
from rheostat.lab.papers.dragster.runs import FULL, QUICK, Found, run_all
from rheostat.lab.papers.dragster.tables import SUITE, figure_4, figure_5, regrets, table_2, table_3
from rheostat.lab.papers.parallel import Progress
from rheostat.lab.papers.result import Result


def reproduce(quick: bool, progress: Progress) -> Result:
    """Run the comparison and set it beside the paper's."""
    return result(run_all(QUICK if quick else FULL, progress))


def result(found: Found) -> Result:
    """Make tables, conclusions and figures of the runs."""
    cells = (*figure_4(found), *figure_5(found), *table_2(found), *table_3(found), *regrets(found))
    size = found.size
    notes = (
        f"{size.seeds} seeds ({size.long_seeds} over 400 slots, {size.split_seeds} per budget); the paper shows one "
        "run. A slot is ten minutes, of which a restart takes 30 s.",
        "Convergence is the minutes to the last change of a phase. By the paper's own words (within 10 % of the best "
        "throughput) it is printed beside it: Dhalion's printed 40 minutes after a load falls are its last change.",
        "Policies run with bounds only, and may explore on the live job; Dragster's throughput functions are learned.",
        f"1.6 $/h at 0.1 $ per pod and hour are 16 pods, {paper.PODS} of them fixed: {paper.BUDGET} slots. Table 2's "
        "own prices come to about 27 $/h.",
        "Regret and fit are against one who knows every curve and the load to come, noise apart, in slots of the load.",
        f"{paper.OURS}: per operator our model of ability (docs/conttune.md), the demand given. {paper.LATE}: knows "
        "every curve, and the load of the slot before.",
    )
    return Result(
        SUITE,
        "Dragster: online resource optimisation with a regret guarantee",
        cells,
        tuple(checks(cells)),
        tuple(findings(cells)),
        notes,
        drawings(found),
    )
