"""The past load as a regular series: a bounded fold over windows, with gaps where no load was measured.

Clocks are not trusted: a second reading of a moment replaces the first, one from the past is ignored, and after a jump
that is too long for a gap the series starts again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number
from rheostat.job.observation import Observation

MAX_STEPS = 1440
"""Newest steps that are retained."""
LONGEST_GAP = 240
"""Steps without a reading, forwards or backwards, after which the series starts again."""


@dataclass(frozen=True, slots=True)
class LoadSeries:
    """Rates at multiples of `step_s`, oldest first; None is a gap."""

    step_s: float = 30.0
    last: int | None = None
    """Number of the newest step: its moment divided by `step_s`."""
    rates: tuple[float | None, ...] = ()
    odd: int = 0
    """Readings that were dropped: from the past, or not a number."""

    def __post_init__(self) -> None:
        check_number("step_s of a load series", self.step_s, least=1e-3)

    def values(self) -> NDArray[np.float64]:
        """Return the rates with NaN for gaps."""
        return np.array([math.nan if rate is None else rate for rate in self.rates], dtype=float)

    @property
    def newest(self) -> float | None:
        """The newest rate that is not a gap."""
        return next((rate for rate in reversed(self.rates) if rate is not None), None)

    def add(self, at_s: float, rate_per_s: float | None) -> LoadSeries:
        """Return the series with one more reading."""
        if rate_per_s is None:
            return self
        if not (math.isfinite(at_s) and math.isfinite(rate_per_s) and rate_per_s >= 0):
            return replace(self, odd=self.odd + 1)
        number = round(at_s / self.step_s)
        if self.last is None or abs(number - self.last) > LONGEST_GAP:
            return LoadSeries(self.step_s, number, (rate_per_s,), self.odd)
        if number < self.last:
            return replace(self, odd=self.odd + 1)
        if number == self.last:
            return replace(self, rates=(*self.rates[:-1], rate_per_s))
        gap: tuple[None, ...] = (None,) * (number - self.last - 1)
        return replace(self, last=number, rates=(*self.rates, *gap, rate_per_s)[-MAX_STEPS:])


def fold(series: LoadSeries, window: Observation) -> LoadSeries:
    """Add the load of a window, even of an unusable one: source offsets are read without delay."""
    try:
        return series.add(window.at_s, window.load_per_s)
    except InvalidValue:
        return series
