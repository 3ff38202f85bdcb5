"""Runs of Figure 11: a steady job with a backlog, and the seconds and tasks with which a method catches up.

As in the paper the profile is made offline and once: trials of one allocation are not repeated for another cell, and
while a method only profiles, the backlog stays that of the cell. The clock starts with the first larger allocation;
restarts take no time, and the end is exact to a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rheostat.engine.simulated import Fleet, Plant
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Trial
from rheostat.job.guards import UNGUARDED
from rheostat.job.slo import SLO
from rheostat.lab.papers.autrascale.truth import bounded
from rheostat.lab.papers.play import Method, Player, by_method, look_after, with_windows
from rheostat.policy.autrascale.stage import Stage
from rheostat.ports import Testbed

LOOK_S = 60
"""Seconds between two decisions."""
WARM_S = 180
"""Seconds before the backlog, so that rates and latencies are known."""
MOST_LOOKS = 60
"""Most decisions of a run."""
LATE = 1.02
"""Share of the time limit that counts as in time: a window is not exact either."""


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of the grid."""

    backlog: float
    target_s: float
    limit_s: float

    def needed_per_s(self, load_per_s: float, processing_s: float) -> float:
        """Return V_t (Eq 12)."""
        spare = load_per_s * max(self.target_s - processing_s, 0.0)
        return load_per_s + max(self.backlog - spare, 0.0) / self.limit_s


@dataclass(frozen=True, slots=True)
class Steady:
    """What runs before a backlog: π^p, and π^t below it."""

    tasks: Allocation
    base: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Caught:
    """The result of one method in one cell with one seed."""

    seconds: float
    """From the larger allocation until event-time latency met its target; infinite if it never did."""
    tasks: int
    """Tasks of the largest allocation during catch-up."""
    trials: int
    met: bool
    says_unreachable: bool
    returned: bool
    """Whether the steady allocation runs again at the end."""
    steady: int
    """Tasks of the steady allocation."""


class ProfilingTestbed:
    """A testbed that measures an allocation at a rate once, and then returns the same measurement."""

    def __init__(self, plant: Plant, seed: int) -> None:
        self.bed, self.measured = SimulatedTestbed(plant, seed), dict[Any, Measurement]()

    def measure(self, trial: Trial) -> Measurement:
        """Return the measurement of a trial."""
        key = (trial.allocation, trial.phases)
        if key not in self.measured:
            self.measured[key] = self.bed.measure(trial)
        return self.measured[key]


def catch_up(
    plant: Plant,
    methods: Sequence[Method],
    starts: Sequence[Steady],
    level: float,
    cases: Sequence[Case],
    most: int,
) -> dict[str, list[list[Caught]]]:
    """Return the results by method, case and seed, of which each has its start."""
    ready, seeds = with_windows(plant, LOOK_S - 6, 20, 2, 20), len(starts)
    runs = [(method, case, seed) for method in methods for case in cases for seed in range(seeds)]
    begin = [starts[seed].tasks for _, _, seed in runs]
    fleet = Fleet(ready, [Constant(level)] * len(runs), [s for _, _, s in runs], start=begin)
    fleet.advance(WARM_S)
    load = level * sum(plant.unit_per_s.values())
    # Throughput and latency are solved: π^p runs. Methods without stages ignore it.
    demand = plant.graph.demand_per_s(dict.fromkeys(plant.graph.sources, load))
    steady = [Stage(demand, phase="steady", solved={"load_per_s": load, "tasks": dict(start.base)}) for start in starts]
    slo = bounded(plant, most)
    beds = [ProfilingTestbed(ready, seed) for seed in range(seeds)]
    players = [
        _Catcher(fleet, r, method, case, seed, steady[seed], slo=slo, testbed=beds[seed])
        for r, (method, case, seed) in enumerate(runs)
    ]
    for player in players:
        player.step()  # one window of the steady job, before the backlog
    fleet.advance(LOOK_S)
    for player in players:
        player.refill()
    for _ in range(MOST_LOOKS):
        if all(player.done for player in players):
            break
        look_after(fleet, players, LOOK_S)
    results = by_method((method.name for method, _, _ in runs), (player.result() for player in players))
    return {name: [each[k : k + seeds] for k in range(0, len(each), seeds)] for name, each in results.items()}


class _Catcher(Player):
    """One method in one case with one seed."""

    def __init__(
        self,
        fleet: Fleet,
        replica: int,
        method: Method,
        case: Case,
        seed: int,
        stage: Stage,
        slo: SLO,
        testbed: Testbed,
    ) -> None:
        slo = replace(slo, max_latency_s=case.target_s, max_recovery_s=case.limit_s)
        # The recovery-time objective is the paper's T_limit here; nothing fails.
        guards = replace(UNGUARDED, recovery_floor=False)
        super().__init__(fleet, replica, method.make(), seed, slo=slo, guards=guards, testbed=testbed)
        self.case, self.steady = case, fleet.running[replica]
        self.controller.state = replace(self.controller.state, memo=stage.memo())
        self.begun_s: float | None = None
        self.since_s, self.profiling = 0.0, True
        self.right_s: float | None = None
        self.tasks, self.trials, self.says, self.done, self.idle = 0, 0, False, False, 0

    def refill(self) -> None:
        """Set the backlog to that of the cell."""
        fleet, r = self.fleet, self.replica
        fleet.taken[:, r] = fleet.arrived[:, r] - self.case.backlog
        fleet.history[(fleet.now - 1) % len(fleet.history), :, r] = fleet.now_rows[:, r]
        self.since_s = float(fleet.now)

    def look(self) -> None:
        if self.done:
            return
        if self.profiling:
            self.refill()
        self._watch()
        step = self.step()
        self.profiling = bool(step.decision.trials)
        self.trials += len(step.measurements)
        self.says |= bool(step.decision.evidence.get("unreachable"))
        if step.intent is not None:
            self.idle = 0
            if step.intent.target != self.steady:
                self.tasks = max(self.tasks, step.intent.target.slots)
            if self.begun_s is None:
                self.begun_s = float(self.fleet.now)
        returned = self.begun_s is not None and self.fleet.running[self.replica] == self.steady and step.intent is None
        self.idle += step.intent is None and not step.decision.trials
        over = self.begun_s is not None and self.fleet.now - self.begun_s > 3 * self.case.limit_s
        self.done = (
            (returned and self.fleet.up[self.replica] > 0 and self.right_s is not None) or over or self.idle > 20
        )

    def _watch(self) -> None:
        """Note the first second since the last step in which event-time latency met its target."""
        if self.right_s is not None:
            return
        passed = self.last(LOOK_S)
        load = float(self.fleet.arrival_rate[:, self.replica].sum())
        right = np.flatnonzero(passed.waiting / max(load, 1e-9) + passed.latency_s <= self.case.target_s)
        if len(right):
            self.right_s = float(self.fleet.now - LOOK_S + right[0])

    def result(self) -> Caught:
        seconds = float("inf")
        if self.right_s is not None:
            # Without a change, catch-up began with the backlog.
            seconds = self.right_s - (self.since_s if self.begun_s is None else self.begun_s)
        met = seconds <= LATE * self.case.limit_s
        returned = self.wanted == self.steady
        slots = self.steady.slots
        return Caught(seconds, self.tasks or slots, self.trials, met, self.says, returned, slots)
