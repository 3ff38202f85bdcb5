"""Numbers, times and settings as text for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

from rheostat.errors import redact_settings
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Expectation, Interval
from rheostat.job.guards import DAY_S, FrozenPeriod
from rheostat.job.slo import Bounds

NONE = "\u2013"
"""Stands where there is no value; zero is a value."""
EPOCH_FROM_S = 1e9
"""Clocks past this moment (September 2001) count seconds since 1970; simulated ones start at zero."""


def number(value: float | None, digits: int = 3) -> str:
    """Write `1.2M`, `340k`, `57`, `0.012`."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size * (1 - 0.5 * 10**-digits):
            return f"{value / size:.{digits}g}{unit}"
    return f"{value:.{digits}g}"


def rate(per_s: float | None) -> str:
    """Write records per second: `1.2M/s`."""
    text = number(per_s)
    return text if text == NONE else f"{text}/s"


def seconds(value: float | None) -> str:
    """Write a length of time: `50 ms`, `12.3 s`, `34 min`, `3 h 20 min`, `2 d 4 h`."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "forever"
    if 0 < value < 0.9995:
        return f"{value * 1e3:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    if value < 7200:
        return f"{value / 60:.3g} min"
    minutes = round(value / 60)
    big, small, names = (
        (minutes // 60, minutes % 60, ("h", "min")) if minutes < 2880 else (*divmod(minutes // 60, 24), ("d", "h"))
    )
    return f"{big} {names[0]}" + (f" {small} {names[1]}" if small else "")


def share(value: float) -> str:
    """Write a share of one as per cent."""
    return f"{value * 100:.3g} %"


def moment(at_s: float) -> str:
    """Write a moment: a date in UTC, or hours, minutes and seconds on a clock that starts at zero."""
    if at_s >= EPOCH_FROM_S:
        return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    whole = round(at_s)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def change(before: Allocation | None, after: Allocation | None) -> str:
    """Write what differs, as `split 2 → 3, count 4 → 2`; the whole allocation where none ran before."""
    if after is None:
        return NONE
    if before is None:
        return str(after)
    changed = [
        f"{name} {before.tasks.get(name, NONE)} → {tasks}"
        for name, tasks in after.tasks.items()
        if before.tasks.get(name) != tasks
    ]
    if before.memory_mb != after.memory_mb:
        changed.append(f"memory {before.memory_mb or NONE} → {after.memory_mb or NONE} MB")
    return ", ".join(changed) or "no change"


def expectation(expects: Expectation) -> str:
    """Write the intervals that a decision expects."""
    parts = [
        ("throughput", expects.throughput_per_s, rate),
        ("latency", expects.latency_s, seconds),
        ("recovery", expects.recovery_s, seconds),
    ]
    intervals = [f"{name} {_interval(interval, write)}" for name, interval, write in parts if interval is not None]
    if expects.load_per_s is not None:
        intervals.append(f"while load ≤ {rate(expects.load_per_s)}")
    return ", ".join(intervals) or NONE


def _interval(interval: Interval, write: Any) -> str:
    if math.isinf(interval.high):
        return f"≥ {write(interval.low)}"
    if interval.low <= 0:
        return f"≤ {write(interval.high)}"
    return f"{write(interval.middle)} ({write(interval.low)} to {write(interval.high)})"


def value(item: Any) -> str:
    """Write the value of a setting."""
    match item:
        case None:
            return NONE
        case bool():
            return "yes" if item else "no"
        case float():
            return f"{item:g}".replace("inf", "∞")
        case Bounds():
            return f"{item.min} to {NONE if item.max is None else item.max}"
        case FrozenPeriod() if item.every_s == DAY_S:
            return f"{moment(item.start_s)} to {moment(item.end_s)} every day (UTC)"
        case FrozenPeriod() if item.every_s is None:
            return f"{moment(item.start_s)} to {moment(item.end_s)}"
        case Mapping():
            return ", ".join(f"{key}: {value(inner)}" for key, inner in item.items()) or NONE
        case list() | tuple() | range():
            return ", ".join(value(inner) for inner in item) or NONE
        case Allocation():
            return str(item)
    if is_dataclass(item):
        return ", ".join(f"{name} {text}" for name, text in settings(item).items()) or NONE
    return str(item)


def settings(item: Any) -> dict[str, str]:
    """Return the fields of a dataclass, or the items of a mapping, that have a value."""
    pairs = item.items() if isinstance(item, Mapping) else ((f.name, getattr(item, f.name)) for f in fields(item))
    pairs = ((name, redact_settings(inner, str(name))) for name, inner in pairs)
    written = {str(name): value(inner) for name, inner in pairs if inner is not None and inner != Bounds()}
    return {name: text for name, text in written.items() if text != NONE}
