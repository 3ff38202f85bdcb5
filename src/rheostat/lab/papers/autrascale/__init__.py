"""AuTraScale+'s comparison (TPDS 2024, section V): Figures 7 to 11, Tables IV to VI, and our own models beside it."""

from __future__ import annotations

from rheostat.lab.papers.autrascale.conclusions import checks, findings
from rheostat.lab.papers.autrascale.figures import drawings
from rheostat.lab.papers.autrascale.runs import FULL, QUICK, Found, run_all
from rheostat.lab.papers.autrascale.tables import SUITE, cells
from rheostat.lab.papers.parallel import Progress
from rheostat.lab.papers.result import Result


def reproduce(quick: bool, progress: Progress) -> Result:
    """Run the comparison and set it beside the paper's."""
    return result(run_all(QUICK if quick else FULL, progress))


def result(found: Found) -> Result:
    """Make tables, conclusions and figures of the runs."""
    made = cells(found)
    size = found.size
    return Result(
        SUITE,
        "AuTraScale+: throughput, processing-time latency, event-time latency",
        tuple(made),
        tuple(checks(made)),
        tuple(findings(made)),
        (
            f"{size.seeds} seeds per test and {size.grid_seeds} per cell of Figure 11; P_max is 40 tasks per operator.",
            "An iteration of Figure 7 is a look that asks Eq 3; one of Table IV and Figure 10 is a change of the job "
            "after the throughput was right. Bootstrapping runs are trials on a testbed, in a table of their own.",
            "A look sees 100 s of a job that has worked off what waited; restarts take no time.",
            "Where π^t meets Table V's target there is nothing to transfer: WordCount is run again with 100 ms.",
            "Figure 11 runs on a Yahoo job with a faster store: with Figure 7's no method could be in time in most "
            "cells. Means are over the cells that can be met. Both starts stand beside the fewest tasks that suffice.",
            "Table VI is CPU time, as in the paper: medians on this machine, printed and never asserted.",
        ),
        drawings(made),
    )
