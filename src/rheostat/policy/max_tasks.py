"""Max: AuTraScale+'s first baseline for event-time latency (section V-A): a backlog gets the largest allocation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rheostat.job.allocation import Allocation
from rheostat.job.fit import MOST_TASKS
from rheostat.policy.catch_up import At, CatchUp


@dataclass(frozen=True)
class MaxTasks(CatchUp):
    """Clears a backlog with the most tasks that every operator may have, then returns."""

    name: ClassVar[str] = "max"
    rule: ClassVar[str] = "the most tasks that the limits allow"

    def larger(self, situation: At, target_per_s: float) -> Allocation:
        """Return the largest allocation; an operator without a bound keeps its tasks."""
        limits = situation.limits
        bounds = {name: each.max or limits.slots.max for name, each in limits.operators.items()}
        return situation.fit({n: min(most, MOST_TASKS) for n, most in bounds.items() if most is not None})
