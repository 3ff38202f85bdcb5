"""The suite's tables: a row per policy, a column per ground."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from rheostat.lab.experiment.grounds import OURS, PUBLISHED
from rheostat.lab.papers import interval
from rheostat.lab.papers.grounds.runs import Found, Played
from rheostat.lab.papers.table import Cell, Table

OVER_ORACLE = "cost over oracle"
COST = "cost"
CHANGES, OVER_SLO, SHORT = "changes per day", "minutes over the SLO", "windows short of the demand"
MEASURES: Mapping[Table, Callable[[Played], float]] = {
    Table(OVER_ORACLE, "times the least cost"): lambda run: run.cost / run.bound,
    Table(COST, "slot-seconds"): lambda run: run.cost,
    Table("slot-seconds", "slot-seconds"): lambda run: run.slot_seconds,
    Table("slot-seconds lost to changes", "slot-seconds"): lambda run: run.lost,
    Table(CHANGES, "changes"): lambda run: run.changes_per_day,
    Table(OVER_SLO, "minutes"): lambda run: run.over_min,
    Table(SHORT, "windows"): lambda run: run.windows_short,
    Table("p99 latency", "s"): lambda run: run.latency_p99_s,
}
"""A table per measure."""


def measures(found: Found) -> Iterator[Cell]:
    """Yield a table per measure: means over the seeds."""
    for table, measure in MEASURES.items():
        for ground, by_policy in found.grounds.items():
            for policy, runs in by_policy.items():
                yield table.mean(policy, ground, [measure(run) for run in runs])


def ours_over_others(found: Found) -> Iterator[Cell]:
    """Yield a table per policy of ours: its cost over that of every other one, seed by seed."""
    for ours in OURS:
        table = Table(over_name(ours), "times their cost")
        for ground, by_policy in found.grounds.items():
            own = [run.cost for run in by_policy[ours]]
            for policy in PUBLISHED:
                ratio = interval.paired_ratio(own, [run.cost for run in by_policy[policy]])
                known = math.isfinite(ratio.low) and math.isfinite(ratio.high)
                low, high = (ratio.low, ratio.high) if known else (None, None)
                yield replace(table.cell(policy, ground, ratio.value), low=low, high=high)


def over_name(ours: str) -> str:
    """Return the name of the table with the cost of one of our policies over the others'."""
    return f"cost of {ours} over"
