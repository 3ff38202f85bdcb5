"""All policies on all named grounds: drift, hard cases and days of recorded traces, judged by the one cost.

No paper has these tables: their cells have no paper's number, and its claims are goals of ours.

| file | what |
|---|---|
| `runs.py`, `tables.py`, `claims.py` | as in every suite |
| `rows.py` | the cost over the oracle's by policy and ground; where ours is better or worse |
"""

from __future__ import annotations

from collections.abc import Iterator

from rheostat.lab.experiment.grounds import OURS
from rheostat.lab.jobs.hard import LENGTH_S
from rheostat.lab.papers.grounds.claims import CLAIMS
from rheostat.lab.papers.grounds.runs import Found, Size, gather, parts
from rheostat.lab.papers.grounds.tables import measures, ours_over_others
from rheostat.lab.papers.suite import Suite


def notes(found: Found) -> Iterator[str]:
    """Yield the notes above the tables."""
    size = found.size
    yield (
        f"Hard grounds: {size.seeds} seeds of {LENGTH_S / 3600:g} hours. Recorded traces: the first "
        f"{size.trace_hours:g} hours, seeds: {size.trace_seeds}. A decision every {size.every_s:g} s."
    )
    yield (
        "Cost = slot-seconds + 10 x slots at the peak x seconds over the SLO + slot-seconds lost to changes. The "
        "oracle's is the least of any course of sizes for the known load, capacities, noise and downtimes. The row "
        f"oracle plays a schedule near it; seeds: {size.oracle_seeds}, on a trace one at most."
    )
    yield f"Ours: {', '.join(OURS)}. Nothing was fitted to a ground; every policy has its default options."
    yield "Phoebe, TWRES and anticipate have their profile before the first second; its cost is not counted."
    for name, why in found.missing.items():
        yield f"No {name}: {why}"


SUITE = Suite(
    name="grounds",
    title="All policies on all grounds: drift, hard cases, recorded traces",
    quick=Size(seeds=3, trace_seeds=1, trace_hours=6.0, oracle_seeds=0, every_s=300.0),
    full=Size(seeds=20, trace_seeds=3, trace_hours=24.0, oracle_seeds=3, every_s=300.0),
    parts=parts,
    gather=gather,
    tables=(measures, ours_over_others),
    claims=CLAIMS,
    fits=(),
    figures=lambda _found, _cells: (),
    notes=notes,
)
