"""The simulator as a testbed: a fresh replica of the plant, fed at the trial's rates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rheostat.engine.simulated.fleet import Fleet, Floats
from rheostat.engine.simulated.plant import Plant
from rheostat.job.decision import Measurement, Phase, Trial


@dataclass
class PhaseLoad:
    """The phases of a trial, as a load with a rate per source."""

    phases: tuple[Phase, ...]
    sources: tuple[str, ...]
    noise: float = 0.0

    def level(self, t_s: Floats) -> Floats:
        """Return sources x seconds; after the last phase nothing arrives."""
        ends = np.cumsum([phase.seconds for phase in self.phases])
        rates = np.array([[phase.rates_per_s[s] for s in self.sources] for phase in self.phases])
        rates = np.vstack([rates, np.zeros(len(self.sources))])
        chosen: Floats = rates[np.searchsorted(ends, t_s, side="right")].T
        return chosen


class SimulatedTestbed:
    """Measures trials on replicas of a plant; every trial has a seed of its own, so repeats differ."""

    def __init__(self, plant: Plant, seed: int = 0) -> None:
        self.plant, self.seed, self._count = plant, seed, 0

    def measure(self, trial: Trial) -> Measurement:
        """Run the phases one after another and look at the observed ones."""
        slot_seconds = trial.allocation.slots * trial.seconds
        if problem := self._problem(trial):
            return Measurement(trial, None, 0.0, 0.0, problem)
        self._count += 1
        last = max(k for k, phase in enumerate(trial.phases) if phase.observed)
        observed_s = sum(phase.seconds for phase in trial.phases if phase.observed)
        shown = replace(
            self.plant.metrics, window_s=max(observed_s, 1.0), min_window_s=1.0, display_lag_s=0.0, stale=0.0
        )
        plant = replace(self.plant, metrics=shown)
        load = PhaseLoad(trial.phases, plant.graph.sources)
        seed = int(np.random.default_rng([self.seed, self._count]).integers(2**31))
        fleet = Fleet(plant, [load], [seed], start=[trial.allocation])
        fleet.advance(round(sum(phase.seconds for phase in trial.phases[: last + 1])))
        observation = fleet.engine(0).observe()
        return Measurement(trial, observation, trial.seconds, slot_seconds, observation.problem)

    def _problem(self, trial: Trial) -> str | None:
        """Say why a trial cannot be run here."""
        spec = self.plant.spec()
        if set(trial.allocation.tasks) != set(spec.tunable_names):
            return f"the trial names {sorted(trial.allocation.tasks)}, the job has {sorted(spec.tunable_names)}"
        for tunable in spec.tunable:
            count = trial.allocation.tasks[tunable.operator]
            if tunable.bounds.clip(count) != count:
                return f"{tunable.operator} cannot have {count} tasks"
        if self.plant.realtime is not None and (why := self.plant.shortage(trial.allocation)):
            return why
        for phase in trial.phases:
            if set(phase.rates_per_s) != set(spec.graph.sources):
                return f"a phase names {sorted(phase.rates_per_s)}, the sources are {sorted(spec.graph.sources)}"
        observed = [k for k, phase in enumerate(trial.phases) if phase.observed]
        if observed != list(range(observed[0], observed[-1] + 1)):
            return "the observed phases must follow one another"
        return None
