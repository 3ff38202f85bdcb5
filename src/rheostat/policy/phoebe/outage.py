"""Failures by source offsets: the downtime of a failure, and the time to catch up after it.

While a job is down it reads nothing, so the oldest waiting record ages by one second per second. When it resumes, that
age is the time since the last checkpoint before the failure. A failure falls anywhere between two checkpoints, on
average half an interval after the last one:

    downtime, from the failure on = lag at the resumption - interval / 2

This needs no metric of the job, does not depend on when the failure was noticed, and has no delay. A recovery ends when
the lag is back to normal. Planned changes stop a job, too; they are left out, and so is a recovery during which another
failure or a change happens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from rheostat.job.decision import Decision
from rheostat.job.observation import Observation, Status
from rheostat.job.record import Intent, IntentEnd, Record, Run
from rheostat.model.downtime import Downtimes, state_of

NORMAL_LAG_S = 3.0
"""Age of the oldest waiting record, in seconds, up to which there is no backlog."""
MAX_RECOVERIES = 32
"""Newest recoveries that are retained."""
LONGEST_S = 7200.0
"""Longest downtime in seconds that counts as a failure: no objective covers a longer one."""
PREDICTED = "recovery_s"
"""Key of the evidence that predicts the recovery time of a failure now."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """One failure with its recovery time and the predicted one."""

    began_s: float
    downtime_s: float
    took_s: float
    predicted_s: float | None = None


@dataclass(frozen=True, slots=True)
class Outages:
    """Downtimes and recoveries of past failures, and the state of the present one."""

    downtimes: Downtimes = field(default_factory=Downtimes)
    recoveries: tuple[Recovery, ...] = ()
    interval_s: float = 0.0
    """Seconds between two checkpoints."""
    changing: bool = False
    down_s: float | None = None
    """Moment of the last window in which the job was down, during an outage."""
    lag_s: float = 0.0
    """Age of the oldest waiting record at that moment."""
    began_s: float | None = None
    """Start of the failure from which the job is catching up."""
    downtime_s: float = 0.0
    looks: tuple[tuple[float, float], ...] = ()
    """Moment and backlog of the last two windows of the catch-up."""
    predicted_s: float | None = None

    @property
    def under_way(self) -> bool:
        """Whether the job is down or catching up."""
        return self.down_s is not None or self.began_s is not None


def fold(outages: Outages, record: Record) -> Outages:
    """Return the outages after one more record."""
    match record:
        case Run():
            interval = record.spec.checkpoint_interval_s
            return replace(outages, interval_s=interval if interval and math.isfinite(interval) else 0.0)
        case Intent():
            # A change during a catch-up lengthens it, so this recovery does not count.
            return replace(outages, changing=True, began_s=None, down_s=None)
        case IntentEnd():
            return replace(outages, changing=False)
        case Decision() if not outages.under_way and PREDICTED in record.evidence:
            predicted = record.evidence[PREDICTED]
            return replace(outages, predicted_s=predicted if math.isfinite(predicted) else None)
        case Observation() if not outages.changing:
            return _add_window(outages, record)
    return outages


def _add_window(outages: Outages, window: Observation) -> Outages:
    lag, at = window.lag_s, window.at_s
    if lag is None or not math.isfinite(lag) or not math.isfinite(at):
        return outages
    if window.status is Status.DOWN:
        return replace(outages, down_s=at, lag_s=max(lag, 0.0), began_s=None)
    if outages.down_s is not None:
        return _note_recovery(_note_resumption(outages, window), window, lag)
    return _note_recovery(outages, window, lag) if outages.began_s is not None else outages


def _note_resumption(outages: Outages, window: Observation) -> Outages:
    """Store the downtime in the first window in which the job is up again."""
    assert outages.down_s is not None
    resumed_s = window.at_s - window.uptime_s
    away_s = outages.lag_s + resumed_s - outages.down_s
    over = replace(outages, down_s=None)
    if not (outages.down_s - 1.0 <= resumed_s <= window.at_s and 0 <= away_s <= LONGEST_S):
        return over  # the clock jumped
    downtime = max(away_s - 0.5 * outages.interval_s, 0.0)
    downtimes = outages.downtimes.with_restart(downtime, state_of(window))
    return replace(over, downtimes=downtimes, began_s=resumed_s - downtime, downtime_s=downtime, looks=())


def _note_recovery(outages: Outages, window: Observation, lag_s: float) -> Outages:
    """Store the end of a recovery: between two windows it is where the falling backlog reaches zero."""
    if outages.began_s is None:
        return outages
    if lag_s > NORMAL_LAG_S:
        if window.backlog is None:
            return outages
        return replace(outages, looks=(*outages.looks, (window.at_s, window.backlog))[-2:])
    took = max(_ended_s(outages, window.at_s) - outages.began_s, outages.downtime_s, 0.0)
    recovery = Recovery(outages.began_s, outages.downtime_s, took, outages.predicted_s)
    return replace(outages, recoveries=(*outages.recoveries, recovery)[-MAX_RECOVERIES:], began_s=None, looks=())


def _ended_s(outages: Outages, now_s: float) -> float:
    """Return when the backlog was cleared; without two windows of its fall, the middle of the last span."""
    assert outages.began_s is not None
    if not outages.looks:
        return 0.5 * (outages.began_s + outages.downtime_s + now_s)
    last_s, left = outages.looks[-1]
    if len(outages.looks) < 2 or outages.looks[0][1] <= left or last_s <= outages.looks[0][0]:
        return 0.5 * (last_s + now_s)
    first_s, first = outages.looks[0]
    return min(last_s + left * (last_s - first_s) / (first - left), now_s)
