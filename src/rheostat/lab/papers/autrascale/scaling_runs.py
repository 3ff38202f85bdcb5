"""Runs of the throughput and latency tests: a method decides until it holds.

The paper runs every configuration for ten minutes; here a window covers 100 s of a settled job without a backlog, with
new noise every 20 s, and a restart takes no time. Changes and trials are counted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rheostat.engine.simulated import Fleet, Plant
from rheostat.engine.simulated.draws import BLOCK_S, Floats
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.job.allocation import Allocation
from rheostat.job.slo import SLO
from rheostat.lab.papers.autrascale.truth import bounded
from rheostat.lab.papers.play import CONTENT, Method, Player, by_method, look_after, with_windows

SETTLE_S, LOOK_S, NOISE_S = 18, 102, 20
"""Seconds of settling, of a window, and between two draws of the noise."""
MOST_LOOKS = 40
"""Most decisions of a run."""
AFTER_S = 300
"""Seconds of the final measurement."""


@dataclass(frozen=True, slots=True)
class Solved:
    """The result of one method on one job with one seed."""

    looks: int
    """Number of decisions, including the last."""
    changes: int
    iterations: int
    """Changes after the throughput was right; all changes of a method without such stages."""
    trials: int
    """Allocations measured on the testbed."""
    end: Allocation
    latency_s: float
    throughput_per_s: float
    base: Mapping[str, int] = field(default_factory=dict)
    """π^t; empty for a method without it."""
    path: tuple[int, ...] = ()
    """Tasks of the job at every decision."""
    proposal_ms: float = 0.0
    """CPU time of all steps that proposed a size by an expected improvement."""


class Dial:
    """A load whose level is set by hand; the fleet reads it with its next block of seconds."""

    noise = 0.0

    def __init__(self, level: float) -> None:
        self.value = float(level)

    def level(self, t_s: Floats) -> Floats:
        """Return the present level for all these seconds."""
        return np.full(len(t_s), self.value)


def prepared(plant: Plant) -> Plant:
    """Return the plant for this protocol."""
    return with_windows(plant, LOOK_S - 2, LOOK_S / 2 - 1, 1, NOISE_S)


def solve(
    plant: Plant, methods: Sequence[Method], levels: Sequence[float], start: Sequence[int], seeds: int, most: int
) -> dict[str, list[list[Solved]]]:
    """Return the results of every level, in order, by method and seed."""
    ready = prepared(plant)
    begin = Allocation(dict(zip(ready.spec().tunable_names, start, strict=True)))
    runs = [(method, seed) for method in methods for seed in range(seeds)]
    load = Dial(levels[0])
    fleet = Fleet(ready, [load] * len(runs), [seed for _, seed in runs], start=[begin] * len(runs))
    slo = bounded(plant, most)
    players = [_Solver(fleet, r, method, seed, slo) for r, (method, seed) in enumerate(runs)]
    for at, level in enumerate(levels):
        if at:
            load.value = float(level)
            fleet.advance(-fleet.now % BLOCK_S)
            fleet.finish_backlog()
        for player in players:
            player.begin()
        for _ in range(MOST_LOOKS):
            if not any(player.open for player in players):
                break
            fleet.advance(SETTLE_S)
            fleet.finish_backlog()
            look_after(fleet, players, LOOK_S)
        fleet.finish_backlog()
        fleet.advance(AFTER_S)
        for player in players:
            player.end()
    return by_method((method.name for method, _ in runs), (player.levels for player in players))


class _Solver(Player):
    """One method with one seed."""

    def __init__(self, fleet: Fleet, replica: int, method: Method, seed: int, slo: SLO) -> None:
        super().__init__(fleet, replica, method.make(), seed, slo=slo, testbed=SimulatedTestbed(fleet.plant, seed))
        self.levels: list[Solved] = []

    def begin(self) -> None:
        self.open = True
        self.looks = self.changes = self.iterations = self.trials = 0
        self.path: list[int] = []
        self.proposal_ms = 0.0

    def look(self) -> None:
        if not self.open:
            return
        self.path.append(self.wanted.slots)
        begun = time.process_time()
        step = self.step()
        if "expected_improvement" in step.decision.evidence:
            self.proposal_ms += 1e3 * (time.process_time() - begun)
        self.looks += 1
        self.trials += len(step.measurements)
        stage: Mapping[str, Any] = step.decision.memo.get("stage", {})
        if step.intent is not None:
            self.changes += 1
            # A change of the throughput solver, or back to the best size so far, is not one of the latency solver.
            evidence = step.decision.evidence
            self.iterations += not stage or ("score" in evidence and "best_seen" not in evidence)
        self.open = step.intent is not None or step.decision.reason not in CONTENT

    def end(self) -> None:
        tail = self.last(LOOK_S)
        latency_s = float(np.median(tail.latency_s))
        rate_per_s = float((tail.taken[-1] - tail.taken[0]) / (len(tail.taken) - 1))
        counts = (self.looks, self.changes, self.iterations, self.trials)
        solved = self.controller.state.memo.get("solved", {})
        base = {name: int(count) for name, count in solved.get("tasks", {}).items()}
        seen = (self.wanted, latency_s, rate_per_s)
        self.levels.append(Solved(*counts, *seen, base, tuple(self.path), self.proposal_ms))
