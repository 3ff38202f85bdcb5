"""Runs on the simulator: several policies on the same plant, loads and seeds, in one fleet."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from rheostat.control.controller import IMMEDIATE, Controller, Step
from rheostat.control.limits import limits
from rheostat.engine.simulated import Fleet, FleetClock, Plant
from rheostat.engine.simulated.fleet import Floats
from rheostat.engine.testbed.loads import Load, Permutation
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.job.allocation import Allocation
from rheostat.job.forecast import Foresight
from rheostat.job.guards import Guards
from rheostat.job.slo import Slo
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.experiment.clairvoyant import Clairvoyant, smallest
from rheostat.ports import Journal, Policy

BEHIND_S = 2.0
"""A lag above this is one."""
UNNOTICED_S = 60
"""A failure that causes no lag within this many seconds causes none."""


@dataclass(frozen=True)
class Scenario:
    """Everything but the policy."""

    plant: Plant
    load: Load
    duration_s: float
    interval_s: float = 60.0
    slo: Slo = Slo()
    guards: Guards = Guards()
    start: Allocation | None = None
    failures_s: tuple[float, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Where it came from, for the journal."""
    foresight: Foresight = Foresight()
    """How the load is forecast, where a promise or a policy needs that."""

    def load_of(self, seed: int) -> Load:
        """Return the load of one seed: every seed has a permutation of its own."""
        return replace(self.load, seed=self.load.seed + seed) if isinstance(self.load, Permutation) else self.load


PolicyMaker = Callable[[Scenario, int], Policy[Any]]
"""Makes a policy for a scenario and a seed."""


@dataclass(frozen=True)
class PolicyRun:
    """One policy on one seed: its steps and what really happened, second by second."""

    policy: str
    seed: int
    steps: tuple[Step, ...]
    trace: Mapping[str, Floats]

    @property
    def reconfigurations(self) -> int:
        """Changes that were applied."""
        return len({step.intent.id for step in self.steps if step.intent})

    @property
    def slot_seconds(self) -> float:
        """Slots held, added up over every second."""
        return float(self.trace["slots"].sum())

    def recoveries_s(self, failures_s: Sequence[float]) -> tuple[float, ...]:
        """Seconds from each failure until the job was no longer behind, by its source offsets; infinite if never."""
        return tuple(caught_up_s(self.trace["lag_s"], failure) for failure in failures_s)

    def seconds_over(self, slo: Slo) -> int:
        """Seconds in which a promise about latency or lag was broken."""
        over = np.zeros(len(self.trace["lag_s"]), dtype=bool)
        if slo.max_latency_s is not None:
            over |= self.trace["latency_s"] > slo.max_latency_s
        if slo.max_lag_s is not None:
            over |= self.trace["lag_s"] > slo.max_lag_s
        return int(over.sum())


@dataclass(frozen=True)
class Row:
    """One policy's line in a comparison: means over the seeds, the worst for the backlog."""

    policy: str
    seeds: int
    reconfigurations: float
    slot_seconds: float
    slot_seconds_over_clairvoyant: float
    slo_seconds_over: float
    latency_p99_s: float
    backlog_max: float
    decision_ms: float

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a JSON file."""
        return asdict(self)


@dataclass(frozen=True)
class Comparison:
    """All runs, and a row per policy."""

    scenario: Scenario
    runs: tuple[PolicyRun, ...]
    rows: tuple[Row, ...]

    def run(self, policy: str, seed: int) -> PolicyRun:
        """Return one run."""
        return next(run for run in self.runs if (run.policy, run.seed) == (policy, seed))


def caught_up_s(lag_s: Floats, failure_s: float) -> float:
    """Return the seconds from a failure until the lag it causes is gone again; 0 where it causes none.

    It is noticed late: the lag may begin only a minute after the failure. Where the job is behind already, for a change
    say, it is the last such stretch that begins by then.
    """
    behind = lag_s[int(failure_s) :] > BEHIND_S
    begins = behind[:UNNOTICED_S] & ~np.concatenate([[False], behind[: UNNOTICED_S - 1]])[: behind[:UNNOTICED_S].size]
    if not begins.any():
        return 0.0
    first = int(np.flatnonzero(begins)[-1])
    caught = np.flatnonzero(~behind[first:])
    return float(first + caught[0]) if caught.size else math.inf


def make_clairvoyant(scenario: Scenario, seed: int) -> Clairvoyant:
    """Return the policy that knows this scenario's plant and load."""
    load, plant = scenario.load_of(seed), scenario.plant

    def peak(start_s: float, end_s: float) -> dict[str, float]:
        level = load.peak(start_s, end_s)
        return {name: unit * level for name, unit in plant.unit_per_s.items()}

    horizon_s = scenario.interval_s + plant.restart.mean_s
    return Clairvoyant(plant.ability_per_s, peak, horizon_s)


def peak_allocation(scenario: Scenario) -> Allocation:
    """Return the smallest allocation for the scenario's highest load: what a careful engineer deploys by hand."""
    spec, plant = scenario.plant.spec(), scenario.plant
    peak = scenario.load.peak(0.0, scenario.duration_s)
    demand = spec.graph.demand_per_s({name: unit * peak for name, unit in plant.unit_per_s.items()})
    spare = 1.0 + (scenario.slo.headroom or 0.0)
    allowed = limits(spec, scenario.slo)
    wanted = {name: rate * spare for name, rate in demand.items()}
    return smallest(plant.ability_per_s, wanted, plant.start(), allowed)


def compare(
    scenario: Scenario,
    makers: Mapping[str, PolicyMaker],
    seeds: Sequence[int],
    *,
    journal: Journal | None = None,
    progress: Callable[[float, Sequence[Step]], None] | None = None,
) -> Comparison:
    """Run every policy on every seed; the clairvoyant always runs along, as the yardstick."""
    asked = list(makers)
    yardstick = next((label for label in asked if label.partition(":")[0] == "clairvoyant"), "clairvoyant")
    every = {**makers, **({} if yardstick in makers else {yardstick: make_clairvoyant})}
    runs = [(label, seed) for label in every for seed in seeds]
    fleet = Fleet(
        scenario.plant,
        [scenario.load_of(seed) for _, seed in runs],
        [seed for _, seed in runs],
        start=[scenario.start or scenario.plant.start()] * len(runs),
        failures_s=scenario.failures_s,
        trace=True,
    )
    clock = FleetClock(fleet)
    controllers = []
    for replica, (label, seed) in enumerate(runs):
        controller = Controller(
            fleet.engine(replica),
            every[label](scenario, seed),
            journal if journal is not None and replica == 0 else MemoryJournal(),
            clock,
            slo=scenario.slo,
            guards=scenario.guards,
            testbed=SimulatedTestbed(scenario.plant, seed),
            seed=seed,
            pace=IMMEDIATE,
            settings=scenario.settings,
            foresight=scenario.foresight,
        )
        controller.start()
        controllers.append(controller)
    steps: list[list[Step]] = [[] for _ in runs]
    moment = scenario.interval_s
    while moment <= scenario.duration_s:
        clock.sleep_until(moment)
        latest = [controller.step() for controller in controllers]
        for kept, step in zip(steps, latest, strict=True):
            kept.append(step)
        if progress:
            progress(moment / scenario.duration_s, latest)
        moment += scenario.interval_s
    clock.sleep_until(scenario.duration_s)
    for controller in controllers:
        controller.stop()
    trace = fleet.trace()
    done = tuple(
        PolicyRun(label, seed, tuple(steps[k]), {name: series[:, k] for name, series in trace.items()})
        for k, (label, seed) in enumerate(runs)
    )
    return Comparison(scenario, done, tuple(_row(scenario, done, label, yardstick) for label in asked))


def _row(scenario: Scenario, runs: Sequence[PolicyRun], label: str, yardstick: str) -> Row:
    own = [run for run in runs if run.policy == label]
    best = {run.seed: run.slot_seconds for run in runs if run.policy == yardstick}
    return Row(
        label,
        len(own),
        float(np.mean([run.reconfigurations for run in own])),
        float(np.mean([run.slot_seconds for run in own])),
        float(np.mean([run.slot_seconds / best[run.seed] for run in own])),
        float(np.mean([run.seconds_over(scenario.slo) for run in own])),
        float(np.mean([np.quantile(run.trace["latency_s"], 0.99) for run in own])),
        float(max(run.trace["backlog"].max() for run in own)),
        float(np.mean([step.decision_ms for run in own for step in run.steps])),
    )
