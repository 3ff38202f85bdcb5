"""The smallest allocation that serves a load, by the true curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rheostat.control.limits import limits
from rheostat.engine.simulated.plant import Plant
from rheostat.job.allocation import Allocation
from rheostat.job.slo import Bounds, Limits
from rheostat.lab.experiment.trial import Trial

Capacity = Callable[[str, int, Allocation], float]
"""(operator, tasks, allocation of the whole job) -> true capacity in records/s."""
MOST_TASKS = 4096
"""Most tasks of an operator without bounds in the search."""


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


def peak_allocation(trial: Trial[Plant], headroom: float | None = None) -> Allocation:
    """Return the smallest allocation for the trial's highest load, as an engineer deploys by hand.

    Without `headroom` it has the SLO's spare capacity.
    """
    spec, plant = trial.job.spec(), trial.job
    peak = trial.seeded_load.peak(0.0, trial.duration_s)
    demand = spec.graph.demand_per_s({name: unit * peak for name, unit in plant.unit_per_s.items()})
    spare = 1.0 + ((trial.slo.headroom or 0.0) if headroom is None else headroom)
    demand_per_s = {name: rate * spare for name, rate in demand.items()}
    return smallest(plant.capacity_per_s, demand_per_s, plant.start(), limits(spec, trial.slo))
