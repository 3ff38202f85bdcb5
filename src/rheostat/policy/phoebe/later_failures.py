"""The capacity that the recovery-time objective needs for a later failure, at every step of the forecast."""

from __future__ import annotations

import math

import numpy as np

from rheostat.model.recovery import Course, Floats

GRID_S = 10.0
"""Seconds between the moments at which the job may have caught up."""


def needed_later_per_s(
    max_recovery_s: float, course: Course, checkpoint_interval_s: float, downtime_s: float, later_s: Floats
) -> Floats:
    """Return the smallest capacity that recovers in time from a failure at each moment; infinite if none does.

    `recovery.needed_capacity_per_s` is exact, for a failure now; this function checks every ten seconds.
    """
    if not downtime_s < max_recovery_s:
        return np.full(later_s.shape, math.inf)
    moments = np.append(np.arange(downtime_s + GRID_S, max_recovery_s, GRID_S), max_recovery_s)
    arrived = (
        course.arrived_until(later_s[:, None] + moments)
        - course.arrived_until(later_s - checkpoint_interval_s)[:, None]
    )
    needed: Floats = np.maximum((arrived / (moments - downtime_s)).min(axis=1), 0.0)
    return needed
