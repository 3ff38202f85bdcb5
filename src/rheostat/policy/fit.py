"""Making a wish fit what is allowed: whole tasks, in steps of the quantum, within bounds and slots.

Every policy ends here, so that a limit means the same to all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rheostat.job.allocation import Allocation
from rheostat.job.slo import Limits
from rheostat.ports import Situation

MOST_TASKS = 1_000_000
"""More tasks than any cluster has: what an absurd or infinite wish becomes where no bound stops it."""


def round_up(count: float) -> int:
    """Round up to whole tasks; binary fractions do not make 2.0000000001 a 3."""
    return math.ceil(min(count, MOST_TASKS) * (1 - 1e-9))


def fit_tasks(limits: Limits, operator: str, wanted: float) -> int:
    """Round up to whole tasks and to a multiple of the quantum, then clip to the operator's bounds."""
    bounds, quantum = limits.operators[operator], limits.quantum.get(operator, 1)
    steps = -(-max(round_up(wanted), bounds.min) // quantum)
    if bounds.max is not None:
        steps = min(steps, bounds.max // quantum)
    # Where no multiple lies between the bounds, the bounds win.
    return bounds.clip(steps * quantum)


def fit_allocation(situation: Situation[Any], wanted: Mapping[str, float]) -> Allocation:
    """Return the allocation for these wishes; operators without a wish keep their tasks.

    When the job may not have so many slots, every operator gets the largest common share of its wish that
    fits: cutting all by the same ratio keeps them in balance. Too few slots are filled up the same way.
    """
    limits, running = situation.limits, situation.running
    wishes = {
        name: max(wanted.get(name, running.tasks[name]), limits.operators[name].min)
        for name in situation.spec.tunable_names
    }

    def tasks_at(share: float) -> dict[str, int]:
        return {name: fit_tasks(limits, name, wish * share) for name, wish in wishes.items()}

    tasks = tasks_at(1.0)
    slots = sum(tasks.values())
    if limits.slots.clip(slots) == slots:
        return running.with_tasks(tasks)
    too_many = slots > limits.slots.min
    most = limits.slots.clip(slots) if too_many else limits.slots.min - 1
    low, high = (0.0, 1.0) if too_many else (1.0, float(limits.slots.min))
    for _ in range(60):  # bisection, down to the last bit: up to `low` there are at most `most` slots
        share = (low + high) / 2
        low, high = (share, high) if sum(tasks_at(share).values()) <= most else (low, share)
    return running.with_tasks(tasks_at(low if too_many else high))


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
