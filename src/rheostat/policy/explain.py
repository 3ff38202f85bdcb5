"""What every decision says about itself: which way it goes, what changes, and what it promises."""

from __future__ import annotations

import math

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Expectation, Interval, Reason

KEPT_UP = 0.99
"""Share of the load that must be processed for the job to count as keeping up; the rest is measurement noise."""


def direction(running: Allocation, target: Allocation) -> Reason:
    """Return which way a change goes."""
    grows = any(target.tasks[name] > count for name, count in running.tasks.items())
    shrinks = any(target.tasks[name] < count for name, count in running.tasks.items())
    if grows and shrinks:
        return Reason.MIXED
    if grows:
        return Reason.UNDER_PROVISIONED
    return Reason.OVER_PROVISIONED if shrinks else Reason.STEADY


def changes(running: Allocation, target: Allocation) -> str:
    """Return the operators that change, as `split 2 -> 3, count 4 -> 2`."""
    return ", ".join(
        f"{name} {count} -> {target.tasks[name]}"
        for name, count in running.tasks.items()
        if target.tasks[name] != count
    )


def sustains(load_per_s: float | None, share: float = 1.0) -> Expectation:
    """Return the promise to keep up with a share of the load; no promise when the load is not known."""
    if load_per_s is None or not math.isfinite(load_per_s):
        return Expectation()
    return Expectation(load_per_s, Interval.at_least(KEPT_UP * load_per_s * min(1.0, share)))


def rate(per_s: float | None) -> str:
    """Write a rate for people: `1.2M/s`, `340k/s`, `57/s`."""
    if per_s is None:
        return "an unknown rate"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(per_s) >= size:
            return f"{per_s / size:.3g}{unit}/s"
    return f"{per_s:.3g}/s"
