"""Slots on the simulator: one configuration runs, its window is observed, the next one is deployed.

A slot of ten minutes is simulated by `LOOK_S` seconds in equilibrium (a fluid job has settled by then), with one draw
of the noise: capacities and metrics are noisy from minute to minute, and a slot shows the mean of ten.

As in the paper no backlog remains from one slot to the next, because back pressure slows the job's generator, which
also pauses while the job restarts; so the source shows none. Every slot loses 30 s of its ten minutes, with or without
a change (its Table 2 prints 95 % of the offered load in phases without changes). With `backlog`, ours, the source is a
log that nothing slows: what a slot does not process waits for the next one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rheostat.engine.simulated import Fleet, Plant
from rheostat.engine.testbed.loads import Steps
from rheostat.job.allocation import Allocation
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Observation
from rheostat.job.slo import SLO, Budget
from rheostat.lab.papers.play import Method, Player, by_method, look_after
from rheostat.lab.papers.tuning import LOOK_S, prepared
from rheostat.ports import Engine, Policy

SLOT_MIN = 10.0
SLOT_S, LOST_S = 600.0, 30.0
"""Seconds of a slot, and of the restart in it."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot: its level, allocation and throughput."""

    level: float
    tasks: Allocation
    throughput_per_s: float
    changed: bool
    """Whether its end deployed another configuration."""
    waiting: float = 0.0
    """Records that wait at its end, in slots of its load."""


Run = list[Slot]


def slotted(plant: Plant) -> Plant:
    """Return the plant for one window per slot, with the remaining noise of ten minutes."""
    calm = math.sqrt(SLOT_MIN)
    operators = tuple(replace(operator, noise=operator.noise / calm) for operator in plant.operators)
    metrics = replace(plant.metrics, noise=plant.metrics.noise / calm)
    return prepared(replace(plant, operators=operators, metrics=metrics))


def play(
    plant: Plant,
    methods: Sequence[Method],
    levels: Sequence[float],
    seeds: int,
    slots: int | None = None,
    backlog: bool = False,
) -> dict[str, list[Run]]:
    """Run every method and seed on these levels, one per slot; `slots` is the budget."""
    runs = [(method, seed) for method in methods for seed in range(seeds)]
    load = Steps(tuple(levels), LOOK_S)
    fleet = Fleet(slotted(plant), [load] * len(runs), [seed for _, seed in runs])
    slo = SLO(budget=None if slots is None else Budget(slots=slots))
    players = [
        _SlotPlayer(fleet, r, method.make(), seed, slo, levels, backlog) for r, (method, seed) in enumerate(runs)
    ]
    for _ in levels:
        look_after(fleet, players, LOOK_S)
        if not backlog:
            fleet.finish_backlog()
    return by_method((method.name for method, _ in runs), (player.run for player in players))


class _SlowedSource:
    """An engine whose generator waits for the job, so that its sources show no backlog."""

    def __init__(self, engine: Engine) -> None:
        self.describe, self.apply, self._observe = engine.describe, engine.apply, engine.observe

    def observe(self) -> Observation:
        window = self._observe()
        return replace(window, sources=tuple(replace(source, backlog=0.0, lag_s=0.0) for source in window.sources))


class _SlotPlayer(Player):
    """One method with one seed."""

    def __init__(
        self,
        fleet: Fleet,
        replica: int,
        policy: Policy[Any],
        seed: int,
        slo: SLO,
        levels: Sequence[float],
        backlog: bool,
    ) -> None:
        super().__init__(fleet, replica, policy, seed, slo=slo, guards=replace(UNGUARDED, explore="live"))
        if not backlog:
            self.controller.engine = _SlowedSource(self.controller.engine)
        self.levels = levels
        self.run: Run = []

    def look(self) -> None:
        ran = self.fleet.running[self.replica]
        step = self.step()
        done = step.observation.throughput_per_s
        assert done is not None
        window, level = step.observation, self.levels[len(self.run)]
        arriving = sum(source.rate_per_s or 0.0 for source in window.sources)
        waiting = sum(source.backlog or 0.0 for source in window.sources) / max(arriving * LOOK_S, 1.0)
        self.run.append(Slot(level, ran, done, step.intent is not None, waiting))
