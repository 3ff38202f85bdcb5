"""Capacities that fall or rise at a constant load: which method notices, and how often it changes the job for that.

The paper takes an operator's curve for constant (section 5.3). There is no headroom, so a size that is too small by
a few per cent shows in the windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rheostat.engine.simulated import Fleet
from rheostat.engine.testbed.loads import Constant
from rheostat.lab.experiment.score import ENOUGH
from rheostat.lab.jobs.hard import COUNT, PARSE, operator, pair
from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.methods import BIG, EVERY_DS2, OURS, conttune
from rheostat.lab.papers.play import Method, Player, by_method, look_after
from rheostat.lab.papers.table import Cell, Table
from rheostat.lab.papers.tuning import LOOK_S, prepared
from rheostat.policy.ds2 import DS2

DRIFT = "drift"
FACTORS: Mapping[str, float] = {"capacities fall by 15 %": 0.85, "capacities rise by 20 %": 1.2}
LEVEL = 6.0
BEFORE, AFTER = 60, 140
"""Windows before and after the change."""


@dataclass(frozen=True, slots=True)
class Drifted:
    """What one method did in the windows after the change, on one seed."""

    short: float
    """Share of the windows in which less was taken in than arrived."""
    changes: int
    tasks: float
    """Mean tasks of the job."""


def drift_methods() -> list[Method]:
    """Return the methods: the paper's process and ours, each with and without Big, and DS2."""
    return [
        Method(paper.DS2, EVERY_DS2),
        Method(paper.DS2_RULE, DS2),
        Method(paper.ALPHA_3, lambda: conttune(3.0)),
        Method(paper.ALPHA_3 + BIG, lambda: conttune(3.0, big=True)),
        Method(OURS, lambda: conttune(3.0, ours=True)),
        Method(OURS + BIG, lambda: conttune(3.0, big=True, ours=True)),
    ]


def run_drift(seeds: int) -> dict[str, Mapping[str, Sequence[Drifted]]]:
    """Run all methods on every change; return change -> method -> a run per seed."""
    return {name: _run(factor, seeds) for name, factor in FACTORS.items()}


def _run(factor: float, seeds: int) -> Mapping[str, Sequence[Drifted]]:
    at_s = float(BEFORE * LOOK_S)
    drift = ((at_s - 1.0, 1.0), (at_s, factor))
    plant = prepared(pair(DRIFT, operator("parse", PARSE, drift), operator("count", COUNT, drift)))
    runs = [(method, seed) for method in drift_methods() for seed in range(seeds)]
    fleet = Fleet(plant, [Constant(LEVEL)] * len(runs), [seed for _, seed in runs])
    players = [_Watcher(fleet, k, method, seed) for k, (method, seed) in enumerate(runs)]
    for _ in range(BEFORE + AFTER):
        look_after(fleet, players, LOOK_S)
    return by_method((method.name for method, _ in runs), (player.result() for player in players))


class _Watcher(Player):
    """One method on one seed."""

    def __init__(self, fleet: Fleet, replica: int, method: Method, seed: int) -> None:
        super().__init__(fleet, replica, method.make(), seed)
        self.short: list[bool] = []
        self.changed: list[bool] = []
        self.tasks: list[int] = []

    def look(self) -> None:
        seconds = self.last(LOOK_S)
        arrived = LEVEL * sum(self.fleet.plant.unit_per_s.values()) * LOOK_S
        taken = seconds.taken[-1] - seconds.taken[0]
        self.short.append(bool(taken < ENOUGH * arrived * (LOOK_S - 1) / LOOK_S))
        self.tasks.append(sum(self.wanted.tasks.values()))
        self.changed.append(self.step().intent is not None)

    def result(self) -> Drifted:
        after = slice(BEFORE, None)
        return Drifted(sum(self.short[after]) / AFTER, sum(self.changed[after]), sum(self.tasks[after]) / AFTER)


def drift_tables(drift: Mapping[str, Mapping[str, Sequence[Drifted]]]) -> Iterator[Cell]:
    """Yield windows short, changes and mean tasks after a change of the capacities."""
    short, changed, held = Table("drift, windows short", "%"), Table("drift, changes"), Table("drift, mean tasks")
    for name, methods in drift.items():
        for row, runs in methods.items():
            yield short.mean(row, name, [100.0 * run.short for run in runs])
            yield changed.mean(row, name, [float(run.changes) for run in runs])
            yield held.mean(row, name, [run.tasks for run in runs])
