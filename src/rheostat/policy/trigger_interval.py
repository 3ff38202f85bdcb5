"""The trigger-interval rule: grow when a batch takes longer than its trigger interval, shrink when it is short.

SPARK-24815, proposed for Structured Streaming and never merged. It adopts the rule of Spark's old DStreams
(`ExecutorAllocationManager`); names and defaults here are those of DStreams.

| DStreams | here |
|---|---|
| processing time / batch duration | median batch time of the window / `interval_s` |
| scalingUpRatio 0.9: request round(ratio) more, at least 1 | `scale_up_ratio`, in executors |
| scalingDownRatio 0.3: kill one | `scale_down_ratio`, one executor less |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rheostat.errors import InvalidValue
from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.job.frozen import check_number
from rheostat.policy.explanation import sustains
from rheostat.ports import Policy, Situation


@dataclass(frozen=True)
class TriggerInterval(Policy[None]):
    """Compares the batch time with the trigger interval."""

    name: ClassVar[str] = "trigger-interval"
    interval_s: float = 10.0
    """The query's trigger interval, in seconds."""
    scale_up_ratio: float = 0.9
    """Share of the interval from which on a batch is too long."""
    scale_down_ratio: float = 0.3
    """Share of the interval up to which a batch is short."""

    def __post_init__(self) -> None:
        check_number("interval_s of policy 'trigger-interval'", self.interval_s, least=1e-3)
        check_number("scale_up_ratio of policy 'trigger-interval'", self.scale_up_ratio)
        check_number("scale_down_ratio of policy 'trigger-interval'", self.scale_down_ratio)
        if self.scale_down_ratio >= self.scale_up_ratio:
            raise InvalidValue(
                f"scale_down_ratio {self.scale_down_ratio} of policy 'trigger-interval' must be below "
                f"scale_up_ratio {self.scale_up_ratio}"
            )

    def decide(self, situation: Situation[None]) -> Decision:
        """Add or remove executors by the ratio of batch time to interval."""
        window, running = situation.window, situation.running
        if window.latency is None:
            return Decision.hold(Reason.UNUSABLE, "the window has no batch times")
        # A running batch takes at least as long as it has taken so far.
        seconds = max(window.latency.p50_s, window.overdue_s)
        ratio = seconds / self.interval_s
        evidence = {"batch_s": seconds, "ratio": ratio}
        because = f"a batch takes {seconds:.3g} s of the {self.interval_s:g} s between triggers"
        more = max(1, round(ratio)) if ratio >= self.scale_up_ratio else -1 if ratio <= self.scale_down_ratio else 0
        steps = {name: more * situation.limits.quantum.get(name, 1) for name in running.tasks}
        target = situation.fit({name: max(1, tasks + steps[name]) for name, tasks in running.tasks.items()})
        if target == running:
            return Decision.hold(Reason.STEADY, because, evidence=evidence)
        expects = sustains(window.load_per_s)
        return Decision(target, direction(running, target), f"{changes(running, target)}: {because}", evidence, expects)
