"""Proportion: AuTraScale+'s second baseline for event-time latency (section V-A).

"Adjusts the parallelism based on the ratio of current throughput to target throughput": every operator gets V_t / v_t
times its tasks, again and again until the target is reached, since the paper gives it O(NM) for M iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rheostat.job.allocation import Allocation
from rheostat.policy.catch_up import At, CatchUp


@dataclass(frozen=True)
class Proportion(CatchUp):
    """Clears a backlog with tasks in proportion to the needed throughput, then returns."""

    name: ClassVar[str] = "proportion"
    rule: ClassVar[str] = "tasks in proportion to the throughput, until that is reached"
    repeats: ClassVar[bool] = True

    def larger(self, situation: At, target_per_s: float) -> Allocation:
        """Return the tasks times target over present throughput."""
        now = situation.window.throughput_per_s or situation.window.load_per_s or target_per_s
        ratio = max(target_per_s / now, 1.0)
        return situation.fit({name: count * ratio for name, count in situation.running.tasks.items()})
