"""Parts of a decision's explanation: rates in short form, and the expected throughput."""

from __future__ import annotations

import math

from rheostat.job.decision import Expectation, Interval

KEEPS_UP = 0.99
"""Least share of the load that a job processes when it keeps up; the rest is measurement noise."""


def sustains(load_per_s: float | None, share: float = 1.0) -> Expectation:
    """Return the expectation to process a share of the load; an empty one if the load is not known."""
    if load_per_s is None or not math.isfinite(load_per_s):
        return Expectation()
    return Expectation(load_per_s, Interval.at_least(KEEPS_UP * load_per_s * min(1.0, share)))


def rate(per_s: float | None) -> str:
    """Return a rate in short form: `1.2M/s`, `340k/s`, `57/s`."""
    if per_s is None:
        return "an unknown rate"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(per_s) >= 0.9995 * size:  # three digits of 999.6 are 1k
            return f"{per_s / size:.3g}{unit}/s"
    return f"{per_s:.3g}/s"
