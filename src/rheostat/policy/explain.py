"""What a decision says about itself: rates for people, and the throughput it expects."""

from __future__ import annotations

import math

from rheostat.job.decision import Expectation, Interval

KEPT_UP = 0.99
"""Share of the load that must be processed for the job to count as keeping up; the rest is measurement noise."""


def sustains(load_per_s: float | None, share: float = 1.0) -> Expectation:
    """Return the expectation to process a share of the load; an empty one when the load is not known."""
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
