"""From values to coordinates, and where the ticks stand: round numbers, powers of ten, round times.

`chart.js` computes the ticks of a zoomed x axis by the same rules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np

from rheostat.report.chart.figure import Axis
from rheostat.report.chart.markup import Floats
from rheostat.report.words import number

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
TIME_STEPS_S = (
    *(1, 2, 5, 10, 15, 30),
    *(MINUTE_S * k for k in (1, 2, 5, 10, 15, 30)),
    *(HOUR_S * k for k in (1, 2, 3, 6, 12)),
    *(DAY_S * k for k in (1, 2, 4, 7, 14, 28, 91, 182, 364)),
)
"""Seconds between two ticks of a date axis."""
MARGIN = 0.04
"""Share of the span that stays free beyond the outermost values."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis; `under` is a second line, the day."""

    value: float
    label: str
    under: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis with both ends, laid over coordinates from `start` to `end`."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float

    def place(self, values: Floats) -> Floats:
        """Return coordinates; what has none on this axis is NaN."""
        low, high = self.low, self.high
        if self.axis.scale == "log":
            positive = np.where(values > 0, values, np.nan)
            values, low, high = np.log10(positive), math.log10(low), math.log10(high)
        placed: Floats = self.start + (values - low) / (high - low) * (self.end - self.start)
        return placed

    def at(self, value: float) -> float:
        """Return one coordinate."""
        return float(self.place(np.array([value]))[0])

    def ticks(self, most: int) -> list[Tick]:
        """Return at most about this many ticks."""
        if self.axis.labels:
            return [Tick(float(k), label) for k, label in enumerate(self.axis.labels)]
        if self.axis.scale == "date":
            return date_ticks(self.low, self.high, most)
        values = (log_ticks if self.axis.scale == "log" else linear_ticks)(self.low, self.high, most)
        step = min((b - a for a, b in pairwise(values)), default=1.0)
        return [Tick(value, self.label(value, step)) for value in values]

    def label(self, value: float, step: float = 0.0) -> str:
        """Write a value with as many digits as tell two ticks apart."""
        if self.axis.format == "percent":
            return f"{value * 100:.{_digits(value * 100, step * 100)}g}%"
        return number(value, _digits(value, step))


def fit_scale(axis: Axis, values: Floats, start: float, end: float) -> Scale:
    """Return the scale over these values, or between the axis's own ends."""
    known = values[np.isfinite(values) & ((values > 0) | (axis.scale != "log"))]
    low, high = (float(known.min()), float(known.max())) if len(known) else (1.0, 10.0)
    if axis.labels:
        low, high = -0.5, len(axis.labels) - 0.5
    elif axis.scale == "log":
        spare = max((high / low) ** MARGIN, 1.15)
        low, high = low / spare, high * spare
    elif axis.scale == "linear":
        if axis.from_zero:
            low, high = min(low, 0.0), max(high, 0.0)
        spare = MARGIN * (high - low) or abs(high) * 0.1 or 1.0
        low, high = low if axis.from_zero and low == 0 else low - spare, high + spare
    low = low if axis.low is None else axis.low
    high = high if axis.high is None else axis.high
    return Scale(axis, low, high if high > low else low + 1.0, start, end)


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten, with twos and fives where there is room; round numbers where there are none of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = math.log10(high / low)
    fine = (1, 2, 5) if 3 * decades <= most else (1,)
    every = max(1, math.ceil(decades / max(most, 1)))
    ticks = [m * 10.0**k for k in range(first, last + 1, every) for m in fine]
    shown = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    return shown if len(shown) > 1 else [tick for tick in linear_ticks(low, high, min(most, 5)) if tick > 0]


def date_ticks(low: float, high: float, most: int) -> list[Tick]:
    """Return round times in UTC; the first tick and the first of each day name the day."""
    rough = (high - low) / max(most, 1)
    step = next((s for s in TIME_STEPS_S if s >= rough), TIME_STEPS_S[-1])
    ticks: list[Tick] = []
    day = ""
    for k in range(math.ceil(low / step), math.floor(high / step) + 1):
        at = datetime.fromtimestamp(k * step, UTC)
        under = f"{at:%Y-%m-%d}"
        label = f"{at:%H:%M:%S}" if step < MINUTE_S else f"{at:%H:%M}" if step < DAY_S else f"{at:%m-%d}"
        shown = under if step < DAY_S else f"{at:%Y}"
        ticks.append(Tick(float(k * step), label, shown if shown != day else ""))
        day = shown
    return ticks


def _digits(value: float, step: float) -> int:
    """Return significant digits: three, or as many as the step needs."""
    if not value or not step:
        return 3
    return max(3, math.floor(math.log10(abs(value)) + 1e-9) - math.floor(math.log10(step) + 1e-9) + 1)


def spread(values: Floats) -> float:
    """Return the ratio of the greatest to the least; 0 where there is none, or where zero is among them."""
    known = values[~np.isnan(values)]
    return float(known.max() / known.min()) if len(known) and known.min() > 0 else 0.0
