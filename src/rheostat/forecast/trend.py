"""The local trend: a line through the newest values, continued with a damped slope.

The load of the next minutes mostly continues the present one. Level and slope are those of a least-squares line through
the last values; the slope is damped, so that no trend continues for ever. Both are fixed weights of these values, so
the same forecast from every earlier origin is one convolution, and its errors give the quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.forecast.last_value import LastValue, Values
from rheostat.forecast.series import check_rates, check_request, fill_gaps

LEAST = 4
"""Fewest values of a line; with fewer the last value is used."""
ORIGINS = 240
"""Earlier origins from which the forecast's errors are computed."""
ENOUGH = 16
"""Errors from which on their quantiles are used."""


class Trend:
    """Predicts that the present slope continues, damped."""

    def __init__(self, length: int = 24, damping: float = 0.99) -> None:
        if length < LEAST:
            raise InvalidValue(f"length of a trend must be at least {LEAST}, not {length}")
        if not 0 < damping <= 1:
            raise InvalidValue(f"damping of a trend must lie between 0 and 1, not {damping!r}")
        self.length, self.damping = length, damping
        self._last = LastValue()
        self._values: Values = np.empty(0)

    def fit(self, values: Sequence[float]) -> None:
        """Store the series; gaps are interpolated linearly."""
        self._last.fit(values)
        series = check_rates(values)
        self._values = series[:0] if np.isnan(series).all() else fill_gaps(series)

    def predict(self, steps: int, quantiles: Sequence[float]) -> Values:
        """Return steps x quantiles; at most twice the highest past rate."""
        check_request(steps, quantiles)
        series = self._values
        length = min(self.length, series.size)
        if length < LEAST:
            return self._last.predict(steps, quantiles)
        level, slope = line_weights(length)
        grown = np.cumsum(self.damping ** np.arange(1, steps + 1))
        newest = series[-length:]
        middle = newest @ level + (newest @ slope) * grown
        most = 2.0 * float(series.max())
        if all(q == 0.5 for q in quantiles):
            return np.clip(np.repeat(middle[:, None], len(quantiles), axis=1), 0.0, most)
        spread = np.zeros((steps, len(quantiles)))
        past = series[-(ORIGINS + length) :]
        # np.convolve reverses its weights.
        levels, slopes = (np.convolve(past, weights[::-1], "valid") for weights in (level, slope))
        for h in range(1, steps + 1):
            actual = past[length - 1 + h :]
            if actual.size >= ENOUGH:
                errors = actual - (levels[: actual.size] + slopes[: actual.size] * grown[h - 1])
                spread[h - 1] = np.quantile(errors, quantiles) - np.median(errors)
            elif h == 1:
                plain = self._last.predict(steps, quantiles)
                shifted: Values = np.clip(plain + (middle[:, None] - newest[-1]), 0.0, most)
                return shifted
            else:
                spread[h - 1] = spread[h - 2]
        predicted: Values = np.clip(middle[:, None] + spread, 0.0, most)
        return predicted


def line_weights(length: int) -> tuple[Values, Values]:
    """Return the weights of `length` values that give the end and the slope of their least-squares line."""
    place = np.arange(length, dtype=float) - (length - 1)
    middle = place.mean()
    slope = (place - middle) / ((place - middle) ** 2).sum()
    level: Values = 1.0 / length - slope * middle
    return level, slope
