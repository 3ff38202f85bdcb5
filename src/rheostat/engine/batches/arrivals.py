"""Counts of a source's records over time: the input rate, and the moment at which a record arrived. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

LEAST_S = 2.5
"""Seconds over which a rate is measured at least: producers send in bursts of a second or so."""
STEADY = 0.2
"""Largest difference between two stretches of one load, as a share of the larger rate."""
NOISE = 4.0
"""The same in standard deviations of a count of independent arrivals, which decides where few records arrive."""
JUMPS = 2
"""Changes of the load that a window may have: a jump, and the way back."""
HISTORY = 4096
"""Counts of a source to retain, one a second: more than a window covers, and than most lags."""
CORRECTION = 0.05
"""Largest share by which a count falls without being one of a new source."""
FRESH_S = 10.0
"""Seconds for which an answer of a source counts as the present."""


@dataclass(frozen=True, slots=True)
class ArrivalCount:
    """The number of records ever written to the source, at one moment."""

    at_s: float
    records: float


@dataclass(frozen=True, slots=True)
class PresentLoad:
    """The load that arrives now."""

    rate_per_s: float | None
    """Its input rate; None with fewer than two counts."""
    settles_in_s: float
    """Seconds until a load that has just jumped has been seen for `LEAST_S`; 0 if it is steady, or never is."""


def present_rate(arrived: Sequence[ArrivalCount], window_s: float) -> float | None:
    """Return the input rate of the load that arrives now; None with fewer than two counts."""
    return present_load(arrived, window_s).rate_per_s


def present_load(arrived: Sequence[ArrivalCount], window_s: float) -> PresentLoad:
    """Return the input rate of the load that arrives now, and how soon it is known after a jump.

    It is measured over the window, or since the load has changed if that is later, but over `LEAST_S` at least: a jump
    shows at once, and a steady load is averaged, also one that comes in bursts. The stretch in which the load changed
    belongs to neither load.
    """
    points = _since_reset(arrived)
    if len(points) < 2:
        return PresentLoad(None, 0.0)
    newest = points[-1]
    bursts = _bursts([point for point in points if newest.at_s - point.at_s <= window_s])
    first = latest = _back(points, len(points) - 1)
    while first > 0 and newest.at_s - points[first - 1].at_s <= window_s:
        earlier = _back(points, first)
        if newest.at_s - points[earlier].at_s > window_s:
            break
        if _differ(points[earlier], points[first], newest, bursts):
            first += newest.at_s - points[first + 1].at_s >= LEAST_S
            break
        first = earlier
    return PresentLoad(_rate([points[first], newest]), _settles_in_s(points, latest, bursts))


def _settles_in_s(points: Sequence[ArrivalCount], first: int, bursts: float) -> float:
    """Return the seconds until a jump after this point has been seen for `LEAST_S`; 0 without one.

    Until then its rate is mixed with the one before. A load that was not steady before the jump, either, is taken as it
    is: there would always be something to wait for.
    """
    last = len(points) - 1
    jump = _jump(points, first, last, bursts)
    if jump is None or first == 0 or _jump(points, _back(points, first), first, bursts) is not None:
        return 0.0
    return max(0.0, LEAST_S - (points[last].at_s - points[jump].at_s))


def arrival_moment_s(arrived: Sequence[ArrivalCount], records: float) -> float | None:
    """Return when this many records had arrived; None if they have not, or before the first count."""
    points = _since_reset(arrived)
    if not points or records < points[0].records or records >= points[-1].records:
        return None
    after = next(place for place, point in enumerate(points) if point.records > records)
    low, high = points[after - 1], points[after]
    return low.at_s + (high.at_s - low.at_s) * (records - low.records) / (high.records - low.records)


def records_at(arrived: Sequence[ArrivalCount], at_s: float) -> float:
    """Return how many records had arrived at a moment between the first and the last count."""
    points = _since_reset(arrived)
    after = next((place for place, point in enumerate(points) if point.at_s > at_s), len(points))
    if after in (0, len(points)):
        return points[min(after, len(points) - 1)].records
    low, high = points[after - 1], points[after]
    return low.records + (high.records - low.records) * (at_s - low.at_s) / (high.at_s - low.at_s)


def _since_reset(arrived: Sequence[ArrivalCount]) -> list[ArrivalCount]:
    """Return the counts since they last fell by much: a topic that was deleted and created again counts from 0.

    A small fall corrects an estimate, such as that of files by their bytes: fewer records had arrived before, too.
    """
    points = list(arrived)
    for place in range(len(points) - 1, 0, -1):
        fall = points[place - 1].records - points[place].records
        if fall > CORRECTION * points[place - 1].records:
            return points[place:]
        if fall > 0:
            points[place - 1] = replace(points[place - 1], records=points[place].records)
    return points


def _back(points: Sequence[ArrivalCount], last: int) -> int:
    """Return the latest point that is at least `LEAST_S` before another one; the first one if there is none."""
    return next((at for at in range(last - 1, 0, -1) if points[last].at_s - points[at].at_s >= LEAST_S), 0)


def _jump(points: Sequence[ArrivalCount], first: int, last: int, bursts: float) -> int | None:
    """Return the point between two others at which the load jumped most; None where it is the same on both sides."""
    start, end = points[first], points[last]
    inside = [place for place in range(first + 1, last) if start.at_s < points[place].at_s < end.at_s]
    jumps = [place for place in inside if _differ(start, points[place], end, bursts)]

    def height(place: int) -> float:
        return abs((_rate([start, points[place]]) or 0.0) - (_rate([points[place], end]) or 0.0))

    return max(jumps, key=height, default=None)


def _differ(start: ArrivalCount, middle: ArrivalCount, end: ArrivalCount, bursts: float) -> bool:
    """Whether the load was another one before the middle than after it."""
    before, after = middle.records - start.records, end.records - middle.records
    before_s, after_s = middle.at_s - start.at_s, end.at_s - middle.at_s
    rates = before / before_s, after / after_s
    noise = NOISE * math.hypot(math.sqrt(before) / before_s, math.sqrt(after) / after_s)
    noise = max(noise, NOISE * bursts * math.hypot(1 / math.sqrt(before_s), 1 / math.sqrt(after_s)))
    return abs(rates[0] - rates[1]) > max(STEADY * max(rates), noise)


def _bursts(points: Sequence[ArrivalCount]) -> float:
    """Return the standard deviation of the records of one second, by the changes from one count to the next.

    A load that jumps has one or two large changes: these are left out. One that comes in bursts has many.
    """
    rates = [rate for pair in pairwise(points) if (rate := _rate(pair)) is not None]
    gap_s = (points[-1].at_s - points[0].at_s) / len(rates) if rates else 0.0
    changes = sorted(abs(later - sooner) for sooner, later in pairwise(rates))[:-JUMPS]
    return math.sqrt(fmean(change**2 for change in changes) / 2 * gap_s) if changes else 0.0


def _rate(points: Sequence[ArrivalCount]) -> float | None:
    if len(points) < 2 or points[-1].at_s <= points[0].at_s:
        return None
    return max(0.0, points[-1].records - points[0].records) / (points[-1].at_s - points[0].at_s)
