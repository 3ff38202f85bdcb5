"""StreamBed's comparison: Tables II to IV, Figures 9 to 11; and the planner on its recorded measurements.

| file | what |
|---|---|
| `paper.py`, `runs.py`, `tables.py`, `claims.py`, `figures.py` | as in every suite |
| `recordings.py`, `production.py` | the paper's measurements as estimates; its production runs as their truth |
| `truth.py` | true capacities of the simulated queries |
| `side_constraints.py` | BIDS2 as a mixed-integer program |
"""

from __future__ import annotations

from rheostat.lab.papers.streambed.claims import CLAIMS, FITS, describe
from rheostat.lab.papers.streambed.figures import figures
from rheostat.lab.papers.streambed.runs import Found, Size, gather, parts
from rheostat.lab.papers.streambed.tables import (
    extrapolation,
    figure_9,
    figure_9_spread,
    figure_10,
    figure_11,
    production,
    table_2,
    table_3,
    table_4,
)
from rheostat.lab.papers.suite import Suite


def notes(found: Found) -> tuple[str, ...]:
    """Return the notes above the tables."""
    size = found.size
    has_recordings = any(measured.estimates for measured in found.recorded.values())
    return (
        f"{size.seeds} explorations per query and way, {size.budgets} of Figure 9's sixteen budgets, {size.repeats} "
        "replays of each; the paper shows one exploration.",
        "The simulated queries' curves are fitted to the small recorded runs, not to any cell here. "
        "Slots include the sink; sources do not count. Memory is per slot.",
        "StreamBed: four corners, expected improvement, the family that extrapolates best, 110 % of the request. auto: "
        "sizes at equal ratios, our estimator, power-law capacities with a law of interference averaged by evidence, "
        "the same 110 %. -1 means that no number of slots suffices.",
        "Figures 9 and 11 run what was planned, with its own split and memory; Table IV's slots are split by the last "
        "BIDS2 pass of our runs of the paper's method, with 4 GB. Figure 11's runs last "
        + ("30 minutes (q1, q2, q11), 90 (q5) and 120 (q8)" if size.whole else "ten minutes, not the paper's 30 to 120")
        + ". Slots really needed are those of the simulator, with the bursts of windows.",
        "Figure 9 counts a rate as sustained if 95 % are processed in ten minutes: the paper's own worst.",
        "The recorded measurements come from StreamBed's artifact." if has_recordings else "The recorded measurements "
        "are not on this machine (set $RHEOSTAT_DATA), so their tables are missing.",
    )  # fmt: skip


SUITE = Suite(
    name="streambed",
    title="StreamBed: capacity planning from a small testbed",
    quick=Size(3, 3, 2, whole=False),
    full=Size(20, 16, 2, whole=True),
    parts=parts,
    gather=gather,
    tables=(table_2, table_3, table_4, extrapolation, figure_9, figure_9_spread, figure_10, figure_11, production),
    claims=CLAIMS,
    fits=FITS,
    describe=describe,
    figures=figures,
    notes=notes,
)
