"""Seasonal profile: what this time of the day usually brings, and an autoregression of how today differs from it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.forecast.autoregression import Weights, spread
from rheostat.forecast.series import check_question, known_rates, without_gaps

Floats = NDArray[np.float64]

SEASONS = 7
"""Newest seasons that make the profile: of days, a week."""
SMOOTH = 5
"""Steps over which the profile is smoothed, where a season has many."""
LEAST_PERIOD = 8
"""Fewest steps of a season."""
CLEAR = 0.3
"""Autocorrelation at a period before it is believed."""


class Profile:
    """Predicts the profile of a season, plus where today stands."""

    def __init__(self, period: int | None = None) -> None:
        if period is not None and (isinstance(period, bool) or period < 2):
            raise InvalidValue(f"a season must have at least 2 steps, not {period!r}")
        self._asked = period
        self._profile: Floats = np.empty(0)
        self._rest: Weights | None = None
        self._seasons = 0

    def fit(self, values: Sequence[float]) -> None:
        """Find the period, unless it was told, the profile, and what is left of the series without it."""
        series = known_rates(values)
        if not (~np.isnan(series)).any():
            raise InvalidValue("there is nothing to forecast from: the series has no known value")
        full = without_gaps(series)
        period = self._asked or find_period(full)
        if period is None or full.size < 2 * period:
            what = "a season that repeats" if period is None else f"two seasons of {period} steps"
            raise InvalidValue(f"a profile needs {what}, and {full.size} known steps do not show that")
        self._seasons = min(full.size // period, SEASONS)
        recent = full[-self._seasons * period :]
        self._profile = smoothed(recent.reshape(self._seasons, period).mean(axis=0))
        self._rest = Weights(recent - np.tile(self._profile, self._seasons))

    def predict(self, steps: int, quantiles: Sequence[float]) -> Floats:
        """Return steps x quantiles."""
        check_question(steps, quantiles)
        if self._rest is None:
            raise InvalidValue("there is nothing to forecast from: fit it first")
        # The series ends with a season, so the next step is the first of the profile.
        middle = self._profile[np.arange(steps) % self._profile.size] + self._rest.path(steps)
        # Every season is part of the mean that it is held against.
        loose = math.sqrt(self._seasons / (self._seasons - 1)) if self._seasons > 1 else 1.0
        around = loose * spread(self._rest.errors(min(steps, self._profile.size)), steps, quantiles)
        predicted: Floats = np.maximum(middle[:, None] + around, 0.0)
        return predicted


def smoothed(profile: Floats) -> Floats:
    """Return running means around the season, so that one odd step of one day is not expected again."""
    width = min(SMOOTH, profile.size // LEAST_PERIOD * 2 + 1)
    half = width // 2
    if half == 0:
        return profile
    around = np.concatenate([profile[-half:], profile, profile[:half]])
    return np.convolve(around, np.ones(width) / width, mode="valid")


def find_period(values: Floats) -> int | None:
    """Return the period at which the series looks most like itself, after it had looked different; None where none."""
    size = values.size
    if size < 3 * LEAST_PERIOD:
        return None
    line = np.polyval(np.polyfit(np.arange(size), values, 1), np.arange(size))
    rest = values - line
    power = float(rest @ rest)
    if not power > 1e-18 * float(values @ values):
        return None
    spectrum = np.abs(np.fft.rfft(rest, 2 * size)) ** 2
    alike = np.fft.irfft(spectrum)[: size // 2 + 1] / power
    # Later lags have fewer pairs: compare as if all had the same.
    alike = alike * size / (size - np.arange(alike.size))
    below = np.flatnonzero(alike < 0)
    if not below.size:
        return None
    first = max(int(below[0]), LEAST_PERIOD)
    if first >= alike.size:
        return None
    best = first + int(np.argmax(alike[first:]))
    if alike[best] < CLEAR:
        return None
    # Two seasons look alike too: take the first lag that is nearly as good as the best.
    good = first + np.flatnonzero(alike[first:] >= 0.9 * alike[best])
    peak = int(good[0])
    while peak + 1 < alike.size and alike[peak + 1] > alike[peak]:
        peak += 1
    # At the very end it may still be rising: then the season is longer than half of what was seen.
    return peak if peak + 1 < alike.size else None
