"""Exponent: AuTraScale+'s third baseline for event-time latency (section V-A): it doubles the tasks repeatedly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rheostat.job.allocation import Allocation
from rheostat.policy.catch_up import At, CatchUp


@dataclass(frozen=True)
class Exponent(CatchUp):
    """Doubles all tasks until the throughput clears the backlog in time, then returns."""

    name: ClassVar[str] = "exponent"
    rule: ClassVar[str] = "twice the tasks, until that is reached"
    repeats: ClassVar[bool] = True

    def larger(self, situation: At, target_per_s: float) -> Allocation:
        """Return twice the tasks."""
        return situation.fit({name: 2 * count for name, count in situation.running.tasks.items()})
