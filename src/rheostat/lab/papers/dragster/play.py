"""Slots on the simulator: one configuration runs, its window is observed, the next one is deployed.

A slot of ten minutes is simulated by `LOOK_S` seconds in equilibrium (a fluid job has settled by then), with one draw
of the noise: capacities and metrics are noisy from minute to minute, and a slot shows the mean of ten.

As in the paper no backlog remains from one slot to the next, because back pressure slows the job's generator, which
also pauses while the job restarts; and every slot loses 30 s of its ten minutes, with or without a change (its Table 2
prints 95 % of the offered load in phases without changes).
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
from rheostat.job.slo import SLO, Budget
from rheostat.lab.papers.play import Method, Player, by_method, look_after
from rheostat.lab.papers.tuning import LOOK_S, prepared
from rheostat.ports import Policy

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


Run = list[Slot]


def slotted(plant: Plant) -> Plant:
    """Return the plant for one window per slot, with the remaining noise of ten minutes."""
    calm = math.sqrt(SLOT_MIN)
    operators = tuple(replace(operator, noise=operator.noise / calm) for operator in plant.operators)
    metrics = replace(plant.metrics, noise=plant.metrics.noise / calm)
    return prepared(replace(plant, operators=operators, metrics=metrics))


def play(
    plant: Plant, methods: Sequence[Method], levels: Sequence[float], seeds: int, slots: int | None = None
) -> dict[str, list[Run]]:
    """Run every method and seed on these levels, one per slot; `slots` is the budget."""
    runs = [(method, seed) for method in methods for seed in range(seeds)]
    load = Steps(tuple(levels), LOOK_S)
    fleet = Fleet(slotted(plant), [load] * len(runs), [seed for _, seed in runs])
    slo = SLO(budget=None if slots is None else Budget(slots=slots))
    players = [_SlotPlayer(fleet, r, method.make(), seed, slo, levels) for r, (method, seed) in enumerate(runs)]
    for _ in levels:
        look_after(fleet, players, LOOK_S)
        fleet.finish_backlog()
    return by_method((method.name for method, _ in runs), (player.run for player in players))


class _SlotPlayer(Player):
    """One method with one seed."""

    def __init__(
        self, fleet: Fleet, replica: int, policy: Policy[Any], seed: int, slo: SLO, levels: Sequence[float]
    ) -> None:
        super().__init__(fleet, replica, policy, seed, slo=slo, guards=replace(UNGUARDED, explore="live"))
        self.levels = levels
        self.run: Run = []

    def look(self) -> None:
        ran = self.fleet.running[self.replica]
        step = self.step()
        done = step.observation.throughput_per_s
        assert done is not None
        self.run.append(Slot(self.levels[len(self.run)], ran, done, step.intent is not None))
