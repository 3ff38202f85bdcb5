"""Exponent: AuTraScale+'s third baseline for event-time latency (section V-A): it doubles the tasks repeatedly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rheostat.job.allocation import Allocation
from rheostat.policy.catch_up import REACHED, At, CatchUp, Need


@dataclass(frozen=True)
class Exponent(CatchUp):
    """Doubles all tasks until the throughput clears the backlog in time, then returns."""

    name: ClassVar[str] = "exponent"
    rule: ClassVar[str] = "twice the tasks, until that is reached"

    def larger(self, situation: At, need: Need) -> Allocation:
        """Return twice the tasks."""
        return _double(situation)

    def further(self, situation: At, state: Mapping[str, Any]) -> Allocation | None:
        """Double again while the throughput is below the target."""
        done, backlog = situation.window.throughput_per_s, situation.window.backlog or 0.0
        steady = situation.running.tasks == state["steady"]
        if steady or done is None or done >= REACHED * state["target_per_s"] or backlog <= done:
            return None
        return _double(situation)


def _double(situation: At) -> Allocation:
    return situation.fit({name: 2 * count for name, count in situation.running.tasks.items()})
