"""StreamBed's comparison: Tables III and IV, Figures 9 to 11; and the planner on its recorded measurements."""

from __future__ import annotations

from rheostat.lab.papers.parallel import Progress
from rheostat.lab.papers.result import Result
from rheostat.lab.papers.streambed.conclusions import checks, findings
from rheostat.lab.papers.streambed.figures import drawings
from rheostat.lab.papers.streambed.runs import FULL, QUICK, Found, run_all
from rheostat.lab.papers.streambed.tables import SUITE, extrapolation, figure_9, figure_10, figure_11, table_3, table_4


def reproduce(quick: bool, progress: Progress) -> Result:
    """Run the comparison and set it beside the paper's."""
    return result(run_all(QUICK if quick else FULL, progress))


def result(found: Found) -> Result:
    """Make tables, conclusions and figures of the runs."""
    cells = (
        *table_3(found), *table_4(found), *extrapolation(found),
        *figure_9(found), *figure_10(found), *figure_11(found),
    )  # fmt: skip
    size = found.size
    here = any(measured.estimates for measured in found.recorded.values())
    notes = (
        f"{size.seeds} explorations per query and way, {size.budgets} of Figure 9's sixteen budgets; the paper shows "
        "one exploration.",
        "The simulated queries' curves were fitted on the small recorded runs (CALIBRATION.md), not on any cell here. "
        "Slots include the sink; sources do not count. Memory is per slot.",
        "StreamBed: four corners, expected improvement, the family that extrapolates best, 110 % of the request. auto: "
        "sizes at equal ratios, our estimator, power-law abilities with a law of interference averaged by evidence, "
        "the same 110 %. -1 means that no number of slots is enough.",
        "Figure 9 counts a rate as sustained from 95 % processed in ten minutes on: the paper's own worst.",
        "Recorded measurements: read in place from shared/data/streambed." if here else "The recorded measurements are "
        "not here ($RHEOSTAT_DATA): tables from them are missing.",
    )  # fmt: skip
    return Result(
        SUITE,
        "StreamBed: capacity planning from a small testbed",
        cells,
        tuple(checks(cells)),
        tuple(findings(cells)),
        notes,
        drawings(found, cells),
    )
