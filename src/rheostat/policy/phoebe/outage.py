"""Failures of this job: their downtimes, and the time to catch up after each.

Downtimes are learned as everywhere (`model/downtime.py`). A recovery ends when the lag is back to normal, by source
offsets: this needs no metric of the job and has no delay. A recovery during which another failure or a change happens
is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from rheostat.job.decision import Decision
from rheostat.job.observation import Observation
from rheostat.job.record import Intent, Record, Run
from rheostat.model.downtime import Downtimes, Served
from rheostat.model.downtime import fold as fold_downtimes

NORMAL_LAG_S = 3.0
"""Age of the oldest waiting record, in seconds, up to which there is no backlog."""
MAX_RECOVERIES = 32
"""Newest recoveries that are retained."""
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

    downtimes: Downtimes = field(default_factory=Downtimes.unknown)
    recoveries: tuple[Recovery, ...] = ()
    interval_s: float = 0.0
    """Seconds between two checkpoints."""
    began_s: float | None = None
    """Start of the failure from which the job is catching up."""
    downtime_s: float = 0.0
    looks: tuple[tuple[float, float], ...] = ()
    """Moment and backlog of the last two windows of the catch-up."""
    predicted_s: float | None = None

    @property
    def under_way(self) -> bool:
        """Whether the job is down or catching up."""
        return self.downtimes.down_s is not None or self.began_s is not None


def fold(outages: Outages, record: Record, served: Served = lambda _: None) -> Outages:
    """Return the outages after one more record."""
    before = outages.downtimes
    downtimes = fold_downtimes(before, record, outages.interval_s, served)
    if downtimes is not before:
        outages = replace(outages, downtimes=downtimes)
    match record:
        case Run():
            interval = record.spec.checkpoint_interval_s
            return replace(outages, interval_s=interval if interval and math.isfinite(interval) else 0.0)
        case Intent():
            # A change during a catch-up lengthens it, so this recovery does not count.
            return replace(outages, began_s=None)
        case Decision() if not outages.under_way and PREDICTED in record.evidence:
            predicted = record.evidence[PREDICTED]
            return replace(outages, predicted_s=predicted if math.isfinite(predicted) else None)
        case Observation() if not downtimes.changing:
            if downtimes.down_s is not None:
                return replace(outages, began_s=None)  # it fails again
            if downtimes.seen_s > before.seen_s:
                seconds = downtimes.restarts[-1].downtime_s
                outages = replace(outages, began_s=downtimes.seen_s - seconds, downtime_s=seconds, looks=())
            return _note_recovery(outages, record)
    return outages


def _note_recovery(outages: Outages, window: Observation) -> Outages:
    """Store the end of a recovery: between two windows it is where the falling backlog reaches zero."""
    lag_s = window.lag_s
    if outages.began_s is None or lag_s is None or not (math.isfinite(lag_s) and math.isfinite(window.at_s)):
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
