"""Tunings on the simulator: the load moves, a method makes changes until it is content, and all of it is counted.

The papers' jobs carry their generator inside: while a job restarts nothing is generated, and between two levels it
finishes what waits. So a change takes no time here (its downtime is counted apart), every level lasts as long as it
generates, and the next one starts without a backlog. A method is looked at every `LOOK_S`; it is asked until it
holds, or under a lenient stop until the first look without back pressure after a change that is not Big's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.engine.simulated import Fleet, FleetClock, Plant
from rheostat.engine.simulated.engine import OVERLOADED_SHARE
from rheostat.engine.simulated.fleet import Floats
from rheostat.engine.simulated.plant import Metrics, Restart
from rheostat.engine.testbed.loads import Steps
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Reason
from rheostat.journal.memory import MemoryJournal
from rheostat.ports import Policy

LOOK_S = 20
"""Seconds between two looks."""
MOST_CHANGES = 12
"""Changes after which a tuning is given up."""
BUFFER_S = 0.1
"""Buffers in front of an operator, in seconds: small, so that a lack of one per cent shows within a look."""
TAIL_S = 100
"""The end of a level, for its latencies."""
HOLDS = (Reason.STEADY, Reason.UNDER_PROVISIONED)
"""Reasons with which a method says that it is content, or has nothing left to give."""


@dataclass(frozen=True, slots=True)
class Method:
    """A policy, and when its tunings end."""

    name: str
    make: Callable[[], Policy[Any]]
    lenient: bool = False
    symptoms: bool = False
    """Whether it answers symptoms alone: while a backlog is worked off it sees none, so it is asked again later."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """One level of one run."""

    level: float
    looked_at: bool
    """Whether the load had moved enough to be tuned for."""
    changes: int
    big: int
    """Changes of the Big phase among them."""
    under: int
    """Changes that were made under back pressure."""
    start: Allocation
    end: Allocation
    core_seconds: float
    """With slot sharing a job takes as many cores as its widest operator has tasks."""
    most_cores: int
    backlog: float
    """Records that waited at the moments of the changes."""
    arrived: float
    left_s: float
    """Seconds that it takes to finish what waits at the end."""
    latency_s: Floats
    """Through the job, of every second at its end."""
    at_looks: tuple[tuple[float, int], ...]
    """Second and cores, look by look."""


def prepared(plant: Plant) -> Plant:
    """Return the plant as the protocol needs it: a look sees one draw of the noise, restarts cost no time."""
    metrics = Metrics(window_s=LOOK_S - 4, min_window_s=LOOK_S / 2, settle_s=2, noise=plant.metrics.noise)
    return replace(plant, metrics=metrics, restart=Restart(1, 0), noise_period_s=LOOK_S, buffer_s=BUFFER_S)


def cores(allocation: Allocation) -> int:
    """Return the cores that a job takes: operators share slots."""
    return max(allocation.tasks.values())


def tune(
    plant: Plant,
    methods: Sequence[Method],
    loads: Sequence[Sequence[float]],
    hold_s: int = 600,
    trigger: float = 0.0,
) -> dict[str, list[list[Tuned]]]:
    """Run every method on every load, a sequence of levels; return its levels by method and load.

    A level that differs from the one that was last tuned for by less than the share `trigger` is not looked at.
    """
    ready = prepared(plant)
    runs = [(method, k) for method in methods for k in range(len(loads))]
    steps = [Steps(tuple(levels), hold_s) for levels in loads]
    fleet = Fleet(ready, [steps[k] for _, k in runs], [k for _, k in runs])
    replicas = [_Replica(fleet, r, method) for r, (method, _) in enumerate(runs)]
    last = [-1.0] * len(loads)
    for at in range(len(loads[0])):
        moved = [abs(levels[at] - last[k]) > trigger * max(levels[at], last[k]) for k, levels in enumerate(loads)]
        last = [levels[at] if moved[k] else last[k] for k, levels in enumerate(loads)]
        for replica, (_, k) in zip(replicas, runs, strict=True):
            replica.begin(loads[k][at], moved[k])
        for look_s in range(LOOK_S, hold_s, LOOK_S):
            fleet.advance(at * hold_s + look_s - fleet.now)
            for replica in replicas:
                replica.look(float(look_s))
        fleet.advance((at + 1) * hold_s - fleet.now)
        for replica in replicas:
            replica.end(hold_s)
        fleet.finish_backlog()
    found: dict[str, list[list[Tuned]]] = {method.name: [] for method in methods}
    for replica, (method, _) in zip(replicas, runs, strict=True):
        found[method.name].append(replica.levels)
    return found


class _Replica:
    """One method on one load."""

    def __init__(self, fleet: Fleet, replica: int, method: Method) -> None:
        self.fleet, self.replica, self.method = fleet, replica, method
        self.controller = Controller(
            fleet.engine(replica), method.make(), MemoryJournal(), FleetClock(fleet), seed=replica, pace=IMMEDIATE
        )
        self.controller.start()
        self.levels: list[Tuned] = []

    @property
    def running(self) -> Allocation:
        return self.fleet.wanted[self.replica]

    def begin(self, level: float, looked_at: bool) -> None:
        self.level, self.open, self.looked_at = level, looked_at, looked_at
        self.start, self.arrived = self.running, float(self.fleet.arrived[:, self.replica].sum())
        self.changes = self.big = self.under = 0
        self.backlog, self.settled = 0.0, False
        self.at_looks: list[tuple[float, int]] = [(0.0, cores(self.running))]

    def look(self, look_s: float) -> None:
        if not self.open:
            return
        if self.method.lenient and self.settled:
            window = self.controller.engine.observe()
            if window.usable and not window.overloaded:
                self.open = False
                return
        step = self.controller.step()
        if step.intent is None:
            busy = any((reading.blocking_share or 0.0) > OVERLOADED_SHARE for reading in step.observation.operators)
            self.open = step.decision.reason not in HOLDS or (self.method.symptoms and busy)
            return
        is_big = "p_max" in step.decision.evidence
        self.changes += 1
        self.open = self.changes < MOST_CHANGES
        self.big += is_big
        self.under += bool(step.observation.overloaded)
        self.settled = not is_big
        self.backlog += self._waiting()
        self.at_looks.append((look_s, cores(self.running)))

    def _waiting(self) -> float:
        """Return what waits at the sources; buffers hold next to nothing."""
        return float((self.fleet.arrived - self.fleet.taken)[:, self.replica].sum())

    def end(self, hold_s: int) -> None:
        fleet, r = self.fleet, self.replica
        moments = [*(second for second, _ in self.at_looks), float(hold_s)]
        held = [count for _, count in self.at_looks]
        arrived = float(fleet.arrived[:, r].sum()) - self.arrived
        rates = {name: unit * self.level for name, unit in fleet.plant.unit_per_s.items()}
        able = share_served(fleet.plant, self.running, rates) * sum(rates.values())
        self.levels.append(
            Tuned(
                self.level,
                self.looked_at,
                self.changes,
                self.big,
                self.under,
                self.start,
                self.running,
                float(np.dot(held, np.diff(moments))),
                max(held),
                self.backlog,
                arrived,
                self._waiting() / able if able else 0.0,
                fleet.span(fleet.now - TAIL_S, fleet.now, r)[:, -2].copy(),
                tuple(self.at_looks),
            )
        )


def share_served(plant: Plant, allocation: Allocation, rates_per_s: Mapping[str, float]) -> float:
    """Return the share of these rates that an allocation can serve, noise apart; above 1 there is room."""
    demand = plant.graph.demand_per_s(rates_per_s)
    served = [
        plant.ability_per_s(name, tasks, allocation) / demand[name]
        for name, tasks in allocation.tasks.items()
        if demand[name] > 0
    ]
    return min(served, default=1.0)
