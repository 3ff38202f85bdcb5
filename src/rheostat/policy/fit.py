"""From wishes to an allocation of the job at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rheostat.job.allocation import Allocation
from rheostat.job.fit import fit_tasks, fit_wishes
from rheostat.ports import Situation


def fit_allocation(situation: Situation[Any], wanted: Mapping[str, float]) -> Allocation:
    """Return the allocation for these wishes; operators without a wish keep their tasks."""
    running = situation.running
    wishes = {name: wanted.get(name, running.tasks[name]) for name in situation.spec.tunable_names}
    return running.with_tasks(fit_wishes(situation.limits, wishes))


def fit_one(situation: Situation[Any], operator: str, wanted: float) -> Allocation:
    """Return the allocation in which one operator changes; it takes only the slots that the others leave."""
    limits, running = situation.limits, situation.running
    tasks = {name: fit_tasks(limits, name, running.tasks[name]) for name in situation.spec.tunable_names}
    others = sum(tasks.values()) - tasks[operator]
    tasks[operator] = fit_tasks(limits, operator, max(wanted, limits.slots.min - others))
    if limits.slots.max is not None and others + tasks[operator] > limits.slots.max:
        quantum = limits.quantum.get(operator, 1)
        tasks[operator] = fit_tasks(limits, operator, (limits.slots.max - others) // quantum * quantum)
        if others + tasks[operator] > limits.slots.max:  # the others alone are too many: all must give
            return fit_allocation(situation, {operator: wanted})
    return running.with_tasks(tasks)
