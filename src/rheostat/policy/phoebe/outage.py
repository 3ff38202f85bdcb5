"""Failures as source offsets tell them: how long the job was away, and how long it took to catch up.

While a job is down nothing is taken, so the oldest waiting record ages by one second per second. When it resumes, that
age is the time since the moment to which it was set back: the last checkpoint before the failure. A failure falls
anywhere between two checkpoints, so half an interval before the failure on the mean:

    downtime, from the failure on = lag at the resumption - interval / 2

This needs no metric of the job, does not depend on when the failure was noticed, and has no display lag. Recovery ends
when the lag is back to normal. Planned changes stop a job, too: they are left out, and so is a recovery into which
another failure or a change falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from rheostat.job.decision import Decision
from rheostat.job.observation import Observation, Status
from rheostat.job.record import Intent, IntentEnd, Record, Run
from rheostat.model.downtime import Downtimes, state_of

NORMAL_LAG_S = 3.0
"""Up to this age the oldest waiting record is no backlog."""
KEPT = 32
LONGEST_S = 7200.0
"""An outage beyond this is no failure that an objective could be about."""
PREDICTED = "recovery_s"
"""The evidence that says what a failure now would take."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """One failure, from beginning to end, beside what was predicted of it."""

    began_s: float
    downtime_s: float
    took_s: float
    predicted_s: float | None = None


@dataclass(frozen=True, slots=True)
class Outages:
    """What failures so far have taught, and the one that is under way."""

    downtimes: Downtimes = field(default_factory=Downtimes)
    recoveries: tuple[Recovery, ...] = ()
    interval_s: float = 0.0
    """Seconds between two checkpoints."""
    changing: bool = False
    down_s: float | None = None
    """When the job was last seen down, in the outage that is under way."""
    lag_s: float = 0.0
    """Age of the oldest waiting record then."""
    began_s: float | None = None
    """When the failure began from which the job now catches up."""
    downtime_s: float = 0.0
    looks: tuple[tuple[float, float], ...] = ()
    """Moment and backlog of the last two looks while it caught up."""
    predicted_s: float | None = None

    @property
    def under_way(self) -> bool:
        """Whether the job is down, or still catches up."""
        return self.down_s is not None or self.began_s is not None


def fold(outages: Outages, record: Record) -> Outages:
    """Fold one record in."""
    match record:
        case Run():
            interval = record.spec.checkpoint_interval_s
            return replace(outages, interval_s=interval if interval and math.isfinite(interval) else 0.0)
        case Intent():
            # A change that is made while the job catches up is part of why that took so long.
            return replace(outages, changing=True, began_s=None, down_s=None)
        case IntentEnd():
            return replace(outages, changing=False)
        case Decision() if not outages.under_way and PREDICTED in record.evidence:
            told = record.evidence[PREDICTED]
            return replace(outages, predicted_s=told if math.isfinite(told) else None)
        case Observation() if not outages.changing:
            return _seen(outages, record)
    return outages


def _seen(outages: Outages, window: Observation) -> Outages:
    lag, at = window.lag_s, window.at_s
    if lag is None or not math.isfinite(lag) or not math.isfinite(at):
        return outages
    if window.status is Status.DOWN:
        return replace(outages, down_s=at, lag_s=max(lag, 0.0), began_s=None)
    if outages.down_s is not None:
        return _caught_up(_resumed(outages, window), window, lag)
    return _caught_up(outages, window, lag) if outages.began_s is not None else outages


def _resumed(outages: Outages, window: Observation) -> Outages:
    """Take over how long the job was away, when it is seen up for the first time."""
    assert outages.down_s is not None
    resumed_s = window.at_s - window.uptime_s
    away_s = outages.lag_s + resumed_s - outages.down_s
    over = replace(outages, down_s=None)
    if not (outages.down_s - 1.0 <= resumed_s <= window.at_s and 0 <= away_s <= LONGEST_S):
        return over  # a clock that jumped
    downtime = max(away_s - 0.5 * outages.interval_s, 0.0)
    learned = outages.downtimes.with_restart(downtime, state_of(window))
    return replace(over, downtimes=learned, began_s=resumed_s - downtime, downtime_s=downtime, looks=())


def _caught_up(outages: Outages, window: Observation, lag_s: float) -> Outages:
    """Note the end of a recovery: between two looks it is where the backlog's fall reaches zero."""
    if outages.began_s is None:
        return outages
    if lag_s > NORMAL_LAG_S:
        if window.backlog is None:
            return outages
        return replace(outages, looks=(*outages.looks, (window.at_s, window.backlog))[-2:])
    took = max(_ended_s(outages, window.at_s) - outages.began_s, outages.downtime_s, 0.0)
    found = Recovery(outages.began_s, outages.downtime_s, took, outages.predicted_s)
    return replace(outages, recoveries=(*outages.recoveries, found)[-KEPT:], began_s=None, looks=())


def _ended_s(outages: Outages, now_s: float) -> float:
    """Return when the backlog was gone; without two looks at its fall the middle of the last span is the best guess."""
    assert outages.began_s is not None
    if not outages.looks:
        return 0.5 * (outages.began_s + outages.downtime_s + now_s)
    last_s, left = outages.looks[-1]
    if len(outages.looks) < 2 or outages.looks[0][1] <= left or last_s <= outages.looks[0][0]:
        return 0.5 * (last_s + now_s)
    first_s, first = outages.looks[0]
    return min(last_s + left * (last_s - first_s) / (first - left), now_s)
