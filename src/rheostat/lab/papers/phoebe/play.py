"""Six hours on the simulator: every method and seed is a replica of one fleet, with the recorded failures.

The profile is made once, on a testbed, and every method that needs one gets it as records of its journal, as in the
paper; a method that is drilled gets the drill's records, too. The testbed of Top Speed is the profile-only plant: the
recorded profile overstates the capacity of the runs (kappa).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rheostat.engine.simulated import Fleet, Plant
from rheostat.engine.testbed.loads import Load, Sine
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.drills import Drill, drill_simulated
from rheostat.lab.jobs.phoebe import FAILURES_S, top_speed, ysb
from rheostat.lab.papers.phoebe.recordings import DURATION_S, RECORDED_EVERY_S, Floats, displayed, recovery_s, vehicles
from rheostat.lab.papers.play import Player, by_method, look_after
from rheostat.lab.profiles import measure_profiles, write_profile
from rheostat.planner.profiling import Profiling
from rheostat.policy.phoebe.outage import PREDICTED
from rheostat.ports import Policy

STEP_S = 30
"""Seconds between two decisions."""
CAUGHT_UP_S = 1.0
"""Seconds of lag that count as caught up: an undisturbed job has less."""
START = 12
"""Workers at the start of a scaled run."""
DRILL = Drill(START, 60e3)
"""Three failures at half the mean load of YSB."""


@dataclass(frozen=True)
class Experiment:
    """One of the paper's two experiments."""

    name: str
    plant: Plant
    testbed: Plant
    load: Load


def experiment(name: str, folder: Path, resumed_after_s: float | None = None) -> Experiment:
    """Return TSW on the vehicles trace, or YSB on the noisy sine; where it is given, with another mean downtime."""
    if name == "tsw":
        own = Experiment(name, top_speed(), top_speed(1.0), vehicles(folder))
    else:
        own = Experiment(name, ysb(), ysb(), Sine(100e3, 100e3, 7200.0, noise=0.1))
    if resumed_after_s is None:
        return own
    plant, testbed = (
        replace(plant, failure=replace(plant.failure, resumed_after_s=resumed_after_s))
        for plant in (own.plant, own.testbed)
    )
    return replace(own, plant=plant, testbed=testbed)


@dataclass(frozen=True)
class Method:
    """A policy, or a fixed number of workers."""

    name: str
    make: Callable[[], Policy[Any]] | None = None
    workers: int = START
    drilled: bool = False
    """Whether the testbed was drilled before the run."""


@dataclass(frozen=True)
class Failure:
    """One failure of one run."""

    at_s: float
    load_per_s: float
    took_s: float
    """Recovery time by source offsets."""
    away_s: float
    """Seconds from the failure until records are processed again; NaN if a change hides it."""
    shown_s: float
    """Recovery time by displayed latencies, as in the paper."""
    workers: int
    predicted_s: float | None
    """The method's prediction just before the failure; None without one."""


@dataclass(frozen=True)
class Run:
    """One method with one seed."""

    changes: int
    slot_seconds: float
    failures: tuple[Failure, ...]
    latency_s: Floats
    """Displayed latency, every 5 s."""
    throughput_per_s: Floats
    """Displayed throughput, every 5 s."""
    workers: Floats
    """Workers, every 5 s."""
    decision_ms: float = 0.0
    """Mean time of a decision."""


@cache
def profile(name: str, folder: Path) -> tuple[Measurement, ...]:
    """Profile the testbed of an experiment with the paper's settings."""
    return measure_profiles(Profiling(), experiment(name, folder).testbed, (0,))[0]


def play(
    name: str, folder: Path, methods: Sequence[Method], seeds: Sequence[int], resumed_after_s: float | None = None
) -> dict[str, list[Run]]:
    """Run methods x seeds for six hours."""
    own = experiment(name, folder, resumed_after_s)
    runs = [(method, seed) for method in methods for seed in seeds]
    loads, start = [own.load] * len(runs), [Allocation({"job": method.workers}) for method, _ in runs]
    seeded = [seed for _, seed in runs]
    fleet = Fleet(own.plant, loads, seeded, start=start, failures_s=FAILURES_S, trace=True)
    players = {
        r: _Predictor(
            fleet,
            r,
            method.make(),
            seed,
            [*profile(name, folder), *(drill_simulated(own.testbed, DRILL, seed) if method.drilled else ())],
        )
        for r, (method, seed) in enumerate(runs)
        if method.make is not None
    }
    while fleet.now < DURATION_S:
        look_after(fleet, players.values(), STEP_S)
    trace = fleet.trace()
    traces = ({key: rows[:, [r]] for key, rows in trace.items()} for r in range(len(runs)))
    results = (_result(fleet.plant, players.get(r), rows) for r, rows in enumerate(traces))
    return by_method((method.name for method, _ in runs), results)


def away_s(up: Floats, failure_s: float) -> float:
    """Return the seconds from a failure until the job is up again; NaN if it was down already, or stayed up."""
    part = up[int(failure_s) : int(failure_s) + 600]
    down = np.flatnonzero(part < 1.0)
    if not len(down) or down[0] < 10:
        return float("nan")
    back = np.flatnonzero(part[down[0] :] >= 1.0)
    return float(down[0] + back[0]) if len(back) else float("nan")


def caught_up_s(lag_s: Floats, failure_s: float, noticed_s: float, limit_s: float = 2700.0) -> float:
    """Return the seconds from a failure, which is noticed late, until its lag is back to normal."""
    noticed = int(noticed_s)
    part = lag_s[int(failure_s) + noticed : int(failure_s + limit_s)]
    behind = np.flatnonzero(part > CAUGHT_UP_S)
    if not len(behind):
        return 0.0
    back = np.flatnonzero(part[behind[0] :] <= CAUGHT_UP_S)
    return float(noticed + behind[0] + back[0]) if len(back) else limit_s


class _Predictor(Player):
    """One replica with its controller, and its last prediction before each failure."""

    def __init__(
        self, fleet: Fleet, replica: int, policy: Policy[Any], seed: int, profile: Sequence[Measurement]
    ) -> None:
        journal = MemoryJournal()
        if "profile" in policy.options():
            write_profile(journal, fleet.spec.name, tuple(profile))
        super().__init__(fleet, replica, policy, seed, journal=journal)
        self.changes = 0
        self.predicted: float | None = None
        self.at_failure: list[float | None] = []
        self.ms: list[float] = []

    def look(self) -> None:
        due = [at for at in FAILURES_S if at <= self.fleet.now]
        while len(self.at_failure) < len(due):
            self.at_failure.append(self.predicted)
        step = self.step()
        self.changes += step.intent is not None
        self.ms.append(step.decision_ms)
        if PREDICTED in step.decision.evidence:
            self.predicted = step.decision.evidence[PREDICTED]


def _result(plant: Plant, player: _Predictor | None, trace: Mapping[str, Floats]) -> Run:
    """Return a run from its trace and its player."""
    metrics = {name: rows[:, 0] for name, rows in displayed(trace).items()}
    load, lag, up, slots = (trace[name][:, 0] for name in ("load_per_s", "lag_s", "up", "slots"))
    predictions = player.at_failure if player is not None else []
    failures = tuple(
        Failure(
            at,
            float(load[int(at) - 30 : int(at) + 30].mean()),
            caught_up_s(lag, at, plant.failure.detected_after_s),
            away_s(up, at),
            recovery_s(metrics["latency"], 1.0, at),
            int(slots[int(at)]),
            predictions[k] if k < len(predictions) else None,
        )
        for k, at in enumerate(FAILURES_S)
    )
    every_5_s = (rows[::RECORDED_EVERY_S] for rows in (metrics["latency"], metrics["throughput"], slots))
    latency_s, throughput_per_s, workers = every_5_s
    changes, ms = (0, 0.0) if player is None else (player.changes, float(np.mean(player.ms)))
    return Run(changes, float(slots.sum()), failures, latency_s, throughput_per_s, workers, ms)
