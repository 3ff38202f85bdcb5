"""ContTune's comparison (VLDB 2023, section 7): Tables 4 to 8 and Figures 5 to 7, under its conventions and others."""

from __future__ import annotations

from rheostat.lab.papers.conttune.conclusions import checks, findings
from rheostat.lab.papers.conttune.figures import drawings
from rheostat.lab.papers.conttune.runs import FULL, QUICK, Found, run_all
from rheostat.lab.papers.conttune.tables import SUITE, figure_5, figure_7, table_7, table_8, tables_4_to_6
from rheostat.lab.papers.parallel import Progress
from rheostat.lab.papers.result import Result


def reproduce(quick: bool, progress: Progress) -> Result:
    """Run the comparison and set it beside the paper's."""
    return result(run_all(QUICK if quick else FULL, progress))


def result(found: Found) -> Result:
    """Make tables, conclusions and figures of the runs."""
    cells = (*tables_4_to_6(found), *table_7(found), *table_8(found), *figure_5(found), *figure_7(found))
    size = found.size
    notes = [
        f"{size.permutations} permutations of 20 tunings per query (the paper has 6); totals are per 120 tunings.",
        "4a to 8 as in the paper: ContTune knows the demand, Big + DS2's Big is not counted, linear methods go on to "
        "a fixed point, fast exploitation stops at the first look without back pressure.",
        "Strict stop: all go on to a fixed point. Lenient stop: all stop at the first look without back pressure; what "
        "they hold then is in the table of cores over the fewest.",
        "Big counted: ContTune meets back pressure with Big, and every change counts (Algorithm 1, to the letter).",
        "Policies run with bounds only: no guards, no headroom. Dragster's rows come with its own suite.",
    ]
    if found.missing:
        notes.append(f"No Figure 7: {found.missing}")
    return Result(
        SUITE,
        "ContTune: continuous tuning by conservative Bayesian optimisation",
        cells,
        tuple(checks(cells)),
        tuple(findings(cells)),
        tuple(notes),
        drawings(found, cells),
    )
