"""Seasonal profile: the mean season, and an autoregression of the deviation from it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.forecast.autoregression import Weights, spread
from rheostat.forecast.series import check_rates, check_request, fill_gaps

Floats = NDArray[np.float64]

SEASONS = 7
"""Newest seasons in the profile; with daily seasons, a week."""
SMOOTH = 5
"""Most steps over which the profile is smoothed; fewer where a season is short."""
LEAST_PERIOD = 8
"""Fewest steps of a season."""
CLEAR = 0.3
"""Least autocorrelation at a period."""


class Profile:
    """Predicts the mean season plus the present deviation from it."""

    def __init__(self, period: int | None = None) -> None:
        if period is not None and (isinstance(period, bool) or period < 2):
            raise InvalidValue(f"a season must have at least 2 steps, not {period!r}")
        self._period = period
        self._profile: Floats = np.empty(0)
        self._deviation: Weights | None = None
        self._seasons = 0

    def fit(self, values: Sequence[float]) -> None:
        """Find the period unless it is given, then fit the profile and the deviations from it."""
        series = check_rates(values)
        if not (~np.isnan(series)).any():
            raise InvalidValue("there is nothing to forecast from: the series has no rate")
        full = fill_gaps(series)
        period = self._period or find_period(full)
        if period is None or full.size < 2 * period:
            what = "a season that repeats" if period is None else f"two seasons of {period} steps"
            raise InvalidValue(f"a profile needs {what}; {full.size} steps do not show that")
        self._seasons = min(full.size // period, SEASONS)
        recent = full[-self._seasons * period :]
        self._profile = smooth(recent.reshape(self._seasons, period).mean(axis=0))
        self._deviation = Weights(recent - np.tile(self._profile, self._seasons))

    def predict(self, steps: int, quantiles: Sequence[float]) -> Floats:
        """Return steps x quantiles."""
        check_request(steps, quantiles)
        if self._deviation is None:
            raise InvalidValue("there is nothing to forecast from: call fit first")
        # The series ends with a season, so the next step is the first of the profile.
        middle = self._profile[np.arange(steps) % self._profile.size] + self._deviation.path(steps)
        # Every season is part of the mean that it is compared with, so its deviation is widened.
        widening = math.sqrt(self._seasons / (self._seasons - 1)) if self._seasons > 1 else 1.0
        around = widening * spread(self._deviation.errors(min(steps, self._profile.size)), steps, quantiles)
        predicted: Floats = np.maximum(middle[:, None] + around, 0.0)
        return predicted


def smooth(profile: Floats) -> Floats:
    """Return running means around the season, so that one odd step of one season is not predicted again."""
    width = min(SMOOTH, profile.size // LEAST_PERIOD * 2 + 1)
    half = width // 2
    if half == 0:
        return profile
    around = np.concatenate([profile[-half:], profile, profile[:half]])
    return np.convolve(around, np.ones(width) / width, mode="valid")


def find_period(values: Floats) -> int | None:
    """Return the lag with the highest autocorrelation after the first negative one; None if there is no clear one."""
    size = values.size
    if size < 3 * LEAST_PERIOD:
        return None
    line = np.polyval(np.polyfit(np.arange(size), values, 1), np.arange(size))
    residual = values - line
    power = float(residual @ residual)
    if not power > 1e-18 * float(values @ values):
        return None
    spectrum = np.abs(np.fft.rfft(residual, 2 * size)) ** 2
    correlation = np.fft.irfft(spectrum)[: size // 2 + 1] / power
    # Later lags have fewer pairs: scale them as if all lags had the same number.
    correlation = correlation * size / (size - np.arange(correlation.size))
    below = np.flatnonzero(correlation < 0)
    if not below.size:
        return None
    first = max(int(below[0]), LEAST_PERIOD)
    if first >= correlation.size:
        return None
    best = first + int(np.argmax(correlation[first:]))
    if correlation[best] < CLEAR:
        return None
    # Multiples of the season correlate too: take the first lag that is nearly as good as the best.
    good = first + np.flatnonzero(correlation[first:] >= 0.9 * correlation[best])
    peak = int(good[0])
    while peak + 1 < correlation.size and correlation[peak + 1] > correlation[peak]:
        peak += 1
    # A correlation that still rises at the last lag means a season longer than half of the history.
    return peak if peak + 1 < correlation.size else None
