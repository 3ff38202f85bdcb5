"""The oracle: a policy that knows every curve and the future load. It is the yardstick of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rheostat.control.limits import limits
from rheostat.engine.simulated.plant import Plant
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Interval, Reason, changes, direction
from rheostat.job.slo import Bounds, Limits
from rheostat.lab.experiment.trial import Trial
from rheostat.ports import Policy, Situation

Capacity = Callable[[str, int, Allocation], float]
"""(operator, tasks, allocation of the whole job) -> true capacity in records/s."""
MOST_TASKS = 4096
"""Most tasks of an operator without bounds in the search."""
Peak = Callable[[float, float], Mapping[str, float]]
"""(start, end) -> highest rate of every source in that span."""


@dataclass(frozen=True)
class Oracle(Policy[None]):
    """Runs the fewest tasks that sustain the future load, and shrinks only for a worthwhile saving."""

    name: ClassVar[str] = "oracle"
    capacity: Capacity
    peak: Peak
    horizon_s: float = 120.0
    """Seconds ahead of a higher load at which it grows: until its next decision, plus one change."""
    stay_s: float = 300.0
    """Seconds for which a new size must suffice."""
    worth: float = 0.1
    """Least share of the slots that shrinking saves."""

    def options(self) -> Mapping[str, Any]:
        """Return its options; curves and load come from the run's settings."""
        return {"horizon_s": self.horizon_s, "stay_s": self.stay_s, "worth": self.worth}

    def decide(self, situation: Situation[None]) -> Decision:
        """Grow if the load within the horizon needs it, shrink if that pays; the new size suffices for `stay_s`."""
        now_s, running = situation.window.at_s, situation.running
        soon, _ = self._needed(situation, now_s + self.horizon_s)
        target, rates = self._needed(situation, now_s + max(self.stay_s, self.horizon_s))
        load = sum(rates.values())
        evidence = {"load_per_s": load, "slots": float(target.slots)}
        grows = any(soon.tasks[name] > count for name, count in running.tasks.items())
        pays = target.slots <= (1 - self.worth) * running.slots
        if target == running or not (grows or pays):
            return Decision.hold(Reason.STEADY, f"{running} suffices for {load:g}/s", evidence=evidence)
        sentence = f"{changes(running, target)}: enough for {load:g}/s over the next {self.stay_s:g} s"
        expects = Expectation(load, Interval.at_least(0.0))
        return Decision(target, direction(running, target), sentence, evidence, expects)

    def _needed(self, situation: Situation[None], until_s: float) -> tuple[Allocation, Mapping[str, float]]:
        """Return the smallest allocation for the highest load until a moment, and that load."""
        rates = self.peak(situation.window.at_s, until_s)
        spare = 1.0 + situation.headroom()
        demand = situation.spec.graph.demand_per_s({name: rate * spare for name, rate in rates.items()})
        return smallest(self.capacity, demand, situation.running, situation.limits), rates


def smallest(capacity: Capacity, demand: Mapping[str, float], start: Allocation, limits: Limits) -> Allocation:
    """Return the fewest tasks that serve the demand; tasks of one operator may cost others capacity."""
    target = start
    for _ in range(20):  # interference depends on the slots: repeat until the target is stable
        next_target = target.with_tasks(
            {name: _tasks(capacity, name, demand[name], target, limits.operators[name]) for name in target.tasks}
        )
        if next_target == target:
            break
        target = next_target
    return target


def _tasks(capacity: Capacity, name: str, demand_per_s: float, allocation: Allocation, bounds: Bounds) -> int:
    """Return the fewest tasks that serve the demand, or the number with the highest capacity."""
    best, most = bounds.min, -1.0
    for tasks in range(bounds.min, (bounds.max or MOST_TASKS) + 1):
        capacity_per_s = capacity(name, tasks, allocation)
        if capacity_per_s >= demand_per_s:
            return tasks
        if capacity_per_s > most:
            best, most = tasks, capacity_per_s
    return best


def make_oracle(trial: Trial[Plant]) -> Oracle:
    """Return the oracle of this trial's plant and load."""
    load, plant = trial.seeded_load, trial.job

    def peak(start_s: float, end_s: float) -> dict[str, float]:
        level = load.peak(start_s, end_s)
        return {name: unit * level for name, unit in plant.unit_per_s.items()}

    return Oracle(plant.capacity_per_s, peak, trial.interval_s + plant.restart.mean_s)


def peak_allocation(trial: Trial[Plant]) -> Allocation:
    """Return the smallest allocation for the trial's highest load, as an engineer deploys by hand."""
    spec, plant = trial.job.spec(), trial.job
    peak = trial.seeded_load.peak(0.0, trial.duration_s)
    demand = spec.graph.demand_per_s({name: unit * peak for name, unit in plant.unit_per_s.items()})
    spare = 1.0 + (trial.slo.headroom or 0.0)
    demand_per_s = {name: rate * spare for name, rate in demand.items()}
    return smallest(plant.capacity_per_s, demand_per_s, plant.start(), limits(spec, trial.slo))
