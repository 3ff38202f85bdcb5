"""Tunings on the simulator: the load moves, a method makes changes until it is content, and all of it is counted.

The papers' jobs carry their generator inside: while a job restarts nothing is generated, and between two levels it
finishes what waits. So a change takes no time here (its downtime is counted apart), every level lasts as long as it
generates, and the next one starts without a backlog. A method is looked at every `LOOK_S`; it is asked until it
holds, or under a lenient stop until the first look without back pressure after a change that is not Big's.
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
from rheostat.lab.papers import play
from rheostat.lab.papers.capacity import rates_per_s, share_served
from rheostat.lab.papers.play import CONTENT, Player, by_method, look_after, with_windows

LOOK_S = 20
"""Seconds between two looks."""
MOST_CHANGES = 12
"""Changes after which a tuning is given up."""
TAIL_S = 100
"""The end of a level, for its latencies."""


@dataclass(frozen=True, slots=True)
class Method(play.Method):
    """A policy, and when its tunings end."""

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
    return with_windows(plant, LOOK_S - 4, LOOK_S / 2, 2, LOOK_S)


def cores(allocation: Allocation) -> int:
    """Return the cores that a job takes: operators share slots."""
    return max(allocation.tasks.values())


def tune(
    plant: Plant, methods: Sequence[Method], loads: Sequence[Sequence[float]], hold_s: int = 600, trigger: float = 0.0
) -> dict[str, list[list[Tuned]]]:
    """Run every method on every load, a sequence of levels; return its levels by method and load.

    A level that differs from the one that was last tuned for by less than the share `trigger` is not looked at.
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
        super().__init__(fleet, replica, method.make(), replica)
        self.method = method
        self.levels: list[Tuned] = []

    def begin(self, level: float, looked_at: bool) -> None:
        self.begun_s = self.fleet.now
        self.level, self.open, self.looked_at = level, looked_at, looked_at
        self.start, self.arrived_before = self.wanted, self.arrived
        self.changes = self.big = self.under = 0
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
        self.settled = not is_big
        self.backlog += self.waiting
        self.at_looks.append((float(self.fleet.now - self.begun_s), cores(self.wanted)))

    def end(self, hold_s: int) -> None:
        moments, held = zip(*self.at_looks, (float(hold_s), 0), strict=True)
        rates = rates_per_s(self.fleet.plant, self.level)
        able = share_served(self.fleet.plant, self.wanted, rates) * sum(rates.values())
        counts = (self.changes, self.big, self.under)
        core_seconds, left_s = float(np.dot(held[:-1], np.diff(moments))), self.waiting / able if able else 0.0
        self.levels.append(
            Tuned(
                self.level, self.looked_at, *counts, self.start, self.wanted, core_seconds, max(held), self.backlog,
                self.arrived - self.arrived_before, left_s, self.last(TAIL_S).latency_s, tuple(self.at_looks),
            )
        )  # fmt: skip
