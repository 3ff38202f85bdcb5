"""A change of one operator within its limits."""

from __future__ import annotations

from typing import Any

from rheostat.job.allocation import Allocation
from rheostat.job.fit import fit_tasks
from rheostat.ports import Situation


def fit_one(situation: Situation[Any], operator: str, wanted: float) -> Allocation:
    """Return the allocation in which one operator changes; it takes at most the slots that the others leave."""
    limits, running = situation.limits, situation.running
    tasks = {name: fit_tasks(limits, name, running.tasks[name]) for name in situation.spec.tunable_names}
    others = sum(tasks.values()) - tasks[operator]
    tasks[operator] = fit_tasks(limits, operator, max(wanted, limits.slots.min - others))
    if limits.slots.max is not None and others + tasks[operator] > limits.slots.max:
        quantum = limits.quantum.get(operator, 1)
        tasks[operator] = fit_tasks(limits, operator, (limits.slots.max - others) // quantum * quantum)
        if others + tasks[operator] > limits.slots.max:  # the others alone exceed the slots: all must shrink
            return situation.fit({operator: wanted})
    return running.with_tasks(tasks)
