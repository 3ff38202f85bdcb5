"""What keeps a job calm: how long smaller sizes were enough, how often the size changed. A fold over records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.frozen import FrozenMap, put
from rheostat.job.observation import Observation
from rheostat.job.record import Intent, IntentEnd, Record

HOUR_S = 3600.0
NO_ANSWER = frozenset(
    {Reason.UNUSABLE, Reason.CHANGING, Reason.DOWN, Reason.NO_POLICY, Reason.UNJOURNALED, Reason.WAITING, Reason.TRIAL}
)
"""Reasons of decisions that say nothing about the size: they neither start nor end a time of low demand."""


@dataclass(frozen=True, slots=True)
class Low:
    """A time in which the policy asked for fewer tasks of an operator than run."""

    since_s: float
    most: int
    """The most tasks that it asked for in this time."""


@dataclass(frozen=True, slots=True)
class Stability:
    """What the guards against restless changes look at."""

    at_s: float = 0.0
    running: Allocation | None = None
    """The allocation of the last window, and when it was seen."""
    low: Mapping[str, Low] = field(default_factory=FrozenMap)
    """Operators that have been larger than needed, since the last change at most."""
    changes_s: tuple[float, ...] = ()
    """When the changes of the last hour were decided."""

    def __post_init__(self) -> None:
        put(self, low=FrozenMap(self.low))


def fold(stability: Stability, record: Record) -> Stability:
    """Fold one record in."""
    match record:
        case Observation() if record.running is not None:
            return replace(stability, at_s=record.at_s, running=record.running)
        case Decision() if record.reason not in NO_ANSWER:
            return replace(stability, low=_low(stability, record.asked or record.target))
        case Intent():
            recent = tuple(change_s for change_s in stability.changes_s if record.at_s - change_s < HOUR_S)
            return replace(stability, changes_s=(*recent, record.at_s))
        case IntentEnd():
            return replace(stability, low={})
    return stability


def _low(stability: Stability, asked: Allocation | None) -> dict[str, Low]:
    """Extend the times of low demand by one decision; an operator that needs its tasks has none."""
    if asked is None or stability.running is None:
        return {}
    low = {}
    for name, running in stability.running.tasks.items():
        tasks = asked.tasks.get(name, running)
        if tasks < running:
            before = stability.low.get(name, Low(stability.at_s, tasks))
            low[name] = Low(before.since_s, max(before.most, tasks))
    return low
