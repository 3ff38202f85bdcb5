"""The simulator as a testbed: a fresh replica of the plant for every trial, with the trial's input rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rheostat.engine.simulated.fleet import Fleet, Floats
from rheostat.engine.simulated.plant import Plant
from rheostat.errors import EngineError, InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Phase, Trial


@dataclass
class PhaseLoad:
    """The phases of a trial, as a load with a rate per source."""

    phases: tuple[Phase, ...]
    sources: tuple[str, ...]
    noise: float = 0.0
    start_s: float = 0.0

    def level(self, t_s: Floats) -> Floats:
        """Return sources x seconds; after the last phase the rate is 0."""
        ends = np.cumsum([phase.seconds for phase in self.phases])
        rates = np.array([[phase.rates_per_s[s] for s in self.sources] for phase in self.phases])
        rates = np.vstack([rates, np.zeros(len(self.sources))])
        levels: Floats = rates[np.searchsorted(ends, t_s - self.start_s, side="right")].T
        return levels


LONGEST_S = 3600.0
"""Seconds of history of a rig: the longest window it can show."""


class SimulatedRig:
    """One replica that keeps running; its sources are rate limiters with back pressure."""

    holds_back = True

    def __init__(self, plant: Plant, allocation: Allocation, seed: Sequence[int], injector_per_s: float) -> None:
        self.allocation, self.injector_per_s = allocation, injector_per_s
        self._shown = replace(plant.metrics, display_lag_s=0.0, stale=0.0, min_window_s=1.0)
        plant = replace(plant, metrics=replace(self._shown, window_s=LONGEST_S))
        number = int(np.random.default_rng(list(seed)).integers(2**31))
        no_load = PhaseLoad((Phase(1.0, dict.fromkeys(plant.graph.sources, 0.0)),), plant.graph.sources)
        self.fleet = Fleet(plant, [no_load], [number], start=[allocation], holds_back=True)

    def play(self, phases: Sequence[Phase]) -> Measurement:
        """Run these phases and return the window of the observed ones, which come last."""
        limited = tuple(self._limit_rates(phase) for phase in phases)
        trial = Trial("rig", self.allocation, tuple(phases))
        fleet = self.fleet
        fleet.feed([PhaseLoad(limited, fleet.plant.graph.sources, start_s=float(fleet.now))])
        fleet.advance(round(trial.seconds))
        observed_s = sum(phase.seconds for phase in phases if phase.observed)
        shown = replace(self._shown, window_s=min(max(observed_s, 1.0), LONGEST_S))
        fleet.plant = replace(fleet.plant, metrics=shown)
        observation = fleet.engine(0).observe()
        return Measurement(
            trial, observation, trial.seconds, self.allocation.slots * trial.seconds, observation.problem
        )

    def stop(self) -> None:
        """Do nothing: simulated time passes only in `play`."""

    def _limit_rates(self, phase: Phase) -> Phase:
        total = sum(phase.rates_per_s.values())
        if total <= self.injector_per_s:
            return phase
        share = self.injector_per_s / total
        return Phase(phase.seconds, {name: rate * share for name, rate in phase.rates_per_s.items()}, phase.observed)


class SimulatedTestbed:
    """Measures trials on replicas of a plant; every trial has its own seed, so repetitions differ.

    `measured` are results of its first trials, from `measure_together`: they are returned as long as the trials match.
    """

    def __init__(
        self,
        plant: Plant,
        seed: int = 0,
        injector_per_s: float = math.inf,
        measured: Sequence[Measurement] = (),
    ) -> None:
        self.plant, self.seed, self.injector_per_s, self._count = plant, seed, injector_per_s, 0
        self._measured = measured

    def start(self, allocation: Allocation) -> SimulatedRig:
        """Start a rig that keeps running with this allocation; its discipline must have back pressure."""
        self._count += 1
        if not self.plant.discipline.holds_back:
            raise EngineError(f"{self.plant.name} has no back pressure: measure it trial by trial")
        rates = dict.fromkeys(self.plant.graph.sources, 0.0)
        if problem := find_problem(self.plant, Trial("start", allocation, (Phase(1.0, rates, observed=True),))):
            raise EngineError(problem)
        if (memory := self.plant.memory) is not None and allocation.memory_mb not in (None, *memory.choices_mb):
            raise EngineError(f"no memory profile has {allocation.memory_mb} MB: choose one of {memory.choices_mb}")
        return SimulatedRig(self.plant, allocation, [self.seed, self._count], self.injector_per_s)

    def measure(self, trial: Trial) -> Measurement:
        """Run the phases one after another and return the window of the observed ones."""
        if problem := find_problem(self.plant, trial):
            return Measurement(trial, None, 0.0, 0.0, problem)
        self._count += 1
        if self._count <= len(self._measured) and self._measured[self._count - 1].trial == trial:
            return self._measured[self._count - 1]
        self._measured = ()
        return measure_together(self.plant, [trial], [trial_seed(self.seed, self._count)])[0]

    def measure_all(self, trials: Sequence[Trial]) -> list[Measurement]:
        """Measure trials of equal length in one fleet; the results are those of one after another."""
        if any(find_problem(self.plant, trial) for trial in trials):
            return [self.measure(trial) for trial in trials]
        seeds = [trial_seed(self.seed, self._count + number) for number in range(1, len(trials) + 1)]
        self._count, self._measured = self._count + len(trials), ()
        return measure_together(self.plant, trials, seeds)


def trial_seed(seed: int, number: int) -> int:
    """Return the seed of a testbed's trial by its number, from 1 on."""
    return int(np.random.default_rng([seed, number]).integers(2**31))


def measure_together(plant: Plant, trials: Sequence[Trial], seeds: Sequence[int]) -> list[Measurement]:
    """Measure trials whose phases differ in their rates only in one fleet; each has the result that it has alone."""
    phases = trials[0].phases
    if any(_lengths(trial) != _lengths(trials[0]) for trial in trials):
        raise InvalidValue(f"trials of different lengths cannot be measured together: {[t.seconds for t in trials]} s")
    last = max(k for k, phase in enumerate(phases) if phase.observed)
    observed_s = sum(phase.seconds for phase in phases if phase.observed)
    shown = replace(plant.metrics, window_s=max(observed_s, 1.0), min_window_s=1.0, display_lag_s=0.0, stale=0.0)
    plant = replace(plant, metrics=shown)
    loads = [PhaseLoad(trial.phases, plant.graph.sources) for trial in trials]
    fleet = Fleet(plant, loads, seeds, start=[trial.allocation for trial in trials])
    fleet.advance(round(sum(phase.seconds for phase in phases[: last + 1])))
    windows = (fleet.engine(replica).observe() for replica in range(len(trials)))
    return [
        Measurement(trial, window, trial.seconds, trial.allocation.slots * trial.seconds, window.problem)
        for trial, window in zip(trials, windows, strict=True)
    ]


def _lengths(trial: Trial) -> list[tuple[float, bool]]:
    return [(phase.seconds, phase.observed) for phase in trial.phases]


def find_problem(plant: Plant, trial: Trial) -> str | None:
    """Return why a trial cannot run here."""
    spec = plant.spec()
    if set(trial.allocation.tasks) != set(spec.tunable_names):
        return f"the trial names {sorted(trial.allocation.tasks)}, the job has {sorted(spec.tunable_names)}"
    for tunable in spec.tunable:
        count = trial.allocation.tasks[tunable.operator]
        if tunable.bounds.clip(count) != count:
            return f"{tunable.operator} cannot have {count} tasks"
    if shortage := plant.shortage(trial.allocation):
        return shortage
    for phase in trial.phases:
        if set(phase.rates_per_s) != set(spec.graph.sources):
            return f"a phase names {sorted(phase.rates_per_s)}, the sources are {sorted(spec.graph.sources)}"
    observed = [k for k, phase in enumerate(trial.phases) if phase.observed]
    if observed != list(range(observed[0], observed[-1] + 1)):
        return "the observed phases must be adjacent"
    return None
