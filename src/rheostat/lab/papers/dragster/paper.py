"""The published numbers: Liu, Xu, Lau, "Online Resource Optimization for Elastic Stream Processing", ICPP 2022."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DHALION, SADDLE, GRADIENT = "Dhalion", "Dragster saddle point", "Dragster online gradient"
"""The paper's rows. Both Dragsters follow Eq 8 and 14 to 18 to the letter."""
PLAIN = "saddle point, λ = 0"
"""To the letter but for Eq 15: Eq 14 has no maximum where a multiplier is positive."""
OWN_SADDLE, OWN_GRADIENT = "saddle point, ours", "online gradient, ours"
OURS, LATE = "ContTune, our model", "Oracle, one slot late"
ROWS = (DHALION, SADDLE, PLAIN, GRADIENT, OWN_SADDLE, OWN_GRADIENT, OURS, LATE)
MARGIN, SHORTFALL = "λ = 0, our margin", "λ = 0, our shortfall"
DESCENT, SPLIT = "online gradient, our descent", "λ = 0, our split"
"""To the letter, with one of our departures."""
FIRST = "Dhalion, first operator"
REMEMBERS, NO_CATCH_UP = "saddle point, ours, without forgetting", "saddle point, ours, without catch-up"
NO_MARGIN = "saddle point, ours, without margin"

Row = Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A simulated job, its levels (in 1000 tuples/s), the slots of each level, and Dhalion's CPU threshold."""

    job: str
    levels: tuple[float, ...]
    slots: tuple[int, ...]
    idle_below: float

    @property
    def each(self) -> tuple[float, ...]:
        """The level of every slot."""
        return tuple(level for level, count in zip(self.levels, self.slots, strict=True) for _ in range(count))

    @property
    def phases(self) -> dict[str, tuple[int, int]]:
        """The slots of every phase, by its minutes in the paper."""
        phases, at = {}, 0
        for count in self.slots:
            phases[f"{10 * at}-{10 * (at + count)}"] = (at, at + count)
            at += count
        return phases


HIGH, LOW = 160.5, 90.3
WORDCOUNT = Workload("dragster-wordcount", (HIGH, LOW, HIGH, LOW, HIGH), (20,) * 5, 0.618)
YSB = Workload("ysb", (285.8, 349.5), (30, 20), 0.544)
ONE = {
    "Group": Workload("dragster-group", (132.0,), (20,), 0.618),
    "AsyncIO": Workload("dragster-asyncio", (142.0,), (20,), 0.618),
    "Join": Workload("dragster-join", (176.0,), (20,), 0.618),
}
WINDOW = Workload("dragster-window", (223.0,), (20,), 0.618)
WORDCOUNT_LOW = Workload("dragster-wordcount", (LOW,), (20,), 0.618)
"""Section 6.1 has two rates per workload, and prints only WordCount's, in Table 2."""

CONVERGENCE: Row = {DHALION: (140, 40, 40, 40, 40), SADDLE: (70, 70, 10, 10, 10), GRADIENT: (80, 90, 40, 40, 40)}
"""Table 2, minutes."""
TUPLES: Row = {
    DHALION: (1.40, 1.03, 1.81, 1.03, 1.81),
    SADDLE: (1.68, 1.03, 1.83, 1.04, 1.83),
    GRADIENT: (1.70, 1.03, 1.83, 1.03, 1.83),
}
"""Table 2, 10^9."""
COST: Row = {
    DHALION: (50.5, 78.3, 51.2, 78.3, 51.2),
    SADDLE: (53.2, 66.8, 50.3, 65.4, 50.3),
    GRADIENT: (52.4, 71.8, 51.0, 67.6, 50.3),
}
"""Table 2, $ per 10^9 tuples."""
YSB_CONVERGENCE: Row = {DHALION: (240, 90), SADDLE: (110, 30), GRADIENT: (150, None)}
"""Table 3, and section 6.5 for the time after the increase; minutes."""
YSB_RATE: Row = {DHALION: (1.93,), SADDLE: (2.15,), GRADIENT: (2.22,)}
"""Table 3, 10^5 tuples/s; section 6.5 reads them as tuples within 300 minutes (11.2 to 14.9 % more)."""
YSB_COST: Row = {DHALION: (120.4,), SADDLE: (115.8,), GRADIENT: (115.8,)}
"""Table 3, $ per 10^9 tuples."""
SLOTS_TO_CONVERGE: Mapping[str, float] = {DHALION: 14, SADDLE: 7, GRADIENT: 8}
"""Figure 4a to c; the last one is Table 2's 80 minutes."""
GOODPUT_GAIN = (20.0, 25.8)
"""Abstract: per cent more tuples than Dhalion. 20.0 is Table 2's first phase; 25.8 is in no table."""
YSB_GAIN = 11.2
"""Section 6.5: per cent more tuples than Dhalion on YSB, at least."""
SAVINGS = 14.6
"""Abstract: per cent by which the low phases are cheaper than Dhalion's, at least."""
IMPROVEMENT = (5.0, 6.0)
"""Section 6.4: throughput over that of one task per operator, with which every method starts."""
BUDGET_GAIN = 64.7
"""Figure 4d to f: per cent more throughput than Dhalion."""
BY_OPERATORS: Row = {
    DHALION: (35 * 1.64, 52.5 * 2.67, 240),
    SADDLE: (35, 52.5, 110),
    GRADIENT: (35 * 1.64 / 1.38, 52.5 * 2.67 / 1.81, 140),
}
"""Figure 5, by section 6.3: mean minutes of the workloads with 1, 2 and 6 operators."""


def speed_up(row: str, column: int) -> float | None:
    """Return a method's speed-up over Dhalion in Figure 5."""
    slow, fast = BY_OPERATORS[DHALION][column], BY_OPERATORS[row][column] if row in BY_OPERATORS else None
    return slow / fast if slow and fast else None


PODS = 5
"""Pods besides the tuned tasks: with them the ratio of Dhalion's costs in low and high phases is the printed one."""
DOLLARS_PER_HOUR, DOLLARS_PER_POD_HOUR = 1.6, 0.1
"""Figure 4d to f. The price is ours: with 16 pods, 11 of them for tasks, a Dhalion that serves Map first loses as much
as in the paper."""
BUDGET = round(DOLLARS_PER_HOUR / DOLLARS_PER_POD_HOUR) - PODS

_FIRST_PHASE = dict.fromkeys(
    (SADDLE, PLAIN, GRADIENT, OWN_SADDLE, OWN_GRADIENT, MARGIN, SHORTFALL, DESCENT, NO_MARGIN), (0,)
)

FITTED: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "2, convergence": {DHALION: (0, 1, 2, 3, 4), **_FIRST_PHASE},
    "2, tuples": {DHALION: (1, 2, 3, 4), SADDLE: (2, 4), GRADIENT: (2, 4)},
    "2, cost": {DHALION: (0, 1, 2, 3, 4)},
    "3, convergence": {DHALION: (0, 1), **_FIRST_PHASE},
    "3, cost": {DHALION: (0,)},
    "Figure 4, slots": {DHALION: (0,), **_FIRST_PHASE},
    "Figure 4 budget, throughput": dict.fromkeys((SADDLE, GRADIENT, OWN_SADDLE, OWN_GRADIENT), (0, 1)),
    "Figure 5": {DHALION: (0, 1, 2), **dict.fromkeys(_FIRST_PHASE, (2,))},
    "Backlog that remains, mean": {OWN_SADDLE: (0, 1)},
}
"""Columns, by position, that a parameter is fitted to: the curves and thresholds to Dhalion's minutes, the loads to the
tuples of phases without changes, the price of a pod and the fixed pods to Dhalion's costs, the free parameters of
Dragster (length scale, noise, step size) and our margin and shortfall to the first phases of WordCount and YSB, the
price in Figure 4 to its gain, catch-up to our own runs with a backlog."""
