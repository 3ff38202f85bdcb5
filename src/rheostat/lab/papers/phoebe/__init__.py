"""Phoebe's comparison (ICWS 2022, section IV): Table II, latencies, resource use and prediction errors."""

from __future__ import annotations

from rheostat.lab.papers.parallel import Progress
from rheostat.lab.papers.phoebe import paper
from rheostat.lab.papers.phoebe.conclusions import checks, findings
from rheostat.lab.papers.phoebe.figures import drawings
from rheostat.lab.papers.phoebe.runs import FULL, PROMISE, QUICK, Found, run_all
from rheostat.lab.papers.phoebe.tables import (
    SUITE,
    latencies,
    prediction,
    resources,
    sensitivity,
    simulator,
    table_2,
    targets,
)
from rheostat.lab.papers.result import Cell, Result


def reproduce(quick: bool, progress: Progress) -> Result:
    """Run the comparison and set it beside the paper's."""
    return result(run_all(QUICK if quick else FULL, progress))


def result(found: Found) -> Result:
    """Make tables, conclusions and figures of the runs."""
    cells: list[Cell] = [*simulator(found)]
    for name in paper.EXPERIMENTS:
        for table in (table_2, targets, prediction, resources, latencies, sensitivity):
            cells += table(found, name)
    size = found.size
    ms = max(run.decision_ms for runs in found.experiments.values() for each in runs.values() for run in each)
    notes = (
        f"{size.seeds} seeds, their median in every cell; the paper takes the median of five runs. Six hours, eight "
        "failures at 1200 + 2743 k seconds, as in the recordings.",
        "The plant is CALIBRATION.md's, fitted on the recorded runs of TSW at fixed sizes: these cells are marked.",
        "Recovery as displayed is the paper's way: from latencies shown about a minute late. By source offsets "
        "it ends when the backlog is back to normal. 360 s stands for 6m+.",
        f"Infeasible: the same failure takes more than {paper.TARGET_S:g} s on 24 workers, too. Missed: of the others.",
        f"Phoebe's D is {paper.MAIN_D:g} s where nothing else is said; the paper does not tell its own. Forecasts are "
        "made from what has come by then, never from the trace to come.",
        f"The clairvoyant knows the load and how downtimes scatter, and keeps {paper.TARGET_S:g} s in {PROMISE:.0%} of "
        "all cases at every moment; who is below 1 does not. Changing at every moment is a bound for nobody to run at.",
        f"The slowest policy takes {ms:.1f} ms per decision, on the mean, with its forecast.",
    )
    title = "Phoebe: anticipating the load, and how long a failure takes"
    return Result(SUITE, title, tuple(cells), tuple(checks(cells)), tuple(findings(cells)), notes, drawings(found))
