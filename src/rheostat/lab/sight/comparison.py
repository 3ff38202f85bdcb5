"""What the scaler saw against what really happened. Pure.

A number is compared with the truth at the moment that it names (`measured_s`), but at most one interval before its
window: a number that is older than that is not excused by its date. The worst backlog is by the second: a batch of a
second of load is worked off in a tenth of a second, so a backlog is right if it was the true one within its second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from rheostat.lab.sight.truth import Floats, Truth
from rheostat.lab.sight.windows import Window

PRESENT_S = 2.0
"""Seconds of the newest rate of the producer: a scaler that shows a jump sooner than after an interval is not wrong."""
DEFAULT_INTERVAL_S = 10.0
"""Seconds between two windows, where there are fewer than two."""


@dataclass(frozen=True)
class Sight:
    """The errors of one run's windows; a window that shows no such number has no error."""

    windows: int
    interval_s: float
    """Median time between two windows."""
    unseen: int
    """Windows without an input rate or a backlog."""
    oldest_s: float
    """Greatest age of a rate or backlog when it was shown."""
    backlog: Floats
    """Differences as shares of the true backlog, or of one second of load if that is more."""
    backlog_second: Floats
    """The same from the nearest true backlog within half a second."""
    rate: Floats
    """Differences from the producer's rate over the last interval, as shares of it."""
    late_rate: Floats
    """The same from the nearest of three: the last seconds, the last interval, the interval before it."""
    lag_s: Floats
    """Differences from the age of the oldest record whose batch had not finished."""


def compare(windows: Sequence[Window], truth: Truth, base_per_s: float) -> Sight:
    """Return the errors of these windows. Shares are of the base load at least, so that silence has an error, too."""
    interval_s = _interval_s(windows)
    backlog, by_second, rate, late_rate, lag_s = [], [], [], [], []
    for window in windows:
        at_s = max(window.at_s - interval_s, window.at_s if window.measured_s is None else window.measured_s)
        if window.backlog is not None:
            true = truth.backlog(at_s)
            scale = max(true, truth.rate_per_s(at_s - 1.0, at_s), base_per_s)
            least, most = truth.backlog_within(at_s - 0.5, at_s + 0.5)
            nearest = min(max(window.backlog, least), most)
            backlog.append(abs(window.backlog - true) / scale)
            by_second.append(abs(window.backlog - nearest) / scale)
        if window.rate_per_s is not None:
            last = truth.rate_per_s(at_s - interval_s, at_s)
            earlier = truth.rate_per_s(at_s - 2 * interval_s, at_s - interval_s)
            present = truth.rate_per_s(at_s - PRESENT_S, at_s)
            errors = [abs(window.rate_per_s - true) / max(true, base_per_s) for true in (last, earlier, present)]
            rate.append(errors[0])
            late_rate.append(min(errors))
        if window.lag_s is not None:
            lag_s.append(abs(window.lag_s - truth.lag_s(window.at_s)))
    return Sight(
        windows=len(windows),
        interval_s=interval_s,
        unseen=sum(window.rate_per_s is None or window.backlog is None for window in windows),
        oldest_s=max(
            (window.at_s - window.measured_s for window in windows if window.measured_s is not None), default=0
        ),
        backlog=np.array(backlog),
        backlog_second=np.array(by_second),
        rate=np.array(rate),
        late_rate=np.array(late_rate),
        lag_s=np.array(lag_s),
    )


def describe(window: Window, truth: Truth, start_s: float) -> str:
    """Return one line about a window: what it shows, with the truth at its moment in parentheses."""
    at_s = window.at_s if window.measured_s is None else window.measured_s
    shown = (
        f"{window.at_s - start_s:.1f} s, {window.running} running",
        f"rate {_number(window.rate_per_s)} ({truth.rate_per_s(at_s - PRESENT_S, at_s):.0f})",
        f"backlog {_number(window.backlog)} ({truth.backlog(at_s):.0f})",
        f"measured {window.at_s - at_s:.1f} s before",
        f"lag {_number(window.lag_s)} s ({truth.lag_s(window.at_s):.0f})",
    )
    decided = "hold" if window.target is None else f"{window.target} executors"
    return f"{', '.join(shown)}: {decided} ({window.problem or window.why})"


def middle(values: Floats) -> float:
    """Return the median; not a number without values, which meets no goal."""
    return float(np.median(values)) if len(values) else math.nan


def worst(values: Floats) -> float:
    """Return the largest value; not a number without values, which meets no goal."""
    return float(np.max(values)) if len(values) else math.nan


def right_size(load_per_s: float, pace_per_s: float, headroom: float, most: int) -> int:
    """Return the slots that serve a load with headroom at a known pace per slot, at least 1 and at most `most`."""
    return max(1, min(most, math.ceil(load_per_s * (1 + headroom) / pace_per_s - 1e-9)))


def reaction_s(windows: Sequence[Window], change_s: float, slots: int, end_s: float = math.inf) -> float:
    """Return the seconds from a change of load to the first decision for these slots or more, before its end.

    To hold a size that is large enough is a decision for it, too, where the window is usable. Without a decision it is
    infinite.
    """
    for window in windows:
        decided_s = window.at_s if window.decided_s is None else window.decided_s
        size = window.running if window.target is None and window.problem is None else window.target
        if change_s <= decided_s <= end_s and size is not None and size >= slots:
            return decided_s - change_s
    return math.inf


def slots_before(windows: Sequence[Window], change_s: float) -> int:
    """Return the slots in the last window before a change of load; 0 without one."""
    return next((window.running or 0 for window in reversed(windows) if window.at_s < change_s), 0)


def blind_share(windows: Sequence[Window], start_s: float, end_s: float) -> float:
    """Return the share of the windows between two moments that nothing could be decided from.

    While a change is under way nothing is decided anyway: such a window is not blind.
    """
    inside = [window for window in windows if start_s <= window.at_s <= end_s]
    blind = sum(window.problem is not None and not window.changing for window in inside)
    return blind / len(inside) if inside else math.nan


def executor_s(sampled_s: Floats, executors: Floats, start_s: float, end_s: float) -> float:
    """Return the executor-seconds between two moments; each sample holds until the next one."""
    edges_s = np.clip(np.append(sampled_s, end_s), start_s, end_s)
    return float(np.sum(np.diff(edges_s) * executors))


def over_lag_s(truth: Truth, start_s: float, end_s: float, limit_s: float) -> int:
    """Return the seconds at whose end the true lag was above a limit."""
    return sum(truth.lag_s(at_s) > limit_s for at_s in np.arange(start_s + 1.0, end_s + 1e-6))


def _interval_s(windows: Sequence[Window]) -> float:
    gaps_s = [later.at_s - sooner.at_s for sooner, later in pairwise(windows)]
    return median(gaps_s) if gaps_s else DEFAULT_INTERVAL_S


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
