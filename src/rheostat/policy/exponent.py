"""Exponent: AuTraScale+'s third baseline for event-time latency (section V-A): doubles until it is fast enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rheostat.job.allocation import Allocation
from rheostat.policy.catch_up import REACHED, At, CatchUp, Need


@dataclass(frozen=True)
class Exponent(CatchUp):
    """Doubles all tasks until the throughput reaches what works off the backlog in time, then returns."""

    name: ClassVar[str] = "exponent"
    rule: ClassVar[str] = "twice the tasks, until that is reached"

    def larger(self, situation: At, need: Need) -> Allocation:
        """Return twice the tasks."""
        return _doubled(situation)

    def further(self, situation: At, kept: Mapping[str, Any]) -> Allocation | None:
        """Double again while the throughput is below the target."""
        done, waits = situation.window.throughput_per_s, situation.window.backlog or 0.0
        steady = situation.running.tasks == kept["steady"]
        if steady or done is None or done >= REACHED * kept["target_per_s"] or waits <= done:
            return None
        return _doubled(situation)


def _doubled(situation: At) -> Allocation:
    return situation.fit({name: 2 * count for name, count in situation.running.tasks.items()})
