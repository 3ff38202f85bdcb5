"""Round requested tasks to an allowed allocation: whole tasks, multiples of the quantum, within bounds and slots.

Every policy and the guard behind it use these functions, so a limit has the same meaning everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rheostat.job.allocation import Allocation
from rheostat.job.slo import Limits

MOST_TASKS = 1_000_000
"""Upper end for absurd or infinite suggestions where no bound applies: more tasks than any cluster has."""


def round_up(count: float) -> int:
    """Round up to whole tasks; a binary fraction such as 2.0000000001 counts as 2."""
    return math.ceil(min(count, MOST_TASKS) * (1 - 1e-9))


def fit_tasks(limits: Limits, operator: str, wanted: float) -> int:
    """Round up to whole tasks and to a multiple of the quantum, then clip to the operator's bounds."""
    bounds, quantum = limits.operators[operator], limits.quantum.get(operator, 1)
    steps = -(-max(round_up(wanted), bounds.min) // quantum)
    if bounds.max is not None:
        steps = min(steps, bounds.max // quantum)
    # Where no multiple of the quantum lies between the bounds, the bounds take precedence.
    return bounds.clip(steps * quantum)


def fit_suggestions(limits: Limits, wanted: Mapping[str, float]) -> dict[str, int]:
    """Return the allowed tasks nearest to these suggestions.

    If their sum exceeds the allowed slots, every operator gets the same share of its suggestion, the largest that
    fits: this keeps the operators in balance. A sum below the minimum is filled up the same way.
    """
    suggestions = {name: max(suggestion, limits.operators[name].min) for name, suggestion in wanted.items()}

    def tasks_at(share: float) -> dict[str, int]:
        return {name: fit_tasks(limits, name, suggestion * share) for name, suggestion in suggestions.items()}

    tasks = tasks_at(1.0)
    slots = sum(tasks.values())
    if limits.slots.clip(slots) == slots:
        return tasks
    too_many, allowed = slots > limits.slots.min, limits.slots.clip(slots)
    low, high = (0.0, 1.0) if too_many else (1.0, float(allowed))
    for _ in range(40):  # bisection; it rarely takes ten steps to meet the allowed slots exactly
        share = (low + high) / 2
        slots = sum(tasks_at(share).values())
        if slots == allowed:
            return tasks_at(share)
        low, high = (share, high) if slots < allowed else (low, share)
    # Equal shares skip the allowed slots: several operators grow at the same share. Here they grow one by one.
    tasks = tasks_at(low)
    for name in sorted(tasks, key=lambda name: tasks[name] / suggestions[name]):
        more, slots = fit_tasks(limits, name, tasks[name] + 1) - tasks[name], sum(tasks.values())
        if slots < allowed and limits.slots.clip(slots + more) >= slots + more:
            tasks[name] += more
    return tasks


def clip(target: Allocation, limits: Limits) -> tuple[Allocation, str]:
    """Return the nearest allocation within the limits, and the reason where it differs from the target (else "")."""
    tasks = fit_suggestions(limits, target.tasks)
    cut = [f"{name} {count} -> {tasks[name]}" for name, count in target.tasks.items() if tasks[name] != count]
    if not cut:
        return target, ""
    top = "" if limits.slots.max is None else f" (at most {limits.slots.max} slots)"
    return target.with_tasks(tasks), f"the limits change {', '.join(cut)}{top}"
