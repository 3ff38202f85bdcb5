"""Tunings on the simulator: the load changes, a method makes changes until it holds, and these are counted.

The papers' jobs contain their generator: while a job restarts nothing is generated, and between two levels it finishes
its backlog. So a change takes no time here (its downtime is added separately), every level lasts as long as it
generates, and the next one starts without a backlog. A method decides every `LOOK_S` until it holds; with a lenient
stop, until the first window without back pressure after a change other than Big's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.engine.simulated import Fleet, Plant
from rheostat.engine.simulated.engine import OVERLOADED_SHARE
from rheostat.engine.simulated.fleet import Floats
from rheostat.engine.testbed.loads import Steps
from rheostat.job.allocation import Allocation
from rheostat.job.slo import SLO, Bounds
from rheostat.lab.papers import play
from rheostat.lab.papers.capacity import rates_per_s, share_served
from rheostat.lab.papers.play import CONTENT, Player, by_method, look_after, with_windows

LOOK_S = 20
"""Seconds between two decisions."""
MOST_CHANGES = 12
"""Most changes of a tuning."""
TAIL_S = 100
"""Last seconds of a level, for its latencies."""


@dataclass(frozen=True, slots=True)
class Method(play.Method):
    """A policy, and the end of its tunings."""

    lenient: bool = False
    symptoms: bool = False
    """Whether it reacts to symptoms only: it sees none during catch-up, so it decides again later."""
    most: int | None = None
    """Most tasks of an operator; None: as many as the job allows."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """One level of one run."""

    level: float
    tuned: bool
    """Whether the load had changed enough for a tuning."""
    changes: int
    big: int
    """Changes of the Big phase."""
    under: int
    """Changes under back pressure."""
    explored: int
    """Changes with a suggestion that the policy's memo calls explored: ContTune's conservative exploration."""
    start: Allocation
    end: Allocation
    core_seconds: float
    """Core-seconds; with slot sharing the cores are the tasks of the widest operator."""
    most_cores: int
    backlog: float
    """Backlog at the changes, summed."""
    arrived: float
    left_s: float
    """Seconds to finish the backlog at the end."""
    latency_s: Floats
    """Processing latency of the last seconds."""
    at_looks: tuple[tuple[float, int], ...]
    """(second, cores) after each change."""


def prepared(plant: Plant) -> Plant:
    """Return the plant for this protocol: one draw of the noise per window, restarts without downtime."""
    return with_windows(plant, LOOK_S - 4, LOOK_S / 2, 2, LOOK_S)


def cores(allocation: Allocation) -> int:
    """Return the cores of a job whose operators share slots."""
    return max(allocation.tasks.values())


def tune(
    plant: Plant, methods: Sequence[Method], loads: Sequence[Sequence[float]], hold_s: int = 600, trigger: float = 0.0
) -> dict[str, list[list[Tuned]]]:
    """Run every method on every load, which is a sequence of levels; return method -> load -> tuned levels.

    A level that differs from the last tuned one by less than the share `trigger` is not tuned.
    """
    runs = [(method, k) for method in methods for k in range(len(loads))]
    steps = [Steps(tuple(levels), hold_s) for levels in loads]
    fleet = Fleet(prepared(plant), [steps[k] for _, k in runs], [k for _, k in runs])
    players = [_Tuner(fleet, r, method) for r, (method, _) in enumerate(runs)]
    last = [-1.0] * len(loads)
    for at in range(len(loads[0])):
        moved = [abs(levels[at] - last[k]) > trigger * max(levels[at], last[k]) for k, levels in enumerate(loads)]
        last = [levels[at] if moved[k] else last[k] for k, levels in enumerate(loads)]
        for player, (_, k) in zip(players, runs, strict=True):
            player.begin(loads[k][at], moved[k])
        for _ in range(LOOK_S, hold_s, LOOK_S):
            look_after(fleet, players, LOOK_S)
        fleet.advance((at + 1) * hold_s - fleet.now)
        for player in players:
            player.end(hold_s)
        fleet.finish_backlog()
    return by_method((method.name for method, _ in runs), (player.levels for player in players))


class _Tuner(Player):
    """One method on one load."""

    def __init__(self, fleet: Fleet, replica: int, method: Method) -> None:
        bounds = dict.fromkeys(fleet.wanted[replica].tasks, Bounds(max=method.most))
        super().__init__(fleet, replica, method.make(), replica, slo=SLO(operators=bounds))
        self.method = method
        self.levels: list[Tuned] = []

    def begin(self, level: float, tuned: bool) -> None:
        self.begun_s = self.fleet.now
        self.level, self.open, self.tuned = level, tuned, tuned
        self.start, self.arrived_before = self.wanted, self.arrived
        self.changes = self.big = self.under = self.explored = 0
        self.backlog, self.settled = 0.0, False
        self.at_looks: list[tuple[float, int]] = [(0.0, cores(self.wanted))]

    def look(self) -> None:
        if not self.open:
            return
        if self.method.lenient and self.settled:
            window = self.controller.engine.observe()
            if window.usable and not window.overloaded:
                self.open = False
                return
        step = self.step()
        if step.intent is None:
            busy = any((reading.blocking_share or 0.0) > OVERLOADED_SHARE for reading in step.observation.operators)
            self.open = step.decision.reason not in CONTENT or (self.method.symptoms and busy)
            return
        is_big = "p_max" in step.decision.evidence
        self.changes += 1
        self.open = self.changes < MOST_CHANGES
        self.big += is_big
        self.under += bool(step.observation.overloaded)
        self.explored += bool(step.decision.memo.get("tuning", {}).get("explored"))
        self.settled = not is_big
        self.backlog += self.waiting
        self.at_looks.append((float(self.fleet.now - self.begun_s), cores(self.wanted)))

    def end(self, hold_s: int) -> None:
        moments, held = zip(*self.at_looks, (float(hold_s), 0), strict=True)
        rates = rates_per_s(self.fleet.plant, self.level)
        capacity_per_s = share_served(self.fleet.plant, self.wanted, rates) * sum(rates.values())
        counts = (self.changes, self.big, self.under, self.explored)
        core_seconds, left_s = (
            float(np.dot(held[:-1], np.diff(moments))),
            self.waiting / capacity_per_s if capacity_per_s else 0.0,
        )
        self.levels.append(
            Tuned(
                self.level, self.tuned, *counts, self.start, self.wanted, core_seconds, max(held), self.backlog,
                self.arrived - self.arrived_before, left_s, self.last(TAIL_S).latency_s, tuple(self.at_looks),
            )
        )  # fmt: skip
